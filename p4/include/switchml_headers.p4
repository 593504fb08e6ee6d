/* SwitchML's packets: UDP to one of 16 ports, a header, and LANES values or none.
 * ina/switchml/wire.py has the same numbers for the workers. */

#if defined(TERN)
const bit<16> SWITCHML_PORTS = 0xbf10;  // ports up to 0xbf1f
#elif defined(VOTE)
const bit<16> SWITCHML_PORTS = 0xbf00;  // ports up to 0xbf0f
#elif defined(SPARSE)
const bit<16> SWITCHML_PORTS = 0xbef0;  // ports up to 0xbeff
#else
const bit<16> SWITCHML_PORTS = 0xbee0;  // ports up to 0xbeef
#endif
const bit<16> SWITCHML_PORT_MASK = 0xfff0;

const bit<4> NOTHING = 0;
const bit<4> UPDATE = 1;  // worker to root: values, or a sum of them
const bit<4> RESULT = 2;  // root to workers: the sum of all

const bit<3> SIZE_NONE = 7;  // an exponent without values
header switchml_h {
    bit<4> message;
    bit<1> unused;
    bit<3> size;
    bit<8> job;       // from 1
    bit<32> block;    // round * slots + slot, modulo 2^32
    bit<1> version;   // round modulo 2
    bit<15> slot;
    bit<8> exponent;  // for the next round's block in this slot, as IEEE 754 biases it
    bit<8> tree;      // of the job's trees, from 0; it also aligns the lanes to 4 bytes
#ifdef SPARSE
    bit<32> next;     // the block that the sender's slot goes on with; all ones: none
#endif
#ifdef TERN
    bit<32> scale;    // float32; 0: all values are zero
#endif
}

#ifdef TERN
const bit<32> MIXED = 0xffffffff;  // which float32 reads as no number
#endif
#if defined(VOTE) && !defined(TERN)
#define MAJORITY
#endif

/* The packets that a member of the tree may send, and the handling of its updates. */
struct member_t {
    bit<4> expected;     // UPDATE from a child, RESULT from the parent
    bit<64> child;       // the sender's bit in bitmaps
    bit<64> children;    // bits of all children
    bit<9> parent_port;  // 0: this is the root
    bit<16> group;       // multicast group of all children
    bit<32> base;        // first entry of the job
    bit<16> slots;
#ifdef MAJORITY
    bit<6> bias;         // 64 less the least number of a majority; at the root
#endif
}
