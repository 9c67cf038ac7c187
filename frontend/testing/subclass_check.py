"""The operator table through a tensor subclass, or under a mode, and what that breaks, by operator.

    report = check_subclass(Tagged, lambda x: Tagged(x, {"test"}))
    print(report)                       # a table
    report.check()                      # AssertionError, if something does not hold

Each operator of the library is called with small tensors, made by `make` of plain ones, and held against the same
call on the plain tensors that these stand for: values, aliasing, in-place and out= forms, gradients, functionalization,
vmap, and whether its result can be copied, pickled and printed (layer_checks.py). Then the class itself is taken where
parameters go: cloned, copied, optimized, saved and loaded.

    print(check_mode(LoggingMode()))

A mode that watches must leave alone what it watches: the same calls are made under it and without it. Then the mode
itself is entered twice, left by an exception, and asked for what it left behind.

Read next: report.py; subclasses/wrapper.py, a base class that passes.
"""

from __future__ import annotations

import copy
import functools
import io
import pickle
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any

from redispatch._C import _DisableTorchDispatch
from redispatch.dispatch import STATE, OpOverload
from redispatch.dispatch.config import config
from redispatch.dispatch.tensor import Tensor, dtype, dtypes, empty, make_subclass
from redispatch.nn import Parameter
from redispatch.optim import SGD
from redispatch.serialization import load, safe_globals, save
from redispatch.utils.text import Progress

from .layer_checks import CHECKS, THOROUGH, Subject, Trial, close, small_samples, stands_for
from .op_info import OpInfo
from .report import Broken, Nothing, Recorder, Report, is_named

ATTRIBUTES = "attributes"  # the check of the class itself
ALL_CHECKS = (*CHECKS, ATTRIBUTES)


def check_subclass(
    cls: type,
    make: Callable[[Tensor], Any],
    *,
    plain: Callable[[Any], Tensor] | None = None,
    ops: Iterable[Any] | None = None,
    checks: Iterable[str] | None = None,
    not_supported: Mapping[str, str] | None = None,
    attributes: Iterable[str] = (),
    closed: bool = True,
    strides: bool = True,
    dtype: dtype | None = None,
    samples: int = 2,
    progress: bool | None = None,
) -> Report:
    """A Report on what `cls` breaks, operator by operator. It raises nothing: `report.check()` does.

    make: a tensor of the class of a plain one; the plain one itself where the class has none like it.
    plain: the plain tensor that one of the class stands for. By default that inside of it which has its shape and dtype
    (`__tensor_flatten__`), or its own memory; results are compared by it, so `make` may lose digits.
    ops: which operators, by name, pattern ("linalg_*") or OpOverload, or OpInfos of your own; all by default.
    checks: which properties, of CHECKS and "attributes"; all by default.
    not_supported: what is not, by name, pattern, or either with a check -> the reason; see `Statements`. What is
    stated and works is reported.
    attributes: names that have to survive `clone`, `deepcopy`, `Parameter`, an optimizer's step, saving and loading.
    closed: whether every tensor that comes of one of the class is one, too. strides: whether they are the plain ones.
    dtype: of the samples, where an operator can; float64 by default. samples: at most so many calls of each operator.
    progress: whether to draw a line that says how far it is; by default on a terminal.
    Errors: ValueError where `ops` names nothing, `checks` or `not_supported` name no check, or `make` makes none.
    """
    subject = Wrapping(cls, make, plain, closed, strides)
    if not subject.owns(make(ordinary(dtype))) and ops is None:
        raise ValueError(f"check_subclass: make(tensor) gave no {cls.__name__} for {ordinary(dtype)!r}; see `make`")
    journeys_of = dict(journeys(subject, tuple(attributes), dtype))
    own = (journeys_of, f"make(tensor {look_of(dtype)})")
    return report_on(subject, own, ops, checks, not_supported, dtype, samples, progress)


