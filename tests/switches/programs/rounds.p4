/* Packets that come round: clones of what egress makes, resubmission and recirculation. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<8> rounds;
    bit<16> session;
    bit<16> length;
}

header trail_t {
    bit<8> instance;
    bit<8> kept;
    bit<8> lost;
    bit<8> rid;
    bit<16> size;
    bit<8> port;
    bit<8> count;
}

struct headers {
    trail_t trail;
    op_t op;
}

struct metadata {
    @field_list(1)
    bit<8> kept;
    @field_list(2)
    bit<8> count;
    bit<8> lost;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0x80 &&& 0x80: parse_trail;
            default: parse_op;
        }
    }
    state parse_trail {
        packet.extract(hdr.trail);
        transition parse_op;
    }
    state parse_op {
        packet.extract(hdr.op);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        meta.lost = meta.lost + 1;
        standard_metadata.egress_spec = 2;
        if (hdr.op.op & 1 != 0) {
            if (meta.kept < hdr.op.rounds || hdr.op.rounds == 0xff) {
                meta.kept = meta.kept + 1;
                hdr.op.length = 0xffff; // lost: what is resubmitted is the packet as it came
                resubmit_preserving_field_list(1);
            }
        }
        if (hdr.op.op & 2 != 0) {
            clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.op.session, 1);
        }
        if (hdr.op.op & 32 != 0) {
            standard_metadata.mcast_grp = hdr.op.session;
        }
        if (hdr.op.op & 64 != 0) {
            mark_to_drop(standard_metadata);
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        bit<8> instance = (bit<8>) standard_metadata.instance_type;
        if (hdr.op.op & 4 != 0 && instance != 2) {
            clone_preserving_field_list(CloneType.E2E, (bit<32>) hdr.op.session, 2);
        }
        if (hdr.op.op & 8 != 0 && instance != 2 && (meta.count < hdr.op.rounds || hdr.op.rounds == 0xff)) {
            meta.count = meta.count + 1;
            recirculate_preserving_field_list(2);
        }
        hdr.trail.setValid();
        hdr.trail.instance = 0x80 | instance;
        hdr.trail.kept = meta.kept;
        hdr.trail.lost = meta.lost;
        hdr.trail.rid = (bit<8>) standard_metadata.egress_rid;
        hdr.trail.size = (bit<16>) standard_metadata.packet_length;
        hdr.trail.port = (bit<8>) standard_metadata.ingress_port;
        hdr.trail.count = meta.count;
        if (hdr.op.op & 16 != 0) {
            truncate((bit<32>) hdr.op.length);
        }
        if (hdr.op.length == 0xffff && instance == 0) {
            mark_to_drop(standard_metadata);
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.trail);
        packet.emit(hdr.op);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
