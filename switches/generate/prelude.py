"""The beginning of every generated module and handler."""

from ringleaf.switches.generate.state import LANE_STATE_AT, STATE_AT

HEADER = '''"""The handlers of a P4 program, generated; its names are in `Module.names`."""

import numpy as np

from ringleaf.core.compiled import handler
from ringleaf.core.packets import (
    AGAIN,
    FIELD_COUNT,
    FIELDS_AT,
    HEAD_BYTES,
    HEAD_LEN,
    HEADS_AT,
    IN_PORT,
    LANE_COUNT,
    LANES_AT,
    PASSES,
    PAYLOAD_LEN,
    PHV,
    ROW_WORDS,
    ROWS_AT,
    TAIL_LEN,
    TWIN,
    copy_packet,
    take_phv,
)
from ringleaf.core.units import PS_PER_US
from ringleaf.switches.engine.arithmetic import (
    as_signed,
    clamp,
    divide,
    draw,
    fold16,
    modulo,
    shift_left,
    shift_right,
    shift_right_signed,
    store_signed,
)
from ringleaf.switches.engine.digests import begin_message
from ringleaf.switches.engine.gathering import (
    crc_reflected,
    crc_upright,
    first_of,
    input_of,
    put_bits,
    put_varbits,
    sum_of,
    xor_of,
)
from ringleaf.switches.generate.state import SCRATCH_AT
from ringleaf.switches.engine.hashing import crc_steps, crc_tables
from ringleaf.switches.engine.heads import (
    copy_bytes,
    cut,
    move_rest,
    pull,
    read_lanes_8,
    read_lanes_16,
    sum_from,
    write_lanes_8,
    write_lanes_16,
    write_words,
)
from ringleaf.switches.engine.layout import DIGESTS_AT, RANDOM_AT
from ringleaf.switches.engine.lookup import (
    count_packet,
    find_exact,
    find_in_ranges,
    find_in_wide_ranges,
    find_masked,
    note_hit,
    pick_member,
)
from ringleaf.switches.engine.meters import meter_color
from ringleaf.switches.engine.value_sets import is_member
from ringleaf.switches.engine.varbits import copy_varbits, read_varbits, same_varbits, write_varbits
from ringleaf.switches.engine.multiword import (
    add_words,
    divide_words,
    is_less,
    modulo_words,
    multiply_words,
    shift_words_left,
    shift_words_right,
    subtract_words,
)
from ringleaf.core.views import (
    look_up_bytes,
    number_at,
    put_number,
    span,
    swap_items,
    window,
)

U = np.uint64
I = np.int64
'''

OPEN = f"""words = arena.words
row = span(words, words[ROWS_AT] + packet * ROW_WORDS, ROW_WORDS)
head = window(arena.bytes, words[HEADS_AT] + packet * words[HEAD_BYTES], words[HEAD_BYTES])
fields = span(arena.fields, words[FIELDS_AT] + row[PHV] * words[FIELD_COUNT], words[FIELD_COUNT])
lanes = span(arena.lanes, words[LANES_AT] + row[PHV] * words[LANE_COUNT], words[LANE_COUNT])
block = span(words, at, {{size}})
state = arena.fields
cells = arena.lanes
state_at = U(block[{STATE_AT}])
cells_at = U(block[{LANE_STATE_AT}])"""
