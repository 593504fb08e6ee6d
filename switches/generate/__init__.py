"""From a P4 program's JSON to the source of a Python module that Numba compiles.

`structure` nests the JSON's graph of tables and conditions into statements, `lanes` finds loops
in them, `usage` sees which fields must be kept where, `storage` and `state` give fields and
registers their places. `parser`, `statements`, `loops`, `calculations` and `deparser` write code,
with `expressions` for values; `primitives` has one line per primitive. `module` puts it together.

The written module can be read: it lies in the cache folder, and `Program.module.text` has it.
"""

from switches.generate.module import Module, generate

__all__ = ["Module", "generate"]
