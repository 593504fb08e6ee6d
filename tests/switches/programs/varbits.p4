/* Headers of computed length: extracted, copied, compared, summed up, and sent on. */
#include <core.p4>
#include <v1model.p4>

header base_t {
    bit<4> op;
    bit<4> words;  // of 2 bytes, in the options
    bit<8> bits;  // more of them
}

header options_t {
    bit<12> kind;
    varbit<160> value;
    bit<4> tail;
}

header check_t {
    bit<16> sum;
    varbit<64> data;
}

header rest_t {
    bit<8> length;
    bit<8> value;
}

struct headers {
    base_t base;
    options_t options;
    check_t check;
    rest_t rest;
    options_t copy;
}

struct metadata {
    bit<32> error_code;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.base);
        packet.extract(hdr.options, (bit<32>)hdr.base.words * 16 + (bit<32>)hdr.base.bits);
        transition select(hdr.base.op) {
            0xf: accept;
            default: check;
        }
    }
    state check {
        packet.extract(hdr.check, (bit<32>)(hdr.options.kind[2:0]) << 3);
        packet.extract(hdr.rest);
        packet.advance((bit<32>)hdr.rest.length);
        transition accept;
    }
}

control V(inout headers hdr, inout metadata meta) {
    apply {
        verify_checksum(hdr.base.op == 9, { hdr.options.kind, hdr.options.value, hdr.options.tail },
                        hdr.check.sum, HashAlgorithm.csum16);
    }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (standard_metadata.parser_error == error.PacketTooShort) {
            standard_metadata.egress_spec = 3;
        } else if (standard_metadata.parser_error == error.HeaderTooShort) {
            standard_metadata.egress_spec = 4;
        } else if (standard_metadata.parser_error == error.ParserInvalidArgument) {
            standard_metadata.egress_spec = 5;
        } else if (standard_metadata.checksum_error == 1) {
            standard_metadata.egress_spec = 6;
        } else if (hdr.base.op == 1) {
            hdr.copy = hdr.options;
        } else if (hdr.base.op == 2) {
            hdr.options.setInvalid();
            hdr.options.setValid();
            hdr.options.tail = 0xf;
        } else if (hdr.base.op == 3) {
            hdr.copy = hdr.options;
            hdr.copy.kind = hdr.copy.kind + 1;
            hdr.options.setInvalid();
        } else if (hdr.base.op == 4) {
            hdr.copy = hdr.options;
            if (hdr.copy == hdr.options) {
                hdr.rest.value = 0xee;
            }
        } else if (hdr.base.op == 5) {
            hdr.options.tail = hdr.options.tail + 1;
        } else if (hdr.base.op == 6) {
            hdr.copy.setValid();
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.base.isValid() && hdr.base.op == 7) {
            hdr.rest.value = (bit<8>)standard_metadata.packet_length;
            hdr.copy = hdr.options;
        }
    }
}

control U(inout headers hdr, inout metadata meta) {
    apply {
        update_checksum(hdr.base.isValid() && hdr.base.op != 8,
                        { hdr.options.value, hdr.check.data, hdr.rest.value, hdr.copy.value },
                        hdr.check.sum, HashAlgorithm.csum16);
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.base);
        packet.emit(hdr.options);
        packet.emit(hdr.check);
        packet.emit(hdr.rest);
        packet.emit(hdr.copy);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;
