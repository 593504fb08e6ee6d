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
