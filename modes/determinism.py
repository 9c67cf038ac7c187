"""DeterminismMode: runs each operator twice, and compares the results bit by bit.

    with DeterminismMode():
        model(x).sum().backward()       # NondeterminismError: mylib.scatter.default(…) …

What it teaches: what an operator's result is a function of. Of its arguments, which therefore must be the same both
times although the operator may write them: the first run gets copies, in which what shared memory shares it again. Of
the state of the random generators, which is put back between the runs; so random operators are deterministic, too, and
the numbers that the program gets are those that it would have got. Whatever still differs came from somewhere else: the
order in which threads add up, memory that nobody filled, a counter in a kernel. How serious it is: a tool for tests. It
doubles the time, and copies every argument; what differs once in a thousand runs may well agree in these two.

Read next: cross_check.py, which runs the second time in other numbers; functional_rng.py.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _disable_current_modes

from .findings import FindingMode, copied, is_uninitialized, tensors_with_data
from .logging_mode import call_text


class NondeterminismError(RuntimeError):
    """Two runs of an operator with the same arguments differ. func: the operator."""

    def __init__(self, message: str, func: Any) -> None:
        super().__init__(message)
        self.func = func


class DeterminismMode(FindingMode):
    """A region in which each operator is held against itself.

    Compared are the results and, if it writes some, the arguments. Generators: the default one and those that are
    passed; not those of devices that users register. Not run twice: `empty` and its kin, whose result is whatever stood
    in memory. Modes below this one see both runs. action: "raise", "warn" or "record".
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if is_uninitialized(func):
            return func(*args, **kwargs)
        with _disable_current_modes():
            storages: dict[int, Any] = {}
            twins = {
                id(leaf): copied(leaf, storages)
                for leaf in pytree.tree_leaves((args, kwargs))
                if isinstance(leaf, rd.Tensor)
            }
            twin_args, twin_kwargs = pytree.tree_map_only(rd.Tensor, lambda x: twins[id(x)], (args, kwargs))
        call, states = call_text(func, args, kwargs), generator_states(args, kwargs)
        try:
            first = func(*twin_args, **twin_kwargs)
        finally:
            for generator, state in states:
                generator.set_state(state)
        result = func(*args, **kwargs)
        with _disable_current_modes():
            difference = first_difference((first, twin_args, twin_kwargs), (result, args, kwargs))
        if difference:
            message = f"{call} gave two results for the same arguments and random state: {difference}"
            self.report(NondeterminismError(message, func))
        return result


def generator_states(args: Any, kwargs: Any) -> list[tuple[Any, Any]]:
    """The generators that a call may draw from, each with its state."""
    given = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, rd.Generator)]
    return [(generator, generator.get_state()) for generator in (rd.default_generator, *given)]


def first_difference(one: Any, other: Any) -> str:
    """Describes where two values differ first; nothing where they are equal, bit by bit."""
    mine, others = list(tensors_with_data(one)), list(tensors_with_data(other))
    if len(mine) != len(others):
        return f"{len(mine)} and {len(others)} tensors"
    for a, b in zip(mine, others, strict=True):
        a, b = a.detach(), b.detach()
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype}{list(a.shape)} and {b.dtype}{list(b.shape)}"
        unequal = (element_bytes(a) != element_bytes(b)).any(dim=-1)
        if bool(unequal.any()):
            at = int(unequal.nonzero()[0])
            x, y = a.reshape(-1)[at].item(), b.reshape(-1)[at].item()
            return f"{int(unequal.sum())} of {a.numel()} elements differ, the first of them {x!r} and {y!r}"
    return numbers_differ(one, other)


def numbers_differ(one: Any, other: Any) -> str:
    """Finds where the Python numbers in two values differ first."""
    for a, b in zip(pytree.tree_leaves(one), pytree.tree_leaves(other), strict=True):
        if isinstance(a, int | float | complex) and a != b and not (a != a and b != b):
            return f"{a!r} and {b!r}"
    return ""


def element_bytes(x: Any) -> Any:
    """The bytes of a tensor, a row for each element: in them a NaN is equal to itself, and 0. is not -0."""
    # A copy, since a tensor with a dimension of size 1 may be contiguous and have any stride there.
    dense = x.resolve_conj().resolve_neg().clone(memory_format=rd.contiguous_format)
    return dense.reshape(-1, 1).view(rd.uint8)


NOT_SUPPORTED: dict[str, str] = {}
