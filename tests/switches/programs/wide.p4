/* Values from 65 to 2048 bits, signed and saturating: operators, registers, keys, parameters. */
#include <core.p4>
#include <v1model.p4>

header operands_t {
    bit<8> n;
    bit<8> m;
    bit<65> a;
    bit<65> b;
    bit<6> spare;
    int<65> s;
    int<65> t;
    int<64> u;
    int<64> v;
    bit<6> rest;
    bit<128> c;
    bit<128> d;
    int<200> x;
    int<200> y;
    bit<2048> e;
    bit<2048> f;
}

header results_t {
    bit<65> sum;
    bit<65> difference;
    bit<65> product;
    bit<65> left;
    bit<65> right;
    bit<65> negated;
    bit<65> capped;
    bit<65> floored;
    int<65> signed_sum;
    int<65> signed_difference;
    int<65> signed_product;
    int<65> signed_left;
    int<65> signed_right;
    int<65> signed_negated;
    int<65> signed_capped;
    int<65> signed_floored;
    int<64> long_sum;
    int<64> long_capped;
    int<64> long_right;
    bit<128> wide_product;
    bit<128> wide_right;
    bit<128> spliced;
    bit<128> middle;
    int<200> grown;
    int<200> big_product;
    int<200> big_capped;
    bit<200> big_cast;
    bit<64> slice;
    bit<2048> huge_sum;
    bit<2048> huge_product;
    bit<2048> huge_left;
    bit<2048> huge_right;
    bit<2048> huge_capped;
    bit<16> tests;
    bit<16> signed_tests;
    bit<65> register65;
    int<200> register200;
    bit<2048> register2048;
    bit<100> parameter;
    bit<1000> huge_parameter;
    bit<8> ranged;
    bit<3> pad;
}

// The packet brings room for the results: BMv2 has 512 bytes for what a packet grows by.
#define RESULTS_BITS 16304

struct headers {
    operands_t i;
    results_t o;
}

struct metadata {
    bit<65> kept;
    int<200> kept_signed;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.i);
        packet.advance(RESULTS_BITS);
        transition select(hdr.i.c) {
            128w0xffffffffffffffffffffffffffffffff &&& 128w0x80000000000000000000000000000001: accept;
            default: accept;
        }
    }
}

