/* A plain switch (forward.p4) that writes in-network telemetry into RoCEv2 packets whose senders
 * left room for it, as HPCC needs it: Li et al., "HPCC: High Precision Congestion Control",
 * SIGCOMM 2019, section 4.1. Each hop tells its port's rate, the bytes that it has sent, the queue
 * and the time. The paper packs a hop into 8 bytes, with codes and units; here it has 16, so that
 * ports may have any rate. The room is for MOST_HOPS hops, and packets do not become longer: each
 * hop becomes the first, and the others move back by one. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/roce.p4"

#define MOST_HOPS 5
#define PORTS 512
#define LINE_OVERHEAD_BYTES 24  // preamble, FCS and gap of Ethernet

/* Follows the BTH of packets whose opcode, of those left to manufacturers, is 0xD0 to 0xDF. */
header telemetry_h {
    bit<8> hops;  // that have written
    bit<8> reserved;
}

header hop_h {
    bit<32> rate_kbps;
    bit<32> sent_bytes;  // modulo 2^32, headers and gaps included
    bit<32> queue_packets;  // of the packet's class, when it left
    bit<32> time_us;
}

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    udp_rest_h udp_rest;
    bth_h bth;
    telemetry_h telemetry;
    hop_h[MOST_HOPS] hop;
}

struct metadata_t {
    ecmp_group_t ecmp_group;
}

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
            ROCE_PORT: roce;
            default: accept;
        }
    }

    state roce {
        packet.extract(hdr.udp_rest);
        packet.extract(hdr.bth);
        transition select(hdr.bth.opcode) {
            0xD0 &&& 0xF0: telemetry;
            default: accept;
        }
    }

    state telemetry {
        packet.extract(hdr.telemetry);
        packet.extract(hdr.hop[0]);
        packet.extract(hdr.hop[1]);
        packet.extract(hdr.hop[2]);
        packet.extract(hdr.hop[3]);
        packet.extract(hdr.hop[4]);
        transition accept;
    }
}

control Telemetry(inout headers_t hdr, inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    EcnMarking() ecn_marking;
    /* Bytes sent by each port, modulo 2^32; index: port; nobody clears it. */
    register<bit<32>>(PORTS) sent;
    bit<32> rate = 0;
    bit<32> total;

    action set_rate(bit<32> kbps) {
        rate = kbps;
    }

    table port_rates {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { set_rate; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    apply {
        ecn_marking.apply(hdr, meta, standard_metadata);
        @atomic {
            sent.read(total, (bit<32>)standard_metadata.egress_port);
            total = total + standard_metadata.packet_length + LINE_OVERHEAD_BYTES;
            sent.write((bit<32>)standard_metadata.egress_port, total);
        }
        if (hdr.hop[MOST_HOPS - 1].isValid()) {  // the last to be parsed: there is room
            port_rates.apply();
            hdr.telemetry.hops = hdr.telemetry.hops + 1;
            hdr.hop.push_front(1);
            hdr.hop[0].setValid();
            hdr.hop[0].rate_kbps = rate;
            hdr.hop[0].sent_bytes = total;
            hdr.hop[0].queue_packets = (bit<32>)standard_metadata.deq_qdepth;
            hdr.hop[0].time_us = standard_metadata.egress_global_timestamp[31:0];
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), Forwarding(), Telemetry(), UpdateIpv4(), Emit()) main;
