"""How samples are written down: `calls([(2, 3), 1], [()], call((0, 3), dim=1))`, a list or a `call` for each.

A tuple stands for a tensor of that shape, in the dtype that is asked for; numbers, strings and lists for themselves.
`x` is what makes tensors, a Maker, before there is one: `x(2, 3, low=1)`, `x.values([0, 1])`, `x(3, 2).t()`, `x.dtype`.
Where that does not do, samples are a generator function of a Maker.

The usual shapes are a matrix, a tensor without dimensions and one without elements; more only where they can matter,
since each pair of a dtype and a layout costs a compilation. Read next: a family, such as pointwise.py.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

import numpy as np
from scipy import special

from redispatch.dispatch.tensor import dtypes

from ..op_info import ALL, ErrorInput, Errors, Maker, OpInfo, SampleInput, Samples
from .backward import backward_of

SHAPES = ((2, 3), (), (0, 3))

# --- calls ------------------------------------------------------------------------------------------------------------


class Later:
    """A value that depends on a Maker; attributes, items and calls of it are such values, too."""

    def __init__(self, of: Callable[[Maker], Any]) -> None:
        self._of = of

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Later(lambda make: getattr(self._of(make), name))

    def __getitem__(self, index: Any) -> Any:
        return Later(lambda make: self._of(make)[index])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Later(lambda make: self._of(make)(*made(list(args), make), **made(kwargs, make)))


x: Any = Later(lambda make: make)
d = x.distinct  # of equal elements any may be named first


def later(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function(make, ...)` as a value that is made later: `regular(3, 3)` for `def regular(make, *shape)`."""
    return lambda *args, **kwargs: Later(lambda make: function(make, *args, **kwargs))


def fixed(*shape: int, **options: Any) -> Any:
    """A tensor that is no leaf of a graph: an operator has no gradient in it."""
    return x(*shape, **options).detach()


def whole(numbers: Any) -> Any:
    """A tensor of these integers: indices, lengths, counts."""
    return x.values(numbers, dtypes.int64)


def some_number(make: Maker) -> Any:
    """A number that fits the dtype."""
    return 1.5 if make.dtype.is_floating_point else True if make.dtype.name == "bool" else 2


NUMBER: Any = Later(some_number)


def made(value: Any, make: Maker) -> Any:
    """The value, with tensors for the tuples and for what is `Later` in it."""
    if isinstance(value, Later):
        return value._of(make)
    if isinstance(value, tuple):
        return make(*value)
    if isinstance(value, list):
        return [made(one, make) for one in value]
    return {name: made(one, make) for name, one in value.items()} if isinstance(value, dict) else value


def call(*args: Any, **kwargs: Any) -> Samples:
    def one(make: Maker) -> Iterator[SampleInput]:
        first, *rest = made(list(args), make)
        yield SampleInput(first, tuple(rest), made(kwargs, make))

    return one


def calls(*parts: Any) -> Any:
    """The samples of all parts, in turn; a list is a call without keywords."""
    several = [call(*part) if isinstance(part, list) else part for part in parts]
    return lambda make: (sample for part in several for sample in part(make))


def only(condition: Callable[[Maker], Any], *parts: Any) -> Samples:
    """Samples for some dtypes, or for thorough tests."""
    return lambda make: calls(*parts)(make) if condition(make) else ()


def floating(*parts: Any) -> Samples:
    return only(lambda make: make.dtype.is_floating_point, *parts)


def thorough(*parts: Any) -> Samples:
    return only(lambda make: make.thorough, *parts)


def but_not(what: str, reason: str, *parts: Any) -> Samples:
    """Samples that are left out of one generic test."""
    return lambda make: (sample.but_not(what, reason) for sample in calls(*parts)(make))


def per_shape(body: Callable[[tuple[int, ...]], Any], shapes: Iterable[tuple[int, ...]] = SHAPES) -> Samples:
    """A call for each of the usual shapes: `per_shape(lambda s: [x.mask(*s), s])`."""
    return calls(*map(body, shapes))


def given(*values: Any, then: Callable[..., Any]) -> Samples:
    """Calls of values that are made first, or stand in them twice: `given((2, 3), then=lambda a: [a, a])`."""
    return lambda make: calls(then(*made(list(values), make)))(make)


def unary(*args: Any, low: float = -3, high: float = 4, **kwargs: Any) -> Samples:
    """One tensor, with these further arguments: a matrix, without dimensions, without elements."""
    return per_shape(lambda s: call(x(*s, low=low, high=high), *args, **kwargs))


def binary(low: float = -3, high: float = 4, exclude_zero: bool = False, **kwargs: Any) -> Samples:
    """Two tensors: equal shapes, without dimensions, without elements; broadcast against each other."""

    def pair(one: tuple[int, ...], other: tuple[int, ...]) -> Samples:
        return call(x(*one, low=low, high=high), x(*other, low=low, high=high, exclude_zero=exclude_zero), **kwargs)

    return calls(
        pair((2, 3), (2, 3)), pair((), ()), pair((0, 3), (1, 3)), thorough(pair((2, 1), (3,)), pair((2, 3), ()))
    )


# --- tables -----------------------------------------------------------------------------------------------------------

