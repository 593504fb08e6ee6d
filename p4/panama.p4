/* A switch that aggregates for PANAMA jobs and forwards all other packets as forward.p4 does.
 * -DLANES=64 or -DLANES=256 sets the values per packet.
 *
 * PANAMA (Gebara et al., MLSys 2021) deals a job's blocks to several trees, adds up ECN's marks with
 * the values, and has workers take results for acknowledgements. So it is SwitchML with trees. */

#define TREES
#include "switchml.p4"
