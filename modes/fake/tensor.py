"""FakeTensor, a tensor with a face and no data, and the errors of what would need data.

Read next: ../fake_tensor.py, the mode that runs its operators.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.dispatch import LAZY_BITS
from redispatch.dispatch.inspection.frames import users_line
from redispatch.dispatch.tensor import current_index
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import is_traceable_wrapper_subclass

FakeTensorMode = Any  # the class in ../fake_tensor.py, which imports this file

META = rd.device("meta")


class Usual:
    """The switches as they stand where nobody has asked for PyTorch's module of them, `_functorch.config`."""

    fake_tensor_allow_meta = True
    fake_tensor_propagate_real_tensors = False


SWITCHES: list[Any] = [Usual]  # the last holds; that module enters itself


class DynamicOutputShapeException(RuntimeError):
    """The shape of a result depends on values, and there are none. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A result is a Python value of a tensor without values. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(
            f"{func}\nA graph holds for all values: compute the alternatives and choose by torch.where, or use "
            f"torch.cond. It is asked here:\n{users_line()}"
        )
        self.func = func


class UnsupportedOperatorException(RuntimeError):
    """An operator that says for no fake what its result looks like. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor, or a thing among an operator's arguments, of which there can be no fake."""


class MetadataMismatchError(RuntimeError):
    """A fake result that looks unlike the real one."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """The arguments of an operator are on two devices."""


class FakeTensor(rd.Tensor):
    """A tensor with a face and no data. `fake_mode` runs its operators; `constant`: its value, where it is known;
    `real_tensor`: the tensor that is computed beside it (real.py)."""

    meta: rd.Tensor
    fake_mode: FakeTensorMode
    fake_device: rd.device
    constant: rd.Tensor | None
    real_tensor: rd.Tensor | None = None

    @staticmethod
    def __new__(
        cls, fake_mode: FakeTensorMode, elem: rd.Tensor, device: Any, *, constant: rd.Tensor | None = None
    ) -> FakeTensor:
        """A fake of `elem`, a meta tensor, on `device`: of its type's current one, where it has no index."""
        if not isinstance(device, rd.device):
            device = rd.device(device)
        if device.type == "meta" and not fake_mode.allow_meta:
            raise AssertionError(
                "device.type must not be 'meta' when allow_meta is False, as fake_tensor_allow_meta says"
            )
        if device.index is None and device.type not in ("cpu", "meta"):
            device = rd.device(device.type, current_index(device.type))
        made = rd.Tensor._make_wrapper_subclass(
            cls,
            elem._shape,
            elem._stride,
            elem._offset,
            dtype=elem._dtype,
            device=device,
            requires_grad=elem.requires_grad,
            _extra_dispatch_keys=elem._keyset & LAZY_BITS or None,
        )
        made.meta, made.fake_mode, made.fake_device, made.constant = elem, fake_mode, device, constant
        return made

    @staticmethod
    def from_tensor(t: rd.Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """Returns the fake of a tensor; the mode's own method takes more."""
        return fake_mode.from_tensor(t)

    @property
    def _storage(self) -> Any:
        """Its memory is that of the tensor on the meta device: views of one fake share it."""
        return self.meta._storage if self._store is None else self._store

    @_storage.setter
    def _storage(self, value: Any) -> None:
        self._store = value

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        mode = next(one.fake_mode for one in leaves if isinstance(one, FakeTensor))
        kwargs = kwargs or {}
        recipe, fakes = mode.recipe(func, args, kwargs)
        if recipe is not None:
            return recipe.made(mode, fakes)  # to enter the mode takes ten times as long
        if any(is_traceable_wrapper_subclass(one) for one in leaves):
            return NotImplemented  # the wrapper takes itself apart, and comes back with what is inside
        with mode:
            return func(*args, **kwargs)

    def tolist(self) -> Any:
        """Nested lists of numbers, where they are known. DataDependentOutputException where they are not."""
        return self.item() if self.dim() == 0 else [row.tolist() for row in self]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        facts = [f"device='{self.fake_device}'"] if self.fake_device.type != "cpu" else []
        facts.append(f"size={tuple(self.shape)}")
        if self.dtype is not rd.get_default_dtype():
            facts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        text = f"FakeTensor(..., {', '.join(facts)})"
        return f"Parameter({text})" if isinstance(self, rd.nn.Parameter) else text


def shown(value: Any) -> str:
    """Returns a value for a message: of a tensor with data, its size alone."""
    if isinstance(value, rd.Tensor) and not isinstance(value, FakeTensor):
        return f"tensor([...], size={tuple(value.shape)})"
    return repr(value)
