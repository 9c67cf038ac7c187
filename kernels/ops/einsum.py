"""einsum: products of several tensors, summed over the letters that the result does not have.

    1. every tensor gets all letters as dimensions, those of the result first, of size 1 where it has none;
    2. two at a time, from the left or by a path, they become one: by a matrix product where a letter is summed that no
       other tensor has, else by a product of elements;
    3. what is left of the summed letters has size 1 then, and is dropped.

Which dimensions go where depends on the equation and the shapes alone, so it is planned once for each.

Source: the way PyTorch's goes, step by step; a mode sees the same operators. Read next: linalg.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from redispatch.dispatch import STATE, dataclass
from redispatch.dispatch.protocols.override import OfPython
from redispatch.dispatch.tensor import Tensor

from ..declare.operator import CUDA_LOWER, composite
from ..declare.overridable import seen_as

REST = "..."

Shape = tuple[int, ...]
Dims = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """A tensor's way to all dimensions: by diagonals of two of its own each, new ones at the end, and an order."""

    diagonals: tuple[tuple[int, int], ...]
    new: int
    order: Dims


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """The way of two tensors to batches of matrices, and of their product back. swap: the second is on the left."""

    swap: bool
    left: tuple[Dims, Shape]
    right: tuple[Dims, Shape]
    result: tuple[Shape, Dims]


@dataclass(frozen=True, slots=True)
class Join:
    """Two tensors that become one, along what each is summed before, and how they are multiplied (None: elements)."""

    i: int
    j: int
    sums: tuple[Dims, Dims]
    product: MatrixProduct | None


@dataclass(frozen=True, slots=True)
class Plan:
    """kept: the number of the result's dimensions, which come first; count: of all."""

    layouts: tuple[Layout, ...]
    joins: tuple[Join, ...]
    kept: int
    count: int


@composite(
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    autocast=CUDA_LOWER,
    face=False,
    refuses="bool",
)
def einsum_op(equation, tensors, path):
    """Products summed over the letters that the result does not have: "ij,jk->ik" is the product of matrices.

    path: which two tensors are joined in each step, as pairs of positions one after the other; the result is put at
    the end. None: the first two, and the result at the beginning.
    """
    plan = planned(equation, tuple([tuple(x.shape) for x in tensors]), None if path is None else tuple(path))
    parts = [laid_out(x, layout) for x, layout in zip(tensors, plan.layouts, strict=True)]
    for join in plan.joins:
        second, first = parts.pop(join.j), parts.pop(join.i)
        parts.insert(0 if path is None else len(parts), joined(first, second, join))
    (whole,) = parts
    if plan.kept == plan.count:
        return whole
    if plan.joins:
        return whole.view(whole.shape[: plan.kept])
    return whole.sum(list(range(plan.kept, plan.count)))


def laid_out(x: Any, layout: Layout) -> Any:
    for first, second in layout.diagonals:
        x = x.diagonal(0, first, second).movedim(-1, first)
    for _ in range(layout.new):
        x = x.unsqueeze(x.dim())
    return x.permute(layout.order)


def joined(a: Any, b: Any, join: Join) -> Any:
    of_a, of_b = join.sums
    a = a.sum(of_a, True) if of_a else a
    b = b.sum(of_b, True) if of_b else b
    product = join.product
    if product is None:
        return a.mul(b)
    if product.swap:
        a, b = b, a
    (order, shape), (order_of_b, shape_of_b) = product.left, product.right
    batch = a.permute(order).reshape(shape).bmm(b.permute(order_of_b).reshape(shape_of_b))
    shape, order = product.result
    return batch.view(shape).permute(order)


# The plan -------------------------------------------------------------------------------------------------------------


@lru_cache(1024)
def planned(equation: str, shapes: tuple[Shape, ...], path: tuple[int, ...] | None) -> Plan:
    """Plans the steps for tensors of these shapes. RuntimeError where there are none."""
    terms, result = parsed(equation, [len(shape) for shape in shapes])
    kept, order = len(result), result + summed_names(terms, result)
    layouts = []
    parts: list[Shape] = []
    for number, (shape, term) in enumerate(zip(shapes, terms, strict=True)):
        layout, part = layout_of(number, shape, term, order)
        layouts.append(layout)
        parts.append(part)
    check_sizes(shapes, terms)
    counts = [sum(shape[d] != 1 for shape in parts) for d in range(len(order))]
    joins = []
    for i, j in pairs(path, len(parts)):
        second, first = parts.pop(j), parts.pop(i)
        join, shape = join_of(i, j, first, second, counts, kept)
        joins.append(join)
        parts.insert(0 if path is None else len(parts), shape)
    return Plan(tuple(layouts), tuple(joins), kept, len(order))


