/* A plain switch (forward.p4) that queues tensors' packets as the control plane says: the packet
 * scheduling inside the network that TensorExpress proposes (Kang et al., IEEE CLOUD 2020).
 *
 * Hosts put a tensor's priority into DSCP, and its job into RoCEv2's partition key, because
 * InfiniBand's partitions separate tenants. The table `tensor_queues` maps both together to a queue,
 * so the order of jobs can change while they run, without a change in their hosts. A packet that
 * matches no row is queued by its class selector. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/roce.p4"

#define TENSORS 1024

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
    udp_rest_h udp_rest;
    bth_h bth;
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
        transition accept;
    }
}

control TensorExpress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;

    action use_queue(bit<3> queue) {
        standard_metadata.priority = queue;
    }

    table tensor_queues {
        key = {
            hdr.bth.partition: ternary @name("job");
            hdr.ipv4.dscp: ternary @name("dscp");
        }
        actions = { use_queue; NoAction; }
        default_action = NoAction();
        size = TENSORS;
    }

    apply {
        forwarding.apply(hdr, meta, standard_metadata);
        if (hdr.bth.isValid()) {
            tensor_queues.apply();
        }
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), VerifyIpv4(), TensorExpress(), EcnMarking(), UpdateIpv4(), Emit()) main;
