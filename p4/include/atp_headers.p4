/* ATP's packets: UDP to one of 32 ports, a header, and LANES values.
 * ina/atp/wire.py has the same numbers for the hosts. */

const bit<16> ATP_PORTS = 0xa700;  // to 0xa70f gradients, to 0xa71f parameters
const bit<16> ATP_PORT_MASK = 0xffe0;

const bit<4> MULTICAST_PREFIX = 0xe;  // 224.0.0.0/4

const bit<4> GRADIENT = 1;   // workers to parameter server: values, or a sum of them
const bit<4> PARAMETER = 2;  // parameter server to workers: the sum of all

header atp_h {
    bit<4> message;
    bit<1> resend;      // a gradient that was sent before: nobody waits for others any more
    bit<1> collision;   // a switch had no aggregator for it
    bit<1> raw;         // values as the worker has them; a parameter without lanes asks for such
    bit<1> congested;   // of a parameter: a gradient met a long queue (ECN)
    bit<8> job;         // from 1
    bit<8> server;      // of the job's parameter servers, from 0
    bit<4> unused;
    bit<1> integers;    // 1: the tensor is of int32, 0: of float32
    bit<3> size;
    bit<32> sequence;   // of the job's blocks, modulo 2^32
    bit<16> aggregator;
    bit<16> proposal;   // of a parameter: the aggregator of the block one window later
    bit<64> workers;    // whose values are in the sum
    bit<8> sender;      // worker that sent the packet
    bit<8> reserved;    // aligns the lanes to 4 bytes
}

/* What a switch does for one parameter server of a job. */
struct share_t {
    bit<64> complete;    // workers whose gradients pass here, all; 0: does not aggregate
    bit<32> aggregators; // that the job may use; all jobs may use the same
    bit<32> window;      // blocks of which a worker can be ahead of another, at most
}
