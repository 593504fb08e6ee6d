/* A switch that adds up the data of RoCEv2 connections which form rings, as NetReduce does (Liu et
 * al., "In-Network Aggregation with Transport Transparency for Distributed Training", ASPLOS 2023).
 * All other packets are forwarded as by forward.p4. -DLANES=64 or -DLANES=256 sets the values per packet.
 *
 * Each host of a ring sends to the next. A packet's position is its PSN, counted from the base of its
 * connection, and is the same for what is added up. Once a switch has the packets of all hosts, as
 * many go on, with the sum for payload, and with the headers of each connection, which a table has.
 * Go-back-N sends packets again: a position has a bitmap, so none is added twice, and the sum is sent
 * to the receiver of that connection. How slots and trees work is in include/aggregation.p4, whose
 * header `switchml` exists inside the switch only. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/lanes.p4"
#include "include/roce_headers.p4"
#include "include/switchml_headers.p4"

#define ANY_CHILD_ASKS  // a sender goes back for its own receiver only
#define MEMBERS 1024
#define RINGS 1024
#if LANES == 64
#define ENTRIES 8192
#else
#define ENTRIES 2048
#endif

const bit<16> NETREDUCE_PORTS = 0xbed0;  // ports up to 0xbedf
const bit<16> NETREDUCE_PORT_MASK = 0xfff0;
const bit<16> FULL_LENGTH = LANES * 4 + 24;  // of UDP: its header, the BTH, the values, the ICRC

/* The lower half of BTH's flags, the transport version, which is 0 between hosts. */
const bit<8> GRADIENT = 0;  // values of a host, or a partial sum on its way to the root
const bit<8> SUM_OF_ALL = 1;  // on its way from the root to all switches of the tree
const bit<8> SUM_FOR_ONE = 2;  // for the receiver of one connection

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    udp_rest_h udp_rest;
    bth_h bth;
    switchml_h switchml;
    lanes_h lanes;
}

struct metadata_t {
    ecmp_group_t ecmp_group;
    member_t member;
    bit<8> job;  // 0: the packet is of no ring
    bit<24> position;
    bit<24> slots;
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
            NETREDUCE_PORTS &&& NETREDUCE_PORT_MASK: roce;
            default: accept;
        }
    }

    state roce {
        packet.extract(hdr.udp_rest);
        packet.extract(hdr.bth);
        transition select(hdr.bth.opcode, hdr.udp_rest.length) {
            (0 &&& 0xf8, FULL_LENGTH): lanes;  // SEND
            default: accept;
        }
    }

    state lanes {
        packet.extract(hdr.lanes);
        transition accept;
    }
}

control NetReduce(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Aggregation() aggregation;
    ClassSelector() class_selector;
    Forwarding() forwarding;
    /* A connection of a ring; jobs of one host have UDP ports of their own. `slots`, a power of two, is the number of positions under way. */
    action ring(bit<8> job, bit<24> base, bit<24> slots) {
        meta.job = job;
        meta.position = hdr.bth.psn - base;
        meta.slots = slots;
    }

    table rings {
        key = {
            hdr.ipv4.dst: exact @name("dst");
            hdr.ports.dst: exact @name("dst_port");
            hdr.bth.dest_qp: exact @name("dest_qp");
        }
        actions = { ring; NoAction; }
        default_action = NoAction();
        size = RINGS;
    }

    action describe() {
        hdr.switchml.setValid();
        hdr.switchml.message = UPDATE;
        hdr.switchml.unused = 0;
        hdr.switchml.size = SIZE_LANES;
        hdr.switchml.job = meta.job;
        hdr.switchml.block = meta.position ++ 8w0;  // so that it wraps where PSNs do
        hdr.switchml.version = (bit<1>)((meta.position & meta.slots) != 0);
        hdr.switchml.slot = (bit<15>)(meta.position & (meta.slots - 1));
        hdr.switchml.exponent = 0;
        hdr.switchml.tree = 0;
    }

    apply {
        meta.job = 0;
        meta.slots = 0;
        if (hdr.lanes.isValid() && standard_metadata.checksum_error == 0) {
            rings.apply();
        }
        bool is_routed = true;
        if (meta.job != 0 && hdr.bth.flags != SUM_FOR_ONE) {
            is_routed = false;
            class_selector.apply(hdr, standard_metadata);
            describe();
            if (hdr.bth.flags == SUM_OF_ALL) {
                hdr.switchml.message = RESULT;
            }
            aggregation.apply(hdr, meta, standard_metadata);
            if (standard_metadata.mcast_grp != 0) {
                hdr.bth.flags = SUM_OF_ALL;
            } else if (hdr.switchml.message == RESULT
                       && standard_metadata.egress_spec == standard_metadata.ingress_port) {
                hdr.bth.flags = SUM_FOR_ONE;  // answered: not to the sender, but to its receiver
                is_routed = true;
            }
            hdr.switchml.setInvalid();
        }
        if (is_routed) {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

/* Gives sums to hosts with the headers of the connection that ends there. */
control Connections(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    EcnMarking() ecn_marking;

    action deliver(bit<48> dmac, bit<32> src, bit<32> dst, bit<16> source_port, bit<24> dest_qp,
                   bit<24> base) {
        hdr.ethernet.dst = dmac;
        hdr.ipv4.src = src;
        hdr.ipv4.dst = dst;
        hdr.ports.src = source_port;
        hdr.bth.dest_qp = dest_qp;
        hdr.bth.psn = meta.position + base;
        hdr.bth.flags = 0;
    }

    table deliveries {
        key = {
            meta.job: exact @name("job");
            standard_metadata.egress_port: exact @name("port");
        }
        actions = { deliver; NoAction; }
        default_action = NoAction();
        size = MEMBERS;
    }

    apply {
        ecn_marking.apply(hdr, meta, standard_metadata);
        if (meta.job != 0 && hdr.bth.flags != GRADIENT) {
            deliveries.apply();
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), NetReduce(), Connections(), UpdateIpv4(), Emit()) main;
