"""JaggedTensor: rows of different lengths under one face, kept end to end without padding.

    x = jagged([rd.tensor([1.0, 2.0]), rd.tensor([3.0])])
    x.sum(1)                    # [3, 3]
    x.to_padded(-1.0)           # [[1, 2], [3, -1]]

What it teaches: a layout of one's own, with one meaning that settles every rule: *the padded tensor, whose padding does
not exist*. The shape is that of the padded tensor, so autograd's formulas and broadcasting fit; a plain tensor that
meets a jagged one is read at the places that exist; a reduction pads with what changes nothing, as masked.py does; and
what moves elements behind the ragged dimension moves the values. Layers act on elements, so they are answered above
autograd (`__torch_function__`), on the values. How serious it is: useful for batches of sequences, attention included;
the rest is refused by name.

Read next: masked.py, which keeps the padding and marks it, and whose tables of neutral elements are used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .masked import REDUCTIONS, RUNNING, neutral
from .schemas import is_elementwise, named, overloads, through_functional_form

aten = rd.ops.aten
F = rd.nn.functional


class JaggedTensor(rd.Tensor):
    """Rows of shape [length, *rest], end to end in `values`; row i is `values[offsets[i] : offsets[i + 1]]`.

    Its shape is [rows, longest, *rest]. The constructor records nothing: `jagged` and `from_values` do.
    Errors: ValueError where `offsets` are not whole numbers that rise from 0 to the length of `values`.
    """

    values_: rd.Tensor  # `values` is taken: every tensor has it
    offsets: rd.Tensor

    @staticmethod
    def __new__(cls: type, values: rd.Tensor, offsets: rd.Tensor) -> Any:
        rise = offsets.tolist() if offsets.dim() == 1 and offsets.dtype == rd.int64 else []
        if rise != sorted(rise) or not rise or rise[0] != 0 or not values.dim() or rise[-1] != values.shape[0]:
            raise ValueError(
                "JaggedTensor: expected int64 offsets that rise from 0 to the length of the values, the first of "
                f"{list(values.shape)}, but got {offsets.tolist()} of {offsets.dtype}; see jagged()"
            )
        longest = max((end - start for start, end in zip(rise, rise[1:], strict=False)), default=0)
        size = (len(rise) - 1, longest, *values.shape[1:])
        return rd.Tensor._make_wrapper_subclass(cls, size, dtype=values.dtype, device=values.device)

    def __init__(self, values: rd.Tensor, offsets: rd.Tensor) -> None:
        self.values_, self.offsets = values.detach(), offsets

    def lengths(self) -> rd.Tensor:
        """The length of each row: int64 [rows]."""
        return self.offsets.diff()

    def places(self) -> tuple[rd.Tensor, rd.Tensor]:
        """For each element of `values_` its row, and its place within that: where it is in the padded tensor."""
        row = rd.repeat_interleave(rd.arange(self.shape[0]), self.lengths())
        return row, rd.arange(self.values_.shape[0]) - self.offsets[row]

    def with_values(self, values: rd.Tensor) -> JaggedTensor:
        """Other values in rows of the same lengths."""
        return JaggedTensor(values, self.offsets)

    def to_values(self) -> rd.Tensor:
        """The rows end to end, as a plain tensor. Gradients pass."""
        return _Leave.apply(self)

    def to_padded(self, fill: float = 0) -> rd.Tensor:
        """The plain tensor of this one's shape, with `fill` behind the rows that are shorter. Gradients pass."""
        values = self.to_values()
        whole = rd.full(self.shape, fill, dtype=values.dtype, device=values.device)
        return whole.index_put(self.places(), values)

    def padded(self, fill: Any) -> rd.Tensor:
        """Returns the padded rows, without recording."""
        whole = rd.full(self.shape, fill, dtype=self.values_.dtype, device=self.device)
        return whole.index_put_(self.places(), self.values_)

    def __repr__(self) -> str:
        ends = self.offsets.tolist()
        rows = [self.values_[start:end].tolist() for start, end in zip(ends, ends[1:], strict=False)]
        return f"JaggedTensor({rows})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["values_", "offsets"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], context: Any, size: Any, stride: Any) -> JaggedTensor:
        """The wrapper around other values and offsets."""
        return JaggedTensor(inner["values_"], inner["offsets"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in ABOVE:
            result = ABOVE[func](func, *args, **kwargs)
            if result is not NotImplemented:
                return result
        with rd._C.DisableTorchFunctionSubclass():
            return func(*args, **kwargs)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = (RULES.get(func) or rule_by_kind(func))(func, args, kwargs)
        if result is NotImplemented:
            raise NotImplementedError(
                f"{func}: JaggedTensor has no rule for it; run it on x.to_padded(fill), or on x.to_values() where it "
                "does not matter which row an element is in"
            )
        return return_and_correct_aliasing(func, args, kwargs, result)


def jagged(rows: Sequence[rd.Tensor]) -> Any:
    """The JaggedTensor of rows [length, *rest], whose gradients arrive at the rows.

    Errors: ValueError without rows; RuntimeError from `cat` where they differ in more than length.
    """
    if not rows:
        raise ValueError("jagged: expected at least one row; a row may have length 0, as rd.empty(0)")
    ends = rd.tensor([0, *(len(row) for row in rows)]).cumsum(0)
    return from_values(rd.cat(list(rows)), ends)


def from_values(values: rd.Tensor, offsets: rd.Tensor) -> Any:
    """The JaggedTensor of rows that are end to end already; its gradient arrives at `values`."""
    return _Enter.apply(values, offsets)


class _Enter(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: rd.Tensor, offsets: rd.Tensor) -> Any:
        result = JaggedTensor(values, offsets)
        ctx.places = result.places()
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        # That of a sum comes as a plain tensor, expanded to the padded shape.
        return (grad.values_ if isinstance(grad, JaggedTensor) else grad[ctx.places]), None


class _Leave(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> rd.Tensor:
        ctx.offsets = x.offsets
        return x.values_.clone()

    @staticmethod
    def backward(ctx: Any, grad: rd.Tensor) -> Any:
        return JaggedTensor(grad, ctx.offsets)


# The rules ---------------------------------------------------------------------------------------------------------


def pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs on the values. A plain tensor is broadcast to the padded shape, and read where there are elements."""
    rows = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, JaggedTensor)]
    first = rows[0]
    for other in rows[1:]:
        if other.offsets is not first.offsets and not rd.equal(other.offsets, first.offsets):
            raise ValueError(
                f"{func}: rows have lengths {first.lengths().tolist()} in one JaggedTensor, but "
                f"{other.lengths().tolist()} in another; make them alike, or go by to_padded(fill)"
            )
    places = first.places()

    def values(x: rd.Tensor) -> rd.Tensor:
        if isinstance(x, JaggedTensor):
            return x.values_.reshape(len(places[0]), *[1] * (rank - x.dim()), *x.shape[2:])
        if not x.dim():
            return x
        # The two leading dimensions as they are in the padded tensor; those behind broadcast by themselves.
        whole = x.reshape([1] * (rank - x.dim()) + list(x.shape))
        return whole.expand(*first.shape[:2], *whole.shape[2:])[places]

    rank = first.dim()
    tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor)]
    if any(x.dim() > rank for x in tensors) or any(x.dim() != rank for x in rows):
        raise ValueError(
            f"{func}: shapes {[list(x.shape) for x in tensors]} would move the ragged dimension, which is the second; "
            "add dimensions by view() to the plain tensors and to x.to_values()"
        )
    plain_args, plain_kwargs = pytree.tree_map_only(rd.Tensor, values, (args, kwargs))
    return pytree.tree_map_only(rd.Tensor, first.with_values, func(*plain_args, **plain_kwargs))


def rule_by_kind(func: Any) -> Any:
    """The rule for an operator that no table names, by what it says of itself."""
    if func._schema.is_mutable:
        return written
    return pointwise if is_elementwise(func) else unknown


def unknown(func: Any, args: Any, kwargs: Any) -> Any:
    """In other operators, where it is made of some; a form that writes may have come to it below autograd."""
    return func.decompose(*args, **kwargs)


def written(func: Any, args: Any, kwargs: Any) -> Any:
    def assign(target: Any, result: Any) -> None:
        if isinstance(target, JaggedTensor) != isinstance(result, JaggedTensor):
            raise ValueError(
                f"{func}: only one of the result and the tensor that it is written to has rows of different lengths; "
                "use to_padded(fill)"
            )
        if isinstance(target, JaggedTensor):
            target.values_.copy_(result.values_)
        else:
            target.copy_(result)

    return through_functional_form(func, args, kwargs, assign)


def on_values(func: Any, args: Any, kwargs: Any) -> Any:
    """Leaves the rows as they are, and elements where they are in them."""
    x, *rest = args
    kwargs = {name: value for name, value in kwargs.items() if name != "memory_format"}  # it has an order of its own
    return x.with_values(func(x.values_, *rest, **kwargs)) if isinstance(x, JaggedTensor) else NotImplemented


def number(func: Any, args: Any, kwargs: Any) -> Any:
    """A question with one answer for all elements that there are. One about two tensors needs them in the same rows."""
    first, *others = [x for x in args if isinstance(x, rd.Tensor)]
    if not all(isinstance(y, JaggedTensor) and rd.equal(y.offsets, first.offsets) for y in others):
        return NotImplemented
    return func(*(x.values_ for x in (first, *others)))


def by_padding(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs with what changes nothing in the padding; where the rows are there still, the result is jagged."""
    given, x = named(func, args, kwargs), args[0]
    if not isinstance(x, JaggedTensor) or (given.get("ord", 1) or 1) < 0 or (given.get("p", 1) or 1) < 0:
        return NotImplemented
    dims = given.get("dim")
    dims = range(x.dim()) if dims in (None, []) else [d % x.dim() for d in (dims if isinstance(dims, list) else [dims])]
    fill = neutral(func, x)
    args = pytree.tree_map_only(JaggedTensor, lambda one: one.padded(fill), args)
    stays = func in RUNNING or not {0, 1} & {*dims}
    return pytree.tree_map_only(
        rd.Tensor, lambda y: x.with_values(y[x.places()]) if stays else y, func(*args, **kwargs)
    )


def multiplied(func: Any, args: Any, kwargs: Any) -> Any:
    """A product of each row with a plain matrix of its own: the first factor has the rows."""
    *bias, x, y = args
    if not isinstance(x, JaggedTensor) or isinstance(y, JaggedTensor) or bias:
        return NotImplemented
    return x.with_values(func(x.padded(0), y)[x.places()])


def behind(func: Any, args: Any, kwargs: Any) -> Any:
    """Moves elements in dimensions behind the ragged one, which in the values are one further to the left."""
    x, rank = args[0], args[0].dim()
    given = {**dict(zip([one.name for one in func._schema.arguments[1:]], args[1:], strict=False)), **kwargs}
    rank += func is aten.unsqueeze.default
    for name in BEHIND[func].split():
        dims = given.get(name, 0)
        moved = [(d % rank) - 1 for d in (dims if isinstance(dims, list | tuple) else [dims])]
        if func is aten.permute.default and moved[:2] == [-1, 0]:
            moved = moved[1:]
        elif min(moved, default=0) < 1:
            return NotImplemented
        given[name] = moved if isinstance(dims, list | tuple) else moved[0]
    if "input_sizes" in given:
        given["input_sizes"] = [x.values_.shape[0], *given["input_sizes"][2:]]
    return pytree.tree_map_only(rd.Tensor, x.with_values, func(x.values_, **given))


def flipped(func: Any, args: Any, kwargs: Any) -> Any:
    """Each row from its end, where the ragged dimension is one of those that are flipped."""
    x, dims = args[0], sorted(d % args[0].dim() for d in args[1])
    if 0 in dims:
        return NotImplemented
    values = x.values_.flip([d - 1 for d in dims if d > 1])
    if 1 in dims:
        row, place = x.places()
        values = values[x.offsets[row + 1] - 1 - place]
    return x.with_values(values)


def resized(func: Any, args: Any, kwargs: Any) -> Any:
    """`view` and `expand`, which leave the two leading dimensions as they are."""
    x, size = args[:2]
    face = func(rd.empty(x.shape, device="meta"), size).shape
    if face[:2] != x.shape[:2] or func is aten.expand.default and len(size) != x.dim():
        return NotImplemented
    return x.with_values(func(x.values_, [x.values_.shape[0], *face[2:]]))


def joined(func: Any, args: Any, kwargs: Any) -> Any:
    """`cat` of rows of the same lengths, behind the ragged dimension."""
    parts, dim = args[0], named(func, args, kwargs).get("dim", 0)
    first = parts[0]
    alike = all(isinstance(x, JaggedTensor) and rd.equal(x.offsets, first.offsets) for x in parts)
    if not alike or dim % first.dim() < 2:
        return NotImplemented
    return first.with_values(func([x.values_ for x in parts], dim % first.dim() - 1))


# Above autograd ----------------------------------------------------------------------------------------------------


def layer(func: Any, x: Any, *rest: Any, **options: Any) -> Any:
    """Runs operators on the values that act on each element of a row, or on the dimensions behind."""
    if not isinstance(x, JaggedTensor) or func is not F.embedding and x.dim() < 3:
        return NotImplemented
    return from_values(func(x.to_values(), *rest, **options), x.offsets)


def mean(func: Any, x: Any, *dims: Any, **options: Any) -> Any:
    """The sum over the number of elements that there are; PyTorch's formula divides by those of the padded tensor."""
    ones = rd.ones_like(x.detach(), dtype=rd.int64)
    return rd.sum(x, *dims, **options) / rd.sum(ones, *dims, **{k: v for k, v in options.items() if k != "dtype"})


def rows(func: Any, x: Any, dim: int = 0) -> Any:
    """The rows, each in its own length."""
    return x.to_values().split(x.lengths().tolist()) if dim == 0 else NotImplemented


def attention(func: Any, query: Any, key: Any, value: Any, **options: Any) -> Any:
    """Each row attends to a row of keys, and to nothing behind its end. [rows, length, features], jagged all three."""
    if not all(isinstance(x, JaggedTensor) and x.dim() == 3 for x in (query, key, value)):
        return NotImplemented
    if any(options.get(name) for name in ("attn_mask", "is_causal", "dropout_p")):
        return NotImplemented
    there = rd.arange(key.shape[1]) < key.lengths()[:, None]
    padded = [x.to_padded() for x in (query, key, value)]
    return from_values(func(*padded, attn_mask=there[:, None, :], **options)[query.places()], query.offsets)


ABOVE: dict[Any, Any] = {
    **dict.fromkeys([F.linear, F.layer_norm, F.rms_norm, F.embedding, F.dropout], layer),
    **dict.fromkeys([rd.mean, rd.Tensor.mean], mean),
    **dict.fromkeys([rd.unbind, rd.Tensor.unbind], rows),
    F.scaled_dot_product_attention: attention,
}

# What each operator is served by ------------------------------------------------------------------------------------

PADDED = "elements of all rows, or of neighbours, make one result: run it on x.to_padded(fill)"
NOT_SUPPORTED = {
    "@views @view_copies @shape @rearrange @scattering _unsafe_view": "it moves rows, or the ragged dimension",
    "@sorting @searching @histograms @statistics @segments where aminmax allclose @integrals": PADDED,
    "@convolution* @*pool* @upsampling @grid_sampling @*padding @folding @fft @stft": PADDED,
    "@linalg @matri* @cholesky @lu @solving @spectra": PADDED,
    "@*norm* @distances @*loss* @ctc @moments mean": PADDED,
    "@attention @recurrent @fused* glu* constant_pad_nd @pseudo_inverse": PADDED,
    "@random @dropout @rrelu @distributions @creation": "how many there are to make: make x.to_values()",
    "@index* @masking @scatter_gather @embedding": "an index says nothing of rows",
    "@fake_quantize _prelu_kernel* log_sigmoid* polygamma_ clamp.Tensor": "the other tensors have no rows",
    "resize* set_*": "goes by memory",
    "@complex_numbers *.dtype": "another meaning of the same memory",
    "equal is_same_size": "of a jagged and a plain tensor it compares nothing: use x.to_padded(fill)",
}

# Moves behind the ragged dimension: operator -> its arguments that name dimensions.
BEHIND: dict[Any, str] = {
    **dict.fromkeys(overloads("unsqueeze squeeze.dim squeeze.dims select.int slice.Tensor split.Tensor"), "dim"),
    **dict.fromkeys(overloads("unbind.int split_with_sizes select_backward slice_backward"), "dim"),
    aten.transpose.int: "dim0 dim1",
    aten.diagonal.default: "dim1 dim2",
    aten.permute.default: "dims",
}
RULES: dict[Any, Any] = {
    **dict.fromkeys([*REDUCTIONS, *RUNNING], by_padding),
    **dict.fromkeys(BEHIND, behind),
    **dict.fromkeys(overloads("view _unsafe_view expand"), resized),
    **dict.fromkeys(overloads("alias clone detach _to_copy ones_like zeros_like empty_like full_like"), on_values),
    **dict.fromkeys(overloads("zero fill.Scalar lift_fresh_copy"), on_values),
    **dict.fromkeys(overloads("copy fill.Tensor masked_fill.Tensor"), pointwise),
    **dict.fromkeys(overloads("is_same_size is_pinned equal _local_scalar_dense"), number),
    aten.flip.default: flipped,
    aten.bmm.default: multiplied,
    aten.cat.default: joined,
}
