"""MaskedTensor: values of which some do not count; sums and means go by those that do.

    x = rd.tensor([1.0, float("nan"), 3.0], requires_grad=True)
    m = masked(x, rd.tensor([True, False, True]))
    m.mean()                    # 2: the NaN is not looked at
    m.mean().backward()
    x.grad                      # [0.5, 0, 0.5]: nor is it in backward

What it teaches: doors. The handler stands below autograd, whose formulas know nothing of masks: to them the gradient
of a sum is ones everywhere, and that of a mean is divided by all. So a mean is written above it, by way of sums; and
values enter through an `autograd.Function` (`masked`) and leave through one (`to_tensor`), where the way back puts
zeros for what does not count. Leaves are plain tensors, as users have them. And a tag (`pointwise`) names hundreds of
operators at once: seven rules serve six hundred operators, and tables say which is served by which. How serious it is:
useful for what it knows, which is arithmetic, reductions, running sums, softmax, products of matrices and moves of
elements; the rest is refused, for guessing would be wrong.

Read next: schemas.py, for what operators say of themselves; jagged.py, the same doors where rows differ in length.
"""

from __future__ import annotations

import functools
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .schemas import is_elementwise, is_view, named, overloads, through_functional_form

aten = rd.ops.aten


class MaskedTensor(rd.Tensor):
    """The values `data`, of which those count where the boolean `mask` of the same shape is True.

    Where it is False the value may be anything, NaN included. The constructor records nothing: `masked` does.
    Errors: TypeError where `mask` is not boolean; ValueError where its shape is another.

    >>> import redispatch as rd
    >>> from redispatch.subclasses import MaskedTensor
    >>> x = MaskedTensor(rd.tensor([1.0, 2.0, 3.0]), rd.tensor([True, False, True]))
    >>> x.sum()
    MaskedTensor(4)
    """

    data_: rd.Tensor  # `data` is taken: every tensor has it
    mask: rd.Tensor

    @staticmethod
    def __new__(cls: type, data: rd.Tensor, mask: rd.Tensor) -> Any:
        if mask.dtype != rd.bool:
            raise TypeError(f"MaskedTensor: expected a boolean mask, but got {mask.dtype}; pass mask.bool()")
        if mask.shape != data.shape:
            raise ValueError(
                f"MaskedTensor: the mask has shape {list(mask.shape)}, but the data {list(data.shape)}; pass "
                "mask.expand_as(data)"
            )
        return rd.Tensor._make_wrapper_subclass(
            cls, data.size(), strides=data.stride(), dtype=data.dtype, device=data.device
        )

    def __init__(self, data: rd.Tensor, mask: rd.Tensor) -> None:
        self.data_, self.mask = data.detach(), mask

    def to_tensor(self, fill: float = 0) -> rd.Tensor:
        """The values as a plain tensor, with `fill` where they do not count. Gradients pass where they do."""
        return _Leave.apply(self, fill)

    def filled(self, fill: Any) -> rd.Tensor:
        """Returns the filled values, without recording."""
        return self.data_.masked_fill(~self.mask, fill)

    def __repr__(self) -> str:
        def shown(values: Any, mask: Any) -> str:
            if isinstance(mask, list):
                return "[" + ", ".join(map(shown, values, mask)) + "]"
            return f"{values:.4g}" if mask else "--"

        return f"MaskedTensor({shown(self.data_.tolist(), self.mask.tolist())})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again: nothing."""
        return ["data_", "mask"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], context: Any, size: Any, stride: Any) -> MaskedTensor:
        """The wrapper around other values and another mask."""
        return MaskedTensor(inner["data_"], inner["mask"])

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in ABOVE:
            return ABOVE[func](*args, **(kwargs or {}))
        with rd._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = (RULES.get(func) or rule_by_kind(func))(func, args, kwargs)
        if result is NotImplemented:
            raise NotImplementedError(
                f"{func}: MaskedTensor does not know what a masked element means to it; say so with "
                "x.to_tensor(fill), and mask the result again"
            )
        return return_and_correct_aliasing(func, args, kwargs, result)


def masked(data: rd.Tensor, mask: rd.Tensor) -> Any:
    """A MaskedTensor of `data`, whose gradient arrives at `data`: plain, and exactly zero where `mask` is False.

    A parameter that meets masked values should come in by this door, too, with a mask of ones.
    """
    return _Enter.apply(data, mask)


