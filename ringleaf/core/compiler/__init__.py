"""The compiler: Numba, and what it must know of our arenas, views and atomic words.

Nothing here is imported by a run whose functions have all been compiled before.
"""
