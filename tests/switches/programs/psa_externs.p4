/* PSA's externs, each of which answers in the packet. */
#include <core.p4>
#include <bmv2/psa.p4>

header ask_t {
    bit<8> kind;
    bit<8> index;
    bit<16> given;
    bit<32> answer;
    bit<32> other;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> diffserv;
    bit<16> totalLen;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragOffset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> hdrChecksum;
    bit<32> srcAddr;
    bit<32> dstAddr;
}

struct headers {
    ask_t ask;
    ipv4_t ipv4;
}

struct empty {
}

struct learn_t {
    bit<16> given;
    PortId_t port;
}

struct metadata {
    bit<32> color;
    bit<8> old_ttl;
}

error {
    WrongChecksum
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         in psa_ingress_parser_input_metadata_t istd, in empty resubmit_meta,
         in empty recirculate_meta) {
    InternetChecksum() checksum;
    state start {
        packet.extract(hdr.ask);
        transition select(hdr.ask.kind) {
            8: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        checksum.clear();
        checksum.add({
            hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.diffserv, hdr.ipv4.totalLen,
            hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragOffset, hdr.ipv4.ttl,
            hdr.ipv4.protocol, hdr.ipv4.srcAddr, hdr.ipv4.dstAddr
        });
        verify(checksum.get() == hdr.ipv4.hdrChecksum, error.WrongChecksum);
        transition accept;
    }
}

control I(inout headers hdr, inout metadata meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Register<bit<32>, bit<8>>(4) sums;
    Counter<bit<32>, bit<8>>(4, PSA_CounterType_t.PACKETS_AND_BYTES) counts;
    Meter<bit<8>>(4, PSA_MeterType_t.PACKETS) rates;
    DirectMeter(PSA_MeterType_t.PACKETS) limits;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS) hits;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc;
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) long_crc;
    Random<bit<16>>(5, 7) dice;
    Digest<learn_t>() learned;
    ActionSelector(PSA_HashAlgorithm_t.CRC16, 8, 32w4) chooser;

    action add_up() {
        hdr.ask.answer = sums.read(hdr.ask.index);
        sums.write(hdr.ask.index, hdr.ask.answer + (bit<32>) hdr.ask.given);
    }
    action count() {
        counts.count(hdr.ask.index);
    }
    action meter() {
        PSA_MeterColor_t color = rates.execute(hdr.ask.index);
        if (color == PSA_MeterColor_t.GREEN) {
            hdr.ask.answer = 1;
        } else if (color == PSA_MeterColor_t.YELLOW) {
            hdr.ask.answer = 2;
        } else {
            hdr.ask.answer = 3;
        }
    }
    action hash() {
        hdr.ask.answer = (bit<32>) crc.get_hash(hdr.ask.given);
        hdr.ask.other = long_crc.get_hash({hdr.ask.kind, hdr.ask.given});
    }
    action hash_into() {
        hdr.ask.answer = long_crc.get_hash(32w100, {hdr.ask.kind, hdr.ask.given}, 32w10);
    }
    action draw() {
        hdr.ask.answer = (bit<32>) dice.read();
    }
    action learn() {
        learned.pack({hdr.ask.given, istd.ingress_port});
    }
    action pass() {
    }
    table kinds {
        key = {
            hdr.ask.kind: exact;
        }
        actions = {
            add_up;
            count;
            meter;
            hash;
            hash_into;
            draw;
            learn;
            pass;
        }
        default_action = pass;
        const entries = {
            1: add_up();
            2: count();
            3: meter();
            4: hash();
            5: hash_into();
            6: draw();
            7: learn();
        }
    }

    action limited() {
        PSA_MeterColor_t color = limits.execute();
        meta.color = (bit<32>) color;
        hits.count();
    }
    table limiter {
        key = {
            hdr.ask.given: exact;
        }
        actions = {
            limited;
            NoAction;
        }
        default_action = NoAction;
        psa_direct_meter = limits;
        psa_direct_counter = hits;
    }

    action choose(bit<32> answer) {
        hdr.ask.answer = answer;
    }
    table choices {
        key = {
            hdr.ask.index: exact;
            hdr.ask.given: selector;
        }
        actions = {
            choose;
            NoAction;
        }
        psa_implementation = chooser;
    }

    apply {
        send_to_port(ostd, (PortId_t) 3);
        if (istd.parser_error == error.WrongChecksum) {
            send_to_port(ostd, (PortId_t) 4);
        } else if (istd.parser_error != error.NoError) {
            ingress_drop(ostd);
        }
        kinds.apply();
        if (hdr.ask.kind == 9) {
            if (limiter.apply().hit) {
                hdr.ask.answer = meta.color;
            }
        } else if (hdr.ask.kind == 10) {
            choices.apply();
        }
    }
}

control ID(packet_out packet, out empty clone_i2e_meta, out empty resubmit_meta,
           out empty normal_meta, inout headers hdr, in metadata meta,
           in psa_ingress_output_metadata_t istd) {
    apply {
        packet.emit(hdr.ask);
        packet.emit(hdr.ipv4);
    }
}

parser EP(packet_in packet, out headers hdr, inout metadata meta,
          in psa_egress_parser_input_metadata_t istd, in empty normal_meta,
          in empty clone_i2e_meta, in empty clone_e2e_meta) {
    state start {
        packet.extract(hdr.ask);
        transition select(hdr.ask.kind) {
            8: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control E(inout headers hdr, inout metadata meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        if (hdr.ipv4.isValid()) {
            meta.old_ttl = hdr.ipv4.ttl;
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }
}

// The old checksum, without the old word of `ttl` and with the new one (RFC 1624).
control ED(packet_out packet, out empty clone_e2e_meta, out empty recirculate_meta,
           inout headers hdr, in metadata meta, in psa_egress_output_metadata_t istd,
           in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() checksum;
    apply {
        checksum.clear();
        checksum.subtract({hdr.ipv4.hdrChecksum});
        checksum.subtract({meta.old_ttl, hdr.ipv4.protocol});
        checksum.add({hdr.ipv4.ttl, hdr.ipv4.protocol});
        hdr.ipv4.hdrChecksum = checksum.get();
        packet.emit(hdr.ask);
        packet.emit(hdr.ipv4);
    }
}

IngressPipeline(P(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
