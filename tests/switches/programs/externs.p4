/* Meters, action profiles, selectors, digests and idle timeouts. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<16> index;
    bit<32> flow;
    bit<8> colour;
    bit<8> direct;
    bit<16> chosen;
    bit<16> single;
}

struct headers {
    op_t op;
}

struct learned_t {
    bit<32> flow;
    bit<9> port;
    bit<80> wide;
}

struct metadata {
    bit<8> colour;
    bit<80> wide;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    meter(16, MeterType.packets) by_packets;
    meter(16, MeterType.bytes) by_bytes;
    direct_meter<bit<8>>(MeterType.bytes) per_entry;
    direct_counter(CounterType.packets_and_bytes) hits;
    action_selector(HashAlgorithm.crc16, 32w64, 32w16) spreader;
    action_profile(16) profile;

    action pass() {
        per_entry.read(meta.colour);
        hits.count();
    }

    table metered {
        key = { hdr.op.index: exact; }
        actions = { pass; NoAction; }
        default_action = NoAction;
        meters = per_entry;
        counters = hits;
        support_timeout = true;
        size = 8;
    }

    action choose(bit<16> value) {
        hdr.op.chosen = value;
    }

    action choose_flow(bit<8> add) {
        hdr.op.chosen = (bit<16>) hdr.op.flow + (bit<16>) add;
    }

    table spread {
        key = {
            hdr.op.index: exact;
            hdr.op.flow: selector;
        }
        actions = { choose; choose_flow; NoAction; }
        implementation = spreader;
        size = 64;
    }

    table spread_more {
        key = {
            hdr.op.index: lpm;
            hdr.op.flow: selector;
        }
        actions = { choose; choose_flow; NoAction; }
        implementation = spreader;
        size = 64;
    }

    action set_single(bit<16> value) {
        hdr.op.single = value;
    }

    table one {
        key = { hdr.op.index: ternary; }
        actions = { set_single; }
        implementation = profile;
        size = 64;
    }

    apply {
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        if (hdr.op.op == 0) {
            by_packets.execute_meter((bit<32>) hdr.op.index, hdr.op.colour);
        } else if (hdr.op.op == 1) {
            by_bytes.execute_meter((bit<32>) hdr.op.index, hdr.op.colour);
        } else if (hdr.op.op == 2) {
            meta.colour = 9;
            if (metered.apply().hit) {
                hdr.op.colour = 1;
            }
            hdr.op.direct = meta.colour;
        } else if (hdr.op.op == 3) {
            if (spread.apply().miss) {
                spread_more.apply();
            }
        } else if (hdr.op.op == 4) {
            one.apply();
        } else if (hdr.op.op == 5) {
            meta.wide = hdr.op.flow ++ (bit<48>) 0x123456789abc;
            digest<learned_t>(1, { hdr.op.flow, standard_metadata.ingress_port, meta.wide });
        } else if (hdr.op.op == 6) {
            assert(hdr.op.index < 100);
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    counter(4, CounterType.bytes) sent;

    apply {
        sent.count((bit<32>) hdr.op.op & 3);
        if (hdr.op.op == 6) {
            assume(hdr.op.index > 10);
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.op);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
