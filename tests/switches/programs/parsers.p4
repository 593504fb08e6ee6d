/* Value sets, computed steps, looking far ahead, errors, and states that assign and remove. */
#include <core.p4>
#include <v1model.p4>

error {
    Odd
}

header base_t {
    bit<8> kind;
    bit<16> port;
    bit<8> skip;  // bits
}

header item_t {
    bit<4> left;
    bit<4> kind;
    bit<72> value;
}

header pair_t {
    int<8> first;
    bit<24> second;
}

header note_t {
    bit<8> error_code;
    bit<8> visits;
    bit<100> ahead;
    bit<12> way;
    int<8> first;
}

struct ahead_t {
    bit<3> a;
    bit<90> b;
    bit<7> c;
}

struct member_t {
    bit<8> kind;
    bit<16> port;
}

struct headers {
    note_t note;
    base_t base;
    item_t item;
    pair_t pair;
}

struct metadata {
    bit<8> visits;
    bit<100> ahead;
    bit<12> way;
    ahead_t struct_ahead;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) ports;
    value_set<member_t>(3) both;

    state start {
        packet.extract(hdr.base);
        meta.way = 1;
        transition select(hdr.base.kind, hdr.base.port) {
            both: by_both;
            (0, _): accept;
            (1 .. 6, 0x1000 &&& 0xf000): ranged;
            (7, _): far;
            default: by_port;
        }
    }
    state by_port {
        transition select(hdr.base.port) {
            ports: step;
            0x55: item;  // there is no default: BMv2 goes on as if to accept
        }
    }
    state by_both {
        meta.way = meta.way | 2;
        packet.advance((bit<32>)hdr.base.skip);
        transition item;
    }
    state ranged {
        meta.way = meta.way | 4;
        packet.extract(hdr.pair);
        verify(hdr.pair.first != -3, error.Odd);
        transition select((bit<8>)hdr.pair.first) {
            0xff: step;
            5: item;
            default: accept;
        }
    }
    state step {
        meta.way = meta.way | 8;
        packet.advance((bit<32>)(hdr.base.skip & 0x78) + 8);
        transition item;
    }
    state far {
        meta.ahead = packet.lookahead<bit<100>>();
        meta.struct_ahead = packet.lookahead<ahead_t>();
        meta.way[11:5] = meta.struct_ahead.c;
        hdr.pair.setValid();
        hdr.pair.second = 0x123456;
        transition select(meta.struct_ahead.b[0:0], meta.struct_ahead.a) {
            (1, 1): item;
            (1, 2): gone;
            default: accept;
        }
    }
    state gone {
        hdr.base.setInvalid();
        transition item;
    }
    state item {
        packet.extract(hdr.item);
        meta.visits = meta.visits + 1;
        transition select(hdr.item.left, hdr.item.kind) {
            (0, _): accept;
            (_, 7): step;
            (_, 8): pair;
            default: item;
        }
    }
    state pair {
        packet.extract(hdr.pair);
        transition item;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        hdr.note.setValid();
        hdr.note.visits = meta.visits;
        hdr.note.ahead = meta.ahead;
        hdr.note.way = meta.way;
        if (hdr.pair.isValid()) {
            hdr.note.first = hdr.pair.first;
        }
        if (standard_metadata.parser_error == error.NoError) {
            hdr.note.error_code = 0x10;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.note.error_code = 0x11;
        } else if (standard_metadata.parser_error == error.ParserInvalidArgument) {
            hdr.note.error_code = 0x13;
        } else if (standard_metadata.parser_error == error.Odd) {
            hdr.note.error_code = 0x14;
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control D(packet_out packet, in headers hdr) {
    apply {
        log_msg("the item's kind is {}", { hdr.item.kind });
        packet.emit(hdr.pair);
        packet.emit(hdr.note);
        packet.emit(hdr.item);
        packet.emit(hdr.base);
        packet.emit(hdr.pair);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
