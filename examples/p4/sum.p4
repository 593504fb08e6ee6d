/* A student's first in-network sum: workers send four numbers in a frame of their own type, and the
 * switch multicasts the total when all have come. It has no answer to losses. */

#include <core.p4>
#include <v1model.p4>

#define SLOTS 16

#define ADD(total, value) \
    total.read(before, slot); \
    value = is_first ? value : before + value; \
    total.write(slot, value);

header ethernet_t {
    bit<48> dst_mac;
    bit<48> src_mac;
    bit<16> ether_type;
}

header sum_t {
    bit<8> workers;
    bit<8> worker;
    bit<16> slot;
    int<32> a;
    int<32> b;
    int<32> c;
    int<32> d;
}

struct headers_t {
    ethernet_t ethernet;
    sum_t sum;
}

struct metadata_t { }

parser SumParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x88b5: parse_sum; // for local experiments (IEEE 802)
            default: accept;
        }
    }
    state parse_sum {
        packet.extract(hdr.sum);
        transition accept;
    }
}

control SumVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SumIngress(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    register<bit<32>>(SLOTS) present; // bit map of the workers in a slot's sum; 0: it is free
    register<int<32>>(SLOTS) total_a;
    register<int<32>>(SLOTS) total_b;
    register<int<32>>(SLOTS) total_c;
    register<int<32>>(SLOTS) total_d;

    apply {
        if (!hdr.sum.isValid() || hdr.sum.slot >= SLOTS) {
            mark_to_drop(standard_metadata);
            return;
        }
        bit<32> slot = (bit<32>) hdr.sum.slot;
        bit<32> mine = 32w1 << hdr.sum.worker;
        bit<32> all = (32w1 << hdr.sum.workers) - 1;
        bit<32> workers;
        int<32> before;
        @atomic {
            present.read(workers, slot);
            if (workers & mine != 0) {
                mark_to_drop(standard_metadata);
                return;
            }
            bool is_first = workers == 0;
            ADD(total_a, hdr.sum.a)
            ADD(total_b, hdr.sum.b)
            ADD(total_c, hdr.sum.c)
            ADD(total_d, hdr.sum.d)
            workers = workers | mine;
            present.write(slot, workers == all ? 0 : workers);
        }
        if (workers == all) {
            standard_metadata.mcast_grp = 1;
        } else {
            mark_to_drop(standard_metadata);
        }
    }
}

control SumEgress(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    apply { }
}

control SumCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SumDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.sum);
    }
}

V1Switch(SumParser(), SumVerify(), SumIngress(), SumEgress(), SumCompute(), SumDeparser()) main;
