/* Routes an IPv4 packet by its destination, over one of several equally good ports if there
 * are some, or as told for that source. Drops packets that are not IPv4, damaged, unroutable
 * or out of hops.
 * The including program defines headers_t with `ethernet`, `ipv4`, `ports`, and metadata_t
 * with `ecmp_group`. If it also defines DETOUR_IF, a control of that name says, packet by packet, in
 * metadata_t's `detour` whether one takes the way that is told for its source. */

#define ROUTES 8192
#define NEXTHOPS 4096
#define DETOURS 4096

/* Queues a packet by its class selector, the upper three bits of DSCP (RFC 2474, section 4.2.2);
 * 7 is the most urgent. BMv2 drops packets with a priority for which it has no queue: start it with
 * `--priority-queues 8`. */
control ClassSelector(in headers_t hdr, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.priority = hdr.ipv4.dscp[5:3];
    }
}

control Forwarding(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    ClassSelector() class_selector;
#ifdef DETOUR_IF
    DETOUR_IF() detour_if;
#endif
    bit<32> flow;
    bit<16> nexthop;

    action drop() {
        mark_to_drop(standard_metadata);
    }

    action forward(bit<9> port, bit<48> dmac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = dmac;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }

    /* Choose one of `count` rows of ecmp_nexthop, from row `base` on. */
    action ecmp(bit<16> base, bit<16> count, bit<32> salt) {
        meta.ecmp_group = { base, count, salt };
    }

    /* All RoCEv2 packets have one destination port; queue pairs differ in the source port. */
    action hash_flow() {
        hash(flow, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, hdr.ports.src, hdr.ports.dst },
             64w0x100000000);
    }

    action hash_addresses() {
        hash(flow, HashAlgorithm.crc32, 32w0,
             { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol }, 64w0x100000000);
    }

    /* A CRC is linear: with a switch's salt among its input, or taken modulo a power of two,
     * all switches would split flows alike, and the second tier not at all. Multiplied by an
     * odd salt, its upper half differs from switch to switch (multiply-shift hashing,
     * Dietzfelbinger et al., J. Algorithms 25(1), 1997); (half * count) >> 16 is in [0, count). */
    action choose_member() {
        bit<32> half = (flow * meta.ecmp_group.salt) >> 16;
        nexthop = meta.ecmp_group.base + (bit<16>)((half * (bit<32>)meta.ecmp_group.count) >> 16);
    }

    action take_nexthop(bit<16> row) {
        nexthop = row;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { forward; ecmp; drop; }
        default_action = drop();
        size = ROUTES;
    }

    /* Policy-based routes: packets of one host to another take the row that is given. Looked at
     * only where the route to that host is a group, be it one of one member, so that other
     * packets need not pay for it. */
    table detours {
        key = {
            hdr.ipv4.src: exact @name("src");
            hdr.ipv4.dst: exact @name("dst");
        }
        actions = { take_nexthop; NoAction; }
        default_action = NoAction();
        size = DETOURS;
    }

    table ecmp_nexthop {
        key = { nexthop: exact @name("nexthop"); }
        actions = { forward; drop; }
        default_action = drop();
        size = NEXTHOPS;
    }

    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.version_ihl != IPV4_WITHOUT_OPTIONS
            || standard_metadata.checksum_error == 1 || hdr.ipv4.ttl <= 1) {
            drop();
        } else {
            class_selector.apply(hdr, standard_metadata);
            switch (ipv4_lpm.apply().action_run) {
                ecmp: {
                    if (hdr.ports.isValid()) {
                        hash_flow();
                    } else {
                        hash_addresses();
                    }
                    choose_member();
#ifdef DETOUR_IF
                    detour_if.apply(hdr, meta, standard_metadata, flow);
                    if (meta.detour == 1) {
                        detours.apply();
                    }
#else
                    detours.apply();
#endif
                    ecmp_nexthop.apply();
                }
            }
        }
    }
}
