"""Random programs of views, writes and arithmetic, run with views or without.

A program is a list of steps (kind, which tensor, which other, two numbers, a factor); any tuple of such is a program.
`WithViews` runs it as a user would write it, with this library or any that has the same names. `WithoutViews` runs the
same steps as pure functions: its memory is a list of flat tensors, a view is an array of positions, and a write makes
the flat tensor anew. If the rules for views and in-place writes are right, both have the same values and gradients.

Note [One memory, several histories]
`detach`, `.data` and `set_` give a second tensor over the same memory, with a history of its own. `WithoutViews` keeps
a flat tensor for each of them; a write to one moves the values of the others, and leaves their gradients alone. A write
under `no_grad` does that to all of them.

tests/autograd/test_views.py draws programs and compares the two; tests/parity has PyTorch run them as well.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Step = tuple[str, int, int, int, int, float]

VIEWS = ("select", "narrow", "step", "transpose", "unsqueeze", "flat", "diagonal", "as_strided", "expand")
SEVERAL = ("unbind", "split", "chunk")
ALIASES = ("detach", "data", "set_")
WRITES = ("mul_", "add_", "mul_by", "copy_", "sin_", "zero_", "fill_", "setitem")
OTHERS = ("new", "use", "no_grad_write", "no_grad_view", "gradients")
KINDS = (*VIEWS, *SEVERAL, *ALIASES, *WRITES, *OTHERS)
LIMIT = 12  # tensors; older ones stay in use, newer ones are not made

START = [0.5, -1.0, 1.5, 0.25, -0.75, 1.0, 0.3, -0.2, 0.8, -1.25, 0.6, 0.1]


class Impossible(Exception):
    """A step that does not apply to its tensor. Which ones do is the same in both runs."""


class Names:
    """The tensors, by number, and the results that two runs have in common."""

    lib: Any
    names: list[Any]

    def __init__(self, lib: Any) -> None:
        self.lib = lib
        self.x = self.leaf(START)
        self.y = self.leaf(START[::-1][:6])
        self.results: list[list[float]] = []
        self.used = lib.zeros((), dtype=lib.float64)

    def leaf(self, numbers: list[float]) -> Any:
        return self.lib.tensor(numbers, dtype=self.lib.float64, requires_grad=True)

    def run_step(self, step: Step) -> None:
        """Runs one step. Errors: Impossible; whatever the library raises."""
        kind, who, other, a, b, factor = step
        if kind in (*VIEWS, *SEVERAL, *ALIASES, "no_grad_view", "new") and len(self.names) >= LIMIT:
            raise Impossible
        getattr(self, kind)(who % len(self.names), other % len(self.names), a, b, factor)

    def gradients_of(self, total: Any) -> None:
        """Notes the gradients, their gradients in turn, and the first ones once more."""
        leaves = [self.x, self.y]
        if not total.requires_grad:
            return self.note([None] * 6)
        first = self.lib.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
        self.note(first)
        inner = sum((g * g.sin()).sum() for g in first if g is not None)
        graph = getattr(inner, "requires_grad", False)
        second = self.lib.autograd.grad(inner, leaves, retain_graph=True, allow_unused=True) if graph else (None, None)
        self.note(second)
        self.note(self.lib.autograd.grad(total, leaves, retain_graph=True, allow_unused=True))

    def note(self, gradients: Any) -> None:
        """Whether a gradient is zero or None is not compared; a history may be one of zeros."""
        for gradient, leaf in zip(gradients, itertools.cycle((self.x, self.y)), strict=False):
            self.results.append([0.0] * leaf.numel() if gradient is None else gradient.tolist())

    def finish(self) -> None:
        """Notes the values of all tensors, and the gradients of one number that depends on all of them."""
        total = self.used + (self.x.sum() + self.y.sum()) * 0.5
        for value in self.readable():
            self.results.append(value.reshape(-1).tolist())
            total = total + (value * value.sin()).sum()
        self.gradients_of(total)

    def readable(self) -> Iterator[Any]:
        raise NotImplementedError


# --- With views -------------------------------------------------------------------------------------------------------


def contiguous(tensor: Any) -> Any:
    if not tensor.is_contiguous():
        raise Impossible
    return tensor


def separate(tensor: Any) -> Any:
    """Impossible for a tensor in which elements coincide: whether it may be filled depends on the way there."""
    if any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)):
        raise Impossible
    return tensor


def with_dimensions(tensor: Any, count: int) -> Any:
    if tensor.dim() < count:
        raise Impossible
    return tensor


class WithViews(Names):
    """The program as a user would write it."""

    def __init__(self, lib: Any) -> None:
        super().__init__(lib)
        self.names = [(self.x * 1).view(3, 4), self.y * 1]
        self.errors: list[str] = []  # for each step: "" if it went well
        self.unreadable: dict[int, str] = {}  # tensors whose history is lost

    def run(self, steps: list[Step]) -> WithViews:
        """Runs all steps; an error of one is noted, and the program goes on."""
        for step in steps:
            try:
                self.run_step(step)
                self.errors.append("")
            except Impossible:
                self.errors.append("impossible")
            except RuntimeError as error:
                self.errors.append(str(error))
        self.finish()
        return self

    def readable(self) -> Iterator[Any]:
        for number, name in enumerate(self.names):
            try:
                yield name.clone()
            except RuntimeError as error:
                self.unreadable[number] = str(error)

    # Views: the arguments of each follow from the shape

    def select(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = with_dimensions(self.names[who], 1)
        dim = a % tensor.dim()
        self.names.append(tensor.select(dim, b % tensor.size(dim)))

    def narrow(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = with_dimensions(self.names[who], 1)
        dim = a % tensor.dim()
        start = b % tensor.size(dim)
        self.names.append(tensor.narrow(dim, start, tensor.size(dim) - start))

    def step(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(with_dimensions(self.names[who], 1)[a % 2 :: 1 + b % 2])
        if not self.names[-1].numel():
            self.names.pop()
            raise Impossible

    def transpose(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(with_dimensions(self.names[who], 2).transpose(0, 1))

    def unsqueeze(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if tensor.dim() > 2:
            raise Impossible
        self.names.append(tensor.unsqueeze(a % (tensor.dim() + 1)))

    def flat(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(contiguous(self.names[who]).view(-1))

    def diagonal(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(with_dimensions(self.names[who], 2).diagonal(0, 0, 1))

    def as_strided(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = contiguous(self.names[who])
        if tensor.numel() < 4:
            raise Impossible
        step, offset = 1 + a % 2, tensor.storage_offset() + b % 2
        self.names.append(tensor.as_strided((tensor.numel() // 2 - 1,), (step,), offset))

    def expand(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = self.names[who]
        if tensor.dim() > 2:
            raise Impossible
        self.names.append(tensor.unsqueeze(0).expand(2, *tensor.shape))

    def unbind(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names += with_dimensions(self.names[who], 1).unbind(0)[:2]

    def split(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names += with_dimensions(self.names[who], 1).split(2, 0)[:2]

    def chunk(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names += with_dimensions(self.names[who], 1).chunk(2, 0)[:2]

    # A second tensor over the same memory

    def detach(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(self.names[who].detach())

    def data(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(self.names[who].data)

    def set_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(self.lib.zeros(0, dtype=self.lib.float64).set_(self.names[who].detach()))

    # Writes

    def mul_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].mul_(factor)

    def add_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].add_(self.names[other].clone().mean(), alpha=factor)

    def mul_by(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].mul_(self.names[other].clone().mean().sin())

    def copy_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].copy_((self.names[other].clone() * factor).mean().sin())

    def sin_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names[who].sin_()

    def zero_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        separate(self.names[who]).zero_()

    def fill_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        separate(self.names[who]).fill_(self.names[other].clone().mean())

    def setitem(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        tensor = with_dimensions(self.names[who], 1)
        tensor[a % tensor.size(0)] = self.names[other].clone().mean() * factor

    # And the rest

    def new(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.names.append(self.names[who].clone() * factor + self.names[other].clone().mean())

    def use(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.used = self.used + (self.names[who].clone().sin() * self.names[other].clone().mean()).sum()

    def no_grad_write(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        with self.lib.no_grad():
            self.names[who].mul_(factor).add_(self.names[other].mean())

    def no_grad_view(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        with self.lib.no_grad():
            self.select(who, other, a, b, factor)

    def gradients(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        value = self.names[who].clone()
        self.gradients_of((value * value).sum())


# --- Without views ----------------------------------------------------------------------------------------------------


@dataclass
class Flat:
    """One history over one memory: Note [One memory, several histories]."""

    value: Any
    memory: int


@dataclass
class View:
    """A tensor of `WithViews`: which elements of which flat tensor. `constant`: made under no_grad."""

    flat: int
    positions: np.ndarray
    constant: bool = False


class WithoutViews(Names):
    """The program as pure functions."""

    def __init__(self, lib: Any) -> None:
        super().__init__(lib)
        self.flats = [Flat(self.x * 1, 0), Flat(self.y * 1, 1)]
        self.memories = itertools.count(2)
        self.names = [View(0, np.arange(12).reshape(3, 4)), View(1, np.arange(6))]
        self.recording = True

    def run(self, steps: list[Step], other: WithViews) -> WithoutViews:
        """Runs the steps that went well in `other`."""
        for step, error in zip(steps, other.errors, strict=True):
            if not error:
                self.run_step(step)
        self.unreadable = other.unreadable
        self.finish()
        return self

    def readable(self) -> Iterator[Any]:
        return (self.read(name) for number, name in enumerate(self.names) if number not in self.unreadable)

    # Reading and writing

    def read(self, name: View) -> Any:
        index = self.lib.tensor(name.positions.reshape(-1).tolist(), dtype=self.lib.int64)
        value = self.flats[name.flat].value.index_select(0, index).reshape(name.positions.shape)
        return value.detach() if name.constant or not self.recording else value

    def write(self, name: View, value: Any) -> None:
        """The elements of `name` become those of `value`; other histories see the numbers alone."""
        flat = self.flats[name.flat]
        positions, sources = np.unique(name.positions, return_index=True)  # an expanded tensor may be filled
        chosen = np.zeros((flat.value.size(0), name.positions.size))
        chosen[positions, sources] = 1
        keep = self.lib.tensor((1 - chosen.sum(1)).tolist(), dtype=self.lib.float64)
        matrix = self.lib.tensor(chosen.tolist(), dtype=self.lib.float64)
        changed = flat.value * keep + (matrix * value.expand(name.positions.shape).reshape(-1)).sum(1)
        for one in self.flats:
            if one.memory == flat.memory:
                recorded = one is flat and self.recording
                one.value = changed if recorded else one.value + (changed - one.value).detach()

    def view(self, name: View, positions: Any) -> None:
        self.names.append(View(name.flat, np.asarray(positions), name.constant or not self.recording))

    # Views

    def select(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        name = self.names[who]
        dim = a % name.positions.ndim
        self.view(name, name.positions.take(b % name.positions.shape[dim], dim))

    def narrow(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        name = self.names[who]
        dim = a % name.positions.ndim
        size = name.positions.shape[dim]
        self.view(name, name.positions.take(range(b % size, size), dim))

    def step(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.view(self.names[who], self.names[who].positions[a % 2 :: 1 + b % 2])

    def transpose(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.view(self.names[who], self.names[who].positions.swapaxes(0, 1))

    def unsqueeze(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        positions = self.names[who].positions
        self.view(self.names[who], np.expand_dims(positions, a % (positions.ndim + 1)))

    def flat(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.view(self.names[who], self.names[who].positions.reshape(-1))

    def diagonal(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.view(self.names[who], self.names[who].positions.diagonal(0, 0, 1))

    def as_strided(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        positions = self.names[who].positions.reshape(-1)
        start, step, count = b % 2, 1 + a % 2, len(positions) // 2 - 1
        self.view(self.names[who], positions[start : start + step * count : step])

    def expand(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.view(self.names[who], np.stack([self.names[who].positions] * 2))

    def unbind(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        for part in self.names[who].positions[:2]:
            self.view(self.names[who], part)

    def split(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.parts(self.names[who], 2)

    def chunk(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.parts(self.names[who], -(-len(self.names[who].positions) // 2))

    def parts(self, name: View, size: int) -> None:
        for start in range(0, len(name.positions), size)[:2]:
            self.view(name, name.positions[start : start + size])

    # A second tensor over the same memory

    def detach(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        flat = self.flats[self.names[who].flat]
        self.flats.append(Flat(flat.value.detach(), flat.memory))
        self.names.append(View(len(self.flats) - 1, self.names[who].positions))

    data = set_ = detach

    # Writes

    def mean(self, who: int) -> Any:
        return self.read(self.names[who]).mean()

    def change(self, who: int, function: Callable[[Any], Any]) -> None:
        self.write(self.names[who], function(self.read(self.names[who])))

    def mul_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: value * factor)

    def add_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: value + self.mean(other) * factor)

    def mul_by(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: value * self.mean(other).sin())

    def copy_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: (self.mean(other) * factor).sin())

    def sin_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: value.sin())

    def zero_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: value.detach() * 0)

    def fill_(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.change(who, lambda value: self.mean(other))

    def setitem(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        name, value = self.names[who], self.mean(other) * factor
        self.write(View(name.flat, name.positions[a % len(name.positions)]), value)

    # And the rest

    def new(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        value = self.read(self.names[who]) * factor + self.mean(other)
        self.flats.append(Flat(value.reshape(-1), next(self.memories)))
        self.names.append(View(len(self.flats) - 1, np.arange(value.numel()).reshape(value.shape)))

    def use(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        self.used = self.used + (self.read(self.names[who]).sin() * self.mean(other)).sum()

    @contextlib.contextmanager
    def not_recording(self) -> Iterator[None]:
        self.recording = False
        yield
        self.recording = True

    def no_grad_write(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        with self.not_recording():
            self.change(who, lambda value: value * factor)
            self.change(who, lambda value: value + self.mean(other))

    def no_grad_view(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        with self.not_recording():
            self.select(who, other, a, b, factor)

    def gradients(self, who: int, other: int, a: int, b: int, factor: float) -> None:
        value = self.read(self.names[who])
        self.gradients_of((value * value).sum())
