/* Stacks of headers: parsed in a loop, pushed, popped, copied, and reached by constant and by index. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<8> index;
    bit<16> value;
}

header label_t {
    bit<15> label;
    bit<1> last;
    bit<70> wide;
    bit<2> pad;
}

header note_t {
    bit<32> error_code;
    bit<32> length;
    bit<32> last_index;
    bit<16> seen;
    bit<8> flags;
}

struct headers {
    note_t note;
    op_t op;
    label_t[4] labels;
    label_t[4] spare;
}

struct metadata {
    bit<16> seen;
    bit<32> last_index;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        transition select(hdr.op.op[7:7]) {
            1: accept;
            default: labels;
        }
    }
    state labels {
        packet.extract(hdr.labels.next);
        meta.seen = meta.seen + (bit<16>)hdr.labels.last.label;
        meta.last_index = hdr.labels.lastIndex;
        verify(hdr.labels.last.label != 0x7abc, error.HeaderTooShort);
        transition select(hdr.labels.last.last, hdr.labels.last.label) {
            (0, _): labels;
            (1, 0x100 &&& 0x7f00): spare;
            default: accept;
        }
    }
    state spare {
        packet.extract(hdr.spare.next);
        packet.extract(hdr.spare.next);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action at_index() {
        hdr.labels[hdr.op.index & 3].label = (bit<15>)hdr.op.value;
    }
    action read_index() {
        meta.seen = (bit<16>)hdr.labels[hdr.op.index & 3].label;
    }
    apply {
        standard_metadata.egress_spec = 2;
        if (!hdr.op.isValid()) {
        } else if (hdr.op.op == 1) {
            hdr.labels.push_front(1);
        } else if (hdr.op.op == 2) {
            hdr.labels.push_front(3);
            hdr.labels[0].setValid();
            hdr.labels[1].setValid();
            hdr.labels[1].wide = 0x2a_bcde_f012_3456_7890;
            hdr.labels[2].setValid();
        } else if (hdr.op.op == 3) {
            hdr.labels.pop_front(1);
        } else if (hdr.op.op == 4) {
            hdr.labels.pop_front(2);
        } else if (hdr.op.op == 5) {
            hdr.spare = hdr.labels;
        } else if (hdr.op.op == 6) {
            label_t kept = hdr.labels[0];
            hdr.labels[0] = hdr.labels[1];
            hdr.labels[1] = kept;
        } else if (hdr.op.op == 7) {
            at_index();
        } else if (hdr.op.op == 8 && hdr.labels[3].isValid()) {  // else some are undefined
            read_index();
        } else if (hdr.op.op == 9) {
            hdr.labels[1].setInvalid();
        } else if (hdr.op.op == 10) {
            hdr.labels.push_front(5);
        } else if (hdr.op.op == 11) {
            hdr.labels.pop_front(4);
        } else if (hdr.op.op == 12 && hdr.labels[0] == hdr.labels[1]) {
            meta.seen = 0xeeee;
        } else if (hdr.op.op == 13) {
            hdr.labels.push_front(1);
            hdr.labels.pop_front(1);
        } else if (hdr.op.op == 14) {
            hdr.labels.pop_front(1);
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].label = (bit<15>)hdr.op.value;
        }
        if (hdr.op.isValid() && hdr.op.index[7:7] == 1) {
            hdr.note.setValid();
            hdr.note.seen = meta.seen;
            hdr.note.last_index = meta.last_index;
            hdr.note.flags[0:0] = (bit<1>)hdr.labels[0].isValid();
            hdr.note.flags[1:1] = (bit<1>)hdr.labels[1].isValid();
            hdr.note.flags[2:2] = (bit<1>)hdr.labels[2].isValid();
            hdr.note.flags[3:3] = (bit<1>)hdr.labels[3].isValid();
            if (standard_metadata.parser_error == error.PacketTooShort) {
                hdr.note.error_code = 1;
            } else if (standard_metadata.parser_error == error.StackOutOfBounds) {
                hdr.note.error_code = 2;
            } else if (standard_metadata.parser_error == error.HeaderTooShort) {
                hdr.note.error_code = 3;
            }
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.note.isValid()) {
            hdr.note.length = standard_metadata.packet_length;
        }
        if (!hdr.op.isValid()) {
            return;
        }
        if (hdr.op.index[6:6] == 1) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].label = meta.seen[14:0];
        }
        if (hdr.op.index[5:5] == 1) {
            hdr.labels.pop_front(1);
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.note);
        packet.emit(hdr.op);
        packet.emit(hdr.labels);
        packet.emit(hdr.spare);
        packet.emit(hdr.op);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
