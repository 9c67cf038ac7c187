"""Samples of copies and conversions, of questions about a tensor, of distances, and of updates in place."""

from __future__ import annotations

import numpy as np

from redispatch.dispatch.tensor import channels_last, contiguous_format, device, dtypes, strided

from ..op_info import ALL, FLOATS, NUMBERS
from .backward import backward_of, gradient_of
from .common import (
    NOT_BROADCASTABLE,
    NUMBER,
    RECORDED,
    but_not,
    by_numpy,
    call,
    calls,
    d,
    entries,
    fixed,
    given,
    table,
    unary,
    x,
)

CPU = device("cpu")
USUAL = unary()

# --- copies -----------------------------------------------------------------------------------------------------------

ROUNDED = "what is rounded moves by jumps"
DTYPES = (dtypes.float64, dtypes.float32, dtypes.int64, dtypes.bool)
FORMATTED = call((1, 2, 2, 2), memory_format=channels_last)
CONVERSIONS = calls(
    but_not("gradients", ROUNDED, *(call((2, 3), dtype=to) for to in DTYPES)), [()], call((0, 3), dtype=dtypes.float64)
)
TO_DTYPES = calls(but_not("gradients", ROUNDED, *([(2, 3), to] for to in DTYPES[:3])), [(), x.dtype, False, True])
TO_LAYOUTS = calls(call((2, 3), dtype=dtypes.float64, layout=strided, device=CPU), call((2, 3), copy=True))
SOURCES = calls(
    *([fixed(2, 3), (2, 3)], [fixed(2, 3), (3,)], [fixed(), ()], [fixed(0, 3), (3,)]),
    [fixed(2, 3), x(2, 3, dtype=dtypes.float64)],
)
TWICE = calls([(2, 3), (2, 3)], [(2, 3), (3,)])
EQUAL = given((2, 3), then=lambda x: calls([x, x.detach().clone()], [x, (2, 3)]))
CLOSE = given((2, 3), then=lambda x: calls([x, x.detach().clone()], call(x, (2, 3), rtol=0.5, atol=0.1)))
EMPTY = [[(), ()], [(0, 3), (0, 3)]]
STORAGE = [fixed(1), fixed(2, 3).untyped_storage(), 1, [2, 2], [3, 1]]
OF_STORAGE = "its argument is a storage, of which nothing but the operator itself knows what it holds"
COPIES = table(
    *entries("clone", calls(USUAL, [fixed(2, 3).t()], FORMATTED, call((2, 3), memory_format=contiguous_format))),
    *entries("contiguous", calls(USUAL, but_not("vmap", "a batch has no such format, nor in PyTorch", FORMATTED))),
    *entries("_to_copy", CONVERSIONS),
    *entries("copy", SOURCES),
    *entries("to.dtype", TO_DTYPES),
    *entries("to.device", calls([(2, 3), CPU, dtypes.float64], [(0, 3), CPU, x.dtype])),
    *entries("to.other type_as", calls([(2, 3), x.values([1], dtypes.float64).detach()])),
    *entries("to.dtype_layout", TO_LAYOUTS),
    *entries("_cast_Double _cast_Float _cast_Half", USUAL),
    *entries("_cast_Byte _cast_Char _cast_Int _cast_Long _cast_Short", USUAL, gradients=False),
    *by_numpy("alias:asarray lift_fresh:asarray lift_fresh_copy:asarray", USUAL),
    *by_numpy("detach:asarray", USUAL, gradients=False),
    *by_numpy("fill.Scalar:full_like", unary(NUMBER)),
    *by_numpy("fill.Tensor:full_like", unary(())),
    *by_numpy("zero_:zeros_like", USUAL),
    *entries("_local_scalar_dense item is_nonzero", calls([()], [(1, 1)]), gradients=False),
    *by_numpy("equal:array_equal", calls(EQUAL, [(2,), (3,)], *EMPTY), gradients=False),
    *by_numpy("isclose allclose", calls(CLOSE, *EMPTY), gradients=False),
    *entries("resize_", calls([fixed(2, 3), [3, 2]], [fixed(2, 3), [2]], [fixed(0), [0, 2]]), gradients=False),
    *entries("resize_as_", TWICE, gradients=False),
    *entries("set_.source_Tensor", calls([fixed(2, 3), fixed(3, 1)]), gradients=False),
    *entries("set_.source_Storage_storage_offset", calls(STORAGE), gradients=False),
    *entries("set_.source_Storage", calls(STORAGE[:2]), gradients=False),
    *entries("set_", calls([fixed(2, 3)]), gradients=False),
    *entries("set_.source_Tensor_storage_offset", calls([fixed(1), fixed(2, 3), 1, [2, 2], [3, 1]]), gradients=False),
    *entries("to_dense", USUAL),
    *entries("_test_functorch_fallback", calls([(2, 3), (2, 3)])),
    *entries("_test_optional_intlist", calls([(2,), [3, 4]], [(2,), None]), FLOATS),
    *entries("_test_optional_filled_intlist", calls([(2,), [3, 3]], [(2,), None]), FLOATS),
    *entries("_test_optional_floatlist", calls([(2,), [0.5, 2.0]], [(2,), None]), FLOATS),
    *entries("_test_string_default _test_ambiguous_defaults.a _test_ambiguous_defaults.b", USUAL),
    *entries("_foobar _test_warn_in_autograd _test_autograd_multiple_dispatch.fullcoverage", USUAL),
    *entries("_test_autograd_multiple_dispatch.ntonly", calls([(2, 3), True])),
    *entries("_test_autograd_multiple_dispatch_view _test_autograd_multiple_dispatch_view_copy", USUAL),
    *entries("_test_check_tensor", calls([x.values([True, True], dtypes.bool)]), (dtypes.bool,), gradients=False),
    references={
        "clone contiguous to.device to.other to.dtype_layout type_as to_dense": lambda self, *args, **kwargs: self,
        "_to_copy": lambda self, dtype=None: self.astype(dtype or self.dtype),
        "copy": lambda self, src: np.broadcast_to(src, self.shape),
        "to.dtype": lambda self, dtype, *rest: self.astype(dtype),
        "_local_scalar_dense item": lambda self: self.item(),
        "is_nonzero": lambda self: bool(self.item()),
        "_test_functorch_fallback": lambda self, other: self,
        "_test_optional_intlist _test_optional_filled_intlist _test_optional_floatlist": lambda values, addends: (
            values if addends is None else values + np.asarray(addends, values.dtype)
        ),
        "_test_string_default _test_ambiguous_defaults.a _test_ambiguous_defaults.b": lambda dummy: dummy,
        "_test_warn_in_autograd _test_autograd_multiple_dispatch.fullcoverage _test_check_tensor": lambda self: self,
        "_foobar": lambda self: self,
        "_test_autograd_multiple_dispatch.ntonly": lambda self, b: self,
        "_test_autograd_multiple_dispatch_view _test_autograd_multiple_dispatch_view_copy": lambda self: self.ravel(),
        "resize_as_": lambda self, other: self.reshape(-1)[: other.size].reshape(other.shape),
        "set_.source_Tensor": lambda self, source: source,
        "set_.source_Tensor_storage_offset": lambda self, source, *place: source.reshape(-1)[1:].reshape(-1)[
            [[0, 1], [3, 4]]
        ],
    },
    errors={
        "_test_check_tensor": {"Test message for TORCH_CHECK_TENSOR_ALL": [x.values([True, False], dtypes.bool)]},
        "copy": NOT_BROADCASTABLE,
        "fill.Tensor": {"fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.": [(2,), (2,)]},
        "item": {"a Tensor with 2 elements cannot be converted to Scalar": [(2,)]},
        "is_nonzero": {"Boolean value of Tensor with more than one value is ambiguous": [(2,)]},
    },
    skips={
        "its result is a value, which a tensor without data does not have": (
            "meta: _local_scalar_dense item is_nonzero equal allclose _test_check_tensor"
        ),
        "its result is no tensor": "layouts: _local_scalar_dense item is_nonzero",
        "its gradient is made up, as in PyTorch": (
            "gradients second_gradients: _test_autograd_multiple_dispatch.fullcoverage"
        ),
        "a view in one dimension needs memory that lies so": "layouts: _test_autograd_multiple_dispatch_view*",
        "what is rounded has no derivative that differences would show": (
            "gradients second_gradients: _cast_Float _cast_Half"
        ),
        "it has no derivative in PyTorch, either": "gradients second_gradients: _test_functorch_fallback _foobar",
        "PyTorch's functionalization knows no storages": "functionalized: set_ set_.source_Storage*",
        "what is fresh has no history: nothing is recorded": "trace: lift_fresh",
        "what a wrapper makes anew has no history": "subclass: lift_fresh",
        "what the result's memory is depends on the layout": (
            "layouts: resize_ set_.source_Tensor set_.source_Tensor_storage_offset set_"
        ),
        "a wrapper's memory cannot be resized": "subclass: resize_",
        "a wrapper has no memory that could be replaced": (
            "subclass: set_.source_Tensor set_.source_Tensor_storage_offset set_"
        ),
        OF_STORAGE: ("layouts subclass meta parity: set_.source_Storage_storage_offset set_.source_Storage"),
    },
)

