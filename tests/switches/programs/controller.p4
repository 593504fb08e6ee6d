/* A learning switch with a controller: packets in and out, digests, idle entries, and one of
 * each thing that P4Runtime writes.
 */
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 64;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<1> through;  // the tables, too
    bit<6> pad;
}

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
}

struct metadata {
    bit<2> color;
    bit<1> known;
    bit<48> flow;
}

struct learn_t {
    bit<48> address;
    bit<9> port;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) watched;

    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        meta.flow = hdr.ethernet.src;
        transition select(hdr.ethernet.type) {
            watched: parse_watched;
            default: accept;
        }
    }
    state parse_watched {
        meta.known = 1;
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.bytes) pace;
    counter(8, CounterType.packets_and_bytes) arrivals;
    meter(8, MeterType.packets) arrival_rate;
    register<bit<48>>(8) last_source;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
    }
    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    action to_controller(bit<7> reason) {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
        standard_metadata.egress_spec = CPU_PORT;
    }
    action known() {
        hits.count();
        pace.read(meta.color);
    }
    action learn() {
        digest<learn_t>(1, { hdr.ethernet.src, standard_metadata.ingress_port });
    }

    table sources {
        key = { hdr.ethernet.src: exact; standard_metadata.ingress_port: exact; }
        actions = { known; @defaultonly learn; NoAction; }
        default_action = learn;
        counters = hits;
        meters = pace;
        size = 64;
        support_timeout = true;
    }
    table destinations {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; flood; to_controller; drop; }
        default_action = to_controller(1);
        size = 8;
    }
    table guard {
        key = {
            hdr.ethernet.dst: ternary;
            hdr.ethernet.type: range;
            standard_metadata.ingress_port: optional;
        }
        actions = { drop; to_controller; NoAction; }
        const default_action = NoAction();
    }
    table prefixes {
        key = { hdr.ethernet.dst: lpm; }
        actions = { forward; @tableonly drop; NoAction; }
    }
    table fixed {
        key = { hdr.ethernet.type: ternary; }
        actions = { drop; forward; NoAction; }
        const entries = {
            0x1234: drop();
            0x9000 &&& 0xf000: forward(3);
        }
    }
    @name("spread")
    action_selector(HashAlgorithm.crc16, 32w32, 32w14) spread;
    table uplinks {
        key = { hdr.ethernet.type: exact; meta.flow: selector; }
        actions = { forward; drop; }
        implementation = spread;
    }
    action_profile(16) plain;
    table services {
        key = { hdr.ethernet.type: exact; }
        actions = { forward; drop; }
        implementation = plain;
    }

    apply {
        bit<32> index = (bit<32>)standard_metadata.ingress_port & 7;
        if (hdr.packet_out.isValid() && hdr.packet_out.through == 0) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
            exit;
        }
        hdr.packet_out.setInvalid();
        arrivals.count(index);
        arrival_rate.execute_meter(index, meta.color);
        last_source.write(index, hdr.ethernet.src);
        sources.apply();
        destinations.apply();
        prefixes.apply();
        guard.apply();
        fixed.apply();
        uplinks.apply();
        services.apply();
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
