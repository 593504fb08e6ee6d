/* A plain switch (forward.p4) that routes adaptively, as UGAL does: Singh, "Load-balanced routing
 * in interconnection networks", Stanford 2005; in a Dragonfly, Kim, Dally, Scott and Abts, ISCA
 * 2008, section 4.2. The first switch of a packet compares its queues towards the usual way and
 * towards a longer one, the detour, each times the links of the way, and takes the detour if its
 * product is smaller. The lowest bit of DSCP, of which RoCEv2's ICRC takes no account, tells the
 * other switches; the upper three are the class. UGAL decides for each packet. Here packets that
 * follow one another closely keep their way, as flowlets do (Kandula et al., CCR 37(2), 2007),
 * since queue pairs would send again what came out of order. */

#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"

#define QUEUES 4096 /* 512 ports with 8 classes each */
#define FLOWLETS 65536
#define PAIRS 4096

struct headers_t {
    ethernet_h ethernet;
    ipv4_h ipv4;
    ports_h ports;
}

struct metadata_t {
    ecmp_group_t ecmp_group;
    bit<1> detour;
}

/* The packets that stayed behind the last one that left a queue, by port and class. A queue that is
 * empty has 0, as the last one left nothing behind. */
register<bit<19>>(QUEUES) left_behind;

control Ugal(inout headers_t hdr, inout metadata_t meta,
             inout standard_metadata_t standard_metadata, in bit<32> flow) {
    /* By hash of flow: the time of its last packet plus one, 0 if none came, and whether its
     * flowlet takes the detour. Nobody clears them: a flow that paused decides anew. */
    register<bit<48>>(FLOWLETS) last_seen;
    register<bit<1>>(FLOWLETS) last_detour;
    bit<9> usual_port = 0;
    bit<9> longer_port = 0;
    bit<32> usual_links = 0;
    bit<32> longer_links = 0;
    bit<48> pause = 0;
    bit<32> usual_product;
    bit<32> longer_product;

    /* The first switch of these hosts' packets knows both ways. */
    action weigh(bit<9> port, bit<9> detour_port, bit<32> links, bit<32> detour_links) {
        usual_port = port;
        longer_port = detour_port;
        usual_links = links;
        longer_links = detour_links;
    }

    table first_switch {
        key = {
            hdr.ipv4.src: exact @name("src");
            hdr.ipv4.dst: exact @name("dst");
        }
        actions = { weigh; NoAction; }
        default_action = NoAction();
        size = PAIRS;
    }

    /* The table has one row, without a key: the pause after which a new flowlet begins, in us. */
    action begin_after(bit<48> gap) {
        pause = gap;
    }

    table flowlets {
        actions = { begin_after; }
        default_action = begin_after(0);
    }

    /* Packets wait behind those of their class. */
    action multiply(bit<3> class) {
        bit<19> usual_queue;
        bit<19> longer_queue;
        left_behind.read(usual_queue, (bit<32>)(usual_port ++ class));
        left_behind.read(longer_queue, (bit<32>)(longer_port ++ class));
        usual_product = (bit<32>)usual_queue * usual_links;
        longer_product = (bit<32>)longer_queue * longer_links;
    }

    apply {
        if (first_switch.apply().hit) {
            flowlets.apply();
            bit<32> slot = flow & (FLOWLETS - 1);
            bit<48> now = standard_metadata.ingress_global_timestamp + 1;
            bit<48> seen;
            bit<1> detour;
            @atomic {
                last_seen.read(seen, slot);
                last_detour.read(detour, slot);
                if (seen == 0 || now - seen > pause) {
                    multiply(standard_metadata.priority);
                    if (usual_product > longer_product) {
                        detour = 1;
                    } else {
                        detour = 0;
                    }
                    last_detour.write(slot, detour);
                }
                last_seen.write(slot, now);
            }
            hdr.ipv4.dscp[0:0] = detour;
        }
        meta.detour = hdr.ipv4.dscp[0:0];
    }
}

#define DETOUR_IF Ugal

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

control Emit(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

control Leaving(inout headers_t hdr, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    EcnMarking() ecn_marking;

    apply {
        left_behind.write((bit<32>)(standard_metadata.egress_port ++ standard_metadata.priority),
                          standard_metadata.deq_qdepth);
        ecn_marking.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(Headers(), VerifyIpv4(), Forwarding(), Leaving(), UpdateIpv4(), Emit()) main;