# --- questions --------------------------------------------------------------------------------------------------------


def asks(names, answer, dtypes=FLOATS, samples=USUAL):
    """Operators that answer without computing."""
    return entries(names, samples, dtypes, reference=answer, gradients=False)


def never(*args):
    return False


def always(*args):
    return True


WITH_DIM = calls([(2, 3), 1], [(2, 3), -2])
OF_TRANSPOSED = calls([(2, 3), 0], [x(3, 2).t(), -1])
ALONE = calls([(2, 3)], [()])
DTYPE_PAIRS = calls(*([x.dtype, other] for other in (dtypes.int64, dtypes.float32, dtypes.bool)))
QUESTIONS = table(
    *asks("is_complex", never, NUMBERS),
    *asks("is_floating_point", lambda self: self.dtype.kind == "f", ALL),
    *asks("is_signed", lambda self: self.dtype.kind != "b", ALL),
    *asks("is_conj is_neg is_distributed is_pinned retains_grad cudnn_is_acceptable", never),
    *asks("is_inference get_device stride sym_stride _debug_has_internal_overlap is_leaf", None),
    *asks("is_contiguous is_non_overlapping_and_dense", always),
    *asks("is_contiguous.memory_format", always, samples=unary(contiguous_format)),
    *asks("sym_is_contiguous", always, samples=ALONE),
    *asks("is_strides_like_format", lambda self, like: False, samples=unary(channels_last)),
    *asks("dim", np.ndim),
    *asks("numel", np.size),
    *asks("sym_numel", np.size, samples=ALONE),
    *asks("storage_offset output_nr _version", lambda self: 0),
    *asks("sym_storage_offset", lambda self: 0, samples=ALONE),
    *asks("size.int", lambda self, dim: self.shape[dim], samples=WITH_DIM),
    *asks("sym_size.int", lambda self, dim: self.shape[dim], samples=OF_TRANSPOSED),
    *asks("_shape_as_tensor", lambda self: np.array(self.shape, np.int64)),
    *asks("pin_memory _pin_memory", None, samples=calls()),  # which need an accelerator
    *asks("size sym_size", lambda self: list(self.shape)),
    *asks("stride.int", None, samples=WITH_DIM),
    *asks("sym_stride.int", None, samples=OF_TRANSPOSED),
    *asks("data requires_grad_", lambda self: self),
    *asks("is_same_size", lambda self, other: self.shape == other.shape, samples=TWICE),
    *asks("_assert_async", None, samples=calls([fixed(low=1, high=2)])),
    *asks("_assert_async.msg", None, samples=calls([fixed(low=1, high=2), "is zero"])),
    *asks("is_set_to", None, samples=calls(given((2, 3), then=lambda x: [x, x]), [(2, 3), (2, 3)])),
    *asks("set_data", None, samples=TWICE),
    *asks("retain_grad", None, samples=calls([fixed(2, 3).requires_grad_()])),
    *asks("can_cast promote_types", None, NUMBERS, DTYPE_PAIRS),
    *asks("result_type.Tensor", None, NUMBERS, TWICE),
    *asks("result_type.Scalar", None, NUMBERS, calls([(2,), 3], [(2,), 1.5])),
    *asks("result_type.Scalar_Tensor", None, NUMBERS, calls([3, (2,)], [1.5, (2,)])),
    *asks("result_type.Scalar_Scalar", None, FLOATS, calls([1, 3], [1, 1.5])),
    errors={
        "size.int stride.int": {"IndexError: Dimension specified as 0 but tensor has no dimensions": [(), 0]},
        "pin_memory _pin_memory": {"Cannot access accelerator device when none is available.": [(2,)]},
    },
    skips={
        "it is the layout that is asked for": (
            "layouts: stride stride.int storage_offset is_contiguous is_non_overlapping_and_dense sym_stride is_set_to "
            "is_contiguous.memory_format _debug_has_internal_overlap sym_stride.int sym_storage_offset "
            "sym_is_contiguous is_strides_like_format"
        ),
        "the answer is a tensor of its own, on the CPU": "meta subclass: _shape_as_tensor",
        "there the answer is another one": "inference: is_inference",
        "one value decides, and none for each example": "vmap: _assert_async _assert_async.msg",
        "it is the device that is asked for": "meta: get_device",
        "there are no versions": "inference: _version",
        "the copies that are compared were written": "parity: _version",
        "what is outside of graphs is outside of batches, too": "vmap: data set_data",
        "each wrapper has a storage of its own": "subclass: is_set_to",
        "PyTorch gives the number of a dtype, ours the dtype": "parity: promote_types result_type.*",
        "a tensor made there cannot be written to outside": "inference: requires_grad_",
        "it is refused under a transform, as in PyTorch": "functionalized: requires_grad_",
        "a tensor that is laid out anew requires no grad": "layouts: retain_grad",
        "there are no gradients": "inference: retain_grad",
        "the wrapper requires no grad": "subclass functionalized: retain_grad",
        "only floating leaves have one": "parity: retain_grad",
        "a wrapper gets another face, and keeps what is inside": "subclass: set_data",
    },
)

