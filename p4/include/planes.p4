/* Definitions for packets of signs. A plane is a bit of each of 768 elements. A worker's packet has one,
 * its elements' signs. A partial count has six, the bits of 768 numbers up to 63, the lowest first.
 * Numbers are added by a full adder in each bit, all elements at once.
 *
 * With TERN, a worker's packet has two: 0, 1 or 2 for elements of -1, 0 and 1. A result has six, the sums. */

#include "udp_rest.p4"

typedef bit<768> plane_t;

#define EACH_PLANE(M) M(0) M(1) M(2) M(3) M(4) M(5)
#ifdef TERN
#define OWN_PLANES(M) M(0) M(1)
#define UPPER_PLANES(M) M(2) M(3) M(4) M(5)
const bit<3> SIZE_LANES = 2;   // 192 bytes: ternary elements
const bit<16> UDP_BYTES = 22;  // the headers of UDP and SwitchML, and the scale
#else
#define OWN_PLANES(M) M(0)
#define UPPER_PLANES(M) M(1) M(2) M(3) M(4) M(5)
const bit<3> SIZE_LANES = 0;   // 96 bytes: signs, or those of the majority
const bit<16> UDP_BYTES = 18;  // the headers of UDP and SwitchML
#endif
const bit<3> SIZE_PLANES = 4;  // 576 bytes: a count
const bit<16> PLANE_BYTES = 96;

#define PLANE_FIELD(i) plane_t d##i;

header lanes_h {
    OWN_PLANES(PLANE_FIELD)
}

header planes_h {
    UPPER_PLANES(PLANE_FIELD)
}
