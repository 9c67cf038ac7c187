"""Loops that are written once for all dtypes.

    def total_loop(lo, hi, table, out, out_at, x, x_at):
        ... acc += load_x(x[uint64(at)]) ... out[uint64(out_at + i)] = store_out(acc)

    TOTAL = Template(total_loop, "int64[] table", "out[] out", "x[] x")
    entry = TOTAL(x="bfloat16", out="float32")

The loop names what a dtype needs: `load_x` takes an element from what the storage holds to the type that is computed
in, `store_out` takes a number back, and `zero`, `one` and `lowest` are numbers of the type in which the first dtype
computes. The names below stand for them where a loop is read; `Template` gives each kernel its own, and whatever else
an entry is asked for with (`combine`, say). Read next: `pool.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, ByTarget

from .compile import Entry, Kernel
from .convert import array_type, as_is, load, real_type, store

given: Any = as_is  # for names of one loop alone
load_x = load_y = load_out = load_weight = load_bias = load_mask = store_x = store_out = as_is
zero, one, lowest = np.float64(0), np.float64(1), np.float64(-np.inf)


class Template:
    """The entries of a loop, by what differs between them.

    nogil: as of a `Kernel`.

    types: what its parameters are that are no int64 numbers, declared as in C, in the words of signatures; a dtype that
    differs has a name of its own there: "x[] a b" are arrays in which a storage of that dtype lies, "x.compute[] a"
    one of the type in which it computes, and "x a" a number of that type.
    """

    def __init__(
        self, loop: Callable, *types: str, fastmath: frozenset[str] = frozenset(), nogil: bool | int = True
    ) -> None:
        self.loop, self.fastmath, self.name = loop, fastmath, loop.__name__.removesuffix("_loop")
        self.nogil = nogil
        self.types = {name: kind for kind, *names in map(str.split, types) for name in names}
        self.parameters = loop.__code__.co_varnames[: loop.__code__.co_argcount]
        assert self.types.keys() <= {*self.parameters}, f"{loop.__name__} has no such parameters"
        self.entries = ByTarget()

    def __call__(self, *, name: str = "", **given: Any) -> Entry:
        """The entry for dtypes, which are given by name, as words, and for other names of the loop."""
        key = (name, *given.items())
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = self.compiled(name, given, self.fastmath)
        return entry

    def compiled(self, name: str, given: dict[str, Any], fastmath: frozenset[str]) -> Entry:
        """Compiles for callers that remember the result, with LLVM's flags."""
        dtypes = {word: value for word, value in given.items() if isinstance(value, str)}
        first = next(iter(dtypes.values()), "int64")
        known: dict[str, Any] = numbers_of(DTYPES[first].compute)
        for word, dtype in dtypes.items():
            if dtype in DTYPES:  # or a type of this machine's alone, as of keys
                known |= {f"load_{word}": load(dtype), f"store_{word}": store(dtype)}
        known |= {word: value for word, value in given.items() if word not in dtypes}
        kernel = Kernel(
            self.loop, name=name or None, given=known, real=real_type(first), fastmath=fastmath, nogil=self.nogil
        )
        return kernel.entry(*(self.type_of(one, dtypes) for one in self.parameters))

    def type_of(self, parameter: str, dtypes: dict[str, str]) -> str:
        """The signature's word for a parameter."""
        kind = self.types.get(parameter, "int64")
        word, _, rest = kind.removesuffix("[]").partition(".")
        dtype, array = dtypes.get(word), "[]" * kind.endswith("[]")
        if dtype is None or dtype not in DTYPES:
            return kind if dtype is None else dtype + array
        return array_type(dtype) if array and not rest else DTYPES[dtype].compute + array


def numbers_of(compute: str) -> dict[str, Any]:
    """`zero`, `one` and `lowest` of a type."""
    number = np.dtype(compute).type
    least = np.iinfo(compute).min if np.dtype(compute).kind in "iu" else False if compute == "bool" else -np.inf
    return {"zero": number(0), "one": number(1), "lowest": number(least)}
