"""The compiler: Numba, and what it must know of our arenas, views and atomic words.

Nothing here is imported by a run whose functions have all been compiled before.
"""

import os

# Numba colours each of the errors that it makes as it tries one type after the other, of which
# nobody sees any: a tenth of the time for a large program, where colorama is installed.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")
