/* The rest of RoCEv2's headers after the UDP ports: InfiniBand Architecture vol. 1, 9.2. */

const bit<16> ROCE_PORT = 4791;

header udp_rest_h {  // UDP header after the ports
    bit<16> length;
    bit<16> checksum;
}

#include "roce_headers.p4"