class Wrapping(Subject):
    """A subclass: its tensors are made by a function, and stand for plain ones."""

    def __init__(
        self,
        cls: type,
        make: Callable[[Tensor], Any],
        plain: Callable[[Any], Tensor] | None,
        closed: bool,
        strides: bool,
    ) -> None:
        self.cls, self.make, self.plain = cls, make, plain or what_is_inside
        self.name, self.closed, self.strides = cls.__name__, closed, strides

    def dress(self, x: Tensor) -> Any:
        return self.make(x)

    def bare(self, x: Any) -> Tensor:
        return self.plain(x) if self.owns(x) else x

    def owns(self, x: Any) -> bool:
        return isinstance(x, self.cls)

    def known(self, info: OpInfo) -> str:
        # What is drawn depends on how often the class draws: that is its own affair, and for it to state.
        return "" if info.random else info.skips.get("subclass", "")


def what_is_inside(x: Any) -> Tensor:
    """The plain tensor that one of a subclass stands for, as far as one can tell from outside.

    Errors: TypeError where nothing inside looks like it.
    """
    if hasattr(x, "__tensor_flatten__"):
        for name in x.__tensor_flatten__()[0]:
            inner = getattr(x, name)
            if inner.shape == x.shape and inner.dtype == x.dtype:
                return what_is_inside(inner)
    elif type(x) is Tensor:
        return x
    elif isinstance(x, Tensor) and x._storage.has_data:
        with _DisableTorchDispatch():  # it holds its elements itself: the same memory, under the plain class
            return make_subclass(Tensor, x.detach())
    raise TypeError(
        f"check_subclass: which plain tensor does a {type(x).__name__} stand for? Pass `plain`, a function of it that "
        "says so, or give it __tensor_flatten__ with a tensor of its shape and dtype"
    )


# --- the table -------------------------------------------------------------------------------------------------------


def names_of_checks(checks: Iterable[str] | None) -> tuple[str, ...]:
    chosen = ALL_CHECKS if checks is None else tuple(checks)
    unknown = [name for name in chosen if name not in ALL_CHECKS]
    if unknown:
        raise ValueError(f"there is no check {unknown[0]!r}; there are {', '.join(ALL_CHECKS)}")
    return chosen


def chosen_operators(ops: Iterable[Any] | None) -> list[OpInfo]:
    """The entries of the table that are meant. ValueError for a name that means none."""
    from .op_db import op_db  # here: it is large, and who imports this room need not want it

    if ops is None:
        return op_db
    found: dict[str, OpInfo] = {}
    for one in ops:
        if isinstance(one, OpInfo):
            some = [one]
        elif isinstance(one, OpOverload):
            some = [info for info in op_db if info.op is one]
        else:
            some = [info for info in op_db if is_named(info.name, str(one))]
        if not some:
            raise ValueError(f"no operator of the table is called {one!s}; names are as in 'add.Tensor' or 'linalg_*'")
        found.update((info.name, info) for info in some)
    return list(found.values())


def report_on(
    subject: Subject,
    own: tuple[Mapping[str, Callable[[], bool]], str],
    ops: Iterable[Any] | None,
    checks: Iterable[str] | None,
    not_supported: Mapping[str, str] | None,
    kind: dtype | None,
    most: int,
    progress: bool | None,
) -> Report:
    """Every check of every operator, and of the layer itself. own: what is tried of that, by name; how it is called."""
    chosen = names_of_checks(checks)
    recorder = Recorder(Report(subject.name, chosen), not_supported or {}, ALL_CHECKS)
    infos = chosen_operators(ops)
    line = Progress(len(infos), shown=progress)
    started, setting = perf_counter(), config.specialize
    config.specialize = False  # specialised code would be made for one call each
    try:
        for info in infos:
            run_operator(subject, recorder, info, chosen, kind, most)
            line.advance(str(info))
    finally:
        config.specialize = setting
    recorder.report.seconds = perf_counter() - started
    if ATTRIBUTES in chosen and ops is None:
        for name, trial in own[0].items():
            recorder.run(f"({name})", ATTRIBUTES, trial, lambda: own[1])
    recorder.find_stale(whole=ops is None and checks is None)
    return recorder.report


