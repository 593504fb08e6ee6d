/* SwitchML (Sapio et al., NSDI 2021) at one node of an aggregation tree of any depth.
 *
 * Updates go up: partial sums of all workers below a child. Results come down. A slot has two
 * entries, one for each of the two alternating versions, so that a result is kept until every
 * worker has it. An entry belongs to the newest block that arrived for it. It holds the sum of
 * the children in its bitmap. Once all children are in the sum, the root publishes it as the
 * result; any other node sends the sum to its parent and keeps it until the result replaces it.
 * A repeated update is a sign of loss somewhere. The node answers it with the result or, while
 * it has no result, sends the sum to its parent again. While it has none, no worker below has it
 * either, so all of them will repeat their updates. The node sends its sum again only for its first
 * child's: else one lost packet would come up once for each worker, and on a busy link to the root such
 * packets would delay others beyond their timeouts, which makes more of them.
 *
 * With ANY_CHILD_ASKS, any child's repeated update will do, as not all workers repeat theirs.
 *
 * With TREES, a job has several trees, which have their slots to themselves, and ECN's marks are
 * added up, too: a sum is marked if any packet in it was.
 *
 * With SPARSE, an update may lack lanes: its values are zero. It names the sender's next position whose
 * values are not zero, and that block's exponent. The node keeps the least position, with the largest
 * exponent of those who named it, so the result tells all workers where to go on.
 *
 * With VOTE, values are signs, and sums count them, bit by bit (`planes.p4`). The root publishes the signs of
 * the majority in place of the count, and keeps these.
 *
 * With TERN as well, values are two bits each, and the root publishes their sums. A packet has the scale that
 * its values are multiples of, or 0 if all are zero; an entry has that of the packets in the sum.
 *
 * The including program defines headers_t with `ipv4`, `switchml` and `lanes`, and metadata_t with
 * `member`. */

/* No entry is ever cleared: the first update of a newer block overwrites it. All registers have
 * the index base of the job + 2 * slot + version. */
#define DECLARE_LANE(i) register<bit<32>>(ENTRIES) r##i;
#define STORE_LANE(i) r##i.write(index, hdr.lanes.d##i);
#define LOAD_LANE(i) r##i.read(hdr.lanes.d##i, index);
#define ADD_LANE(i)                                                          \
    {                                                                        \
        bit<32> sum;                                                         \
        r##i.read(sum, index);                                               \
        hdr.lanes.d##i = hdr.lanes.d##i + sum;                               \
        r##i.write(index, hdr.lanes.d##i);                                   \
    }

