/* A switch that aggregates for A2TP jobs and forwards all other packets as forward.p4 does.
 * -DLANES=64 or -DLANES=256 sets the values per packet.
 *
 * A2TP (Li et al., EuroSys 2023) is ATP with feedback on aggregators to the job that holds them. */

#define A2TP
#include "atp.p4"
