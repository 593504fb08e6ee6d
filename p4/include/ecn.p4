/* Marks ECN-capable packets (RFC 3168) that met a long queue. The length counts packets already
 * queued when this one joined. Marking begins at one threshold, DCTCP's K (Alizadeh et al.,
 * SIGCOMM 2010), or its probability grows between two, as in RED (Floyd and Jacobson, IEEE/ACM ToN 1(4),
 * 1993) and as DCQCN needs it, by the present queue (Zhu et al., SIGCOMM 2015: Kmin, Kmax, Pmax).
 * The including program defines headers_t with `ipv4`, and metadata_t. */

control EcnMarking(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<19> least_depth;
    bit<19> full_depth;
    bit<32> last_draw;

    /* Mark all packets from this depth on; 0: never mark. */
    action mark_from(bit<19> threshold) {
        least_depth = threshold;
        full_depth = threshold;
        last_draw = 0;
    }

    /* The probability is 1 / (`last` + 1) times the packets above `least`; 1 from `full` on. */
    action mark_between(bit<19> least, bit<19> full, bit<32> last) {
        least_depth = least;
        full_depth = full;
        last_draw = last;
    }

    /* The table has one row, without a key, so that the control plane can set the threshold. */
    table ecn_threshold {
        actions = { mark_from; mark_between; }
        default_action = mark_from(0);
    }

    apply {
        if (hdr.ipv4.ecn == ECN_CAPABLE_0 || hdr.ipv4.ecn == ECN_CAPABLE_1) {
            ecn_threshold.apply();
            if (full_depth != 0 && standard_metadata.enq_qdepth >= full_depth) {
                hdr.ipv4.ecn = ECN_MARKED;
            } else if (full_depth != 0 && standard_metadata.enq_qdepth > least_depth) {
                bit<32> drawn;
                random(drawn, 0, last_draw);
                if (drawn < (bit<32>)(standard_metadata.enq_qdepth - least_depth)) {
                    hdr.ipv4.ecn = ECN_MARKED;
                }
            }
        }
    }
}
