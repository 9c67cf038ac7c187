"""Samples of kernels/ops/inquiries.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import contiguous_format, dtypes

from ..op_info import ALL, FLOATS, NUMBERS, ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import unary
from .views import calls

LAYOUT = {"layouts": "it is the layout that is asked for"}
NOT_RECORDED = {"recording": "nothing is computed"}


def twice(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make(2, 3))
    yield sample(make(2, 3), make(3))


def itself(make: Maker) -> Iterator[SampleInput]:
    x = make(2, 3)
    yield sample(x, x)
    yield sample(make(2, 3), make(2, 3))


def dtype_pairs(make: Maker) -> Iterator[SampleInput]:
    for other in (dtypes.int64, dtypes.float32, dtypes.bool):
        yield sample(make.dtype, other)


def tensor_and_number(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2), 3)
    yield sample(make(2), 1.5)


def leaves(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach().requires_grad_())


NO_GRADIENTS = "there are no gradients"
NUMBERED = "PyTorch gives the number of a dtype, ours the dtype"


def asks(name: str, answer: Any, dtypes_: Any = FLOATS, samples: Any = None, **skips: str) -> OpInfo:
    """An operator that answers without computing."""
    return OpInfo(name, samples or unary(), answer, dtypes_, gradients=False, skips=skips)


def no_dimensions(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(sample(make(), 0), IndexError, "Dimension specified as 0 but tensor has no dimensions")


SIZES_OF = calls([(2, 3), 1], [(2, 3), -2])
INQUIRIES = [
    asks("is_complex", lambda self: False, NUMBERS),
    asks("is_floating_point", lambda self: self.dtype.kind == "f", ALL),
    asks("is_signed", lambda self: self.dtype.kind != "b", ALL),
    asks("is_conj", lambda self: False),
    asks("is_neg", lambda self: False),
    asks("is_distributed", lambda self: False),
    asks("is_inference", None, inference="there the answer is another one"),
    asks("cudnn_is_acceptable", lambda self: False),
    asks("dim", np.ndim),
    asks("numel", np.size),
    OpInfo("size.int", SIZES_OF, lambda self, dim: self.shape[dim], FLOATS, gradients=False, errors=no_dimensions),
    OpInfo("stride.int", SIZES_OF, None, FLOATS, gradients=False, skips=LAYOUT, errors=no_dimensions),
    asks("storage_offset", lambda self: 0, **LAYOUT),
    asks("get_device", None, meta="it is the device that is asked for"),
    asks("is_contiguous", lambda self: True, **LAYOUT),
    asks("is_non_overlapping_and_dense", lambda self: True, **LAYOUT),
    asks("sym_size", lambda self: list(self.shape)),
    asks("sym_stride", None, **LAYOUT),
    asks(
        "is_contiguous.memory_format",
        lambda self, memory_format: True,
        samples=unary(contiguous_format),
        **LAYOUT,
    ),
    asks("_debug_has_internal_overlap", None, **LAYOUT),
    asks("is_leaf", None),
    asks("output_nr", lambda self: 0),
    asks("retains_grad", lambda self: False),
    asks(
        "_version",
        lambda self: 0,
        inference="there are no versions",
        parity="the copies that are compared were written",
    ),
    asks("data", lambda self: self, vmap="what is outside of graphs is outside of batches, too"),
    asks("is_same_size", lambda self, other: self.shape == other.shape, samples=twice),
    asks("is_set_to", None, samples=itself, subclass="each wrapper has a storage of its own", **LAYOUT),
    asks("is_pinned", lambda self: False),
    OpInfo("to_dense", unary(), lambda self: self),
    asks("can_cast", None, NUMBERS, dtype_pairs),
    asks("promote_types", None, NUMBERS, dtype_pairs, parity=NUMBERED),
    asks("result_type.Tensor", None, NUMBERS, twice, parity=NUMBERED),
    asks("result_type.Scalar", None, NUMBERS, tensor_and_number, parity=NUMBERED),
    asks(
        "result_type.Scalar_Tensor", None, NUMBERS, lambda make: (sample(n, make(2)) for n in (3, 1.5)), parity=NUMBERED
    ),
    asks("result_type.Scalar_Scalar", None, FLOATS, lambda make: (sample(1, n) for n in (3, 1.5)), parity=NUMBERED),
    asks("requires_grad_", lambda self: self, inference="a tensor made there cannot be written to outside"),
    asks(
        "retain_grad",
        None,
        samples=leaves,
        layouts="a tensor that is laid out anew requires no grad",
        inference=NO_GRADIENTS,
        subclass="the wrapper requires no grad",
        functionalized="the wrapper requires no grad",
        parity="only floating leaves have one",
    ),
    asks("set_data", None, samples=twice, subclass="a wrapper gets another face, and keeps what is inside"),
    OpInfo(
        "resize_as_", twice, lambda self, other: self.reshape(-1)[: other.size].reshape(other.shape), gradients=False
    ),
]