class _Enter(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, data: rd.Tensor, mask: rd.Tensor) -> Any:
        ctx.mask = mask
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        plain = grad.filled(0) if isinstance(grad, MaskedTensor) else grad
        return plain.masked_fill(~ctx.mask, 0), None


class _Leave(rd.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, fill: float) -> rd.Tensor:
        ctx.mask = x.mask
        return x.filled(fill)

    @staticmethod
    def backward(ctx: Any, grad: rd.Tensor) -> Any:
        return MaskedTensor(grad, ctx.mask), None


# The rules ---------------------------------------------------------------------------------------------------------


def parts(tree: Any, name: str) -> Any:
    """A pytree of arguments with the values, or the masks, in the place of MaskedTensors."""
    return pytree.tree_map_only(MaskedTensor, lambda x: getattr(x, name), tree)


def filled(tree: Any, fill: Any) -> Any:
    """A pytree of arguments with plain tensors in the place of MaskedTensors: `fill` is where nothing counts."""
    return pytree.tree_map_only(MaskedTensor, lambda x: x.filled(fill), tree)


def mask_of(x: Any) -> rd.Tensor:
    """Returns the mask of a tensor: of a plain one, all True. Contiguous, so that it can be viewed wherever the values
    can."""
    return x.mask.contiguous() if isinstance(x, MaskedTensor) else rd.ones(x.shape, dtype=rd.bool)


def rule_by_kind(func: Any) -> Any:
    """The rule for an operator that no table names, by what it says of itself."""
    if func._schema.is_mutable:
        return written
    return moved if is_view(func) or rd.Tag.view_copy in func.tags else pointwise if is_elementwise(func) else unknown


def unknown(func: Any, args: Any, kwargs: Any) -> Any:
    """In other operators, where it is made of some; a form that writes may have come to it below autograd."""
    return func.decompose(*args, **kwargs)


def pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs on the values; an element of the result counts where all that it is made of do."""
    first, *others = [x.mask for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, MaskedTensor)]
    mask = functools.reduce(rd.logical_and, others, first)
    data = func(*parts(args, "data_"), **parts(kwargs, "data_"))
    return pytree.tree_map_only(rd.Tensor, lambda x: MaskedTensor(x, mask.expand(x.shape)), data)


def written(func: Any, args: Any, kwargs: Any) -> Any:
    """Writes values where the result counts where the tensor does: views share a mask, so that it cannot change."""

    def assign(target: Any, result: Any) -> None:
        if not isinstance(target, MaskedTensor) or not rd.equal(target.mask, mask_of(result)):
            raise ValueError(
                f"{func}: the result counts elsewhere than the tensor that it is written to, and a MaskedTensor keeps "
                "its mask; take the form that is not in place"
            )
        if is_elementwise(func) or func in FILLS:  # as it is, since several elements may be one in memory
            func(*parts(args, "data_"), **parts(kwargs, "data_"))
        else:
            target.data_.copy_(result.data_)

    return through_functional_form(func, args, kwargs, assign)


def lowest(dtype: Any) -> Any:
    return float("-inf") if dtype.is_floating_point else False if dtype == rd.bool else rd.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    return float("inf") if dtype.is_floating_point else True if dtype == rd.bool else rd.iinfo(dtype).max


def neutral(func: Any, x: Any) -> Any:
    """Returns the value that changes nothing among the elements of a reduction or a running sum."""
    value = NEUTRAL[func]
    return value(x.dtype) if callable(value) else value


def reduced(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs with the neutral element where nothing counts; a result counts where any that it is made of does."""
    given = named(func, args, kwargs)
    if not isinstance(args[0], MaskedTensor) or (given.get("ord", 1) or 1) < 0 or (given.get("p", 1) or 1) < 0:
        return NotImplemented  # to a norm of a negative power nothing is neutral
    data = func(args[0].filled(neutral(func, args[0])), *args[1:], **kwargs)
    dims, keepdim = given.get("dim"), bool(given.get("keepdim"))
    some = rd.any(args[0].mask) if dims in (None, []) and not keepdim else rd.any(args[0].mask, dims or None, keepdim)
    return pytree.tree_map_only(rd.Tensor, lambda x: MaskedTensor(x, some), data)


