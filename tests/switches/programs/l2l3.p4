/* A switch and router as many are written: learned MAC addresses, routes with next hops, an access
 * list, broadcasts flooded to all other ports. Made for traces; nothing of it is Ringleaf's. */

#include <core.p4>
#include <v1model.p4>

typedef bit<48> mac_t;
typedef bit<32> ip_t;
typedef bit<9> port_t;

const bit<16> TYPE_IPV4 = 0x0800;
const bit<16> TYPE_ARP = 0x0806;
const bit<8> PROTO_TCP = 6;
const bit<8> PROTO_UDP = 17;

header ethernet_t {
    mac_t dst;
    mac_t src;
    bit<16> type;
}

header arp_t {
    bit<16> hardware;
    bit<16> protocol;
    bit<8> hardware_size;
    bit<8> protocol_size;
    bit<16> operation;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> total_length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ip_t src;
    ip_t dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

struct headers_t {
    ethernet_t ethernet;
    arp_t arp;
    ipv4_t ipv4;
    ports_t ports;
}

struct metadata_t {
    bit<16> next_hop;
    bit<1> flooded;
}

parser Headers(packet_in packet, out headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_ARP: arp;
            TYPE_IPV4: ipv4;
            default: accept;
        }
    }

    state arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment, hdr.ipv4.protocol) {
            (5, 0, PROTO_TCP): ports;
            (5, 0, PROTO_UDP): ports;
            default: accept;
        }
    }

    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control SwitchIngress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) acl_hits;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action deny() {
        acl_hits.count();
        mark_to_drop(standard_metadata);
        exit;
    }

    action permit() {
        acl_hits.count();
    }

    action permit_with_dscp(bit<6> dscp) {
        acl_hits.count();
        hdr.ipv4.dscp = dscp;
    }

    action flood(bit<16> group) {
        standard_metadata.mcast_grp = group;
        meta.flooded = 1;
    }

    action to_port(port_t port) {
        standard_metadata.egress_spec = port;
    }

    action to_next_hop(bit<16> next_hop) {
        meta.next_hop = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    action rewrite(port_t port, mac_t src, mac_t dst) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
    }

    table acl {
        key = {
            standard_metadata.ingress_port: ternary @name("in_port");
            hdr.ipv4.src: ternary @name("src");
            hdr.ipv4.dst: ternary @name("dst");
            hdr.ipv4.protocol: ternary @name("protocol");
            hdr.ports.dst: ternary @name("dport");
        }
        actions = { permit; permit_with_dscp; deny; }
        default_action = permit();
        counters = acl_hits;
        size = 256;
    }

    table my_macs {
        key = { hdr.ethernet.dst: exact @name("mac"); }
        actions = { NoAction; }
        size = 16;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { to_next_hop; drop; }
        default_action = drop();
        size = 1024;
    }

    table next_hops {
        key = { meta.next_hop: exact @name("next_hop"); }
        actions = { rewrite; drop; }
        default_action = drop();
        size = 256;
    }

    table macs {
        key = { hdr.ethernet.dst: exact @name("mac"); }
        actions = { to_port; flood; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (standard_metadata.parser_error != error.NoError) {
            drop();
            return;
        }
        if (hdr.ipv4.isValid()) {
            if (standard_metadata.checksum_error == 1) {
                drop();
                return;
            }
            acl.apply();
            if (my_macs.apply().hit) {
                if (hdr.ipv4.ttl <= 1) {
                    drop();
                } else if (routes.apply().hit) {
                    next_hops.apply();
                }
                return;
            }
        }
        macs.apply();
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.flooded == 1 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.total_length,
              hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment, hdr.ipv4.ttl,
              hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(Headers(), Verify(), SwitchIngress(), SwitchEgress(), Update(), Emit()) main;