# --- distances --------------------------------------------------------------------------------------------------------


def norm_of(differences, p):
    wide = np.abs(np.asarray(differences, np.float64))
    if p == 0:
        return (wide != 0).sum(-1)
    return wide.max(-1, initial=0) if p == np.inf else (wide**p).sum(-1) ** (1 / p)


def between_rows(x1, x2, p=2.0, compute_mode=None):
    return norm_of(x1[..., :, None, :] - x2[..., None, :, :], p)


def of_pairs(self, p=2.0):
    first, second = np.triu_indices(len(self), 1)
    return norm_of(self[first] - self[second], p)


def rows(*mode):
    return calls(
        *([d(3, 2), d(4, 2), p, *mode] for p in (2.0, 1.0, 3.0, np.inf)),
        *([(2, 1, 3, 2), (4, 2, 2), 2.0, *mode], [(3, 2), (0, 2), 2.0, *mode], [(3, 0), (2, 0), 2.0, *mode]),
    )


def unreduced(grad, x1, *how):
    """One for each batch: what the rows were expanded by is summed afterwards."""
    return gradient_of(between_rows, [0])(grad, np.broadcast_to(x1, (*grad.shape[:-2], *x1.shape[-2:])), *how)


MANY_ROWS = calls(rows(None), [(30, 3), (2, 3), 2.0, None], [(3, 3), (2, 3), 2.0, 1])
PERMUTED = "vmap permutes the distances and the rows apart"