def along(func: Any, args: Any, kwargs: Any) -> Any:
    """Runs along a dimension, as `cumsum` does, with the neutral element where nothing counts; the mask stays."""
    if not isinstance(args[0], MaskedTensor):
        return NotImplemented
    data = func(*filled(args, neutral(func, args[0])), **kwargs)
    return pytree.tree_map_only(rd.Tensor, lambda x: MaskedTensor(x, args[0].mask), data)


def multiplied(func: Any, args: Any, kwargs: Any) -> Any:
    """Products of matrices: a sum of those products of which both factors count; it counts where there is any."""
    counts = pytree.tree_map_only(rd.Tensor, lambda x: mask_of(x).to(rd.float32), args)
    return MaskedTensor(func(*filled(args, 0), **kwargs), func(*counts) > 0)


def moved(func: Any, args: Any, kwargs: Any) -> Any:
    """Moves values and mask alike."""
    if func in BITS:
        return NotImplemented
    data, spec = pytree.tree_flatten(func(*parts(args, "data_"), **parts(kwargs, "data_")))
    same_dtype = {name: value for name, value in kwargs.items() if name != "dtype"}
    masks = pytree.tree_leaves(func(*pytree.tree_map_only(rd.Tensor, mask_of, args), **same_dtype))
    return pytree.tree_unflatten([MaskedTensor(d, m) for d, m in zip(data, masks, strict=True)], spec)


def picked(func: Any, args: Any, kwargs: Any) -> Any:
    """Moves to where indices say, which have to count, all of them."""
    x, *rest = args
    if not all(bool(i.mask.all()) for i in pytree.tree_leaves((rest, kwargs)) if isinstance(i, MaskedTensor)):
        raise ValueError(f"{func}: an index of MaskedTensor that does not count names no element; use to_tensor(fill)")
    rest, kwargs = parts(rest, "data_"), parts(kwargs, "data_")
    return MaskedTensor(func(parts(x, "data_"), *rest, **kwargs), func(mask_of(x), *rest, **kwargs))


def padded(func: Any, args: Any, kwargs: Any) -> Any:
    """Puts zeros around, or in the place of elements; those count."""
    x, *rest = args
    return MaskedTensor(func(x.data_, *rest, **kwargs), ~func(~x.mask, *rest[: 1 if func in VALUED else None]))


def like(func: Any, args: Any, kwargs: Any) -> Any:
    """A tensor with elements of its own: those of the same shape count where the argument's do, others everywhere."""
    data = func(*parts(args, "data_"), **parts(kwargs, "data_"))
    return MaskedTensor(data, args[0].mask if data.shape == args[0].shape else mask_of(data))


def number(func: Any, args: Any, kwargs: Any) -> Any:
    """`item`: the one element, which has to count."""
    if not args[0].mask:
        raise ValueError(f"{func}: the one element of this MaskedTensor does not count; see x.mask")
    return func(args[0].data_)


def asked(func: Any, args: Any, kwargs: Any) -> Any:
    """A question about the tensor, whatever is in it."""
    return func(*parts(args, "data_"), **parts(kwargs, "data_"))


# Above autograd, whose formulas divide by the number of all elements -------------------------------------------------


def mean(x: Any, *dims: Any, **options: Any) -> Any:
    """The sum over the number of those that count; of whole numbers, too."""
    counts = rd.sum(x.mask, *dims, **{name: value for name, value in options.items() if name != "dtype"})
    return rd.sum(x, *dims, **options) / counts


