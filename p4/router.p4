/* An IPv4 router in its simplest form: longest prefix, next hop, checksum. `make bench` measures it. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
}

struct metadata_t {
    bit<32> nexthop;
}

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
        transition accept;
    }
}

control Routing(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action drop() {
        mark_to_drop(standard_metadata);
    }

    action route(bit<32> nexthop, bit<9> port) {
        meta.nexthop = nexthop;
        standard_metadata.egress_spec = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action rewrite(bit<48> dmac) {
        hdr.ethernet.dst = dmac;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { route; drop; }
        default_action = drop();
        size = 4096;
    }

    table neighbors {
        key = { meta.nexthop: exact @name("nexthop"); }
        actions = { rewrite; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.version_ihl != IPV4_WITHOUT_OPTIONS
            || standard_metadata.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            drop();
        } else if (routes.apply().hit) {
            neighbors.apply();
        }
    }
}

control SourceMac(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    action rewrite(bit<48> smac) {
        hdr.ethernet.src = smac;
    }

    table ports {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { rewrite; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        ports.apply();
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), Routing(), SourceMac(), UpdateIpv4(), Emit()) main;
