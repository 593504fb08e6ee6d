/* PSA: packets ask for what shall become of them, and leave with what both pipelines saw. */
#include <core.p4>
#include <bmv2/psa.p4>

header ask_t {
    bit<1> leave;  // else ingress leaves `drop` as it is
    bit<1> again;  // resubmit, once
    bit<1> round;  // recirculate, once; so do groups
    bit<1> clone;  // in ingress, but clones are not cloned
    bit<1> mirror;  // in egress, likewise, and not of recirculated packets
    bit<1> vanish;  // drop in egress
    bit<1> gone;  // drop in ingress after all
    bit<1> unused;
    bit<8> service;
    bit<16> session;
    bit<16> mirror_session;
    bit<32> group;
    bit<32> port;
}

header seen_t {
    bit<32> in_port;
    bit<8> in_path;
    bit<8> passes;  // of ingress
    bit<32> out_port;
    bit<8> out_path;
    bit<8> service;
    bit<16> instance;
    bit<8> carried;
}

struct headers {
    ask_t ask;
    seen_t seen;
}

struct empty {
}

struct metadata {
    bit<8> carried;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         in psa_ingress_parser_input_metadata_t istd, in empty resubmit_meta,
         in empty recirculate_meta) {
    state start {
        packet.extract(hdr.ask);
        packet.extract(hdr.seen);
        transition accept;
    }
}

control I(inout headers hdr, inout metadata meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    apply {
        hdr.seen.in_port = (bit<32>) istd.ingress_port;
        hdr.seen.passes = hdr.seen.passes + 1;
        meta.carried = 0xA0 + hdr.seen.passes;
        if (istd.packet_path == PSA_PacketPath_t.NORMAL) {
            hdr.seen.in_path = 1;
        } else if (istd.packet_path == PSA_PacketPath_t.RESUBMIT) {
            hdr.seen.in_path = 2;
        } else if (istd.packet_path == PSA_PacketPath_t.RECIRCULATE) {
            hdr.seen.in_path = 3;
        }
        ostd.class_of_service = (ClassOfService_t) hdr.ask.service;
        if (hdr.seen.out_path < 3) {
            ostd.clone = hdr.ask.clone == 1;
        }
        ostd.clone_session_id = (CloneSessionId_t) hdr.ask.session;
        if (hdr.ask.leave == 1) {
            send_to_port(ostd, (PortId_t) hdr.ask.port);
        }
        if (istd.ingress_port != PSA_PORT_RECIRCULATE) {
            ostd.multicast_group = (MulticastGroup_t) hdr.ask.group;
            if (hdr.ask.round == 1) {
                ostd.egress_port = PSA_PORT_RECIRCULATE;
            }
        }
        if (hdr.ask.again == 1 && istd.packet_path != PSA_PacketPath_t.RESUBMIT) {
            ostd.resubmit = true;
        }
        if (hdr.ask.gone == 1) {
            ingress_drop(ostd);
        }
    }
}

control ID(packet_out packet, out empty clone_i2e_meta, out empty resubmit_meta,
           out empty normal_meta, inout headers hdr, in metadata meta,
           in psa_ingress_output_metadata_t istd) {
    apply {
        packet.emit(hdr.ask);
        packet.emit(hdr.seen);
    }
}

parser EP(packet_in packet, out headers hdr, inout metadata meta,
          in psa_egress_parser_input_metadata_t istd, in empty normal_meta,
          in empty clone_i2e_meta, in empty clone_e2e_meta) {
    state start {
        packet.extract(hdr.ask);
        packet.extract(hdr.seen);
        transition accept;
    }
}

control E(inout headers hdr, inout metadata meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply {
        hdr.seen.out_port = (bit<32>) istd.egress_port;
        hdr.seen.service = (bit<8>) istd.class_of_service;
        hdr.seen.instance = (bit<16>) istd.instance;
        hdr.seen.carried = meta.carried;
        if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) {
            hdr.seen.out_path = 1;
        } else if (istd.packet_path == PSA_PacketPath_t.NORMAL_MULTICAST) {
            hdr.seen.out_path = 2;
        } else if (istd.packet_path == PSA_PacketPath_t.CLONE_I2E) {
            hdr.seen.out_path = 3;
        } else if (istd.packet_path == PSA_PacketPath_t.CLONE_E2E) {
            hdr.seen.out_path = 4;
        }
        if (hdr.seen.out_path < 3) {
            if (hdr.seen.in_port != (bit<32>) PSA_PORT_RECIRCULATE) {
                ostd.clone = hdr.ask.mirror == 1;
            }
            ostd.clone_session_id = (CloneSessionId_t) hdr.ask.mirror_session;
            if (hdr.ask.vanish == 1) {
                egress_drop(ostd);
            }
        }
    }
}

control ED(packet_out packet, out empty clone_e2e_meta, out empty recirculate_meta,
           inout headers hdr, in metadata meta, in psa_egress_output_metadata_t istd,
           in psa_egress_deparser_input_metadata_t edstd) {
    apply {
        packet.emit(hdr.ask);
        packet.emit(hdr.seen);
    }
}

IngressPipeline(P(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
