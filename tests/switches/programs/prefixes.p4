/* Prefixes of keys whose widths are no multiples of 8, in each kind of table. */
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<13> odd;
    bit<3> kind;
    bit<12> tag;
    bit<4> pad;
    bit<8> result;
}

struct headers {
    key_t key;
}

struct metadata { }

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
    action set(bit<8> value) {
        hdr.key.result = value;
    }
    table alone {
        key = { hdr.key.odd : lpm; }
        actions = { set; NoAction; }
    }
    table ranked {
        key = { hdr.key.tag : lpm; hdr.key.pad : ternary; }
        actions = { set; NoAction; }
    }
    table ranges {
        key = { hdr.key.tag : lpm; hdr.key.pad : range; }
        actions = { set; NoAction; }
    }
    table constant {
        key = { hdr.key.tag : lpm; hdr.key.pad : exact; }
        actions = { set; NoAction; }
        const entries = {
            (0x120 &&& 0xff0, 2) : set(1);
            (0x12f, 2) : set(2);
            (0 &&& 0x800, 2) : set(3);
        }
    }
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.key.kind == 0) {
            alone.apply();
        } else if (hdr.key.kind == 1) {
            ranked.apply();
        } else if (hdr.key.kind == 2) {
            ranges.apply();
        } else {
            constant.apply();
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.key);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