#define DECLARE_PLANE(i) register<plane_t>(ENTRIES) r##i; plane_t v##i;
#define CLEAR_PLANE(i) v##i = 0;
#define TAKE_OWN_PLANE(i) v##i = hdr.lanes.d##i;
#define GIVE_OWN_PLANE(i) hdr.lanes.d##i = v##i;
#define TAKE_PLANE(i) v##i = hdr.planes.d##i;
#define GIVE_PLANE(i) hdr.planes.d##i = v##i;
#define STORE_PLANE(i) r##i.write(index, v##i);
#define LOAD_PLANE(i) r##i.read(v##i, index);
#define ADD_PLANE(i)                                                         \
    {                                                                        \
        plane_t old;                                                         \
        plane_t both;                                                        \
        r##i.read(old, index);                                               \
        both = old & v##i;                                                   \
        v##i = old ^ v##i;                                                   \
        both = both | (v##i & carry);                                        \
        v##i = v##i ^ carry;                                                 \
        carry = both;                                                        \
        r##i.write(index, v##i);                                             \
    }
/* Add the bias to the count, and keep no more than the carry. */
#define COMPARE_PLANE(i)                                                     \
    if (meta.member.bias[i:i] == 1) {                                        \
        carry = carry | v##i;                                                \
    } else {                                                                 \
        carry = carry & v##i;                                                \
    }

/* Rows of the counter `events`. */
const bit<32> STRANGER = 0;    // unknown job, or from neither a child nor the parent in it
const bit<32> MALFORMED = 1;   // slot out of range, wrong size or direction
const bit<32> STALE = 2;       // from an earlier block than the entry's
const bit<32> WAITING = 3;     // repeated, and other children are missing, or the first one's repetition
const bit<32> ANSWERED = 4;    // repeated; answered with the result
const bit<32> SENT_AGAIN = 5;  // repeated; the sum was sent to the parent again
const bit<32> EVENTS = 6;

control Aggregation(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<40>>(ENTRIES) owners;     // job ++ block; job 0 means no owner
    register<bit<64>>(ENTRIES) bitmaps;    // children in the sum
    register<bit<1>>(ENTRIES) published;   // 1: lanes are the result, not a sum
    register<bit<8>>(ENTRIES) exponents;   // largest exponent of the children, or the result's
#ifndef VOTE
    EACH_LANE(DECLARE_LANE)
#endif
    counter(EVENTS, CounterType.packets) events;

    bit<32> index;
    bit<40> owner;
    bit<40> claim;
    bit<32> ahead;
    bit<64> bitmap;
    bit<1> is_published;
    bit<8> exponent;

    action drop(bit<32> event) {
        events.count(event);
        mark_to_drop(standard_metadata);
    }

    /* The packet is added to a sum that is not complete yet. */
    action absorb() {
        mark_to_drop(standard_metadata);
    }

    action stranger() {
        meta.member.expected = NOTHING;
    }

    /* A packet from below. `child` is the sender's bit, `children` has the bits of all children,
     * `parent_port` is 0 at the root. The job's entries begin at `base`. */
    action from_child(bit<64> child, bit<64> children, bit<9> parent_port, bit<16> group,
                      bit<32> base, bit<16> slots
#ifdef MAJORITY
                      , bit<6> bias
#endif
                      ) {
#ifdef MAJORITY
        meta.member.bias = bias;
#endif
        meta.member.expected = UPDATE;
        meta.member.child = child;
        meta.member.children = children;
        meta.member.parent_port = parent_port;
        meta.member.group = group;
        meta.member.base = base;
        meta.member.slots = slots;
    }

    /* A packet from above. */
    action from_parent(bit<64> children, bit<16> group, bit<32> base, bit<16> slots) {
        meta.member.expected = RESULT;
        meta.member.children = children;
        meta.member.group = group;
        meta.member.base = base;
        meta.member.slots = slots;
    }

    table members {
        key = {
            hdr.switchml.job: exact @name("job");
            standard_metadata.ingress_port: exact @name("ingress_port");
#ifdef TREES
            hdr.switchml.tree: exact @name("tree");
#endif
        }
        actions = { from_child; from_parent; stranger; }
        default_action = stranger();
        size = MEMBERS;
    }

    action locate() {
        index = meta.member.base + (bit<32>)(hdr.switchml.slot ++ hdr.switchml.version);
        claim = hdr.switchml.job ++ hdr.switchml.block;
    }

    action look_up() {
        owners.read(owner, index);
        bitmaps.read(bitmap, index);
        ahead = hdr.switchml.block - owner[31:0];  // serial arithmetic, RFC 1982
    }

#ifdef TREES
    register<bit<1>>(ENTRIES) congestion;  // 1: a packet in the sum was marked, or the result was
    bit<1> is_marked;

    action look_at_mark() {
        is_marked = (bit<1>)(hdr.ipv4.ecn == ECN_MARKED);
    }

    action join_marks() {
        bit<1> others;
        congestion.read(others, index);
        is_marked = is_marked | others;
        congestion.write(index, is_marked);
    }

    action mark() {
        hdr.ipv4.ecn = ECN_MARKED;
    }
#endif

#ifdef SPARSE
    register<bit<32>>(ENTRIES) nexts;   // the least of the children's next positions, or the result's
    register<bit<1>>(ENTRIES) filled;   // 1: lanes are of the owner's block; 0: all had zeros so far
    bit<32> next;
    bit<1> is_filled;

    /* Give a packet without values those of the entry. */
    action attach_lanes() {
        hdr.lanes.setValid();
        hdr.switchml.size = SIZE_LANES;
        hdr.ipv4.length = hdr.ipv4.length + 4 * LANES;
        hdr.udp_rest.length = hdr.udp_rest.length + 4 * LANES;
    }

    action load_next() {
        nexts.read(hdr.switchml.next, index);
        filled.read(is_filled, index);
    }

    action look_at_next() {
        nexts.read(next, index);
        filled.read(is_filled, index);
    }

    action take_next() {
        hdr.switchml.next = next;
        hdr.switchml.exponent = exponent;
    }

    action store_next() {
        nexts.write(index, hdr.switchml.next);
    }

    action fill() {
        is_filled = 1;
        filled.write(index, 1);
    }

    action empty() {
        is_filled = 0;
        filled.write(index, 0);
    }
#endif

#ifdef TERN
    register<bit<32>>(ENTRIES) scales;  // float32; MIXED: packets in the sum have different ones
    bit<32> scale;

    action load_scale() {
        scales.read(hdr.switchml.scale, index);
    }

    action look_at_scale() {
        scales.read(scale, index);
    }

    action take_scale() {
        hdr.switchml.scale = scale;
    }

    action store_scale() {
        scales.write(index, hdr.switchml.scale);
    }

    action mix_scales() {
        hdr.switchml.scale = MIXED;
    }
#endif

    action start_block() {
        bitmap = meta.member.child;
        owners.write(index, claim);
        bitmaps.write(index, bitmap);
        published.write(index, 0);
#ifdef TREES
        congestion.write(index, is_marked);
#endif
        exponents.write(index, hdr.switchml.exponent);
#ifdef SPARSE
        store_next();
        empty();
#endif
#ifdef TERN
        store_scale();
#endif
    }

    action join_block() {
        bitmap = bitmap | meta.member.child;
        bitmaps.write(index, bitmap);
        exponents.read(exponent, index);
    }

#ifdef VOTE
    EACH_PLANE(DECLARE_PLANE)
    plane_t carry;

    action take_signs() {
        OWN_PLANES(TAKE_OWN_PLANE)
        UPPER_PLANES(CLEAR_PLANE)
    }

    action take_planes() {
        UPPER_PLANES(TAKE_PLANE)
    }

    action store_lanes() {
        EACH_PLANE(STORE_PLANE)
    }

    action add_lanes() {
        carry = 0;
        EACH_PLANE(ADD_PLANE)
    }

    action load_lanes() {
        EACH_PLANE(LOAD_PLANE)
    }

#ifdef MAJORITY
    action give_signs() {
        hdr.lanes.d0 = v0;
        hdr.planes.setInvalid();
        hdr.switchml.size = SIZE_LANES;
        hdr.udp_rest.length = UDP_BYTES + PLANE_BYTES;
        hdr.ipv4.length = 20 + UDP_BYTES + PLANE_BYTES;
    }

#endif

    action give_planes() {
        OWN_PLANES(GIVE_OWN_PLANE)
        hdr.planes.setValid();
        UPPER_PLANES(GIVE_PLANE)
        hdr.switchml.size = SIZE_PLANES;
        hdr.udp_rest.length = UDP_BYTES + 6 * PLANE_BYTES;
        hdr.ipv4.length = 20 + UDP_BYTES + 6 * PLANE_BYTES;
    }

#ifdef MAJORITY
    /* Keep the majority's signs, which are the carry, in place of the count. */
    action store_majority() {
        v0 = carry;
        r0.write(index, v0);
    }
#endif
#else
    action store_lanes() {
        EACH_LANE(STORE_LANE)
    }

    action add_lanes() {
        EACH_LANE(ADD_LANE)
    }

    action load_lanes() {
        EACH_LANE(LOAD_LANE)
    }
#endif

    action load_exponent() {
        exponents.read(hdr.switchml.exponent, index);
    }

    action store_exponent() {
        exponents.write(index, hdr.switchml.exponent);
    }

    action send_up() {
        standard_metadata.egress_spec = meta.member.parent_port;
    }

    /* Send to all children. The packet keeps its addresses: workers send to the job's group. */
    action publish() {
        published.write(index, 1);
        hdr.switchml.message = RESULT;
        standard_metadata.mcast_grp = meta.member.group;
    }

    action answer() {
        events.count(ANSWERED);
        hdr.switchml.message = RESULT;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }

    action send_up_again() {
        events.count(SENT_AGAIN);
        send_up();
    }

    apply {
        members.apply();
        if (meta.member.expected == NOTHING) {
            drop(STRANGER);
        } else if (hdr.switchml.message != meta.member.expected
                   || (bit<16>)hdr.switchml.slot >= meta.member.slots
                   || (!hdr.lanes.isValid() && hdr.switchml.size != SIZE_NONE)) {
            drop(MALFORMED);
        } else {
            locate();
            look_up();
#ifdef VOTE
            take_signs();
            if (hdr.planes.isValid()) {
                take_planes();
            }
#endif
#ifdef TREES
            look_at_mark();
            if (owner == claim) {
                join_marks();
                if (is_marked == 1) {
                    mark();
                }
            }
#endif
            if (owner[39:32] == hdr.switchml.job && ahead >= 0x80000000) {
                drop(STALE);
            } else if (meta.member.expected == UPDATE) {
                if (owner == claim && (bitmap & meta.member.child) != 0) {
                    published.read(is_published, index);
                    if (bitmap != meta.member.children
#ifndef ANY_CHILD_ASKS
                        || (is_published == 0 && meta.member.child != (meta.member.children & (~meta.member.children + 1)))
#endif
                    ) {
                        drop(WAITING);
                    } else {
                        load_exponent();
#ifdef TERN
                        load_scale();
#endif
#ifdef SPARSE
                        load_next();
                        if (is_filled == 1 && !hdr.lanes.isValid()) {
                            attach_lanes();
                        }
#endif
                        if (hdr.lanes.isValid()) {
                            load_lanes();
                        }
#ifdef TERN
                        give_planes();
#endif
                        if (is_published == 1) {
#ifdef MAJORITY
                            give_signs();
#endif
                            answer();
                        } else {
#ifdef MAJORITY
                            give_planes();
#endif
                            send_up_again();
                        }
                    }
                } else {
                    if (owner == claim) {
                        join_block();
#ifdef TERN
                        look_at_scale();
                        if (hdr.switchml.scale == 0) {
                            take_scale();
                        } else if (scale != 0 && scale != hdr.switchml.scale) {
                            mix_scales();
                        }
                        store_scale();
#endif
#ifdef SPARSE
                        look_at_next();
                        if (next < hdr.switchml.next
                            || (next == hdr.switchml.next && exponent > hdr.switchml.exponent)) {
                            take_next();
                        } else {
                            store_next();
                            store_exponent();
                        }
                        if (hdr.lanes.isValid()) {
                            if (is_filled == 1) {
                                add_lanes();
                            } else {
                                store_lanes();
                                fill();
                            }
                        }
#else
                        if (exponent > hdr.switchml.exponent) {
                            hdr.switchml.exponent = exponent;
                        } else {
                            store_exponent();
                        }
                        if (hdr.lanes.isValid()) {
                            add_lanes();
                        }
#endif
                    } else {
                        start_block();
                        if (hdr.lanes.isValid()) {
                            store_lanes();
#ifdef SPARSE
                            fill();
#endif
                        }
                    }
#ifdef SPARSE
                    if (bitmap == meta.member.children && is_filled == 1 && !hdr.lanes.isValid()) {
                        attach_lanes();
                        load_lanes();
                    }
#endif
                    if (bitmap != meta.member.children) {
                        absorb();
                    } else if (meta.member.parent_port == 0) {
#ifdef MAJORITY
                        carry = 0;
                        EACH_PLANE(COMPARE_PLANE)
                        store_majority();
                        give_signs();
#endif
#ifdef TERN
                        give_planes();
#endif
                        publish();
                    } else {
#ifdef VOTE
                        give_planes();
#endif
                        send_up();
                    }
                }
            } else {
                published.read(is_published, index);
                if (owner == claim && bitmap == meta.member.children && is_published == 0) {
                    store_exponent();
#ifdef TERN
                    store_scale();
#endif
                    if (hdr.lanes.isValid()) {
                        store_lanes();
                    }
#ifdef SPARSE
                    store_next();
                    empty();
                    if (hdr.lanes.isValid()) {
                        fill();
                    }
#endif
                    publish();
                } else {
                    drop(STALE);
                }
            }
        }
    }
}