def slope_of_pairs():
    """The gradient of `_pdist_forward`; for p = 1 alone the distances that were saved decide nothing."""
    (forward,) = entries("_pdist_forward", ONE_SET, FLOATS, reference=of_pairs)
    slope = backward_of(forward)
    assert slope is not None

    def samples(make):
        for one in slope.samples(make):
            yield one if one.args[1] == 1 else one.but_not("vmap", PERMUTED)

    return slope.but("_pdist_backward", samples=samples)


ONE_SET = calls(*([d(4, 3), p] for p in (2.0, 1.0, 1.5, np.inf)), [(1, 3), 2.0])
DISTANCES = table(
    *entries("_cdist_forward", MANY_ROWS, FLOATS, reference=between_rows),
    *entries("cdist", rows(), FLOATS, reference=between_rows),
    *entries("_pdist_forward pdist", ONE_SET, FLOATS, reference=of_pairs),
    slope_of_pairs(),
    references={"_cdist_backward": unreduced},
    errors={
        "cdist": {
            "cdist only supports at least 2D tensors, X2 got: 1D": [(2, 3), (3,)],
            "X1 and X2 must have the same number of columns. X1: 3 X2: 2": [(2, 3), (2, 2)],
            "cdist only supports non-negative p values": [(2, 3), (2, 3), -1.0],
        },
        "pdist": {
            "pdist only supports 2D tensors, got: 1D": [(3,)],
            "pdist only supports non-negative p values": [(2, 3), -1.0],
        },
    },
    skips={
        "refused, as by PyTorch": "bfloat16: *_forward *_backward",
        RECORDED: "recording: *_backward",
    },
    flat="*_backward",
)

