/* A switch that aggregates for ESA jobs and forwards all other packets as forward.p4 does.
 * -DLANES=64 or -DLANES=256 sets the values per packet.
 *
 * ESA (Wang et al., arXiv 2201.06398) is ATP with aggregators that more urgent blocks may take. */

#define ESA
#include "atp.p4"
