"""CrossRefFakeMode: runs each operator on fakes, too, and compares.

Read next: ../cross_check.py, which compares with another library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.modes.fake_tensor import FakeTensorMode
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .conversion import try_convert_fake_to_real  # noqa: F401  # PyTorch has it in this module
from .tensor import DataDependentOutputException, DynamicOutputShapeException, MetadataMismatchError, shown


class CrossRefFakeMode(TorchDispatchMode):
    """A region in which each operator runs on fakes, too, and both results must look the same.

    ignore_op_fn: says of an operator whether it is left out. Errors: MetadataMismatchError.
    """

    def __init__(
        self,
        ignore_op_fn: Callable[[Any], bool] | None = None,
        *,
        check_strides: bool = True,
        check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:
        self.ignore_op_fn, self.check_strides = ignore_op_fn, check_strides

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.ignore_op_fn is not None and self.ignore_op_fn(func):
            return func(*args, **kwargs)
        if types:
            return func(*args, **kwargs)  # what a subclass makes of it, no fake can tell
        fakes = FakeTensorMode(allow_non_fake_inputs=True)
        try:
            with _disable_current_modes(), fakes:
                given, named = pytree.tree_map_only(rd.Tensor, fakes.from_tensor, (args, kwargs))
                faked = func(*given, **named)
        except (DynamicOutputShapeException, DataDependentOutputException):
            return func(*args, **kwargs)  # what it looks like depends on values
        result = func(*args, **kwargs)
        for one, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(faked), strict=True):
            self.compare(func, one, other)
        return result

    def compare(self, func: Any, real: Any, fake: Any) -> None:
        if not isinstance(real, rd.Tensor):
            return
        looks = [(one.shape, one.dtype, one.device.type, one.requires_grad) for one in (real, fake)]
        if looks[0] != looks[1] or self.check_strides and real.numel() and real.stride() != fake.stride():
            raise MetadataMismatchError(
                f"found mismatched tensor metadata for {func}: the kernel gives {shown(real)}, the fake {shown(fake)}"
            )
