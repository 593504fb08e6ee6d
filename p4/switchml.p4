/* A switch that aggregates for SwitchML jobs and forwards all other packets as forward.p4 does.
 * -DLANES=64 or -DLANES=256 sets the values per packet. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#ifdef VOTE
#include "include/planes.p4"
#else
#include "include/lanes.p4"
#endif
#include "include/switchml_headers.p4"

#define MEMBERS 1024
#if LANES == 64
#define ENTRIES 8192
#elif LANES == 24
#define ENTRIES 4096
#else
#define ENTRIES 2048
#endif

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    udp_rest_h udp_rest;
    switchml_h switchml;
    lanes_h lanes;
#ifdef VOTE
    planes_h planes;
#endif
}

struct metadata_t {
    ecmp_group_t ecmp_group;
    member_t member;
}

#include "include/aggregation.p4"
#include "include/checksums.p4"
#include "include/ecn.p4"
#include "include/forwarding.p4"

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
            (IPV4_WITHOUT_OPTIONS, 0, PROTOCOL_UDP): udp_ports;
            (IPV4_WITHOUT_OPTIONS, 0, PROTOCOL_TCP): tcp_ports;
            default: accept;
        }
    }

    state tcp_ports {
        packet.extract(hdr.ports);
        transition accept;
    }

    state udp_ports {
        packet.extract(hdr.ports);
        transition select(hdr.ports.dst) {
            SWITCHML_PORTS &&& SWITCHML_PORT_MASK: switchml;
            default: accept;
        }
    }

    state switchml {
        packet.extract(hdr.udp_rest);
        packet.extract(hdr.switchml);
        transition select(hdr.switchml.size) {
            SIZE_LANES: lanes;
#ifdef VOTE
            SIZE_PLANES: planes;
#endif
            default: accept;
        }
    }

#ifdef VOTE
    state planes {
        packet.extract(hdr.lanes);
        packet.extract(hdr.planes);
        transition accept;
    }
#endif

    state lanes {
        packet.extract(hdr.lanes);
        transition accept;
    }
}

control SwitchML(inout headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    Aggregation() aggregation;
    ClassSelector() class_selector;
    Forwarding() forwarding;

    apply {
        if (hdr.switchml.isValid() && standard_metadata.checksum_error == 0) {
            class_selector.apply(hdr, standard_metadata);  // a result keeps its updates' DSCP
            aggregation.apply(hdr, meta, standard_metadata);
        } else {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), SwitchML(), EcnMarking(), UpdateIpv4(), Emit()) main;
