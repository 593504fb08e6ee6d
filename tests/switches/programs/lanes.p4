/* Sixteen lanes, and the ways in which programs treat them alike. */
#include <core.p4>
#include <v1model.p4>

#define EACH(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7) \
    M(8) M(9) M(10) M(11) M(12) M(13) M(14) M(15)

#define LANE(i) bit<32> d##i;
#define SIGNED_LANE(i) int<32> s##i;
#define HALF_LANE(i) bit<16> h##i;
#define BYTE_LANE(i) bit<8> b##i;

header op_t {
    bit<8> op;
    bit<8> more;
    bit<16> index;
    bit<32> operand;
}

header lanes_t { EACH(LANE) }
header signed_lanes_t { bit<16> before; EACH(SIGNED_LANE) }
header half_lanes_t { EACH(HALF_LANE) bit<8> after; }
header byte_lanes_t { EACH(BYTE_LANE) }

struct headers {
    op_t op;
    lanes_t lanes;
    lanes_t twin;
    signed_lanes_t numbers;
    half_lanes_t halves;
    byte_lanes_t bytes;
}

struct metadata {
    bit<1> first;
    bit<32> index;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        packet.extract(hdr.lanes);
        transition select(hdr.op.more) {
            1: numbers;
            2: halves;
            3: bytes;
            default: accept;
        }
    }
    state numbers {
        packet.extract(hdr.numbers);
        transition accept;
    }
    state halves {
        packet.extract(hdr.halves);
        transition bytes;
    }
    state bytes {
        packet.extract(hdr.bytes);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
#define REGISTER(i) register<bit<32>>(100) r##i;
    EACH(REGISTER)
#define SIGNED_REGISTER(i) register<int<32>>(64) n##i;
    EACH(SIGNED_REGISTER)
#define SMALL_REGISTER(i) register<bit<8>>(10) small##i;
    EACH(SMALL_REGISTER)

    bit<32> index;
    bit<32> shared;
    bool fresh;

#define STORE(i) r##i.write(index, hdr.lanes.d##i);
    action store() { EACH(STORE) }

#define LOAD(i) r##i.read(hdr.lanes.d##i, index);
    action load() { EACH(LOAD) }

#define CHOOSE(i) r##i.read(shared, index);                                   \
    hdr.lanes.d##i = fresh ? hdr.lanes.d##i : hdr.lanes.d##i + shared;         \
    r##i.write(index, hdr.lanes.d##i);
    action choose() { EACH(CHOOSE) }

#define BRANCH(i) if (meta.first == 1) { r##i.write(index, hdr.lanes.d##i); }  \
    else { bit<32> sum; r##i.read(sum, index); hdr.lanes.d##i = sum + hdr.lanes.d##i; \
           r##i.write(index, hdr.lanes.d##i); }
    action branch() { EACH(BRANCH) }

#define KEEP(i) bit<32> kept##i; r##i.read(kept##i, index);
#define USE(i) hdr.lanes.d##i = hdr.lanes.d##i ^ kept##i;
#define BACK(i) r##i.write(index, kept##i + hdr.op.operand);
    action phases() { EACH(KEEP) EACH(USE) EACH(BACK) }

#define LARGEST(i) int<32> most##i; n##i.read(most##i, index);                 \
    if (hdr.numbers.s##i > most##i) { n##i.write(index, hdr.numbers.s##i); }    \
    hdr.numbers.s##i = hdr.numbers.s##i |+| most##i;
    action largest() { EACH(LARGEST) }

#define SATURATE(i) hdr.numbers.s##i = hdr.numbers.s##i |-| (int<32>)hdr.op.operand;
    action saturate() { EACH(SATURATE) }

#define HALVE(i) hdr.halves.h##i = hdr.halves.h##i |+| (bit<16>)hdr.op.operand; \
    hdr.lanes.d##i = (bit<32>)hdr.halves.h##i;
    action halve() { EACH(HALVE) }

#define SMALL(i) bit<8> old##i; small##i.read(old##i, index);                  \
    small##i.write(index, old##i + hdr.bytes.b##i); hdr.bytes.b##i = old##i;
    action small() { EACH(SMALL) }

#define MIX(i) hdr.twin.d##i = hdr.lanes.d##i & hdr.op.operand;
    action mix() {
        hdr.twin.setValid();
        EACH(MIX)
    }

    action copy() {
        hdr.twin = hdr.lanes;
        hdr.twin.d3 = hdr.op.operand;
        hdr.lanes.d5 = hdr.twin.d4 + 1;
    }

    action swap_two() {
        bit<32> kept = hdr.lanes.d0;
        hdr.lanes.d0 = hdr.lanes.d1;
        hdr.lanes.d1 = kept;
    }

    table choices {
        key = { hdr.op.op: exact; }
        actions = { store; load; choose; branch; phases; largest; saturate; halve; small; mix;
                    copy; swap_two; NoAction; }
        default_action = NoAction();
        const entries = {
            1: store();
            2: load();
            3: choose();
            4: branch();
            5: phases();
            6: largest();
            7: saturate();
            8: halve();
            9: small();
            10: mix();
            11: copy();
            12: swap_two();
        }
    }

#define INLINE(i) r##i.read(shared, index);                                   \
    hdr.lanes.d##i = shared > hdr.op.operand ? shared - hdr.op.operand : hdr.lanes.d##i; \
    r##i.write(index + 1, hdr.lanes.d##i);

    apply {
        standard_metadata.egress_spec = 2;
        index = (bit<32>)hdr.op.index;
        meta.index = index;
        meta.first = hdr.op.operand[0:0];
        fresh = hdr.op.operand[1:1] == 1;
        if (standard_metadata.parser_error == error.NoError) {
            choices.apply();
            if (hdr.op.op == 20) {
                EACH(INLINE)
            }
        }
    }
}

#define ROTATE(i) hdr.lanes.d##i = (hdr.lanes.d##i << 3) | (hdr.lanes.d##i >> 29);

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.op.op == 2 && meta.index < 5) {
            EACH(ROTATE)
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
