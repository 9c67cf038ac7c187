"""Random programs of views and writes as functions of their inputs, to be run as they are and functionalized.

    program = Program(rd, steps)
    results = program(x, y)         # every tensor that the program has names for in the end

They are the programs of view_programs.py, whose steps they take, without gradients, and with steps that change how a
tensor lies in memory. `layout` says what two runs must have in common besides their values: how each result lies, and
which of them show the same memory, and how far apart.

tests/func/test_functions.py draws programs and compares the two.
"""

from __future__ import annotations

from typing import Any

from .view_programs import ALIASES, LIMIT, SEVERAL, VIEWS, WRITES, Impossible, Step, WithViews, separate

TURNS = ("transpose_", "unsqueeze_", "squeeze_", "as_strided_", "resize_")
WRITTEN_KINDS = (*VIEWS, *SEVERAL, *ALIASES, *WRITES, *TURNS, "new", "view_as_real", "unfold", "add_out")
MADE = (*VIEWS, *SEVERAL, *ALIASES, "new", "view_as_real", "unfold")


class Program(WithViews):
    """A program of these steps, as a function of two tensors: of twelve elements, and of six."""

    def __init__(self, lib: Any, steps: list[Step]) -> None:
        self.lib, self.steps = lib, steps
        self.errors: list[str] = []

    def __call__(self, x: Any, y: Any) -> list[Any]:
        """Runs all steps. An error of one is noted, and the program goes on."""
        self.names = [x, y, x.view(3, 4)]
        self.errors = []
        for step in self.steps:
            try:
                self.run_step(step)
                self.errors.append("")
            except Impossible:
                self.errors.append("impossible")
            except RuntimeError as error:
                self.errors.append(str(error))
        return self.names

    def run_step(self, step: Step) -> None:
        kind, who, other, a, b, factor = step
        who, other = who % len(self.names), other % len(self.names)
        if kind in MADE and len(self.names) >= LIMIT:
            raise Impossible
        if kind in (*WRITES, "add_out"):
            separate(self.names[who])
        getattr(self, kind)(who, other, a, b, factor)

    def transpose_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].transpose_(0, -1)

    def unsqueeze_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        if self.names[who].dim() > 2:
            raise Impossible
        self.names[who].unsqueeze_(a % (self.names[who].dim() + 1))

    def squeeze_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].squeeze_()

    def as_strided_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if tensor.numel() < 4 or not tensor.is_contiguous():
            raise Impossible
        tensor.as_strided_((2, tensor.numel() // 2), (1, 2))

    def resize_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if not tensor.is_contiguous():
            raise Impossible
        tensor.resize_(tensor.numel() - a % 2)

    def view_as_real(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if tensor.dim() == 0 or tensor.size(-1) != 2 or tensor.stride(-1) != 1 or tensor.storage_offset() % 2:
            raise Impossible
        if any(step % 2 for step in tensor.stride()[:-1]):
            raise Impossible
        self.names.append(self.lib.view_as_real(self.lib.view_as_complex(tensor)))

    def unfold(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if tensor.dim() == 0 or tensor.dim() > 2 or tensor.size(0) < 2:
            raise Impossible
        self.names.append(tensor.unfold(0, 2, 2))

    def add_out(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        target = self.names[who]
        self.lib.add(target.clone(), self.names[other].clone().mean(), alpha=factor, out=target)


def layout(tensors: list[Any]) -> list[Any]:
    """Shape and strides of each tensor, and for each which of those before it shows the same memory, how far away."""
    described = []
    for number, tensor in enumerate(tensors):
        near = [
            (before, tensor.storage_offset() - other.storage_offset())
            for before, other in enumerate(tensors[:number])
            if other.untyped_storage()._cdata == tensor.untyped_storage()._cdata
        ]
        described.append((tuple(tensor.shape), strides(tensor), near))
    return described


def strides(tensor: Any) -> tuple[int, ...]:
    """Returns the strides that are of consequence."""
    return tuple(step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1)
