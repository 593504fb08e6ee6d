"""The executors of a collective: each walks a node's part of the schedule by data flow, compiled.

Sans-I/O: an executor queues requests for sends, receives and sums of the network, and is told when
they are done; its driver takes the requests and reports. It only knows its own node's part of the
schedule, so the same executor runs in virtual time and in a process of its own.

- A send may start once every earlier-step write of its chunk has been applied here.
- A write is applied once every earlier-row write of its chunk has been, and every send of
  that chunk up to its step has been acknowledged; so results don't depend on arrival order.
- A COPY lands in the tensor itself; a REDUCE lands in a staging buffer and is added from there.
  So does a stream's first COPY, if it may come before the tensor is ready for it.
- A message that the schedule's codec writes leaves from a staging buffer, encoded when it may go,
  so its chunks may be written at once; and it lands in one, to be decoded when it is applied.
- Where chunks are leased, a node has memory for one from the first time that it is read, added to
  or overwritten, and not between the last time that it is read and that it is overwritten.

`layout` says which words an operation has in the arena, `build` and `leases` write them, `parts`
reads those of a part, and `walk` runs them.
"""
