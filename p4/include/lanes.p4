/* Definitions shared by packets that carry values, and a macro that repeats code for each value:
 * EACH_LANE(M) is M(0) M(1) ... M(LANES - 1).
 * P4 has no arrays that an action can add up, so each lane is a field and a register of its
 * own. The code of all lanes must read the same, so that an engine can make it a loop. */

#define LANES_10(M, tens)                                                    \
    M(tens##0) M(tens##1) M(tens##2) M(tens##3) M(tens##4)                    \
    M(tens##5) M(tens##6) M(tens##7) M(tens##8) M(tens##9)

#define LANES_60(M)                                                          \
    LANES_10(M, ) LANES_10(M, 1) LANES_10(M, 2)                               \
    LANES_10(M, 3) LANES_10(M, 4) LANES_10(M, 5)

#if LANES == 64
#define EACH_LANE(M) LANES_60(M) M(60) M(61) M(62) M(63)
#elif LANES == 256
#define EACH_LANE(M)                                                         \
    LANES_60(M)                                                              \
    LANES_10(M, 6) LANES_10(M, 7) LANES_10(M, 8) LANES_10(M, 9)               \
    LANES_10(M, 10) LANES_10(M, 11) LANES_10(M, 12) LANES_10(M, 13)           \
    LANES_10(M, 14) LANES_10(M, 15) LANES_10(M, 16) LANES_10(M, 17)           \
    LANES_10(M, 18) LANES_10(M, 19) LANES_10(M, 20) LANES_10(M, 21)           \
    LANES_10(M, 22) LANES_10(M, 23) LANES_10(M, 24)                           \
    M(250) M(251) M(252) M(253) M(254) M(255)
#else
#error "LANES must be 64 or 256"
#endif

#if LANES == 64
const bit<3> SIZE_LANES = 1;  // 256 bytes
#else
const bit<3> SIZE_LANES = 3;  // 1024 bytes
#endif

#include "udp_rest.p4"

#define LANE_FIELD(i) bit<32> d##i;

header lanes_h {
    EACH_LANE(LANE_FIELD)
}
