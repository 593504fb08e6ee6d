"""The words of an operation in the arena: a collective that nodes of a group run together.

References between parts are addresses, places in `arena.words`; 0 stands for none.
"""

# An operation's block; where the network has regions, that of its nodes in one of them.
LEFT_NODES = 0  # nodes that run here and are not done
NEXT_DONE = 1  # the next operation that is done and not yet taken
ITEM_BYTES = 2  # of an element
ELEMENT = 3  # type of the elements: one of those of `arithmetic`
EDGES_AT = 4  # the element at which each chunk starts, and the end
STACK_AT = 5  # frames
TOP = 6  # the place for the next frame
ENCODE = 7  # callbacks: write the message of a part, and return its bytes
APPLY = 8  # move a part's message into the tensor
AGGREGATE = 9  # give a part's sum to the switches, and return the agent
FAILED = 10  # a callback has raised an exception
OWN_CHUNKS = 11  # chunks of the tensor; further ones are in scratch memory
OPEN = 12  # callbacks with a lease: its chunk is about to be read, added to or overwritten
CLOSE = 13  # nobody will read what its chunk has, or change it
HEAR = 14  # a node here has done its part, or its message has left; 0: nobody wants to know
OPERATION_WORDS = 16  # threads have a block each, in a line of the cache of its own

# A wait: whoever waits for a chunk is in its list. It begins streams, slots, and executors, whose
# sums wait together. Chunks, and frames, begin with the first two words: the ends of their lists.
NEXT = 0
PREVIOUS = 1
CHUNK = 2  # whose list it is in
KIND = 3  # SEND, RECEIVE, SUM or LOCAL of `plan`, or SLOT
OWNER = 4  # the executor
WAIT_WORDS = 5

SLOT = 3

# An executor: one node's part of an operation. What each message looks at comes first.
OPERATION = 5  # block
AGENT = 6  # the block of its host's rc agent
CHUNKS_AT = 7
LEFT = 8  # parts that are not done
WRITES = 9  # parts that write to this node
FIRST_REQUEST = 10  # parts whose requests have not been taken
LAST_REQUEST = 11
NEXT_CONCERNED = 12  # the next executor whose requests are to be looked at
IS_CONCERNED = 13
NOW_PS = 14  # time of what concerned it last
FINISH_PS = 15  # time of its result; below 0: now
IS_UNDER_WAY = 16  # whether it counts in LEFT_NODES
LEASES_AT = 17  # of its chunks; 0: their memory is theirs from beginning to end
ADDRESS = 18  # of the tensor, in arena.memory
SCRATCH = 19  # address of scratch memory, as if the tensor's elements came before
SENDS = 20  # streams, of which the first is at STREAMS_AT; those of receives follow
RECEIVES = 21
LOCALS = 22  # streams of local work, which follow those
STREAMS_AT = 23
NODE = 24
SUMS_AT = 25  # the parts that are sums and not yet requested
SUMS = 26  # their number
SUMS_UNDER_WAY = 27
EXECUTOR_WORDS = 32

# A stream's sends, its receives, or local work.
QP = 5  # number of the queue pair
NEXT_PLANNED = 6  # the first planned part that is not made
END_PLANNED = 7
UNDER_WAY = 8  # parts requested and not done
DEPTH = 9  # the most of them
FREE = 10  # slots that are free
NEXT_PART = 11  # the part that is made and not requested; 0: none
FREE_PART = 12  # the first of those that are done, or not made, by LATER
TURN = 13  # added to chunks of planned parts, modulo their number; and to messages, in their step
SLOTS_AT = 14
FREE_BUFFERS = 15  # where messages have no contents, slots that none has
PEER = 16
STREAM_WORDS = 24

# A slot: the part that has, or will have, one of a stream's staging buffers.
PART = 5
CLAIM = 6  # of CLAIM_WORDS words
BUFFER = 8  # its address in arena.memory; -1: the message has not begun, or lands in place
FREE_SLOT = 9  # an entry of the stream's stack of free slots, at the slot of that place
FREE_BUFFER = 10  # likewise of its free buffers
SLOT_WORDS = 11

# A chunk of a node.
APPLIED = 2  # writes
ACKED = 3  # sends
CHUNK_WORDS = 4

# A lease: a chunk of a node whose memory is used for a part of the time only. It is also the claim
# of the message that brings a result which another node has.
STATE = 0
LAST_APPLIED = 1  # writes and sends after which it is as the collective leaves it
LAST_ACKED = 2
DROP_APPLIED = 3  # writes and sends after which it will next be overwritten; -1: never
DROP_ACKED = 4
SHARED = 5  # a claim, whose shift says where the result is; the handler is 0 if none is shared
BRINGS = 8  # the part that brings the result
IS_LENT = 9  # whether other nodes have their result here, too
LEASE_WORDS = 10

# States of a lease.
EMPTY = 0  # nothing is in its memory
FILLED = 1  # what it had in the beginning, or what has been added to that
COVERED = 2  # what it was, or is about to be, overwritten by
KEPT = 3  # its result

# A planned part: one message, or sum, as a node sees it. Streams of several nodes may share it.
PLANNED_MESSAGE = 0  # its number in the schedule
PLANNED_START = 1  # chunks START to STOP (excluded)
PLANNED_STOP = 2
PLANNED_AFTER = 3  # address of the counts that it waits for
PLANNED_FLAGS = 4
ROOM_BYTES = 5  # the most of the message
PLANNED_WORDS = 6

# A part: a planned one, made when its stream comes to it. Its words are another one's when it is
# done. Sums are made at the beginning. It is a line of the cache, as many of them wait.
MESSAGE = 0
STREAM = 1  # the stream's address; of a sum, the executor's
START = 2
STOP = 3
PLANNED = 4  # the planned part's address
LATER = 5  # the next request; of those that are free, the next one
HELD = 6  # its slot; of a sum, the time at which it was given to the switches
SIZE_BYTES = 7  # of the message; of one that a codec writes, the most until that is known
PART_WORDS = 8

# Flags of a part.
IS_STAGED = 1
IS_CODED = 2
IS_REDUCED = 4
IS_READ = 8  # it reads chunks of the node

# A frame: work put off until what it has caused is done. After its list:
FRAME_CHUNK = 2  # the next chunk whose waits are to be looked at, as it has been counted
FRAME_STOP = 3  # the chunk after the last of them; 0: a stream goes on
FRAME_STREAM = 4
FRAME_WORDS = 5
