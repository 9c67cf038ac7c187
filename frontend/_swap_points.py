"""The parts of the library that `redispatch.swap` replaces: a row each, and nothing that computes.

A row names a function of the library, says what it owes its callers and which tests of the library hold it to that:
`pytest --swap autograd.engine=mine.py` runs those on yours. A new point is a new row, of any function in Python. Read
first: dispatch/swap.py.
"""

from __future__ import annotations

from collections.abc import Iterable

from redispatch.dispatch.swap import (
    POINTS,
    Point,
    empty_by_yours,
    entry_by_yours,
    fake_by_yours,
    hop_of_yours,
    hop_untold,
    run_by_yours,
    swap,
)

__all__ = ["swap"]

ROWS: Iterable[Point] = (
    Point(
        "keyset",
        "dispatch.core.interpreter:dispatch_keyset",
        "The keys of a call: those of all tensors among the arguments, items of lists too, with those that the state "
        "includes, without those that it excludes. Numbers and None stand where tensors may.",
        ("tests/dispatch/test_keys.py", "tests/dispatch/test_state.py", "tests/dispatch/test_boxing.py"),
        said="first",
    ),
    Point(
        "precedence",
        "dispatch.core.table:resolve",
        "Who answers at one runtime key: an Entry of what is registered there, else at an alias key that has it for a "
        "member, else of the key's fallback; None where nothing does. The newest registration at a key is the last.",
        ("tests/dispatch/test_tables.py", "tests/dispatch/test_library.py"),
        also={"dispatch.core.operator:OpOverload.entry": entry_by_yours},
        said="each",
    ),
    Point(
        "interpreter",
        "dispatch.core.interpreter:hop",
        "One hop: asks the operator for the entry of the keyset and calls its kernel with operator, keyset and stack. "
        "A layer lets the call run on with fewer keys, which comes back here.",
        ("tests/dispatch/test_boxing.py", "tests/dispatch/test_tables.py", "tests/dispatch/test_modes.py"),
        around=hop_of_yours,
        inner=hop_untold,
        said="each",
    ),
    Point(
        "binding",
        "dispatch.core.boxing:bind",
        "The stack of a call of `ops.X`: a value for each argument of the schema, in its order, defaults filled in and "
        "values converted. RuntimeError for a call that does not fit.",
        ("tests/dispatch/test_boxing.py",),
    ),
    Point(
        "overloads",
        "dispatch.entry.signature:Parser.parse",
        "Which overload a call of a public function means: (operator, stack, whether the result is to require grad). "
        "The first that fits, in the parser's order; TypeError where none does.",
        ("tests/dispatch/test_entries.py",),
    ),
    Point(
        "overrides",
        "dispatch.protocols.override:ask",
        "The answer of whoever overrides a function: the innermost function mode, itself popped, then the classes of "
        "`relevant`, subclass before superclass, until one does not answer NotImplemented. TypeError where all do.",
        ("tests/test_overrides.py", "tests/dispatch/test_override.py"),
    ),
    Point(
        "python",
        "dispatch.layers.python:python",
        "The layer at the key Python: asks the innermost mode, itself popped, then the classes of the arguments; while "
        "one answers, the keys above are excluded.",
        ("tests/dispatch/test_modes.py", "tests/modes/test_measuring.py"),
    ),
    Point(
        "python.order",
        "dispatch.layers.python:handling_types",
        "The classes that are asked about operators, of those of the arguments: each once, subclass before superclass, "
        "else from the left; without those that have no `__torch_dispatch__`.",
        ("tests/dispatch/test_modes.py",),
    ),
    Point(
        "autograd.layer",
        "dispatch.layers.autograd:autograd",
        "The layer at the Autograd keys: where an argument requires grad and recording is on, makes a node before the "
        "call; runs the operator below, with autograd excluded; makes the results point to the node.",
        ("tests/autograd/test_derivative.py", "tests/autograd/test_saved.py", "tests/autograd/test_requires_grad.py"),
    ),
    Point(
        "autograd.engine",
        "dispatch.autograd.engine:run_backward",
        "Sends gradients from the roots, (node, number of its output) each, to the leaves; returns those of `targets`, "
        "None for what was not reached. A node runs once, when all that reaches it has come. `node.run(gradients)`, "
        "`node.edges` and `evaluate` are what it works with.",
        ("tests/autograd/test_engine.py", "tests/autograd/test_views.py", "tests/autograd/test_saved.py"),
    ),
    Point(
        "views",
        "dispatch.layers.ad_inplace_or_view:ad_inplace_or_view",
        "The layer ADInplaceOrView: runs the operator below, then counts a write in the version of each argument that "
        "the schema marks as written, and ties results that the schema says are views to their base.",
        ("tests/autograd/test_views.py", "tests/autograd/test_saved.py"),
    ),
    Point(
        "autocast",
        "dispatch.layers.autocast:autocast",
        "The layer at the Autocast keys, where operators on a device's lists stop: casts the arguments by a policy and "
        "calls the operator from the top, with this key excluded.",
        ("tests/amp/test_autocast.py",),
    ),
    Point(
        "functionalize",
        "dispatch.layers.functionalize:functionalize",
        "The layer Functionalize: runs views and writes of wrappers as operators on values that write nothing, and "
        "notes in the wrappers what they show now.",
        ("tests/func/test_transforms.py",),
    ),
    Point(
        "conjugate",
        "dispatch.layers.lazy_bit:conjugate",
        "The layer Conjugate: runs an operator on the conjugates themselves, where an argument is a tensor with that "
        "bit; what is written goes back through it.",
        ("tests/ops/test_complex_numbers.py",),
    ),
    Point(
        "batching",
        "dispatch.transforms.vmap_level:VmapLevel.process",
        "What vmap's level makes of an operator whose arguments it has wrapped: takes the batches off, calls the "
        "operator on them outside of the level, and wraps the results, for each the dimension of the batch.",
        ("tests/func/test_transforms.py", "tests/func/test_functions.py"),
    ),
    Point(
        "allocator",
        "dispatch.tensor.storage:allocate",
        "Memory for so many elements of numpy's dtype, of undefined values: a flat array. RuntimeError where there is "
        "none left.",
        ("tests/tensor/test_storage.py",),
        also={"dispatch.tensor.factory:empty_from": empty_by_yours},
    ),
    Point(
        "fake",
        "modes.fake_tensor:FakeTensorMode.computed",
        "The result of an operator on fakes of this mode: fakes with the shape, strides, dtype and device that it has "
        "elsewhere. Nothing is remembered of yours.",
        ("tests/modes/test_fake_wrappers.py", "tests/fx/test_make_fx.py"),
        also={"modes.fake_tensor:FakeTensorMode.__torch_dispatch__": fake_by_yours},
    ),
    Point(
        "specialiser",
        "dispatch.specialiser.specialise:specialised",
        "Code for an operator, facts about its arguments and a keyset with flags: a function of the arguments that the "
        "facts do not tell (all but those marked D, their default, and N, None), which does what `hop` would.",
        ("tests/dispatch/test_boxing.py", "tests/dispatch/test_tables.py"),
        also={"dispatch.specialiser.specialise:run_specialised": run_by_yours},
        said="first",
    ),
    Point(
        "partitioner",
        "_functorch.partitioners:min_cut_rematerialization_partition",
        "(forward, backward) of a joint graph: forward's results are the first `num_fwd_outputs` and all that backward "
        "takes besides the gradients.",
        ("tests/fx/test_aot_autograd.py",),
    ),
    Point(
        "schema",
        "dispatch.schema.parser:parse_schema",
        "The FunctionSchema that a text describes; SchemaError, which points at the mistake, for any other text.",
        ("tests/dispatch/test_schema.py",),
    ),
)

POINTS.update({row.name: row for row in ROWS})
