/* A switch that adds ternary gradients and forwards all other packets as forward.p4 does.
 *
 * TernGrad (Wen et al., NIPS 2017) has elements of -1, 0 and 1 times a scale that workers agree on. Two bits say
 * an element plus one, and a switch adds these as bits of counts, as it counts votes. */

#define VOTE
#define TERN
#define LANES 24
#include "switchml.p4"
