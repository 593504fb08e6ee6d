/* Hashes over headers that may be missing, a varbit field and the payload, whose bits are not
   whole bytes, by every algorithm of v1model. */
#include <core.p4>
#include <v1model.p4>

header sums_t {
    bit<16> crc16;
    bit<32> crc32;
    bit<16> csum16;
    bit<16> xor16;
    bit<64> same;
    bit<16> crc16_custom;
    bit<32> crc32_custom;
    bit<16> crc16_whole;
    bit<32> crc32_whole;
    bit<16> csum16_whole;
    bit<16> xor16_whole;
    bit<64> same_whole;
    bit<64> hashed;
    bit<32> ranged;
    bit<16> long_crc16;
    bit<70> long_same;
    int<10> long_xor16;
}

header base_t {
    bit<8> kind;
    bit<3> a;
    int<9> b;
    bit<4> c;
    bit<40> d;
}

header extra_t {
    bit<24> e;
}

header options_t {
    bit<8> size;
    varbit<64> data;
}

header long_t {
    bit<800> f;
}

struct headers {
    sums_t sums;
    base_t base;
    extra_t extra;
    options_t options;
    long_t long;
}

struct metadata { }

#define PARTS { hdr.base.a, hdr.base.b, hdr.extra.e, 5w21, hdr.options.data, hdr.base.d, hdr.base.c }
#define LONG { hdr.long.f, hdr.base.a }

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.sums);
        packet.extract(hdr.base);
        transition select(hdr.base.kind) {
            1 &&& 1: extra;
            2 &&& 2: options;
            4 &&& 4: long;
            default: accept;
        }
    }
    state extra {
        packet.extract(hdr.extra);
        transition select(hdr.base.kind) {
            2 &&& 2: options;
            4 &&& 4: long;
            default: accept;
        }
    }
    state options {
        bit<8> size = packet.lookahead<bit<8>>();
        packet.extract(hdr.options, (bit<32>)size << 3);
        transition select(hdr.base.kind) {
            4 &&& 4: long;
            default: accept;
        }
    }
    state long {
        packet.extract(hdr.long);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum(hdr.base.kind & 8 != 0, PARTS, hdr.sums.crc32, HashAlgorithm.crc32);
        verify_checksum_with_payload(hdr.base.kind & 16 != 0, PARTS, hdr.sums.crc16_whole,
                                     HashAlgorithm.crc16);
    }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = standard_metadata.checksum_error == 1 ? 9w3 : 9w2;
        hash(hdr.sums.hashed, HashAlgorithm.crc32, hdr.base.d, { hdr.base.a, hdr.base.b },
             (bit<64>)hdr.base.c);
        hash(hdr.sums.ranged, HashAlgorithm.crc16, 32w1000, { hdr.base.b, hdr.base.d }, 65w500);
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control U(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(true, PARTS, hdr.sums.crc16, HashAlgorithm.crc16);
        update_checksum(true, PARTS, hdr.sums.crc32, HashAlgorithm.crc32);
        update_checksum(true, PARTS, hdr.sums.csum16, HashAlgorithm.csum16);
        update_checksum(true, PARTS, hdr.sums.xor16, HashAlgorithm.xor16);
        update_checksum(true, PARTS, hdr.sums.same, HashAlgorithm.identity);
        update_checksum(true, PARTS, hdr.sums.crc16_custom, HashAlgorithm.crc16_custom);
        update_checksum(true, PARTS, hdr.sums.crc32_custom, HashAlgorithm.crc32_custom);
        update_checksum_with_payload(true, PARTS, hdr.sums.crc16_whole, HashAlgorithm.crc16);
        update_checksum_with_payload(true, PARTS, hdr.sums.crc32_whole, HashAlgorithm.crc32);
        update_checksum_with_payload(true, PARTS, hdr.sums.csum16_whole, HashAlgorithm.csum16);
        update_checksum_with_payload(true, PARTS, hdr.sums.xor16_whole, HashAlgorithm.xor16);
        update_checksum_with_payload(true, PARTS, hdr.sums.same_whole, HashAlgorithm.identity);
        update_checksum(hdr.long.isValid(), LONG, hdr.sums.long_crc16, HashAlgorithm.crc16);
        update_checksum(hdr.long.isValid(), LONG, hdr.sums.long_same, HashAlgorithm.identity);
        update_checksum(hdr.long.isValid(), LONG, hdr.sums.long_xor16, HashAlgorithm.xor16);
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.sums);
        packet.emit(hdr.base);
        packet.emit(hdr.extra);
        packet.emit(hdr.options);
        packet.emit(hdr.long);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;