# A call that must fail: its text, for Python's own classes behind the class -> the call. Others are RuntimeErrors.
Failing = Mapping[str, Any]
CLASSES = {error.__name__: error for error in (IndexError, NotImplementedError, TypeError, ValueError)}

RECORDED = "a node that says there is no derivative, as in PyTorch"  # a reason against the property "recording"
NOT_BROADCASTABLE = {
    "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1": [(2, 3), (4,)]
}
BAD_DIM = {"IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)": [(2, 3), 2]}


def table(
    *infos: OpInfo,
    references: Mapping[str, Callable[..., Any]] | None = None,
    errors: Mapping[str, Failing] | None = None,
    skips: Mapping[str, str] | None = None,
    flat: str = "",
    representative: str = "",
    in_nn: str = "",
) -> list[OpInfo]:
    """The entries of a family, and what there is to say about some of them; those of `<name>_backward` follow.

    references: operators, or names for all of their overloads -> the formula, for entries that have none.
    errors: operators -> their calls that must fail; "add_.Tensor" is the in-place form.
    skips:  a reason -> "generic tests: operators; ...", which of the tests do not hold for which entries.
    flat: those that have no gradient. Names in `skips` and here may be patterns, such as "linalg_lu*".
    representative: those that stand for all pointwise operators. in_nn: those whose function is in nn.functional.
    """
    found = {str(info): info for info in infos}
    formulas = {name: formula for names, formula in (references or {}).items() for name in names.split()}
    for name, info in found.items():
        formula = formulas.get(name, formulas.get(name.partition(".")[0]))
        if formula and info.reference is None:
            found[name] = info.but(name, reference=formula)
    for info in list(found.values()):
        slope = backward_of(info)
        if slope is not None and str(slope) not in found:
            found[str(slope)] = slope.but(slope.name, reference=formulas.get(str(slope), slope.reference))
    failing: dict[str, list[Errors]] = {}
    for names, rows in (errors or {}).items():
        for name in names.split():
            stem, dot, overload = name.partition(".")
            of = name if name in found else stem.removesuffix("_") + dot + overload
            failing.setdefault(of, []).append(failures(rows, "functional" if name == of else "inplace"))
    for name, groups in failing.items():
        found[name] = found[name].but(name, errors=calls(*groups))
    for reason, left_out_in in (skips or {}).items():
        for tests, _, names in (row.partition(":") for row in left_out_in.split(";")):
            for name in among(found, names):
                left_out = {**found[name].skips, **dict.fromkeys(tests.split(), reason)}
                found[name] = found[name].but(name, skips=left_out)
    for name in among(found, flat):
        found[name] = found[name].but(name, gradients=False)
    for name in representative.split():
        found[name] = found[name].but(name, representative=True)
    for name in in_nn.split():
        function = f"nn.functional.{name.partition('.')[0]}"
        found[name] = found[name].but(name, function=function)
    return list(found.values())


def among(found: Mapping[str, OpInfo], patterns: str) -> Iterator[str]:
    """The operators of these names, each of which there must be."""
    for pattern in patterns.split():
        matched = fnmatch.filter(found, pattern)
        if not matched:
            raise ValueError(f"there is no entry for {pattern}")
        yield from matched


def entries(names: str, samples: Samples, dtypes: Any = ALL, **options: Any) -> Iterator[OpInfo]:
    """An entry for each name, with the same samples; their formulas stand in the table's `references`."""
    for name in names.split():
        yield OpInfo(name, samples, dtypes=dtypes, **options)


def by_numpy(
    words: str, samples: Samples, dtypes: Any = ALL, wrap: Any = lambda function: function, **options: Any
) -> Iterator[OpInfo]:
    """An entry for each word, "hypot" or "mul.Tensor:multiply": the operator and, after a colon, numpy's name for it.

    What numpy does not have, scipy.special has. wrap: makes the reference of the function.
    """
    for word in words.split():
        name, _, numpys = word.partition(":")
        path = numpys or name.partition(".")[0].replace("linalg_", "linalg.").replace("fft_", "fft.")
        room = np if hasattr(np, path.partition(".")[0]) else special
        yield OpInfo(name, samples, wrap(attrgetter(path.removeprefix("special_"))(room)), dtypes, **options)


def failures(rows: Failing, form: str) -> Errors:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        for line, failing in rows.items():
            kind, colon, text = line.partition(": ")
            error, text = (CLASSES[kind], text) if kind in CLASSES else (RuntimeError, line)
            for sample in calls(failing)(make):
                yield ErrorInput(sample, error, text, form)

    return errors


# --- references -------------------------------------------------------------------------------------------------------


def axes(dim: Any) -> Any:
    """numpy's `axis` for our `dim`: a list as a tuple, an empty one as all."""
    return (tuple(dim) or None) if isinstance(dim, list | tuple) else dim


def per_axis(value: Any, dims: int) -> list[Any]:
    """A number for each of the last dimensions, where one may stand for all."""
    return [value] * dims if isinstance(value, int) else list(value) * (dims if len(value) == 1 else 1)


def first_result(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first of a function's results."""
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """A numpy function without its warnings of divisions by zero and the like."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return reference
