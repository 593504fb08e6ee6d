/* Every operator on fields of many widths; the results go into a header of their own. */
#include <core.p4>
#include <v1model.p4>

header operands_t {
    bit<64> a;
    bit<64> b;
    bit<32> c;
    bit<32> d;
    bit<8> e;
    bit<8> n;
    bit<3> f;
    bit<5> g;
    bit<8> choice;
    int<32> s;
    int<32> t;
    int<8> u;
    int<8> v;
    int<64> y;
    bit<128> w;
    bit<128> x;
    bit<20> odd;
    bit<12> rest;
}

header results_t {
    bit<64> sum64;
    bit<64> difference64;
    bit<64> product64;
    bit<32> sum32;
    bit<32> difference32;
    bit<32> product32;
    bit<8> sum8;
    bit<64> left64;
    bit<64> right64;
    bit<32> left32;
    bit<32> right32;
    bit<64> mixed;
    bit<64> negated;
    bit<8> slice;
    bit<40> joined;
    bit<32> saturated_sum;
    bit<32> saturated_difference;
    int<32> signed_sum;
    int<32> signed_difference;
    int<32> signed_product;
    int<32> signed_saturated_sum;
    int<32> signed_saturated_difference;
    int<32> signed_right;
    int<8> negative;
    int<32> widened;
    bit<32> cast;
    int<64> long_sum;
    bit<8> comparisons;
    bit<8> signed_comparisons;
    bit<8> wide_comparisons;
    bit<128> wide_and;
    bit<128> wide_or;
    bit<128> wide_not;
    bit<128> wide_left;
    bit<128> wide_right;
    bit<128> wide_slice;
    bit<64> wide_part;
    bit<32> ternary;
    bit<20> odd_sum;
    bit<12> odd_rest;
    bit<32> spliced;
    bit<8> logic;
}

struct headers {
    operands_t i;
    results_t o;
}

struct metadata {
    bool both;
    int<32> kept;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.i);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        hdr.o.setValid();
        hdr.o.sum64 = hdr.i.a + hdr.i.b;
        hdr.o.difference64 = hdr.i.a - hdr.i.b;
        hdr.o.product64 = hdr.i.a * hdr.i.b;
        hdr.o.sum32 = hdr.i.c + hdr.i.d;
        hdr.o.difference32 = hdr.i.c - hdr.i.d;
        hdr.o.product32 = hdr.i.c * hdr.i.d;
        hdr.o.sum8 = hdr.i.e + hdr.i.n;
        hdr.o.left64 = hdr.i.a << hdr.i.n;
        hdr.o.right64 = hdr.i.a >> hdr.i.n;
        hdr.o.left32 = hdr.i.c << 7;
        hdr.o.right32 = hdr.i.c >> 9;
        hdr.o.mixed = (hdr.i.a & hdr.i.b) | (hdr.i.a ^ ~hdr.i.b);
        hdr.o.negated = -hdr.i.a;
        hdr.o.slice = hdr.i.a[43:36];
        hdr.o.joined = hdr.i.c ++ hdr.i.f ++ hdr.i.g;
        hdr.o.saturated_sum = hdr.i.c |+| hdr.i.d;
        hdr.o.saturated_difference = hdr.i.c |-| hdr.i.d;
        hdr.o.signed_sum = hdr.i.s + hdr.i.t;
        hdr.o.signed_difference = hdr.i.s - hdr.i.t;
        hdr.o.signed_product = hdr.i.s * hdr.i.t;
        hdr.o.signed_saturated_sum = hdr.i.s |+| hdr.i.t;
        hdr.o.signed_saturated_difference = hdr.i.s |-| hdr.i.t;
        hdr.o.signed_right = hdr.i.s >> 5;
        hdr.o.negative = -hdr.i.u;
        hdr.o.widened = (int<32>)hdr.i.u;
        hdr.o.cast = (bit<32>)hdr.i.s;
        hdr.o.long_sum = hdr.i.y + (int<64>)hdr.i.s;
        hdr.o.comparisons = (bit<1>)(hdr.i.a < hdr.i.b) ++ (bit<1>)(hdr.i.a <= hdr.i.b)
            ++ (bit<1>)(hdr.i.a > hdr.i.b) ++ (bit<1>)(hdr.i.c >= hdr.i.d)
            ++ (bit<1>)(hdr.i.e == hdr.i.n) ++ (bit<1>)(hdr.i.e != hdr.i.n)
            ++ (bit<1>)(hdr.i.f < 3) ++ (bit<1>)(hdr.i.g > 16);
        hdr.o.signed_comparisons = (bit<1>)(hdr.i.s < hdr.i.t) ++ (bit<1>)(hdr.i.s <= hdr.i.t)
            ++ (bit<1>)(hdr.i.u > hdr.i.v) ++ (bit<1>)(hdr.i.u >= hdr.i.v)
            ++ (bit<1>)(hdr.i.s == hdr.i.t) ++ (bit<1>)(hdr.i.s < 0)
            ++ (bit<1>)(hdr.i.y < -5) ++ (bit<1>)(hdr.i.u != hdr.i.v);
        hdr.o.wide_comparisons = (bit<1>)(hdr.i.w < hdr.i.x) ++ (bit<1>)(hdr.i.w <= hdr.i.x)
            ++ (bit<1>)(hdr.i.w > hdr.i.x) ++ (bit<1>)(hdr.i.w >= hdr.i.x)
            ++ (bit<1>)(hdr.i.w == hdr.i.x) ++ (bit<1>)(hdr.i.w != hdr.i.x)
            ++ (bit<1>)(hdr.i.w < 5) ++ 1w1;
        hdr.o.wide_and = hdr.i.w & hdr.i.x;
        hdr.o.wide_or = hdr.i.w | (hdr.i.x ^ 0xff00ff00ff00ff00ff00ff00ff00ff00);
        hdr.o.wide_not = ~hdr.i.w;
        hdr.o.wide_left = hdr.i.w << 37;
        hdr.o.wide_right = hdr.i.w >> 71;
        hdr.o.wide_slice = (bit<128>)hdr.i.w[99:30];
        hdr.o.wide_part = hdr.i.w[95:32];
        hdr.o.ternary = hdr.i.choice == 1 ? hdr.i.c : (hdr.i.choice > 128 ? hdr.i.d : 32w7);
        hdr.o.odd_sum = hdr.i.odd + 20w0xfffff;
        hdr.o.odd_rest = hdr.i.rest - 12w1;
        hdr.o.spliced = hdr.i.c;
        hdr.o.spliced[15:8] = hdr.i.e;
        meta.both = hdr.i.a < hdr.i.b && (hdr.i.c > hdr.i.d || !(hdr.i.e == 3));
        meta.kept = hdr.i.s;
        if (meta.both || hdr.i.f == 1) {
            hdr.o.logic = 1;
        } else if (meta.kept < 0) {
            hdr.o.logic = 2;
        } else {
            hdr.o.logic = 3;
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.both) {
            hdr.o.logic = hdr.o.logic | 0x80;
        }
        if (meta.kept < -1000) {
            hdr.o.logic = hdr.o.logic | 0x40;
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.i);
        packet.emit(hdr.o);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
