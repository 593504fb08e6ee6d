/* Every kind of match, and every way to go on after a table. */
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8> kind;
    bit<32> address;
    bit<16> port;
    bit<8> flags;
    bit<128> wide;
    bit<48> mac;
    int<16> level;
}

header trace_t {
    bit<8> exact;
    bit<8> lpm;
    bit<8> ternary;
    bit<8> range;
    bit<8> optional;
    bit<8> mixed;
    bit<8> constant;
    bit<8> went;
    bit<128> wide;
    bit<16> keyless;
}

struct headers {
    key_t key;
    trace_t trace;
}

struct metadata {
    bit<4> small;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.key);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) exact_hits;

    action set_exact(bit<8> value) {
        hdr.trace.exact = value;
        exact_hits.count();
    }
    action set_lpm(bit<8> value) {
        hdr.trace.lpm = value;
    }
    action set_ternary(bit<8> value) {
        hdr.trace.ternary = value;
    }
    action set_range(bit<8> value) {
        hdr.trace.range = value;
    }
    action set_optional(bit<8> value) {
        hdr.trace.optional = value;
    }
    action set_mixed(bit<8> value, bit<128> wide) {
        hdr.trace.mixed = value;
        hdr.trace.wide = wide;
    }
    action set_constant(bit<8> value) {
        hdr.trace.constant = value;
    }
    action set_keyless(bit<16> value) {
        hdr.trace.keyless = value;
    }
    action left() {
        hdr.trace.went = 1;
    }
    action right() {
        hdr.trace.went = 2;
    }
    action leave() {
        hdr.trace.went = 0xee;
        exit;
    }

    table exact_table {
        key = { hdr.key.address: exact; hdr.key.port: exact; hdr.key.isValid(): exact; }
        actions = { set_exact; NoAction; }
        counters = exact_hits;
        size = 100;
    }
    table lpm_table {
        key = { hdr.key.address: lpm; }
        actions = { set_lpm; }
        default_action = set_lpm(0xdd);
    }
    table ternary_table {
        key = { hdr.key.address: ternary; hdr.key.flags: ternary; hdr.key.level: ternary; }
        actions = { set_ternary; NoAction; }
    }
    table range_table {
        key = { hdr.key.port: range; hdr.key.kind: exact; hdr.key.flags: range; }
        actions = { set_range; NoAction; }
    }
    table optional_table {
        key = { hdr.key.mac: optional; hdr.key.kind: optional; }
        actions = { set_optional; NoAction; }
    }
    table mixed_table {
        key = { hdr.key.wide: lpm; meta.small: exact; }
        actions = { set_mixed; NoAction; }
    }
    table constant_table {
        key = { hdr.key.flags: ternary; hdr.key.kind: exact; }
        actions = { set_constant; NoAction; }
        const entries = {
            (0x80 &&& 0x80, 1): set_constant(1);
            (0x81 &&& 0xff, 1): set_constant(2);
            (_, 2): set_constant(3);
        }
    }
    table keyless_table {
        actions = { set_keyless; NoAction; }
        default_action = set_keyless(0x1234);
    }
    table which_way {
        key = { hdr.key.kind: exact; }
        actions = { left; right; leave; NoAction; }
        const default_action = NoAction();
    }

    apply {
        standard_metadata.egress_spec = 2;
        if (!hdr.key.isValid()) {  // its fields are undefined
            exit;
        }
        hdr.trace.setValid();
        meta.small = hdr.key.flags[3:0];
        if (exact_table.apply().hit) {
            lpm_table.apply();
        } else {
            hdr.trace.lpm = 0xaa;
        }
        ternary_table.apply();
        if (!range_table.apply().hit) {
            hdr.trace.range = 0xbb;
        }
        optional_table.apply();
        mixed_table.apply();
        constant_table.apply();
        switch (which_way.apply().action_run) {
            left: {
                keyless_table.apply();
            }
            right: {
                hdr.trace.keyless = 7;
            }
            default: {
                hdr.trace.went = 9;
            }
        }
        hdr.key.kind = 0xff;
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.key);
        packet.emit(hdr.trace);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
