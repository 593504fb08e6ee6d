/* Registers, counters, hashes, clones and multicast. */
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8> op;
    bit<16> index;
    bit<64> value;
    bit<16> group;
    bit<32> x;
    bit<5> y;
    bit<3> z;
}

header result_t {
    bit<64> old;
    bit<32> crc32;
    bit<16> crc16;
    bit<16> sum;
    bit<16> exclusive;
    bit<64> same;
    bit<16> ranged;
    bit<32> instance;
    bit<16> copy;
    bit<16> port;
    bit<8> kept;
    int<8> level;
}

struct headers {
    op_t op;
    result_t result;
}

struct metadata {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.op);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    register<bit<64>>(100) longs;
    register<bit<9>>(128) nines;
    register<int<8>>(16) levels;
    register<bit<1>>(1000) bits;
    counter(10, CounterType.packets_and_bytes) seen;

    apply {
        standard_metadata.egress_spec = 2;
        hdr.result.setValid();
        seen.count((bit<32>)hdr.op.op);
        bit<32> index = (bit<32>)hdr.op.index;
        if (hdr.op.op == 1) {
            longs.read(hdr.result.old, index);
            longs.write(index, hdr.op.value);
        } else if (hdr.op.op == 2) {
            bit<9> nine;
            nines.read(nine, index);
            hdr.result.old = (bit<64>)nine;
            nines.write(index, nine + (bit<9>)hdr.op.value);
        } else if (hdr.op.op == 3) {
            int<8> level;
            levels.read(level, index);
            hdr.result.level = level |+| (int<8>)hdr.op.value[7:0];
            levels.write(index, hdr.result.level);
        } else if (hdr.op.op == 4) {
            bit<1> one;
            bits.read(one, index);
            hdr.result.old = (bit<64>)one;
            bits.write(index, ~one);
        } else if (hdr.op.op == 5) {
            hash(hdr.result.crc32, HashAlgorithm.crc32, 32w0,
                 { hdr.op.value, hdr.op.x, hdr.op.y, hdr.op.z }, 64w0x100000000);
            hash(hdr.result.crc16, HashAlgorithm.crc16, 16w0, { hdr.op.x, hdr.op.index },
                 32w0x10000);
            hash(hdr.result.sum, HashAlgorithm.csum16, 16w0,
                 { hdr.op.value, hdr.op.op, hdr.op.x, hdr.op.y }, 32w0x10000);
            hash(hdr.result.exclusive, HashAlgorithm.xor16, 16w0,
                 { hdr.op.value, hdr.op.op, hdr.op.x }, 32w0x10000);
            hash(hdr.result.same, HashAlgorithm.identity, 64w0, { hdr.op.x, hdr.op.y },
                 64w0xffffffffffffffff);
            hash(hdr.result.ranged, HashAlgorithm.crc32, 16w100, { hdr.op.x, 8w7 }, 16w30);
        } else if (hdr.op.op == 6) {
            standard_metadata.mcast_grp = hdr.op.group;
        } else if (hdr.op.op == 7) {
            meta.kept = hdr.op.value[7:0];
            meta.lost = 0xff;
            clone_preserving_field_list(CloneType.I2E, (bit<32>)hdr.op.group, 1);
            hdr.op.value = 0;
        } else if (hdr.op.op == 8) {
            clone(CloneType.I2E, (bit<32>)hdr.op.group);
            standard_metadata.mcast_grp = 1;
        } else if (hdr.op.op == 9) {
            clone(CloneType.I2E, (bit<32>)hdr.op.group);
            mark_to_drop(standard_metadata);
        } else if (hdr.op.op == 10) {
            bit<16> number;
            random(number, 10, 12);
            hdr.result.ranged = number;
        }
        hdr.op.op = hdr.op.op | 0x80;
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (!hdr.result.isValid()) {
            hdr.result.setValid();
        }
        hdr.result.instance = standard_metadata.instance_type;
        hdr.result.copy = standard_metadata.egress_rid;
        hdr.result.port = (bit<16>)standard_metadata.egress_port;
        hdr.result.kept = meta.kept + meta.lost;
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.op);
        packet.emit(hdr.result);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