control V(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    register<bit<65>>(4) narrow;
    register<int<200>>(4) medium;
    register<bit<2048>>(2) huge;

    action set_parameters(bit<100> parameter, bit<1000> huge_parameter) {
        hdr.o.parameter = parameter;
        hdr.o.huge_parameter = huge_parameter;
    }
    action set_ranged(bit<8> ranged) {
        hdr.o.ranged = ranged;
    }
    table exact_wide {
        key = { hdr.i.e: exact; hdr.i.s: exact; }
        actions = { set_parameters; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table ternary_wide {
        key = { hdr.i.c: ternary; hdr.i.x: ternary; }
        actions = { set_parameters; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table range_wide {
        key = { hdr.i.d: range; hdr.i.b: range; hdr.i.n: range; }
        actions = { set_ranged; @defaultonly NoAction; }
        default_action = NoAction();
    }

    action narrow_arithmetic() {
        hdr.o.sum = hdr.i.a + hdr.i.b;
        hdr.o.difference = hdr.i.a - hdr.i.b;
        hdr.o.product = hdr.i.a * hdr.i.b;
        hdr.o.left = hdr.i.a << hdr.i.n;
        hdr.o.right = hdr.i.a >> hdr.i.n;
        hdr.o.negated = -hdr.i.a ^ ~hdr.i.b;
        hdr.o.capped = hdr.i.a |+| hdr.i.b;
        hdr.o.floored = hdr.i.a |-| hdr.i.b;
    }
    action signed_arithmetic() {
        hdr.o.signed_sum = hdr.i.s + hdr.i.t;
        hdr.o.signed_difference = hdr.i.s - hdr.i.t;
        hdr.o.signed_product = hdr.i.s * hdr.i.t;
        hdr.o.signed_left = hdr.i.s << hdr.i.m;
        hdr.o.signed_right = hdr.i.s >> hdr.i.m;
        hdr.o.signed_negated = -hdr.i.s;
        hdr.o.signed_capped = hdr.i.s |+| hdr.i.t;
        hdr.o.signed_floored = hdr.i.s |-| hdr.i.t;
        hdr.o.long_sum = hdr.i.u + hdr.i.v;
        hdr.o.long_capped = hdr.i.u |-| hdr.i.v;
        hdr.o.long_right = hdr.i.u >> hdr.i.m;
    }
    action wide_arithmetic() {
        hdr.o.wide_product = hdr.i.c * hdr.i.d;
        hdr.o.wide_right = hdr.i.c >> hdr.i.n;
        hdr.o.spliced = hdr.i.c[100:1] ++ hdr.i.d[127:100];
        hdr.o.middle = hdr.i.c;
        hdr.o.middle[99:30] = hdr.i.d[70:1];
        hdr.o.grown = (int<200>)hdr.i.s;
        hdr.o.big_product = hdr.i.x * hdr.i.y;
        hdr.o.big_capped = hdr.i.x |-| hdr.i.y;
        hdr.o.big_cast = (bit<200>)hdr.i.x;
        hdr.o.slice = hdr.i.e[1063:1000];
        meta.kept = hdr.i.a ^ hdr.i.b;
        meta.kept_signed = hdr.i.x - hdr.i.y;
    }
    action huge_arithmetic() {
        hdr.o.huge_sum = hdr.i.e + hdr.i.f;
        hdr.o.huge_product = hdr.i.e * hdr.i.f;
        hdr.o.huge_left = hdr.i.e << hdr.i.n;
        hdr.o.huge_right = hdr.i.e >> hdr.i.n;
        hdr.o.huge_capped = hdr.i.e |+| hdr.i.f;
    }
    action comparisons() {
        hdr.o.tests = (bit<1>)(hdr.i.a < hdr.i.b) ++ (bit<1>)(hdr.i.a <= hdr.i.b)
            ++ (bit<1>)(hdr.i.a == hdr.i.b) ++ (bit<1>)(hdr.i.a != hdr.i.b)
            ++ (bit<1>)(hdr.i.c > hdr.i.d) ++ (bit<1>)(hdr.i.c >= hdr.i.d)
            ++ (bit<1>)(hdr.i.e < hdr.i.f) ++ (bit<1>)(hdr.i.e == hdr.i.f) ++ 8w0;
        hdr.o.signed_tests = (bit<1>)(hdr.i.s < hdr.i.t) ++ (bit<1>)(hdr.i.s <= hdr.i.t)
            ++ (bit<1>)(hdr.i.x > hdr.i.y) ++ (bit<1>)(hdr.i.x >= hdr.i.y)
            ++ (bit<1>)(hdr.i.u < hdr.i.v) ++ (bit<1>)(hdr.i.u == hdr.i.v)
            ++ (bit<1>)(hdr.i.s < 0) ++ (bit<1>)(hdr.i.x == -1) ++ 8w0;
    }
    action registers() {
        bit<32> index = (bit<32>)hdr.i.m[2:0];
        narrow.read(hdr.o.register65, index);
        narrow.write(index, hdr.o.register65 + hdr.i.a);
        medium.read(hdr.o.register200, index);
        medium.write(index, hdr.i.x);
        huge.read(hdr.o.register2048, index);
        huge.write(index, hdr.o.register2048 ^ hdr.i.e);
    }
    apply {
        standard_metadata.egress_spec = 2;
        hdr.o.setValid();
        narrow_arithmetic();
        signed_arithmetic();
        wide_arithmetic();
        huge_arithmetic();
        comparisons();
        registers();
        exact_wide.apply();
        ternary_wide.apply();
        range_wide.apply();
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.o.sum = hdr.o.sum ^ meta.kept;
        hdr.o.grown = hdr.o.grown + meta.kept_signed;
    }
}

control U(inout headers hdr, inout metadata meta) {
    apply { }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.i);
        packet.emit(hdr.o);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;
