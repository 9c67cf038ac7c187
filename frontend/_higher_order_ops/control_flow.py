"""Control flow as operators that take functions: cond, while_loop, scan, associative_scan, map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from redispatch.dispatch import DispatchKey
from redispatch.dispatch.higher_order import HigherOrderOperator, TransformType
from redispatch.dispatch.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops.comparison import where
from redispatch.kernels.ops.shape import cat, stack

# --- BodyOperator: a higher-order operator that is nothing but its body -----------------------------------------------


class BodyOperator(HigherOrderOperator):
    """A transparent operator: `body` is its kernel everywhere, written in other operators."""

    def __init__(self, name: str, body: Callable[..., Any]) -> None:
        super().__init__(name, transparent=True)
        self.py_impl(DispatchKey.CompositeImplicitAutograd)(body)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)


def functionalize_functions(operator: BodyOperator, *positions: int) -> None:
    """Gives an operator a functionalization rule for where somebody wants the operator itself, such as one who traces:
    the functions at these positions become functional, and the operator goes on below. Elsewhere its body runs.
    """

    @operator.py_functionalize_impl
    def functionalized(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        values, options = ctx.unwrap_tensors((list(args), kwargs))
        with ctx.redispatch_to_next():
            if operator._interested_mode() is None:
                return NotImplemented
            for position in positions:
                values[position] = ctx.functionalize(values[position])
            return ctx.wrap_tensors(operator(*values, **options))


def tensors_of(tree: Any, error: Callable[[list[Any]], Exception]) -> tuple[list[Tensor], Any]:
    """(tensors, structure) of a pytree; raises what `error` makes of the leaves where one is no tensor."""
    leaves, spec = tree_flatten(tree)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise error(leaves)
    return leaves, spec


class Flat:
    """A function of pytrees as one of leaves, which is what an operator takes: it returns a list of leaves.

    specs: the structures of the arguments, in turn. `structure` is that of the last result.
    Errors: RuntimeError where a result has another structure than the former ones.
    """

    def __init__(self, function: Callable[..., Any], *specs: Any) -> None:
        self.function, self.specs = function, specs
        self.structure: Any = None

    def __call__(self, *leaves: Any) -> list[Any]:
        left = iter(leaves)
        args = [tree_unflatten(list(islice(left, spec.num_leaves)), spec) for spec in self.specs]
        found, structure = tree_flatten(self.function(*args))
        if self.structure is not None and self.structure != structure:
            raise RuntimeError(
                f"expected results of one structure at every step, got {structure} after {self.structure}"
            )
        self.structure = structure
        return found

    def restored(self, leaves: Any) -> Any:
        """The results of the operator in the structure that the function gave them."""
        return leaves if self.structure is None else tree_unflatten(list(leaves), self.structure)


def stacked(rows: list[Any]) -> list[Any]:
    """Lists of leaves as one, whose tensors are stacked along a new first dimension; other leaves stay."""
    columns = zip(*rows, strict=True)
    return [stack(column) if isinstance(column[0], Tensor) else column[0] for column in columns]


# --- cond: one of two functions, as a number says that may be in a tensor ---------------------------------------------
#
#     cond(x.sum() > 0, torch.sin, torch.cos, (x,))
#
# Eagerly it is an `if`. Under vmap the predicate may differ from example to example: both branches are computed for the
# whole batch, and the results chosen from.


def branch(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


cond_op = BodyOperator("cond", branch)
functionalize_functions(cond_op, 1, 2)


@cond_op.py_impl(TransformType.Vmap)
def cond_of_a_batch(level: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Both branches, where the predicate is batched."""
    if not isinstance(pred, Tensor) or level.dims_of(pred) is None:
        return NotImplemented
    return tree_map(lambda a, b: where(pred, a, b), true_fn(*operands), false_fn(*operands))


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` or `false_fn(*operands)`.

    pred: a tensor with one element; where it is a number, there is nothing to decide, and no operator is called.
    operands: pytrees of tensors.
    Errors: RuntimeError for other arguments.
    """
    if isinstance(pred, bool | int | float):
        return branch(pred, true_fn, false_fn, operands)
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list) or not all(isinstance(x, Tensor) for x in tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
    return cond_op(pred, true_fn, false_fn, operands)


# --- while_loop: a function applied to its own results as long as another says so -------------------------------------
#
#     while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), x))


def while_loop_dense(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any, additional_inputs: Any = ()
) -> Any:
    """The loop itself. RuntimeError where `cond_fn` gives no bool, or `body_fn` other tensors than it was given."""
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    carried: Any = tuple(carried_inputs)
    ran = False
    while checked_predicate(cond_fn(*carried, *additional_inputs)):
        result = body_fn(*carried, *additional_inputs)
        if not isinstance(result, tuple | list) or len(result) != len(carried):
            raise RuntimeError(
                f"body_fn should return the same number of elements as carried_inputs, {len(carried)}, as a tuple or "
                f"list, but got {result}"
            )
        check_alike(carried, tuple(result))
        carried, ran = tuple(result), True
    return carried if ran else tree_map(lambda x: x.clone() if isinstance(x, Tensor) else x, carried)


def checked_predicate(pred: Any) -> bool:
    if isinstance(pred, bool) or (isinstance(pred, Tensor) and pred.dim() == 0 and pred.dtype is dtypes.bool):
        return bool(pred)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")


def check_alike(before: Any, after: Any) -> None:
    """RuntimeError where what is carried changes its structure, or a tensor its shape or dtype."""
    (old, spec), (new, new_spec) = tree_flatten(before), tree_flatten(after)
    if spec != new_spec:
        raise RuntimeError(f"body_fn should return what it was given: expected the structure {spec}, got {new_spec}")
    for x, y in zip(old, new, strict=True):
        if isinstance(x, Tensor) and (not isinstance(y, Tensor) or (x.shape, x.dtype) != (y.shape, y.dtype)):
            given = f"{y.dtype}{list(y.shape)}" if isinstance(y, Tensor) else repr(y)
            raise RuntimeError(
                "Expected carried_inputs and body_output to have same metadata but found: "
                f"{x.dtype}{list(x.shape)} became {given}"
            )


while_loop_op = BodyOperator("while_loop", while_loop_dense)
functionalize_functions(while_loop_op, 0, 1)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Returns the last `body_fn(*carried)`, called again with its own results while `cond_fn(*carried)` is true.

    Errors: RuntimeError where `cond_fn` gives no bool, or a tensor changes its shape or dtype from step to step.
    """
    if not callable(cond_fn):
        raise RuntimeError("Expect cond_fn to be callable.")
    if not callable(body_fn):
        raise RuntimeError("Expect body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list but got {type(carried_inputs)}")
    return while_loop_op(cond_fn, body_fn, tuple(carried_inputs), ())


# --- scan: a function applied to one slice after the other, with something carried from each to the next --------------
#
#     carry, ys = scan(lambda carry, x: (carry + x, carry * x), init, xs)


def scan_dense(
    combine_fn: Callable[..., Any], init: list[Tensor], xs: list[Tensor], additional_inputs: Sequence[Any] = ()
) -> list[Any]:
    """The loop itself, for a function of leaves that returns leaves.

    Returns what is carried in the end, and then the results of all steps, stacked.
    """
    carry, outputs = init, []
    for index in range(xs[0].size(0)):
        found = combine_fn(*carry, *(x.select(0, index) for x in xs), *additional_inputs)
        carry = found[: len(init)]
        outputs.append(found[len(init) :])
    return [*carry, *stacked(outputs)]


scan_op = BodyOperator("scan", scan_dense)
functionalize_functions(scan_op, 0)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> Any:
    """(carry, ys) after `carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`, the last one first with
    `reverse`.

    init, xs: pytrees of tensors. ys: the results in the order of the slices, stacked along a new dimension: the same,
    `dim`, or the first of results that have no such dimension.
    Errors: RuntimeError for other arguments, and where there is nothing to scan.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if not tree_leaves(init):
        raise RuntimeError("scan() operator requires init leaves.")
    carried, init_spec = tensors_of(
        init, lambda found: RuntimeError(f"All init leaves must be a Tensor but got {found}")
    )
    leaves, spec = tensors_of(xs, lambda found: RuntimeError(f"All xs leaves must be a Tensor but got {found}"))
    if not leaves:
        return init, xs
    lengths = [leaf.size(dim) for leaf in leaves]
    if len(set(lengths)) > 1 or lengths[0] == 0:
        raise RuntimeError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0, of one length; got "
            f"{lengths}"
        )
    front = [leaf.movedim(dim, 0) for leaf in leaves] if dim else leaves
    flat = Flat(checked_carry(combine_fn, init_spec), init_spec, spec)
    found = scan_op(flat, carried, [x.flip(0) for x in front] if reverse else front)
    carry, ys = found[: len(carried)], found[len(carried) :]
    return flat.restored([*carry, *(in_place(y, dim % leaves[0].dim(), reverse) for y in ys)])


def in_place(y: Any, dim: int, reverse: bool) -> Any:
    """The results of all steps in the order of the slices, and along the dimension along which these were taken."""
    if not isinstance(y, Tensor):
        return y
    y = y.flip(0) if reverse else y
    return y.movedim(0, dim) if 0 < dim < y.dim() else y


def checked_carry(combine_fn: Callable[..., Any], spec: Any) -> Callable[..., Any]:
    """`combine_fn` where what it carries keeps its structure, RuntimeError where not."""

    def combine(carry: Any, x: Any) -> Any:
        carried, y = combine_fn(carry, x)
        found = tree_flatten(carried)[1]
        if found != spec:
            raise RuntimeError(
                f"scan: combine_fn should carry on what has the structure of init, {spec}, but carried {found}"
            )
        return carried, y

    return combine


# --- associative_scan: x0, x0∘x1, x0∘x1∘x2, ... for a function ∘ that may be grouped as one likes ---------------------
#
# Neighbours are combined, all pairs at once; the scan of the half as many pairs gives every second result, and one more
# step at once the others. So n elements take 2 log n calls of the function in the place of n.
#
# Source: Blelloch, "Prefix sums and their applications" (1990).

Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]


def associative_scan_dense(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """All prefixes. `combine_fn` gets slices of any length along `dim`."""
    leaves, spec = tree_flatten(xs)

    def combine(left: list[Tensor], right: list[Tensor]) -> list[Tensor]:
        moved = [[x.movedim(0, dim) for x in side] for side in (left, right)]
        result, found = tree_flatten(combine_fn(*(tree_unflatten(side, spec) for side in moved)))
        if found != spec:
            raise ValueError(f"combine_fn must return a pytree of the structure of xs, {spec}, but got {found}")
        return [x.movedim(dim, 0) for x in result]

    front = [leaf.movedim(dim, 0) for leaf in leaves]
    if reverse:
        front = [leaf.flip(0) for leaf in front]
    prefixes = prefixes_of(combine, front)
    if reverse:
        prefixes = [leaf.flip(0) for leaf in prefixes]
    return tree_unflatten([leaf.movedim(0, dim) for leaf in prefixes], spec)


def prefixes_of(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """The prefixes along the first dimension."""
    count = xs[0].size(0)
    if count < 2:
        return xs
    odd = prefixes_of(combine, combine([x[:-1:2] for x in xs], [x[1::2] for x in xs]))
    later = [x[2::2] for x in xs]
    even = combine([x[: len(y)] for x, y in zip(odd, later, strict=True)], later) if count > 2 else later
    return [interleaved(cat([x[:1], a]), b) for x, a, b in zip(xs, even, odd, strict=True)]


def interleaved(even: Tensor, odd: Tensor) -> Tensor:
    """even[0], odd[0], even[1], odd[1], ...; there may be one even more."""
    pairs = len(odd)
    both = cat([even[:pairs].unsqueeze(1), odd.unsqueeze(1)], 1).flatten(0, 1)
    return both if len(even) == pairs else cat([both, even[pairs:]])


associative_scan_op = BodyOperator("associative_scan", associative_scan_dense)


def associative_scan(
    combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """The inclusive scan of `xs`, a pytree of tensors, along `dim` with the associative `combine_fn(a, b)`.

    `combine_fn` is called with many elements at once. With `reverse` the scan runs from the end. combine_mode:
    "pointwise" or "generic", which here mean the same.
    Errors: ValueError for other arguments.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not isinstance(reverse, bool):
        raise RuntimeError("Reverse must be a bool, but got " + str(type(reverse)))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, _ = tensors_of(xs, lambda found: ValueError(f"xs leaves must be a Tensor, but got {found}"))
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if len({leaf.size(dim) for leaf in leaves}) > 1 or not leaves[0].size(dim):
        raise ValueError(f"All xs leaves must have one length > 0 along dim {dim}, got {[x.shape for x in leaves]}")
    return associative_scan_op(combine_fn, xs, dim, reverse=reverse, combine_mode=combine_mode)


# --- map: a function of each slice along the first dimension, its results stacked -------------------------------------
#
# Unlike vmap it runs the function once for each slice, one after the other: whatever the function does, it may.


def not_tensors(leaves: list[Any]) -> RuntimeError:
    return RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")


def map_dense(f: Callable[..., Any], xs: list[Tensor], args: Sequence[Any] = ()) -> list[Any]:
    """The loop itself, for a function of leaves that returns leaves."""
    return stacked([f(*(x.select(0, index) for x in xs), *args) for index in range(xs[0].size(0))])


map_impl = BodyOperator("map_impl", map_dense)
functionalize_functions(map_impl, 0)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each slice x of `xs` along its first dimension, stacked.

    Errors: RuntimeError where `xs` is no pytree of tensors of one length, or there is no slice.
    """
    leaves, spec = tensors_of(xs, not_tensors)
    if not leaves or leaves[0].shape[0] == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    shapes = [leaf.shape for leaf in leaves]
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    arg_leaves, arg_spec = tree_flatten(args)
    flat = Flat(lambda x, args: f(x, *args), spec, arg_spec)
    return flat.restored(map_impl(flat, leaves, arg_leaves))
