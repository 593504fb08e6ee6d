/* Marks ECN-capable packets (RFC 3168) that met a long queue: the threshold is DCTCP's K
 * (Alizadeh et al., SIGCOMM 2010), in packets already queued when this one joined.
 * The including program defines headers_t with `ipv4`, and metadata_t. */

control EcnMarking(inout headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    bit<19> least_depth;

    /* 0: never mark. */
    action mark_from(bit<19> threshold) {
        least_depth = threshold;
    }

    /* One row, without a key, so that the control plane can set the threshold. */
    table ecn_threshold {
        actions = { mark_from; }
        default_action = mark_from(0);
    }

    apply {
        if (hdr.ipv4.ecn == ECN_CAPABLE_0 || hdr.ipv4.ecn == ECN_CAPABLE_1) {
            ecn_threshold.apply();
            if (least_depth != 0 && standard_metadata.enq_qdepth >= least_depth) {
                hdr.ipv4.ecn = ECN_MARKED;
            }
        }
    }
}
