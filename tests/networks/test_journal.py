"""Notes of messages: those of all drivers, in the order of time, and only of whole instants."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleaf.core.arena import Store
from ringleaf.hosts.plan import RECEIVE
from ringleaf.networks.endpoints import driver as d
from ringleaf.networks.endpoints.journal import Journal

MOST = 8


def write(store: Store, journal: Journal, region: int, note: tuple[int, int]) -> None:
    """Note the end (time, node) of a message as a driver does."""
    words, at = store.arena.words, journal.blocks[region]
    time_ps, node = note
    if words[at + d.NOTES] == words[at + d.MOST_NOTES]:
        words[at + d.LEFT_OUT] += 1
        return
    row = int(words[at + d.NOTES_AT] + words[at + d.NOTES] * d.NOTE_WORDS)
    words[row : row + d.NOTE_WORDS] = RECEIVE, node, 0, 0, time_ps, time_ps
    words[at + d.NOTES] += 1


@given(
    notes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=30),
    regions=st.integers(1, 4),
)
def test_any_number_of_drivers_leaves_the_same(notes: list[tuple[int, int]], regions: int) -> None:
    """Nodes are dealt to regions; each region notes its own in the order of time."""
    store = Store()
    journal = Journal(store, 1, most=MOST, start_ps=0, regions=regions)
    ordered = sorted(notes, key=lambda note: note[0])  # within a time, in any order
    for note in ordered:
        write(store, journal, note[1] % regions, note)

    wanted = sorted(notes)
    if len(notes) > MOST:
        wanted = [note for note in wanted if note[0] < wanted[MOST - 1][0]]
    assert [(note.end_ps, note.node) for note in journal.notes] == wanted
    assert journal.left_out == len(notes) - len(wanted)
