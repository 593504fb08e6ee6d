/* Meters of arrays and of entries, by packets and by bytes, in ingress and in egress. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<8> index;
    bit<8> indirect;
    bit<8> direct;
    bit<8> counted;
    bit<8> left;
}

struct headers {
    op_t op;
}

struct metadata {
    bit<32> indirect;
    bit<8> direct;
    bit<2> counted;
    bit<4> left;
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
    meter(4, MeterType.packets) by_packets;
    meter(4, MeterType.bytes) by_bytes;
    direct_meter<bit<8>>(MeterType.bytes) of_exact;
    direct_meter<bit<2>>(MeterType.packets) of_ternary;

    action color() {
        of_exact.read(meta.direct);
    }
    action miss() {
        of_exact.read(meta.direct);
    }
    table exact_table {
        key = { hdr.op.index : exact; }
        actions = { color; miss; }
        meters = of_exact;
        default_action = miss();
    }
    action count() {
        of_ternary.read(meta.counted);
    }
    table ternary_table {
        key = { hdr.op.index : ternary; }
        actions = { count; NoAction; }
        meters = of_ternary;
        default_action = NoAction();
    }

    apply {
        standard_metadata.egress_spec = 2;
        meta.indirect = 0xdddddddd;
        meta.direct = 0xee;
        meta.counted = 3;
        bit<32> index = (bit<32>) (hdr.op.index & 3);
        if (hdr.op.op == 0) {
            by_packets.execute_meter(index, meta.indirect);
        } else if (hdr.op.op == 1) {
            by_bytes.execute_meter(index, meta.indirect);
        } else if (hdr.op.op == 2) {
            exact_table.apply();
            ternary_table.apply();
        }
        hdr.op.indirect = (bit<8>) meta.indirect;
        hdr.op.direct = meta.direct;
        hdr.op.counted = (bit<8>) meta.counted;
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    meter(4, MeterType.bytes) leaving;

    apply {
        meta.left = 0xf;
        if (hdr.op.op == 3) {
            leaving.execute_meter((bit<32>) (hdr.op.index & 3), meta.left);
        }
        hdr.op.left = (bit<8>) meta.left;
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.op);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
