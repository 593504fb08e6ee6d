"""From a P4 program's JSON to the source of a Python module that Numba compiles.

`structure` nests the JSON's graph of tables and conditions into statements, `lanes` finds loops
in them, `usage` finds the fields that must be kept, `storage` and `state` give fields and
registers their places; `paths` finds the places where headers can lie. `parser` (with `extract` and
`select`), `statements`, `loops`, `calculations` and `deparser` write code, with `expressions` for
values;
`primitives` has one line per primitive, after `lower` has made plain ones of those on whole stacks,
unions and elements at an index. `handlers` puts it together: `module` for v1model, `psa` for PSA.

The written module can be read: it lies in the cache folder, and `Program.module.text` has it.
"""
