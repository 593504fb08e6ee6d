/* The router of basic.p4, for PSA: ingress looks up the route, egress counts the TTL down. */

#include <core.p4>
#include <bmv2/psa.p4>

header ethernet_t {
    bit<48> dst_mac;
    bit<48> src_mac;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_len;
    bit<16> identification;
    bit<3> flags;
    bit<13> frag_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t { }

struct empty_t { }

parser MyIngressParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                       in psa_ingress_parser_input_metadata_t istd,
                       in empty_t resubmit_meta, in empty_t recirculate_meta) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta,
                  in psa_ingress_input_metadata_t istd,
                  inout psa_ingress_output_metadata_t ostd) {
    action drop() {
        ingress_drop(ostd);
    }
    action ipv4_forward(bit<48> dst_mac, PortId_t port) {
        send_to_port(ostd, port);
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;
        hdr.ethernet.dst_mac = dst_mac;
    }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { ipv4_forward; drop; NoAction; }
        size = 1024;
        default_action = drop();
    }
    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        }
    }
}

control MyIngressDeparser(packet_out packet, out empty_t clone_i2e_meta,
                          out empty_t resubmit_meta, out empty_t normal_meta,
                          inout headers_t hdr, in metadata_t meta,
                          in psa_ingress_output_metadata_t istd) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

parser MyEgressParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      in psa_egress_parser_input_metadata_t istd,
                      in empty_t normal_meta, in empty_t clone_i2e_meta,
                      in empty_t clone_e2e_meta) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta,
                 in psa_egress_input_metadata_t istd,
                 inout psa_egress_output_metadata_t ostd) {
    apply {
        if (hdr.ipv4.isValid()) {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        }
    }
}

control MyEgressDeparser(packet_out packet, out empty_t clone_e2e_meta,
                         out empty_t recirculate_meta, inout headers_t hdr,
                         in metadata_t meta, in psa_egress_output_metadata_t istd,
                         in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() checksum;
    apply {
        checksum.clear();
        checksum.add({ hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_len,
                       hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.frag_offset,
                       hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst });
        hdr.ipv4.checksum = checksum.get();
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

IngressPipeline(MyIngressParser(), MyIngress(), MyIngressDeparser()) ingress;
EgressPipeline(MyEgressParser(), MyEgress(), MyEgressDeparser()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;