# --- updates of lists, whose results are what they wrote: tests/optim/ and tests/amp/ compare those -------------------


def steps(*kept, counted=True, **options):
    """Two parameters at their third step; `kept`: for each list of the state, whether it is given, or empty."""
    lists = [[fixed(2, 3, low=0, high=2), fixed(4, low=0, high=2)] for _ in range(2 + len(kept))]
    counts = [[x.values(3.0).detach()] * 2] if counted else []

    def then(*made):
        state = [one if wanted else [] for one, wanted in zip(made[2:], kept, strict=True)]
        return call(*made[:2], *state, *counts, **{"lr": 0.1, "weight_decay": 0.1, "maximize": False, **options})

    return given(*lists, then=then)


def adam(amsgrad=False, **options):
    return steps(True, True, amsgrad, beta1=0.9, beta2=0.99, eps=1e-3, amsgrad=amsgrad, **options)


def sgd(**options):
    return steps(True, counted=False, momentum=0.9, dampening=0.1, nesterov=False, is_first_step=False, **options)


def adagrad(**options):
    return steps(True, lr_decay=0.1, eps=1e-3, **options)


def number(value, dtype=dtypes.float32):
    return x.values(value).detach().to(dtype)


RATE = {"lr": number(0.1)}
STEPS = {
    "_fused_adam_": adam(),
    "_fused_adam_.tensor_lr": adam(**RATE),
    "_fused_adamw_": adam(amsgrad=True, maximize=True),
    "_fused_adamw_.tensor_lr": adam(**RATE),
    "_fused_sgd_": sgd(),
    "_fused_sgd_.tensor_lr": sgd(maximize=True, **RATE),
    "_fused_adagrad_": adagrad(),
    "_fused_adagrad_.tensor_lr": adagrad(maximize=True, **RATE),
}
UNSCALED = calls([[fixed(2, 3), fixed(4)], number(0.0), number(0.5)])
SCALE = calls([number(4.0), number(0.0, dtypes.int32), number(0.0), 2.0, 0.5, 1])
UPDATES = table(
    *(info for name, samples in STEPS.items() for info in entries(name, samples, FLOATS)),
    *entries("_amp_foreach_non_finite_check_and_unscale_", UNSCALED, FLOATS),
    *entries("_amp_update_scale_", SCALE, FLOATS[:1]),
    skips={
        "it returns nothing": "reference bfloat16 layouts: *",
        "it writes, and has no derivative": "gradients second_gradients: *",
    },
)

COPYING = [*COPIES, *QUESTIONS, *DISTANCES, *UPDATES]
