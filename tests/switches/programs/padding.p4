/* A parser that goes round: padding of any length, then options, each of which may come again. */
#include <core.p4>
#include <v1model.p4>

header option_t {
    bit<8> kind;
    bit<8> value;
}

header rest_t {
    bit<8> kind;
    bit<24> value;
}

struct headers {
    option_t option;
    rest_t rest;
}

struct metadata {
    bit<8> rounds;
}

parser P(packet_in packet, out headers hdr, inout metadata meta,
         inout standard_metadata_t standard_metadata) {
    state start {
        meta.rounds = meta.rounds + 1;
        transition select(packet.lookahead<bit<8>>()) {
            0: pad;
            1 .. 9: option;
            default: rest;
        }
    }
    state pad {
        packet.advance(8);
        transition start;
    }
    state option {
        packet.extract(hdr.option);
        transition start;
    }
    state rest {
        packet.extract(hdr.rest);
        transition accept;
    }
}

control None(inout headers hdr, inout metadata meta) {
    apply { }
}

control I(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 2;
        if (hdr.rest.isValid()) {
            hdr.rest.value[7:0] = meta.rounds;
        }
    }
}

control E(inout headers hdr, inout metadata meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.option.isValid() && hdr.rest.isValid()) {
            hdr.option.value = hdr.option.value + hdr.rest.kind;
        }
    }
}

control D(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.rest);
        packet.emit(hdr.option);
    }
}

V1Switch(P(), None(), I(), E(), None(), D()) main;
