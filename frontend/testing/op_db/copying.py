"""Samples of kernels/ops/copying.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import channels_last, contiguous_format, device, dtypes, strided

from ..op_info import ErrorInput, Maker, OpInfo, SampleInput, sample
from .common import some_number, unary

CPU = device("cpu")
IN_PLACE = "it has no functional form: its in-place form is the operator itself"
VALUE_ONLY = {"meta": "its result is a value, which a tensor without data does not have"}
MODE_VALUE = {**VALUE_ONLY, "layouts": "its result is no tensor"}


def same(self: Any, *args: Any, **kwargs: Any) -> Any:
    return self


def formats(make: Maker) -> Iterator[SampleInput]:
    yield from unary()(make)
    yield sample(make(2, 3).detach().t())
    yield sample(make(1, 2, 2, 2), memory_format=channels_last)
    yield sample(make(2, 3), memory_format=contiguous_format)


def only_formats(make: Maker) -> Iterator[SampleInput]:
    yield from unary()(make)
    yield sample(make(1, 2, 2, 2), memory_format=channels_last)


def conversions(make: Maker) -> Iterator[SampleInput]:
    for to in (dtypes.float64, dtypes.float32, dtypes.int64, dtypes.bool):
        yield sample(make(2, 3), dtype=to).but_not("gradients", "what is rounded moves by jumps")
    yield sample(make())
    yield sample(make(0, 3), dtype=dtypes.float64)


def to_dtypes(make: Maker) -> Iterator[SampleInput]:
    for to in (dtypes.float64, dtypes.float32, dtypes.int64):
        yield sample(make(2, 3), to).but_not("gradients", "what is rounded moves by jumps")
    yield sample(make(), make.dtype, False, True)


def to_devices(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), CPU, dtypes.float64)
    yield sample(make(0, 3), CPU, make.dtype)


def to_others(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), make.values([1], dtypes.float64).detach())


def to_layouts(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3), dtype=dtypes.float64, layout=strided, device=CPU)
    yield sample(make(2, 3), copy=True)


def sources(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach(), make(2, 3))
    yield sample(make(2, 3).detach(), make(3))
    yield sample(make().detach(), make())
    yield sample(make(0, 3).detach(), make(3))
    yield sample(make(2, 3).detach(), make(2, 3, dtype=dtypes.float64))


def copy_errors(make: Maker) -> Iterator[ErrorInput]:
    yield ErrorInput(
        sample(make(2, 3), make(4)),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    )


def fills(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), some_number(make))


def tensor_fills(make: Maker) -> Iterator[SampleInput]:
    for shape in ((2, 3), (), (0, 3)):
        yield sample(make(*shape), make())


def fill_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions."
    yield ErrorInput(sample(make(2), make(2)), RuntimeError, text)


def one_value(make: Maker) -> Iterator[SampleInput]:
    yield sample(make())
    yield sample(make(1, 1))


def item_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "a Tensor with 2 elements cannot be converted to Scalar"
    yield ErrorInput(sample(make(2)), RuntimeError, text)


def nonzero_errors(make: Maker) -> Iterator[ErrorInput]:
    text = "Boolean value of Tensor with more than one value is ambiguous"
    yield ErrorInput(sample(make(2)), RuntimeError, text)


def equals(make: Maker) -> Iterator[SampleInput]:
    x = make(2, 3)
    yield sample(x, x.detach().clone())
    yield sample(x, make(2, 3))
    yield sample(make(2), make(3))
    yield sample(make(), make())
    yield sample(make(0, 3), make(0, 3))


def closes(make: Maker) -> Iterator[SampleInput]:
    x = make(2, 3)
    yield sample(x, x.detach().clone())
    yield sample(x, make(2, 3), rtol=0.5, atol=0.1)
    yield sample(make(), make())
    yield sample(make(0, 3), make(0, 3))


def resizes(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach(), [3, 2])
    yield sample(make(2, 3).detach(), [2])
    yield sample(make(0).detach(), [0, 2])


def set_sources(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(2, 3).detach(), make(3, 1).detach())


def set_storages(make: Maker) -> Iterator[SampleInput]:
    yield sample(make(1).detach(), make(2, 3).detach().untyped_storage(), 1, [2, 2], [3, 1])


STORAGE = {
    name: "its argument is a storage, of which nothing but the operator itself knows what it holds"
    for name in ("layouts", "subclass", "meta", "parity")
}
NO_LAYOUT = {"layouts": "what the result's memory is depends on the layout"}

COPYING = [
    OpInfo("clone", formats, same),
    OpInfo("contiguous", only_formats, same),
    OpInfo("_to_copy", conversions, lambda self, dtype=None: self.astype(dtype or self.dtype)),
    OpInfo("copy", sources, lambda self, src: np.broadcast_to(src, self.shape), errors=copy_errors),
    OpInfo("to.dtype", to_dtypes, lambda self, dtype, *rest: self.astype(dtype)),
    OpInfo("to.device", to_devices, same),
    OpInfo("to.other", to_others, same),
    OpInfo("to.dtype_layout", to_layouts, same),
    OpInfo("type_as", to_others, same),
    OpInfo("alias", unary(), same),
    OpInfo("detach", unary(), same, gradients=False),
    OpInfo(
        "lift_fresh",
        unary(),
        same,
        skips={
            "trace": "what is fresh has no history: nothing is recorded",
            "subclass": "what a wrapper makes anew has no history",
        },
    ),
    OpInfo("lift_fresh_copy", unary(), same),
    OpInfo("fill.Scalar", fills, lambda self, value: np.full_like(self, value)),
    OpInfo("fill.Tensor", tensor_fills, lambda self, value: np.full_like(self, value), errors=fill_errors),
    OpInfo("zero_", unary(), np.zeros_like),
    OpInfo("_local_scalar_dense", one_value, lambda self: self.item(), gradients=False, skips=MODE_VALUE),
    OpInfo("item", one_value, lambda self: self.item(), gradients=False, skips=MODE_VALUE, errors=item_errors),
    OpInfo(
        "is_nonzero",
        one_value,
        lambda self: bool(self.item()),
        gradients=False,
        skips=MODE_VALUE,
        errors=nonzero_errors,
    ),
    OpInfo("equal", equals, np.array_equal, gradients=False, skips=VALUE_ONLY),
    OpInfo("isclose", closes, np.isclose, gradients=False),
    OpInfo("allclose", closes, np.allclose, gradients=False, skips=VALUE_ONLY),
    OpInfo(
        "resize_",
        resizes,
        None,
        gradients=False,
        skips={"layouts": NO_LAYOUT["layouts"], "subclass": "a wrapper's memory cannot be resized"},
    ),
    OpInfo(
        "set_.source_Tensor",
        set_sources,
        lambda self, source: source,
        gradients=False,
        skips={"layouts": NO_LAYOUT["layouts"], "subclass": "a wrapper has no memory that could be replaced"},
    ),
    OpInfo("set_.source_Storage_storage_offset", set_storages, None, gradients=False, skips=STORAGE),
]
