"""TensorOptions: what a tensor is to be made as, in one value. Read next: frontend/at.py, whose factories take it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .devices import device
from .dtypes import dtype
from .layouts import layout


@dataclass(frozen=True)
class TensorOptions:
    """Dtype, layout, device and the rest of a new tensor: `TensorOptions().dtype(float32).device("cpu")`.

    Each method returns a new value with one thing said; what nobody says is the factory's default. `given` has
    what was said.
    """

    given: tuple[tuple[str, object], ...] = ()

    def _with(self, name: str, value: object) -> TensorOptions:
        return replace(self, given=(*(pair for pair in self.given if pair[0] != name), (name, value)))

    def dtype(self, dtype: dtype) -> TensorOptions:
        return self._with("dtype", dtype)

    def layout(self, layout: layout) -> TensorOptions:
        return self._with("layout", layout)

    def device(self, device: device | str) -> TensorOptions:
        return self._with("device", device)

    def pinned_memory(self, pinned: bool = True) -> TensorOptions:
        return self._with("pin_memory", pinned)

    def requires_grad(self, wanted: bool = True) -> TensorOptions:
        return self._with("requires_grad", wanted)
