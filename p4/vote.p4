/* A switch that counts votes for signSGD and forwards all other packets as forward.p4 does.
 *
 * signSGD with majority vote (Bernstein et al., ICLR 2019) has a server count the workers' signs and send
 * back those of the majority. Here switches count. It is SwitchML whose sums are counts of bits. */

#define VOTE
#define LANES 24
#include "switchml.p4"
