/* Header unions, and a stack of them: options of three kinds in any order. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<8> count;
}

header small_t {
    bit<8> kind;
    bit<8> value;
}

header large_t {
    bit<8> kind;
    bit<80> value;
}

header long_t {
    bit<8> kind;
    bit<8> length;
    varbit<64> value;
}

header_union option_t {
    small_t small;
    large_t large;
    long_t long;
}

struct headers {
    op_t op;
    option_t[3] options;
    option_t first;
    option_t second;
}

struct metadata {
    bit<8> left;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        meta.left = hdr.op.count;
        transition select(hdr.op.op[7:7]) {
            1: one;
            default: next;
        }
    }
    state one {
        transition select(packet.lookahead<bit<8>>()) {
            1: one_small;
            2: one_large;
            default: accept;
        }
    }
    state one_small {
        packet.extract(hdr.first.small);
        transition select(hdr.first.small.value) {
            0: one;  // another may take its place
            default: next;
        }
    }
    state one_large {
        packet.extract(hdr.first.large);
        transition next;
    }
    state next {
        transition select(meta.left) {
            0: accept;
            default: option;
        }
    }
    state option {
        meta.left = meta.left - 1;
        transition select(packet.lookahead<bit<8>>()) {
            1: small;
            2: large;
            3: long;
            default: accept;
        }
    }
    state small {
        bit<16> peek = packet.lookahead<bit<16>>();
        packet.extract(hdr.options.next.small);
        transition select(peek[7:0]) {
            0xff: accept;
            default: next;
        }
    }
    state large {
        packet.extract(hdr.options.next.large);
        transition next;
    }
    state long {
        bit<16> ahead = packet.lookahead<bit<16>>();
        packet.extract(hdr.options.next.long, (bit<32>)(ahead[7:0] << 3));
        transition next;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (!hdr.op.isValid()) {
            return;
        }
        if (hdr.op.op[3:0] == 1) {
            hdr.options[0].small.setValid();
            hdr.options[0].small.kind = 7;
        } else if (hdr.op.op[3:0] == 2) {
            hdr.options[1].large.setInvalid();
        } else if (hdr.op.op[3:0] == 3) {
            hdr.second = hdr.first;
        } else if (hdr.op.op[3:0] == 4) {
            hdr.options.push_front(1);
        } else if (hdr.op.op[3:0] == 5) {
            hdr.options.pop_front(1);
        } else if (hdr.op.op[3:0] == 6) {
            hdr.options[0].large = hdr.options[1].large;
        } else if (hdr.op.op[3:0] == 7 && hdr.first.isValid()) {
            hdr.op.count = 0x77;
        } else if (hdr.op.op[3:0] == 8) {
            hdr.options[2].long.setValid();
            hdr.options[2].long.kind = 9;
        } else if (hdr.op.op[3:0] == 9) {
            hdr.options[0].long = hdr.options[1].long;
        }
        if (hdr.options[0].small.isValid()) {
            hdr.op.count[3:3] = 1;
        }
        if (standard_metadata.parser_error == error.StackOutOfBounds) {
            hdr.op.count[7:7] = 1;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            hdr.op.count[6:6] = 1;
        } else if (standard_metadata.parser_error == error.PacketTooShort) {
            hdr.op.count[5:5] = 1;
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.op.isValid() && hdr.op.op[6:6] == 1 && hdr.options[1].small.isValid()) {
            hdr.options[1].small.value = hdr.options[1].small.value + 1;
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.op);
        packet.emit(hdr.second);
        packet.emit(hdr.first);
        packet.emit(hdr.options);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
