/* Parsing with look-ahead, masks and errors; headers added, removed, moved and copied. */
#include <core.p4>
#include <v1model.p4>

error {
    BadVersion
}

header base_t {
    bit<16> kind;
    bit<8> version;
    bit<8> next;
}

header tag_t {
    bit<3> priority;
    bit<1> drop;
    bit<12> id;
    bit<16> kind;
}

header tunnel_t {
    bit<32> from;
    bit<32> to;
    bit<16> kind;
}

header note_t {
    bit<32> error_code;
    bit<32> length;
    bit<32> egress_length;
    bit<8> first;
    bit<8> flags;
    bit<16> in_port;
}

struct headers {
    note_t note;
    tunnel_t tunnel;
    base_t base;
    tag_t tag;
    tag_t inner;
}

struct metadata {
    bit<8> first;
    bit<16> ahead;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        meta.first = packet.lookahead<bit<8>>();
        transition select(meta.first, standard_metadata.ingress_port) {
            (0xee, 3): skip;
            (0xee, _): tunnel;
            (_, _): base;
        }
    }
    state skip {
        packet.advance(32);
        transition base;
    }
    state tunnel {
        packet.extract(hdr.tunnel);
        transition base;
    }
    state base {
        packet.extract(hdr.base);
        verify(hdr.base.version != 9, error.BadVersion);
        transition select(hdr.base.kind, hdr.base.next) {
            (0x8100, _): tag;
            (0x9000 &&& 0xff00, 0x10 &&& 0xf0): tag;
            (0x0001, 2): tag;
            default: accept;
        }
    }
    state tag {
        packet.extract(hdr.tag);
        transition select(packet.lookahead<bit<16>>()) {
            0xabcd: inner;
            default: accept;
        }
    }
    state inner {
        packet.extract(hdr.inner);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (!hdr.base.isValid()) {  // its fields are undefined
        } else if (hdr.base.version == 1) {  // push a tunnel
            hdr.tunnel.setValid();
            hdr.tunnel.from = 0x11223344;
            hdr.tunnel.kind = 0xeeee;
        } else if (hdr.base.version == 2) {  // pop it
            hdr.tunnel.setInvalid();
        } else if (hdr.base.version == 3) {  // swap tags
            tag_t kept = hdr.tag;
            hdr.tag = hdr.inner;
            hdr.inner = kept;
        } else if (hdr.base.version == 4) {
            truncate(20);
        } else if (hdr.base.version == 5) {
            hdr.tag.setInvalid();
            hdr.tag.setValid();
            hdr.tag.id = 0xfff;
        } else if (hdr.base.version == 6) {
            hdr.inner.setInvalid();
            hdr.tag.id = hdr.tag.id + 1;
        } else if (hdr.base.version == 7) {
            mark_to_drop(standard_metadata);
        }
        if (!hdr.base.isValid() || hdr.base.next != 0x55) {
            hdr.note.setValid();
            hdr.note.length = standard_metadata.packet_length;
            hdr.note.first = meta.first;
            hdr.note.in_port = (bit<16>)standard_metadata.ingress_port;
            hdr.note.flags[0:0] = (bit<1>)hdr.tunnel.isValid();
            hdr.note.flags[1:1] = (bit<1>)hdr.base.isValid();
            hdr.note.flags[2:2] = (bit<1>)hdr.tag.isValid();
            hdr.note.flags[3:3] = (bit<1>)hdr.inner.isValid();
            if (standard_metadata.parser_error == error.PacketTooShort) {
                hdr.note.error_code = 1;
            } else if (standard_metadata.parser_error == error.BadVersion) {
                hdr.note.error_code = 2;
            }
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.note.isValid()) {
            hdr.note.egress_length = standard_metadata.packet_length;
        }
        if (!hdr.base.isValid()) {
        } else if (hdr.base.next == 0x66) {
            mark_to_drop(standard_metadata);
        } else if (hdr.base.next == 0x77) {
            truncate(11);
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.note);
        packet.emit(hdr.tunnel);
        packet.emit(hdr.base);
        packet.emit(hdr.tag);
        packet.emit(hdr.inner);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
