/* The rest of RoCEv2's headers after the UDP ports: InfiniBand Architecture vol. 1, 9.2. */

const bit<16> ROCE_PORT = 4791;

header udp_rest_h {  // UDP header after the ports
    bit<16> length;
    bit<16> checksum;
}

/* Base transport header. */
header bth_h {
    bit<8> opcode;
    bit<8> flags;
    bit<1> full_member;
    bit<15> partition;
    bit<8> notices;  // FECN, BECN
    bit<24> dest_qp;
    bit<8> ack_request;
    bit<24> psn;
}
