/* The IPv4 header checksum (RFC 1071), checked on the way in and set on the way out.
 * The including program defines headers_t with `ipv4`, and metadata_t. */

#define IPV4_CHECKED_FIELDS                                              \
    { hdr.ipv4.version_ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.length, \
      hdr.ipv4.identification, hdr.ipv4.flags, hdr.ipv4.fragment,        \
      hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst }

/* A mismatch sets standard_metadata.checksum_error; v1model does not drop by itself. */
control VerifyIpv4(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKED_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

control UpdateIpv4(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKED_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}
