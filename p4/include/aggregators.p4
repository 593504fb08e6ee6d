/* ATP (Lao et al., NSDI 2021) at one switch. Blocks of all jobs take aggregators as they
 * arrive; a parameter server behind the switch adds up the blocks that found none.
 *
 * A block (job, sequence) takes the aggregator that its packets name, unless another block holds
 * it. In that case its packets go on, marked, and the parameter server proposes another one for
 * later. An aggregator keeps the sum of the workers in its bitmap, and their congestion marks.
 * When it has all workers below this switch, the sum goes to the parameter server and stays here
 * until the result, which passes here on its way to the workers, frees the aggregator. A packet
 * that is sent again is a sign of loss: it takes along the aggregator's sum, and frees it.
 *
 * Two switches of a path aggregate: that of the worker's rack, and that of the parameter server,
 * which adds up all arriving packets, sums of racks and single gradients that collided below.
 * Both have a table of the workers that make a sum complete (the paper's packets carry numbers of
 * workers, as fan-in degrees; with sets no worker can be counted twice).
 *
 * A complete sum that a repeated packet takes along was sent before. The switch of the parameter
 * server passes it on alone: of its sum with other values, which would count it twice, the
 * parameter server could take nothing.
 *
 * A bitmap has 64 bits. In a larger job, a worker is a bit of its rack, and a rack is a bit of the
 * job. The rack's switch adds up packets of the rack; a sum of the whole rack leaves it as one bit
 * of the job. The parameter server's switch adds up packets whose bits are of the job. All other
 * packets, such as parts of a rack that a repeated packet takes along, only pass.
 *
 * An aggregator keeps its block's number when it is freed. A late packet of this block then
 * goes on alone; the published switch would take an aggregator for it, for a sum that can never
 * be complete. For the same reason a block may take an aggregator that an older block of its own
 * job holds, if no worker can be so far behind.
 *
 * Compiled with -DA2TP, an aggregator also notes that another block wanted it. The packets of its
 * own block return this mark, so that the job that occupies aggregators learns of it (A2TP, Li et
 * al., EuroSys 2023); the packet that collides is marked as before.
 *
 * Compiled with -DESA, a gradient that is more urgent than an aggregator's block takes its place: the
 * block's sum leaves in the gradient's packet, for the block's parameter server (ESA, Wang et al.,
 * arXiv 2201.06398). A gradient that is not makes the block less urgent, if `shares` says so.
 *
 * The including program defines headers_t with `ipv4`, `atp` and `lanes`, and metadata_t with
 * `share` and `taken`. */

/* The first packet of a block overwrites all registers. Index: the aggregator. */
#define DECLARE_VALUE(i) register<bit<32>>(AGGREGATORS) v##i;
#define STORE_VALUE(i) v##i.write(index, hdr.lanes.d##i);
#define LOAD_VALUE(i) v##i.read(hdr.lanes.d##i, index);

/* Sums saturate, and stay saturated: 0x7fffffff and 0x80000000 mean that a sum has
 * overflowed, whatever is added later, so that the parameter server can detect it. */