def var(x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False, *, correction: Any = None) -> Any:
    """The mean square of the distance to the mean, of `n - correction` elements, where n of them count."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    less = int(unbiased) if correction is None else correction
    squares = (x - mean(x, dim, keepdim=True)) ** 2
    return rd.sum(squares, dim, keepdim) / (rd.sum(x.mask, dim, keepdim) - less).clamp(min=0)


def std(x: Any, *args: Any, **options: Any) -> Any:
    return rd.sqrt(var(x, *args, **options))


ABOVE: dict[Any, Any] = {
    rd.mean: mean,
    rd.Tensor.mean: mean,
    rd.var: var,
    rd.Tensor.var: var,
    rd.std: std,
    rd.Tensor.std: std,
}

# What each operator is served by ------------------------------------------------------------------------------------

NOT_SUPPORTED = {
    "@sorting @searching @histograms @statistics @segments where aminmax nonzero_static": "orders or counts elements",
    "equal allclose": "one answer about all elements, of which some are none",
    "@convolution* @*pooling @upsampling @grid_sampling @*padding @folding unfold_backward": "mixes neighbours",
    "@fft @stft": "each element of a spectrum is made of all elements",
    "@*norm* @distances @*loss* @ctc @moments mean": "divides by the number of elements: write it by mean() and var()",
    "@cholesky @lu @matri* @pseudo_inverse @solving @spectra trace": "needs a whole matrix",
    "@attention @recurrent @fused* glu* addr": "a layer in one step: write it in operators",
    "@random @dropout @rrelu @distributions #nondeterministic_seeded": "draws numbers, as many as there are elements",
    "@index* @masking @scatter* @embedding repeat_interleave": "writes where indices say",
    "@fake_quantize _amp_* _prelu_kernel_backward log_sigmoid* polygamma_ block_diag @ranges": "its mask is not known",
    "#inplace_view resize* set_*": "turns the tensor itself: take the form that gives another",
    "@complex_numbers polar *.dtype as_strided* *_conj* *_neg_view* view_as_*": "another meaning of the same memory",
}

REDUCTIONS: dict[Any, Any] = {
    **dict.fromkeys([aten.sum.default, aten.sum.dim_IntList, aten.nansum.default], 0),
    **dict.fromkeys([aten.any.default, aten.any.dim, aten.any.dims], 0),
    **dict.fromkeys([aten.count_nonzero.default, aten.count_nonzero.dim_IntList], 0),
    **dict.fromkeys([aten.linalg_vector_norm.default, aten.norm.Scalar, aten.norm.ScalarOpt_dim], 0),
    **dict.fromkeys([aten.prod.default, aten.prod.dim_int, aten.all.default, aten.all.dim, aten.all.dims], 1),
    **dict.fromkeys([aten.amax.default, aten.max.default, aten.max.dim, aten.argmax.default], lowest),
    **dict.fromkeys([aten.amin.default, aten.min.default, aten.min.dim, aten.argmin.default], highest),
    aten.logsumexp.default: lowest,
}
RUNNING: dict[Any, Any] = {
    aten.cumsum.default: 0,
    aten.cumprod.default: 1,
    **dict.fromkeys([aten.cummax.default, aten.logcumsumexp.default], lowest),
    aten.cummin.default: highest,
    **dict.fromkeys([aten._softmax.default, aten._log_softmax.default, aten._safe_softmax.default], lowest),
    **dict.fromkeys([aten._softmax_backward_data.default, aten._log_softmax_backward_data.default], 0),
}
NEUTRAL = {**REDUCTIONS, **RUNNING}
# No moves of elements, although they are views: other meanings of the same bits, and what goes by memory.
BITS = {
    *overloads("view.dtype _conj _neg_view view_as_real view_as_complex as_strided"),
    *overloads("view_copy.dtype _conj_copy _neg_view_copy view_as_real_copy view_as_complex_copy as_strided_copy"),
}
FILLS = {*overloads("zero_ fill_.Scalar fill_.Tensor")}
VALUED = {aten.constant_pad_nd.default}  # those that are told what to pad with

RULES: dict[Any, Any] = {
    **dict.fromkeys(REDUCTIONS, reduced),
    **dict.fromkeys(RUNNING, along),
    aten._local_scalar_dense.default: number,
    aten.is_same_size.default: asked,
    aten.is_pinned.default: asked,
} | {
    op: rule
    for rule, names in {
        pointwise: "copy zero fill.Scalar fill.Tensor masked_fill.Tensor",
        multiplied: "mm bmm mv dot vdot addmm addmv addbmm baddbmm",
        moved: "cat stack clone _to_copy _unsafe_view flip roll rot90 repeat pixel_shuffle pixel_unshuffle "
        "channel_shuffle native_channel_shuffle unsafe_split.Tensor unsafe_split_with_sizes lift_fresh_copy",
        picked: "gather index_select index.Tensor take masked_select repeat_interleave.self_int",
        padded: "select_backward slice_backward diagonal_backward diag_embed tril triu constant_pad_nd",
        like: "zeros_like ones_like empty_like full_like new_zeros new_ones new_full new_empty new_empty_strided",
    }.items()
    for op in overloads(names)
}
