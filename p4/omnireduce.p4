/* A switch that aggregates for OmniReduce jobs and forwards all other packets as forward.p4 does.
 * -DLANES=64 or -DLANES=256 sets the values per packet, which are a block.
 *
 * OmniReduce (Fei et al., SIGCOMM 2021) has workers send only blocks that are not zero, and tell
 * where their next one is. Its aggregators are hosts; here the switch is one. It is SwitchML with
 * updates that may lack values, and with the least of the next positions in the result. */

#define SPARSE
#include "switchml.p4"
