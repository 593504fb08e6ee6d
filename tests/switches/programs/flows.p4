/* Ways that control takes: loops in actions, exits and returns, switches, masks on keys. */
#include <core.p4>
#include <v1model.p4>

header work_t {
    bit<8> kind;
    bit<8> count;
    bit<16> key;
    bit<32> sum;
    bit<32> way;
}

struct headers {
    work_t work;
}

struct metadata {
    @field_list(1)
    bit<8> kept;
    @field_list(1)
    bit<8> never;  // written, though it is read
    bit<8> lost;
    bool sound;
}

// of a copy of the metadata, as p4c writes it
action drop_with(inout standard_metadata_t which) {
    mark_to_drop(which);
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.work);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    action went(bit<8> where) {
        hdr.work.way = hdr.work.way << 8 | (bit<32>)where;
    }

    // as above, for tables: BMv2's command line takes all actions of a name for one
    action found(bit<8> where) {
        hdr.work.way = hdr.work.way << 8 | (bit<32>)where;
    }

    // 0 + 1 + ... up to count, without multiples of 3, and no further than 20
    action add_up() {
        hdr.work.sum = 0;
        for (bit<8> i = 0; i <= hdr.work.count; i = i + 1) {
            if (i == 3 || i == 6 || i == 9 || i == 12 || i == 15 || i == 18) {
                continue;
            }
            if (i > 20) {
                break;
            }
            hdr.work.sum = hdr.work.sum + (bit<32>)i;
        }
    }

    // pairs i < j < count whose numbers differ by less than 3
    action pairs(bit<32> start) {
        hdr.work.sum = start;
        for (bit<8> i = 0; i < hdr.work.count; i = i + 1) {
            for (bit<8> j = i + 1; j < hdr.work.count; j = j + 1) {
                if (j - i >= 3) {
                    break;
                }
                hdr.work.sum = hdr.work.sum + 1;
            }
        }
    }

    // leaves two loops at once
    action search() {
        hdr.work.sum = 0;
        for (bit<8> i = 1; i < 4; i = i + 1) {
            for (bit<8> j = 1; j < 4; j = j + 1) {
                hdr.work.sum = hdr.work.sum + 0x10;
                if (i * j == hdr.work.count) {
                    hdr.work.way = (bit<32>)(i ++ j);
                    exit;
                }
                if (i * j == 9) {
                    return;
                }
            }
            hdr.work.sum = hdr.work.sum + 1;
        }
        hdr.work.sum = 0xffff;
    }

    action nested(bit<8> value) {
        if (hdr.work.count > 100) {
            if (hdr.work.count > 200) {
                hdr.work.sum = 3;
            } else {
                if (value == 1) {
                    hdr.work.sum = 2;
                }
            }
        } else if (value == 2) {
            hdr.work.sum = 1;
        } else {
            hdr.work.sum = 0xff;
        }
    }

    action leave() {
        hdr.work.way = 0xdead;
        exit;
    }

    table loops {
        key = { hdr.work.kind: exact; }
        actions = { add_up; pairs; search; nested; leave; NoAction; }
        default_action = NoAction();
    }

    table unwanted {
        key = { hdr.work.kind: exact; }
        actions = { drop_with(standard_metadata); NoAction; }
        const default_action = NoAction();
        const entries = {
            8: drop_with(standard_metadata);
        }
    }

    table masked {
        key = {
            hdr.work.key & 0x0ff0: exact @name("middle");
            hdr.work.count & 0x81: ternary @name("ends");
        }
        actions = { found; NoAction; }
        default_action = NoAction();
    }

    table again {
        key = { hdr.work.key[7:0]: exact @name("low"); }
        actions = { found; @defaultonly NoAction; }
        const entries = {
            0x11: found(0x61);
            0x22: found(0x62);
        }
    }

    table deep {
        key = { hdr.work.key[15:8]: exact @name("high"); }
        actions = { leave; found; NoAction; }
        const default_action = NoAction();
        const entries = {
            0xee: leave();
            0x33: found(0x71);
        }
    }

    apply {
        standard_metadata.egress_spec = 2;
        meta.sound = hdr.work.isValid();
        if (hdr.work.kind == 7) {
            meta.kept = hdr.work.count;
            meta.lost = hdr.work.count;
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        }
        unwanted.apply();
        assert(meta.sound == true);
        switch (loops.apply().action_run) {
            add_up:
            pairs: { went(0x31); }
            nested: {
                went(0x32);
                if (hdr.work.key == 0xffff) {
                    return;
                }
                went(0x33);
            }
        }
        if (masked.apply().hit) {
            if (!again.apply().hit) {
                went(0x41);
            } else {
                switch (hdr.work.count) {
                    0: { went(0x51); }
                    1: { }
                    2: { exit; }
                    default: { deep.apply(); went(0x52); }
                }
            }
        } else if (hdr.work.key == 0x7777) {
            went(0x43);
            if (hdr.work.count == 0xfe) {
                leave();
            }
            went(0x44);
        }
        went(0x99);
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.instance_type == 1) {
            hdr.work.way = 8w0xcc ++ meta.kept ++ meta.never ++ meta.lost;
        }
        // what exited in ingress goes through egress nevertheless
        hdr.work.kind = hdr.work.kind | 0x80;
        if (hdr.work.count == 0xff) {
            exit;
        }
        hdr.work.kind = hdr.work.kind | 0x40;
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.work);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