def run_operator(
    subject: Subject, recorder: Recorder, info: OpInfo, checks: tuple[str, ...], kind: dtype | None, most: int
) -> None:
    """Every check of one operator. One whose call raises has nothing else that could be checked."""
    calls = {needs: small_samples(info, kind, needs, most) for needs in (False, True)}
    for name in (name for name in CHECKS if name in checks):
        some = calls[name == "autograd"]
        trials = [Trial(subject, info, sample) for sample in (some if name in THOROUGH else some[:1])]
        turn = Turn(CHECKS[name], trials)
        raised = recorder.run(info.name, name, turn, turn.call, subject.known(info), form_of(info, name))
        if raised and name == "values":
            return


def form_of(info: OpInfo, check: str) -> str:
    """The name of the form that a check calls, where that is another operator; functionalized, it writes in place."""
    op = info.out if check == "out" else info.inplace if check in ("inplace", "functionalization") else None
    return op.name() if op is not None else ""


class Turn:
    """One check of a few trials. `call()` is the one that it has come to, as a text."""

    def __init__(self, check: Callable[[Trial], bool], trials: list[Trial]) -> None:
        self.check, self.trials, self.at = check, trials, 0

    def __call__(self) -> bool:
        found = False
        for at, trial in enumerate(self.trials):
            self.at = at
            try:
                found = self.check(trial) or found
            except Nothing:
                continue
        return found

    def call(self) -> str:
        return str(self.trials[self.at])


# --- the class itself ------------------------------------------------------------------------------------------------


def ordinary(kind: dtype | None) -> Tensor:
    """A matrix that any class should take: 2 by 2, no element like another."""
    made = empty((2, 2), kind or dtypes.float64)
    return made.copy_(empty((2, 2), dtypes.float64).fill_(1).cumsum(0).cumsum(1))


def look_of(kind: dtype | None) -> str:
    return f"{kind or dtypes.float64}[2, 2]"


def journeys(
    subject: Wrapping, attributes: tuple[str, ...], kind: dtype | None
) -> list[tuple[str, Callable[[], bool]]]:
    """The journeys of tensors besides operators, from which they come back as what they were: name -> what tries it."""

    def made() -> Any:
        return subject.dress(ordinary(kind))

    def arrives(name: str, travel: Callable[[Any], Any]) -> tuple[str, Callable[[], bool]]:
        def trial() -> bool:
            x = made()
            wanted = subject.bare(x).detach().clone()
            there = travel(x)
            if not isinstance(there, subject.cls):
                raise Broken(f"{name} makes it a {type(there).__name__}")
            stands_for(subject, there, wanted, f"after {name} it")
            lost = [a for a in attributes if not alike(getattr(there, a, None), getattr(x, a))]
            if lost:
                raise Broken(f"{name} loses {', '.join(lost)}")
            return True

        return name, trial

    return [arrives(name, travel) for name, travel in JOURNEYS.items()] + [
        ("optimizer", lambda: survives_a_step(subject, made, attributes))
    ]


def through_a_file(x: Any) -> Any:
    file = io.BytesIO()
    save(x, file)
    file.seek(0)
    with safe_globals([type(x), *map(type, vars(x).values())]):
        return load(file)


JOURNEYS: dict[str, Callable[[Any], Any]] = {
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "Parameter": lambda x: Parameter(x),
    "save and load": through_a_file,
}