#define HAS_OVERFLOWED(x) (x - 0x7fffffff <= 1)
#define ADD_VALUE(i)                                                         \
    {                                                                        \
        bit<32> sum;                                                         \
        v##i.read(sum, index);                                               \
        if (!HAS_OVERFLOWED(hdr.lanes.d##i)) {                               \
            hdr.lanes.d##i =                                                 \
                (bit<32>)((int<32>)hdr.lanes.d##i |+| (int<32>)sum);         \
        }                                                                    \
        if (HAS_OVERFLOWED(sum)) {                                           \
            hdr.lanes.d##i = sum;                                            \
        }                                                                    \
        v##i.write(index, hdr.lanes.d##i);                                   \
    }

#ifdef ESA
#define FADING , bit<8> fading
#define FADED , fading
#else
#define FADING
#define FADED
#endif

#ifdef ESA
/* The packet's values go into the aggregator, and the aggregator's into the packet. */
#define SWAP_VALUE(i)                       \
    {                                       \
        bit<32> held;                       \
        v##i.read(held, index);             \
        v##i.write(index, hdr.lanes.d##i);  \
        hdr.lanes.d##i = held;              \
    }
#endif

/* Outcomes of a packet; rows of the counter `outcomes`. */
const bit<32> TAKEN = 0;      // the block takes the aggregator
const bit<32> ADDED = 1;      // added to the block's sum
const bit<32> COMPLETED = 2;  // added as the last one; goes on as the sum
const bit<32> REPEATED = 3;   // already in the sum; dropped
const bit<32> PASSED = 4;     // goes on alone: no worker to wait for, or it must not be added
const bit<32> COLLIDED = 5;   // goes on alone: another block holds the aggregator
const bit<32> MERGED = 6;     // sent again; takes the aggregator's sum along, and frees it
const bit<32> REPLACED = 7;   // sent again; the aggregator's sum goes in its place
const bit<32> CROSSED = 8;    // sent again; goes on alone: part of it is in the sum, part not
const bit<32> FREED = 9;      // a result; frees the aggregator
#ifdef ESA
const bit<32> PREEMPTED = 10;  // takes the aggregator of a less urgent block, whose sum goes on
const bit<32> OUTCOMES = 11;
#else
const bit<32> OUTCOMES = 10;
#endif

control Aggregators(inout headers_t hdr, inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    register<bit<40>>(AGGREGATORS) holders;    // job ++ sequence; job 0 means no holder
    register<bit<64>>(AGGREGATORS) arrived;    // workers in the sum; 0: free
    register<bit<1>>(AGGREGATORS) congestion;  // a gradient in the sum met a long queue
#ifdef A2TP
    register<bit<1>>(AGGREGATORS) wanted;      // another block has collided with this one
    register<bit<16>>(AGGREGATORS) lateness;   // 1: a gradient in the sum was late
#endif
#ifdef ESA
    register<bit<3>>(AGGREGATORS) urgencies;   // of the block; falls with gradients it keeps out
    /* Of the block: server ++ integers ++ sender ++ class selector. */
    register<bit<24>>(AGGREGATORS) owners;
#endif
    EACH_LANE(DECLARE_VALUE)
    counter(OUTCOMES, CounterType.packets) outcomes;

    bit<32> index;
    bit<40> holder;
    bit<40> claim;
    bit<32> ahead;
    bit<64> present;
    bit<1> is_congested;
#ifdef ESA
    bit<3> urgency;
    bit<24> evicted;
    bit<64> whole_sum;
#endif
#ifdef A2TP
    bit<1> is_wanted;
    bit<16> is_late;
#endif
    bit<32> outcome;

    /* Packets are only forwarded, as by the switches between racks. */
    action pass_on() {
        meta.share.complete = 0;
    }

    action aggregate(bit<64> complete, bit<32> aggregators, bit<32> window FADING) {
        meta.share = { complete, 0, complete, aggregators, window FADED };
    }

    /* The workers of a rack, whose bits are the rack's own. */
    action aggregate_rack(bit<7> rack, bit<64> complete, bit<64> whole, bit<32> aggregators,
                          bit<32> window FADING) {
        meta.share = { complete, rack, whole, aggregators, window FADED };
    }

    /* A parameter server may be in a rack with workers and in another rack without. */
    table shares {
        key = {
            hdr.atp.job: exact @name("job");
            hdr.atp.server: exact @name("server");
        }
        actions = { aggregate; aggregate_rack; pass_on; }
        default_action = pass_on();
        size = SHARES;
    }

#ifdef ESA
    /* The address of a block's parameter server, and the workers that this switch adds up for it. */
    action send_home(bit<32> address, bit<16> udp_port, bit<7> rack, bit<64> complete) {
        whole_sum = complete;
        hdr.ipv4.dst = address;
        hdr.ports.dst = udp_port;
        hdr.atp.rack = rack;
    }

    table homes {
        key = {
            hdr.atp.job: exact @name("job");
            hdr.atp.server: exact @name("server");
        }
        actions = { send_home; NoAction; }
        default_action = NoAction();
        size = SHARES;
    }
#endif

    action discard() {
        mark_to_drop(standard_metadata);
        meta.taken = 1;
    }

    action multicast(bit<16> group) {
        standard_metadata.mcast_grp = group;
        meta.taken = 1;
    }

    /* The path of a result to all workers. */
    table deliveries {
        key = {
            hdr.atp.job: exact @name("job");
            hdr.atp.server: exact @name("server");
        }
        actions = { multicast; discard; }
        default_action = discard();
        size = SHARES;
    }

    action look_up() {
        index = (bit<32>)hdr.atp.aggregator;
        claim = hdr.atp.job ++ hdr.atp.sequence;
        holders.read(holder, index);
        arrived.read(present, index);
        ahead = hdr.atp.sequence - holder[31:0];  // serial arithmetic, RFC 1982
    }

    action free() {
        arrived.write(index, 0);
    }

#ifdef ESA
    action note_owner() {
        urgencies.write(index, hdr.ipv4.dscp[5:3]);
        owners.write(index, hdr.atp.server ++ hdr.atp.integers ++ hdr.atp.sender_high
                            ++ hdr.atp.sender ++ hdr.ipv4.dscp[5:3]);
    }

    /* The packet becomes the sum of the aggregator's block, and that becomes the packet's. */
    action preempt() {
        owners.read(evicted, index);
        note_owner();
        holders.write(index, claim);
        arrived.write(index, hdr.atp.workers);
        congestion.read(is_congested, index);
        congestion.write(index, (bit<1>)(hdr.ipv4.ecn == ECN_MARKED));
        hdr.ipv4.ecn = is_congested == 1 ? ECN_MARKED : ECN_CAPABLE_0;
        hdr.ipv4.dscp = evicted[2:0] ++ 3w0;
        hdr.atp.job = holder[39:32];
        hdr.atp.sequence = holder[31:0];
        hdr.atp.workers = present;
        hdr.atp.server = evicted[23:16];
        hdr.atp.integers = evicted[15:15];
        hdr.atp.sender_high = evicted[14:11];
        hdr.atp.sender = evicted[10:3];
        hdr.atp.collision = 1;  // so that the block's position gets another aggregator
        EACH_LANE(SWAP_VALUE)
    }

    action fade() {
        urgencies.write(index, urgency >> meta.share.fading);
    }
#endif

    action take_aggregator() {
        holders.write(index, claim);
        arrived.write(index, hdr.atp.workers);
        congestion.write(index, (bit<1>)(hdr.ipv4.ecn == ECN_MARKED));
#ifdef A2TP
        wanted.write(index, hdr.atp.wanted);  // a switch before may have set it
        lateness.write(index, hdr.atp.proposal);
#endif
        EACH_LANE(STORE_VALUE)
#ifdef ESA
        note_owner();
#endif
    }

    /* A sum carries the marks of any packet that is in it. */
    action join_marks() {
        congestion.read(is_congested, index);
        hdr.ipv4.ecn = hdr.ipv4.ecn | (is_congested ++ is_congested);
        congestion.write(index, (bit<1>)(hdr.ipv4.ecn == ECN_MARKED));
#ifdef A2TP
        wanted.read(is_wanted, index);
        hdr.atp.wanted = hdr.atp.wanted | is_wanted;
        wanted.write(index, hdr.atp.wanted);
        lateness.read(is_late, index);
        hdr.atp.proposal = hdr.atp.proposal | is_late;
        lateness.write(index, hdr.atp.proposal);
#endif
    }

    action add() {
        hdr.atp.workers = hdr.atp.workers | present;
        arrived.write(index, hdr.atp.workers);
        EACH_LANE(ADD_VALUE)
    }

    action load() {
        hdr.atp.workers = present;
        hdr.atp.rack = meta.share.rack;
        EACH_LANE(LOAD_VALUE)
    }

    /* Where switches count racks, a whole rack is one bit. */
    action name_whole() {
        hdr.atp.workers = meta.share.whole;
        hdr.atp.rack = 0;
    }

    action mark_collision() {
        hdr.atp.collision = 1;
#ifdef A2TP
        wanted.write(index, 1);
#endif
    }

    action decide(bit<32> decision) {
        outcome = decision;
        outcomes.count(decision);
    }

    apply {
        if (hdr.atp.message == PARAMETER) {
            look_up();
            if (holder == claim && present != 0) {
                decide(FREED);
                free();
            }
            if (hdr.ipv4.dst[31:28] == MULTICAST_PREFIX) {
                deliveries.apply();
            }
        } else if (hdr.lanes.isValid()) {
            shares.apply();
            if (meta.share.complete != 0 && (bit<32>)hdr.atp.aggregator < meta.share.aggregators) {
                look_up();
                if (holder == claim && present == 0 || (hdr.atp.workers & ~meta.share.complete) != 0
                    || hdr.atp.workers != 0 && hdr.atp.rack != meta.share.rack
                    || hdr.atp.workers == meta.share.complete && hdr.atp.resend == 0) {
                    decide(PASSED);
                } else if (holder == claim) {
                    if ((hdr.atp.workers & ~present) == 0) {
                        decide(hdr.atp.resend == 1 ? REPLACED : REPEATED);
                    } else if ((hdr.atp.workers & present) != 0) {
                        decide(hdr.atp.resend == 1 ? CROSSED : PASSED);
                    } else if (hdr.atp.resend == 1) {
                        decide(hdr.atp.congested == 1 ? PASSED : MERGED);
                    } else if ((hdr.atp.workers | present) == meta.share.complete) {
                        decide(COMPLETED);
                    } else {
                        decide(ADDED);
                    }
                } else if (hdr.atp.resend == 1) {
                    decide(PASSED);
                } else if (present == 0 || (holder[39:32] == hdr.atp.job
                                            && ahead < 0x80000000
                                            && ahead >= meta.share.window)) {
                    decide(TAKEN);
                } else {
#ifdef ESA
                    urgencies.read(urgency, index);
                    if (hdr.ipv4.dscp[5:3] > urgency) {
                        decide(PREEMPTED);
                    } else {
                        decide(COLLIDED);
                        fade();
                    }
#else
                    decide(COLLIDED);
#endif
                }

                if (outcome == TAKEN) {
                    take_aggregator();
                } else if (outcome == ADDED || outcome == COMPLETED || outcome == MERGED) {
                    join_marks();
                    add();
                } else if (outcome == REPLACED) {
                    join_marks();
                    load();
                    hdr.atp.congested = (bit<1>)(present == meta.share.complete);
                } else if (outcome == COLLIDED) {
                    mark_collision();
                }
#ifdef ESA
                if (outcome == PREEMPTED) {
                    preempt();
                    whole_sum = present;
                    homes.apply();
                    if (whole_sum == present) {
                        discard();  // it was sent when it became whole, or is of no job any more
                    }
                } else
#endif
                if (hdr.atp.rack == meta.share.rack && hdr.atp.workers == meta.share.complete) {
                    name_whole();
                }
                if (outcome == TAKEN || outcome == ADDED || outcome == REPEATED) {
                    discard();
                } else if (outcome == MERGED || outcome == REPLACED || outcome == CROSSED) {
                    free();
                }
            }
        }
    }
}
