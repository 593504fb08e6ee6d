/* A packet filter: one ternary table over the five-tuple, each rule with a counter. `make bench` measures it. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {}

#include "include/checksums.p4"

parser Headers(packet_in packet, out headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (IPV4_WITHOUT_OPTIONS, 0, PROTOCOL_UDP): ports;
            (IPV4_WITHOUT_OPTIONS, 0, PROTOCOL_TCP): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control Filter(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) hits;

    action drop() {
        hits.count();
        mark_to_drop(standard_metadata);
    }

    action permit(bit<9> port) {
        hits.count();
        standard_metadata.egress_spec = port;
    }

    table rules {
        key = {
            hdr.ipv4.src: ternary @name("src");
            hdr.ipv4.dst: ternary @name("dst");
            hdr.ipv4.protocol: ternary @name("protocol");
            hdr.ports.src: ternary @name("sport");
            hdr.ports.dst: ternary @name("dport");
        }
        actions = { permit; drop; }
        const default_action = drop();
        counters = hits;
        size = 4096;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            rules.apply();
        } else {
            drop();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    apply {}
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), Filter(), NoEgress(), UpdateIpv4(), Emit()) main;
