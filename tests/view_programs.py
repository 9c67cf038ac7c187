"""Random programs of views, writes and arithmetic, run with views or without, or as functions of their inputs.

A program is a list of steps; any tuple of a kind, two tensors, two numbers and a factor is one. `WithViews` runs it as
a user would write it, with this library or any that has the same names. `WithoutViews` runs the same steps as pure
functions: its memory is a list of flat tensors, a view is an array of positions, and a write makes the flat tensor
anew. If the rules for views and in-place writes are right, both have the same values and gradients. What a kind of step
does stands in the tables, twice: on tensors, and on positions or values.

Note [One memory, several histories]
`detach`, `.data` and `set_` give a second tensor over the same memory, with a history of its own. `WithoutViews` keeps
a flat tensor for each of them; a write to one moves the values of the others, and leaves their gradients alone. A write
under `no_grad` does that to all of them.

autograd/test_views.py draws programs and compares the two; parity/view_programs.py has PyTorch run them as
well; func/test_functions.py draws those of `Program`, and functionalizes them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

LIMIT = 12  # tensors; older ones stay in use, newer ones are not made
START = [0.5, -1.0, 1.5, 0.25, -0.75, 1.0, 0.3, -0.2, 0.8, -1.25, 0.6, 0.1]


class Step(NamedTuple):
    """One step. `who` and `other` name two of the tensors that there are."""

    kind: str
    who: int
    other: int
    a: int
    b: int
    factor: float


class Impossible(Exception):
    """A step that does not apply to its tensor. Which ones do is the same in both runs."""


def require(holds: Any) -> None:
    if not holds:
        raise Impossible


# --- what steps do ----------------------------------------------------------------------------------------------------


def with_dimensions(tensor: Any, least: int, most: int = 99) -> Any:
    require(least <= tensor.ndim <= most)
    return tensor


def contiguous(tensor: Any, least: int = 0) -> Any:
    require(tensor.is_contiguous() and tensor.numel() >= least)
    return tensor


def separate(tensor: Any) -> Any:
    """Impossible for a tensor in which elements coincide: whether it may be filled depends on the way there."""
    require(not any(step == 0 and size > 1 for step, size in zip(tensor.stride(), tensor.shape, strict=True)))
    return tensor


def dim_and_place(x: Any, s: Step) -> tuple[int, int]:
    """A dimension of the tensor, and a place in it."""
    with_dimensions(x, 1)
    dim = s.a % x.ndim
    return dim, s.b % x.shape[dim]


def tail(x: Any, s: Step) -> tuple[int, int, int]:
    dim, start = dim_and_place(x, s)
    return dim, start, x.shape[dim] - start


def every_other(x: Any, s: Step) -> Any:
    made = with_dimensions(x, 1)[s.a % 2 :: 1 + s.b % 2]
    require(len(made))
    return made


def strided(x: Any, s: Step) -> Any:
    step, start = 1 + s.a % 2, contiguous(x, 4).storage_offset() + s.b % 2
    return x.as_strided((x.numel() // 2 - 1,), (step,), start)


def strided_positions(x: np.ndarray, s: Step) -> np.ndarray:
    step, start = 1 + s.a % 2, s.b % 2
    return x.reshape(-1)[start : start + step * (x.size // 2 - 1) : step]


def front(x: Any, s: Step) -> int:
    return s.a % (with_dimensions(x, 0, 2).ndim + 1)


def both(function: Callable[[Any, Step], Any]) -> tuple[Callable[[Any, Step], Any], Callable[[Any, Step], Any]]:
    """Does what tensors and arrays do alike."""
    return function, function


# kind -> (the views of a tensor, their positions among those of the tensor)
VIEWS: dict[str, tuple[Callable[[Any, Step], Any], Callable[[Any, Step], Any]]] = {
    "select": (lambda x, s: x.select(*dim_and_place(x, s)), lambda x, s: x.take(*dim_and_place(x, s)[::-1])),
    "narrow": (
        lambda x, s: x.narrow(*tail(x, s)),
        lambda x, s: x.take(range(dim_and_place(x, s)[1], x.shape[tail(x, s)[0]]), tail(x, s)[0]),
    ),
    "step": both(every_other),
    "transpose": (lambda x, s: with_dimensions(x, 2).transpose(0, 1), lambda x, s: x.swapaxes(0, 1)),
    "unsqueeze": (lambda x, s: x.unsqueeze(front(x, s)), lambda x, s: np.expand_dims(x, front(x, s))),
    "flat": (lambda x, s: contiguous(x).view(-1), lambda x, s: x.reshape(-1)),
    "diagonal": both(lambda x, s: with_dimensions(x, 2).diagonal(0, 0, 1)),
    "as_strided": (strided, strided_positions),
    "expand": (
        lambda x, s: with_dimensions(x, 0, 2).unsqueeze(0).expand(2, *x.shape),
        lambda x, s: np.stack([x] * 2),
    ),
}
SEVERAL: dict[str, tuple[Callable[[Any, Step], Any], Callable[[Any, Step], Any]]] = {
    "unbind": (lambda x, s: with_dimensions(x, 1).unbind(0), lambda x, s: x),
    "split": (lambda x, s: with_dimensions(x, 1).split(2, 0), lambda x, s: parts(x, 2)),
    "chunk": (lambda x, s: with_dimensions(x, 1).chunk(2, 0), lambda x, s: parts(x, -(-len(x) // 2))),
}

# kind -> (the write, what becomes of the values); y: the mean of the other tensor, which is read when it is called for
WRITES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "mul_": (lambda x, y, s: x.mul_(s.factor), lambda x, y, s: x * s.factor),
    "add_": (lambda x, y, s: x.add_(y(), alpha=s.factor), lambda x, y, s: x + y() * s.factor),
    "mul_by": (lambda x, y, s: x.mul_(y().sin()), lambda x, y, s: x * y().sin()),
    "copy_": (lambda x, y, s: x.copy_((y() * s.factor).sin()), lambda x, y, s: (y() * s.factor).sin()),
    "sin_": (lambda x, y, s: x.sin_(), lambda x, y, s: x.sin()),
    "zero_": (lambda x, y, s: separate(x).zero_(), lambda x, y, s: x.detach() * 0),
    "fill_": (lambda x, y, s: separate(x).fill_(y()), lambda x, y, s: y()),
    "setitem": (
        lambda x, y, s: with_dimensions(x, 1).__setitem__(s.a % x.size(0), y() * s.factor),
        lambda x, y, s: y() * s.factor,
    ),
}
ALIASES = ("detach", "data", "set_")
OTHERS = ("new", "use", "no_grad_write", "no_grad_view", "gradients")
KINDS = (*VIEWS, *SEVERAL, *ALIASES, *WRITES, *OTHERS)
MAKES = (*VIEWS, *SEVERAL, *ALIASES, "no_grad_view", "new", "view_as_real", "unfold")


def parts(x: np.ndarray, size: int) -> list[np.ndarray]:
    return [x[start : start + size] for start in range(0, len(x), size)]


# --- running them -----------------------------------------------------------------------------------------------------


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

    def run_step(self, step: tuple[Any, ...]) -> None:
        """Runs one step. Errors: Impossible; whatever the library raises."""
        s = Step(*step)
        s = s._replace(who=s.who % len(self.names), other=s.other % len(self.names))
        require(s.kind not in MAKES or len(self.names) < LIMIT)
        self.apply(s)

    def apply(self, s: Step) -> None:
        if s.kind in VIEWS:
            self.view(s, VIEWS[s.kind])
        elif s.kind in SEVERAL:
            self.views(s, SEVERAL[s.kind])
        elif s.kind in WRITES:
            self.write(s, WRITES[s.kind])
        else:
            getattr(self, s.kind)(s)

    def view(self, s: Step, how: Any) -> None:
        raise NotImplementedError

    def views(self, s: Step, how: Any) -> None:
        raise NotImplementedError

    def write(self, s: Step, how: Any) -> None:
        raise NotImplementedError

    def value(self, who: int) -> Any:
        """The values of a tensor, as a new one."""
        raise NotImplementedError

    def no_grad(self) -> Any:
        raise NotImplementedError

    def mean(self, s: Step) -> Any:
        return self.value(s.other).mean()

    def use(self, s: Step) -> None:
        self.used = self.used + (self.value(s.who).sin() * self.mean(s)).sum()

    def no_grad_write(self, s: Step) -> None:
        with self.no_grad():
            self.write(s, WRITES["mul_"])
            self.write(s._replace(factor=1), WRITES["add_"])

    def no_grad_view(self, s: Step) -> None:
        with self.no_grad():
            self.view(s, VIEWS["select"])

    def gradients(self, s: Step) -> None:
        value = self.value(s.who)
        self.gradients_of((value * value).sum())

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


class WithViews(Names):
    """The program as a user would write it."""

    def __init__(self, lib: Any) -> None:
        super().__init__(lib)
        self.names = [(self.x * 1).view(3, 4), self.y * 1]
        self.errors: list[str] = []  # for each step: "" if it went well
        self.unreadable: dict[int, str] = {}  # tensors whose history is lost

    def run(self, steps: list[Any]) -> WithViews:
        self.run_steps(steps)
        self.finish()
        return self

    def run_steps(self, steps: list[Any]) -> None:
        """Runs all steps; an error of one is noted, and the program goes on."""
        for step in steps:
            try:
                self.run_step(step)
                self.errors.append("")
            except Impossible:
                self.errors.append("impossible")
            except RuntimeError as error:
                self.errors.append(str(error))

    def readable(self) -> Iterator[Any]:
        for number, name in enumerate(self.names):
            try:
                yield name.clone()
            except RuntimeError as error:
                self.unreadable[number] = str(error)

    def value(self, who: int) -> Any:
        return self.names[who].clone()

    def no_grad(self) -> Any:
        return self.lib.no_grad()

    def view(self, s: Step, how: Any) -> None:
        self.names.append(how[0](self.names[s.who], s))

    def views(self, s: Step, how: Any) -> None:
        self.names += how[0](self.names[s.who], s)[:2]

    def write(self, s: Step, how: Any) -> None:
        how[0](self.names[s.who], lambda: self.mean(s), s)

    def detach(self, s: Step) -> None:
        self.names.append(self.names[s.who].detach())

    def data(self, s: Step) -> None:
        self.names.append(self.names[s.who].data)

    def set_(self, s: Step) -> None:
        self.names.append(self.lib.zeros(0, dtype=self.lib.float64).set_(self.names[s.who].detach()))

    def new(self, s: Step) -> None:
        self.names.append(self.value(s.who) * s.factor + self.mean(s))


# --- without views ----------------------------------------------------------------------------------------------------


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

    def run(self, steps: list[Any], other: WithViews) -> WithoutViews:
        """Runs the steps that went well in `other`."""
        for step, error in zip(steps, other.errors, strict=True):
            if not error:
                self.run_step(step)
        self.unreadable = other.unreadable
        self.finish()
        return self

    def readable(self) -> Iterator[Any]:
        return (self.value(number) for number in range(len(self.names)) if number not in self.unreadable)

    def value(self, who: int) -> Any:
        name = self.names[who]
        index = self.lib.tensor(name.positions.reshape(-1).tolist(), dtype=self.lib.int64)
        value = self.flats[name.flat].value.index_select(0, index).reshape(name.positions.shape)
        return value.detach() if name.constant or not self.recording else value

    @contextlib.contextmanager
    def no_grad(self) -> Iterator[None]:
        self.recording = False
        yield
        self.recording = True

    def view(self, s: Step, how: Any) -> None:
        self.add(self.names[s.who], how[1](self.names[s.who].positions, s))

    def views(self, s: Step, how: Any) -> None:
        for part in how[1](self.names[s.who].positions, s)[:2]:
            self.add(self.names[s.who], part)

    def add(self, name: View, positions: Any) -> None:
        self.names.append(View(name.flat, np.asarray(positions), name.constant or not self.recording))

    def write(self, s: Step, how: Any) -> None:
        name = self.names[s.who]
        value = how[1](self.value(s.who), lambda: self.mean(s), s)
        part = name.positions[s.a % len(name.positions)] if how is WRITES["setitem"] else name.positions
        self.become(self.flats[name.flat], part, value)

    def become(self, flat: Flat, part: np.ndarray, value: Any) -> None:
        """The elements at these positions become those of `value`; other histories see the numbers alone."""
        positions, sources = np.unique(part, return_index=True)  # an expanded tensor may be filled
        chosen = np.zeros((flat.value.size(0), part.size))
        chosen[positions, sources] = 1
        keep = self.lib.tensor((1 - chosen.sum(1)).tolist(), dtype=self.lib.float64)
        matrix = self.lib.tensor(chosen.tolist(), dtype=self.lib.float64)
        changed = flat.value * keep + (matrix * value.expand(part.shape).reshape(-1)).sum(1)
        for one in self.flats:
            if one.memory == flat.memory:
                recorded = one is flat and self.recording
                one.value = changed if recorded else one.value + (changed - one.value).detach()

    def detach(self, s: Step) -> None:
        flat = self.flats[self.names[s.who].flat]
        self.flats.append(Flat(flat.value.detach(), flat.memory))
        self.names.append(View(len(self.flats) - 1, self.names[s.who].positions))

    data = set_ = detach

    def new(self, s: Step) -> None:
        value = self.value(s.who) * s.factor + self.mean(s)
        self.flats.append(Flat(value.reshape(-1), next(self.memories)))
        self.names.append(View(len(self.flats) - 1, np.arange(value.numel()).reshape(value.shape)))


# --- as functions, with steps that change how a tensor lies in memory -------------------------------------------------


def as_pairs(x: Any) -> Any:
    require(x.ndim and x.size(-1) == 2 and x.stride(-1) == 1)
    require(not x.storage_offset() % 2 and not any(step % 2 for step in x.stride()[:-1]))
    return x


TURNS: dict[str, Callable[[Any, Step], Any]] = {
    "transpose_": lambda x, s: x.transpose_(0, -1),
    "unsqueeze_": lambda x, s: x.unsqueeze_(front(x, s)),
    "squeeze_": lambda x, s: x.squeeze_(),
    "as_strided_": lambda x, s: contiguous(x, 4).as_strided_((2, x.numel() // 2), (1, 2)),
    "resize_": lambda x, s: contiguous(x).resize_(x.numel() - s.a % 2),
}
WRITTEN_KINDS = (*VIEWS, *SEVERAL, *ALIASES, *WRITES, *TURNS, "new", "view_as_real", "unfold", "add_out")


class Program(WithViews):
    """A program of these steps, as a function of two tensors: of twelve elements, and of six.

    It gives every tensor that it has names for in the end.
    """

    def __init__(self, lib: Any, steps: list[Any]) -> None:
        self.lib, self.steps = lib, steps
        self.errors: list[str] = []

    def __call__(self, x: Any, y: Any) -> list[Any]:
        self.names, self.errors = [x, y, x.view(3, 4)], []
        self.run_steps(self.steps)
        return self.names

    def apply(self, s: Step) -> None:
        if s.kind in (*WRITES, "add_out"):
            separate(self.names[s.who])
        if s.kind in TURNS:
            TURNS[s.kind](self.names[s.who], s)
        else:
            super().apply(s)

    def view_as_real(self, s: Step) -> None:
        self.names.append(self.lib.view_as_real(self.lib.view_as_complex(as_pairs(self.names[s.who]))))

    def unfold(self, s: Step) -> None:
        tensor = with_dimensions(self.names[s.who], 1, 2)
        require(tensor.size(0) >= 2)
        self.names.append(tensor.unfold(0, 2, 2))

    def add_out(self, s: Step) -> None:
        target = self.names[s.who]
        self.lib.add(target.clone(), self.mean(s), alpha=s.factor, out=target)


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