def parsed(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """The names of each tensor's dimensions, and of the result's. Dimensions under "..." are named by their place."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        more = "more" if len(parts) < len(ranks) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    widest = 0
    terms = []
    for number, (part, rank) in enumerate(zip(parts, ranks, strict=True)):
        before, dots, behind = part.partition(REST)
        covered = rank - len(before) - len(behind)
        if covered < 0 or (covered and not dots):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(before) + len(behind)}) "
                f"{'is more than' if covered < 0 else 'does not match'} the number of dimensions ({rank}) for "
                f"operand {number}{'' if covered < 0 else ' and no ellipsis was given'}"
            )
        widest = max(widest, covered)
        terms.append([*before, *(f"{REST}{covered - d}" for d in range(covered)), *behind])
        for name in (*before, *behind):
            if not name.isalpha():
                raise RuntimeError(
                    f"einsum(): invalid subscript given at index {equation.index(name)} in the equation string, "
                    "subscripts must be in [a-zA-Z]"
                )
    hidden = [f"{REST}{widest - d}" for d in range(widest)]
    if arrow:
        before, dots, behind = right.partition(REST)
        result = [*before, *(hidden if dots else ()), *behind]
    else:
        letters = [name for term in terms for name in term if not name.startswith(REST)]
        result = hidden + sorted(name for name in set(letters) if letters.count(name) == 1)
    known = {name for term in terms for name in term}
    for name in result:
        if name not in known:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
        if result.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
    return terms, result


def summed_names(terms: list[list[str]], result: list[str]) -> list[str]:
    """The names that the result does not have: what is under "...", then letters by the alphabet."""
    names = {name for term in terms for name in term} - set(result)
    hidden = [name for name in names if name.startswith(REST)]
    return sorted(hidden, key=lambda name: -int(name.removeprefix(REST))) + sorted(names.difference(hidden))


def layout_of(number: int, shape: Shape, names: list[str], order: list[str]) -> tuple[Layout, Shape]:
    """The layout with a dimension for each name of `order`, and its shape. A name twice means the diagonal."""
    found: list[str] = []
    diagonals = []
    sizes: list[int] = []
    for size, name in zip(shape, names, strict=True):
        if name not in found:
            found.append(name)
            sizes.append(size)
            continue
        first = found.index(name)
        if sizes[first] != size:
            raise RuntimeError(
                f"einsum(): subscript {name} is repeated for operand {number} but the sizes don't match, "
                f"{size} != {sizes[first]}"
            )
        diagonals.append((first, len(found)))
    new = [name for name in order if name not in found]
    found += new
    sizes += [1] * len(new)
    places = tuple(found.index(name) for name in order)
    return Layout(tuple(diagonals), len(new), places), tuple(sizes[place] for place in places)


def check_sizes(shapes: Sequence[Shape], terms: list[list[str]]) -> None:
    """RuntimeError where two tensors differ in the size of a name, and neither's is 1."""
    seen: dict[str, int] = {}
    for number, (shape, names) in enumerate(zip(shapes, terms, strict=True)):
        for size, name in zip(shape, names, strict=True):
            known = seen.get(name, 1)
            seen[name] = size if known == 1 else known
            if known in (1, size) or size == 1:
                continue
            if name.startswith(REST):
                place = [one for one in names if one.startswith(REST)].index(name)
                raise RuntimeError(
                    f"einsum(): dimension {place} covered by ellipsis in operand {number} has size {size} which does "
                    f"not broadcast with previously seen ellipsis with size {known} for the respective dimension"
                )
            raise RuntimeError(
                f"einsum(): subscript {name} has size {size} for operand {number} which does not broadcast with "
                f"previously seen size {known}"
            )


def pairs(path: tuple[int, ...] | None, count: int) -> list[tuple[int, int]]:
    """The two of the tensors left that each step joins. RuntimeError for a path that does not fit."""
    if path is None:
        return [(0, 1)] * (count - 1)
    if len(path) != 2 * (count - 1):
        raise RuntimeError(
            f"einsum(): expected contraction path given in path parameter to have size {2 * (count - 1)} but got "
            f"{len(path)}"
        )
    found = []
    for step in range(count - 1):
        i, j = path[2 * step : 2 * step + 2]
        if not (0 <= i < count - step and 0 <= j < count - step):
            raise RuntimeError(f"einsum(): invalid contraction ({i}, {j}) operand index is out of bounds")
        if i == j:
            raise RuntimeError(f"einsum(): invalid contraction ({i}, {j}) cannot contract an operand with itself")
        found.append((min(i, j), max(i, j)))
    return found


def join_of(i: int, j: int, a: Shape, b: Shape, counts: list[int], kept: int) -> tuple[Join, Shape]:
    """The join of two tensors of these shapes, and its shape: those dimensions are summed that no other tensor and
    no result has.

    counts: by dimension, how many tensors there are in which it is not of size 1. It is brought up to date.
    """
    both: list[int] = []
    of_a: list[int] = []
    of_b: list[int] = []
    for d in range(kept, len(counts)):
        if a[d] != 1 and b[d] != 1:
            counts[d] -= 1
            if counts[d] == 1:
                both.append(d)
                counts[d] = 0
        elif counts[d] == 1 and (a[d] != 1 or b[d] != 1):
            (of_a if a[d] != 1 else of_b).append(d)
            counts[d] = 0
    a = tuple(1 if d in of_a else size for d, size in enumerate(a))
    b = tuple(1 if d in of_b else size for d, size in enumerate(b))
    shape = tuple(1 if d in both else n if m == 1 else m for d, (n, m) in enumerate(zip(a, b, strict=True)))
    return Join(i, j, (tuple(of_a), tuple(of_b)), matrix_product(a, b, both) if both else None), shape


def matrix_product(a: Shape, b: Shape, summed: list[int]) -> MatrixProduct:
    """The products of two tensors with the same dimensions, summed over some of them, which are kept with size 1.

    The dimensions of both are those of a batch, those of `a` alone are rows, and all others are columns; the other way
    round where the result is in order then.
    """
    free = [d for d in range(len(a)) if d not in summed]
    batch = [d for d in free if a[d] != 1 and b[d] != 1]
    rows = [d for d in free if a[d] != 1 and b[d] == 1]
    columns = [d for d in free if a[d] == 1]
    swap = bool(rows and columns and columns[-1] < rows[0])
    if swap:
        a, b, rows, columns = b, a, columns, rows
    count, n, k = (math.prod(a[d] for d in dims) for dims in (batch, rows, summed))
    m = math.prod(b[d] for d in columns)
    order = [*batch, *rows, *summed, *columns]
    shape = tuple(1 if d in summed else b[d] if d in columns else a[d] for d in order)
    return MatrixProduct(
        swap,
        (tuple(order), (count, n, k)),
        ((*batch, *summed, *columns, *rows), (count, k, m)),
        (shape, tuple(order.index(d) for d in range(len(order)))),
    )


# The function -------------------------------------------------------------------------------------------------------


class OfEinsum(OfPython):
    """The overridden result of a call, for which operands in one list are as operands by themselves.

    A mode sees the call as it was written, since it is asked before.
    """

    def __call__(self, public: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) == 2 and isinstance(args[1], list | tuple) and not STATE.get().function_modes:
            args = (args[0], *args[1])
        return super().__call__(public, args, kwargs)


def einsum(*args: Any) -> Tensor:
    """Returns `einsum("ij,jk->ik", a, b)`: products summed over the letters that the result does not have.

    Or with numbers below 52 for letters: `einsum(a, [0, 1], b, [1, 2], [0, 2])`, where `...` stands for itself.
    Errors: ValueError for too few arguments, or another number; TypeError for another equation; RuntimeError where
    letters and shapes do not fit.

    >>> import redispatch as rd
    >>> rd.einsum("ij,j->i", rd.tensor([[1.0, 2.0], [3.0, 4.0]]), rd.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its "
            "subscripts list"
        )
    operands: Sequence[Any]
    if isinstance(args[0], Tensor):
        equation = ",".join(map(letters, args[1::2])) + (f"->{letters(args[-1])}" if len(args) % 2 else "")
        operands = args[: len(args) // 2 * 2 : 2]
    else:
        equation, operands = args[0], args[1:]
        if not isinstance(equation, str):
            raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}")
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = operands[0]
    return einsum_op.functional(equation, list(operands))


einsum = seen_as(OfEinsum(einsum), einsum)


def letters(numbers: Sequence[Any]) -> str:
    """The letters for a list of numbers."""
    return "".join(map(letter, numbers))


def letter(number: Any) -> str:
    if number is Ellipsis:
        return REST
    if not 0 <= number < 52:
        raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)
