header udp_rest_h {  // UDP header after the ports
    bit<16> length;
    bit<16> checksum;
}