def survives_a_step(subject: Wrapping, made: Callable[[], Any], attributes: tuple[str, ...]) -> bool:
    """A parameter is trained in place: the object, its class and its attributes stay, and its values move."""
    x, gradient = made(), made()
    wanted = subject.bare(x).detach().clone() - 0.5 * subject.bare(gradient).detach()
    weight: Any = Parameter(x)
    weight.grad = gradient
    SGD([weight], lr=0.5).step()
    if not subject.owns(weight):
        raise Broken(f"after a step it is a {type(weight).__name__}")
    close(subject.bare(weight.detach()), wanted, "after a step it")
    lost = [name for name in attributes if not alike(getattr(weight, name, None), getattr(x, name))]
    if lost:
        raise Broken(f"a step loses {', '.join(lost)}")
    return True


def alike(one: Any, other: Any) -> bool:
    """Whether two attributes are the same, tensors by their elements."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and bool((one == other).all())
    return type(one) is type(other) and one == other


# --- modes -----------------------------------------------------------------------------------------------------------


def check_mode(
    mode: Any,
    *,
    make: Callable[[Tensor], Any] | None = None,
    plain: Callable[[Any], Tensor] | None = None,
    ops: Iterable[Any] | None = None,
    checks: Iterable[str] | None = None,
    not_supported: Mapping[str, str] | None = None,
    values: bool = True,
    dtype: dtype | None = None,
    samples: int = 2,
    progress: bool | None = None,
) -> Report:
    """A Report on what a mode breaks, operator by operator. It raises nothing: `report.check()` does.

    mode: an instance, which is entered and left again for each call: a dispatch mode, a function mode, or any other
    context manager under which calls go on. make, plain: for a mode that works on tensors of its own, how to make one
    and the plain tensor that one stands for. values: whether results have values; a mode without has looks only.
    ops, checks, not_supported, dtype, samples, progress: as for `check_subclass`.
    Errors: TypeError for what cannot be entered; ValueError as `check_subclass`.
    """
    if isinstance(mode, type) or not hasattr(mode, "__enter__"):
        raise TypeError(f"check_mode: expected an instance of a mode, such as LoggingMode(), but got {mode!r}")
    subject = Watching(mode, make, plain, values)
    visits = {name: functools.partial(visit, subject) for name, visit in VISITS.items()}
    return report_on(subject, (visits, "x + x"), ops, checks, not_supported, dtype, samples, progress)


class Watching(Subject):
    """A mode: calls are made while it is active, on plain tensors or on its own."""

    mixes = False

    def __init__(
        self, mode: Any, make: Callable[[Tensor], Any] | None, plain: Callable[[Any], Tensor] | None, values: bool
    ) -> None:
        self.mode, self.make, self.plain, self.values = mode, make, plain, values
        self.name = type(mode).__name__

    def region(self) -> AbstractContextManager[Any]:
        return self.mode

    def dress(self, x: Tensor) -> Any:
        return x if self.make is None else self.make(x)

    def bare(self, x: Any) -> Tensor:
        return x if self.plain is None else self.plain(x)

    def known(self, info: OpInfo) -> str:
        # Tensors of its own are wrappers, and what no wrapper can, they cannot either.
        wraps = "" if self.make is None or info.random else info.skips.get("subclass", "")
        return info.skips.get("dispatch_mode", "") or wraps


# --- the mode itself -------------------------------------------------------------------------------------------------


def nests(subject: Watching) -> bool:
    """Within itself it does the same."""
    x = subject.dress(ordinary(None))
    with subject.mode, subject.mode:
        found = x + x
    plain = subject.bare(x)
    stands_for(subject, found, plain + plain, "a sum under two of it")
    return True


def leaves_by_exceptions(subject: Watching) -> bool:
    """Checks that the exception of a call comes through, and that the state is then what it was."""
    before = STATE.get()
    x = subject.dress(ordinary(None))
    try:
        with subject.mode:
            x.view(3)
    except Exception:
        pass
    else:
        raise Broken("an error of an operator does not come through")
    if STATE.get() != before:
        STATE.set(before)
        raise Broken("after an error the state of the dispatcher is another than before")
    with subject.mode:
        x + x
    return True


VISITS: dict[str, Callable[[Watching], bool]] = {"nested": nests, "exception": leaves_by_exceptions}
