/* ATP's packets: UDP to one of 32 ports, a header, and LANES values.
 * ina/atp/wire.py has the same numbers for the hosts. */

const bit<16> ATP_PORTS = 0xa700;  // up to 0xa70f: gradients, up to 0xa71f: parameters
const bit<16> ATP_PORT_MASK = 0xffe0;

const bit<4> MULTICAST_PREFIX = 0xe;  // 224.0.0.0/4

const bit<4> GRADIENT = 1;   // workers to parameter server: values, or a sum of them
const bit<4> PARAMETER = 2;  // parameter server to workers: the sum of all

header atp_h {
    bit<4> message;
    bit<1> resend;      // a gradient that was sent before: switches no longer wait for others
    bit<1> collision;   // a switch had no aggregator for it
    bit<1> raw;         // values in the worker's own format; a parameter without lanes requests them
    bit<1> congested;   // in a parameter: a gradient met a long queue (ECN);
                        // in a gradient: a complete sum, which was sent before
    bit<8> job;         // from 1
    bit<8> server;      // number of the job's parameter server, from 0
    bit<4> sender_high;  // the sender's upper bits
    bit<1> integers;    // 1: int32 tensor, 0: float32 tensor
    bit<3> size;
    bit<32> sequence;   // number of the block in the job, modulo 2^32
    bit<16> aggregator;
    bit<16> proposal;   // in a parameter: the aggregator of the block one window later;
                        // in an A2TP gradient: 1 if its worker has had late results, else 0
    bit<64> workers;    // bits of the workers in the sum
    bit<8> sender;      // worker that sent the packet, lower bits
    bit<1> wanted;      // A2TP: another block wanted this one's aggregator
    bit<7> rack;        // 0: the bits are of the job; r: of its rack r
}

/* What a switch does for one parameter server of a job. */
struct share_t {
    bit<64> complete;    // all workers whose gradients are added here; 0: does not aggregate
    bit<7> rack;         // what these bits belong to, as in a packet
    bit<64> whole;       // the same workers as bits of the job
    bit<32> aggregators; // aggregators that the job may use; jobs may share them
    bit<32> window;      // most blocks that a worker can be ahead of another
#ifdef ESA
    bit<8> fading;       // bits that an urgency loses with each gradient that its block keeps out
#endif
}
