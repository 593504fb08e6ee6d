/* A switch that aggregates for ATP jobs and forwards all other packets as forward.p4 does.
 * Compiled with -DSWITCHML, it aggregates for SwitchML jobs as well.
 * -DLANES=64 or -DLANES=256 sets the values per packet. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/lanes.p4"
#include "include/atp_headers.p4"
#ifdef SWITCHML
#include "include/switchml_headers.p4"
#endif

#define SHARES 1024
#define MEMBERS 1024
#if LANES == 64
#define AGGREGATORS 8192
#define ENTRIES 8192
#else
#define AGGREGATORS 2048
#define ENTRIES 2048
#endif

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    udp_rest_h udp_rest;
    atp_h atp;
#ifdef SWITCHML
    switchml_h switchml;
#endif
    lanes_h lanes;
}

struct metadata_t {
    ecmp_group_t ecmp_group;
    share_t share;
    bit<1> taken;  // 1: the packet's destination is decided
#ifdef SWITCHML
    member_t member;
#endif
}

#ifdef SWITCHML
#include "include/aggregation.p4"
#endif
#include "include/aggregators.p4"
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
            ATP_PORTS &&& ATP_PORT_MASK: atp;
#ifdef SWITCHML
            SWITCHML_PORTS &&& SWITCHML_PORT_MASK: switchml;
#endif
            default: accept;
        }
    }

    state atp {
        packet.extract(hdr.udp_rest);
        packet.extract(hdr.atp);
        transition select(hdr.atp.message, hdr.atp.raw, hdr.atp.size) {
            (GRADIENT, 0, SIZE_LANES): lanes;  // other packets only pass
            default: accept;
        }
    }

#ifdef SWITCHML
    state switchml {
        packet.extract(hdr.udp_rest);
        packet.extract(hdr.switchml);
        transition select(hdr.switchml.size) {
            SIZE_LANES: lanes;
            default: accept;
        }
    }
#endif

    state lanes {
        packet.extract(hdr.lanes);
        transition accept;
    }
}

control Atp(inout headers_t hdr, inout metadata_t meta,
            inout standard_metadata_t standard_metadata) {
#ifdef SWITCHML
    Aggregation() aggregation;
#endif
    Aggregators() aggregators;
    ClassSelector() class_selector;
    Forwarding() forwarding;

    apply {
        meta.taken = 0;
        if (hdr.udp_rest.isValid() && standard_metadata.checksum_error == 0) {
            class_selector.apply(hdr, standard_metadata);  // a result has its gradients' DSCP
            if (hdr.atp.isValid()) {
                aggregators.apply(hdr, meta, standard_metadata);
            }
#ifdef SWITCHML
            if (hdr.switchml.isValid()) {
                aggregation.apply(hdr, meta, standard_metadata);
                meta.taken = 1;
            }
#endif
        }
        if (meta.taken == 0) {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), Atp(), EcnMarking(), UpdateIpv4(), Emit()) main;
