/* Headers that every program parses, and the conditions under which they are valid. */

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> IPV4_WITHOUT_OPTIONS = 0x45;  // version 4, five words
const bit<8> PROTOCOL_TCP = 6;
const bit<8> PROTOCOL_UDP = 17;

const bit<2> ECN_CAPABLE_1 = 0b01;  // ECT(1), RFC 3168
const bit<2> ECN_CAPABLE_0 = 0b10;  // ECT(0)
const bit<2> ECN_MARKED = 0b11;     // CE

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_h {
    bit<8> version_ihl;
    bit<6> dscp;
    bit<2> ecn;
    bit<16> length;
    bit<16> identification;
    bit<3> flags;
    bit<13> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

/* The ports with which TCP and UDP begin; valid in first (or only) fragments of these two. */
header ports_h {
    bit<16> src;
    bit<16> dst;
}

/* Rows of ecmp_nexthop among which a packet's flow chooses. */
struct ecmp_group_t {
    bit<16> base;
    bit<16> count;
    bit<32> salt;
}
