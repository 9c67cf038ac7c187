"""`redispatch.profiler`: PyTorch's `torch.profiler`, over `redispatch.modes.ProfilerMode`.

    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
        with record_function("forward"):
            loss = model(x).sum()
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    prof.export_chrome_trace("step.json")

The mode stands below autograd and autocast, so what is seen is what reaches the kernels: `linear` as `aten::t` and
`aten::addmm`, which in PyTorch stand inside an event of `linear`. Time is nested by `record_function` only. Read next:
modes/profiler.py, which holds the clock.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from enum import Enum
from functools import wraps
from typing import Any, NamedTuple

from redispatch._C._autograd import DeviceType
from redispatch.dispatch import STATE, ops
from redispatch.library import Library
from redispatch.modes.profiler import ProfilerMode
from redispatch.modes.profiler_events import EventList, FunctionEvent, nested, write_json

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
__path__: list[str] = []  # PyTorch has a module `profiler.profiler` of these


class ProfilerActivity(Enum):
    """The activities that may be profiled."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """The purpose of a step of a schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


Schedule = Callable[[int], ProfilerAction]
RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def supported_activities() -> set[ProfilerActivity]:
    """Calls on the CPU: the clock is held to calls, and knows nothing of what a device does meanwhile."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: the profiler is a mode, not that library."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Schedule:
    """Step -> what to do in it: after `skip_first` steps, rounds of `wait`, `warmup` and `active` ones.

    repeat: how many rounds, 0: without end. skip_first_wait: 1 leaves the first round's waiting out.
    Errors: AssertionError, as in PyTorch, for negative numbers, or no active step.
    """
    given = {"wait": wait, "warmup": warmup, "active": active, "repeat": repeat, "skip_first": skip_first}
    if active <= 0 or any(number < 0 for number in given.values()):
        named = ", ".join(f"{name}={number}" for name, number in given.items())
        raise AssertionError(f"Invalid profiler schedule arguments: got {named}; active should be > 0, the others >= 0")
    if not warmup:
        warnings.warn(
            "schedule(warmup=0): times of the first step will have the compilation of kernels in them", stacklevel=2
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative, got {step}")
        step = step - skip_first + (wait if skip_first_wait else 0)
        if step < (wait if skip_first_wait else 0) or (repeat and step >= length * repeat):
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def _default_schedule_fn(step: int) -> ProfilerAction:
    """The schedule of a profile without one: everything is recorded."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Any:
    """For `on_trace_ready`: writes each window as `<worker>.<nanoseconds>.pt.trace.json` into a directory."""

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write


class Span(NamedTuple):
    """A labelled stretch of time, in seconds by the profiler's clock."""

    name: str
    start: float
    end: float
    thread: int


OPEN: ContextVar[tuple[profile, ...]] = ContextVar("profiles", default=())


class record_function:  # a function's name, as PyTorch's
    """A label for what runs in a region, or, as a decorator, in a function. It costs little where nothing is profiled.

    Errors: TypeError for a name that is no string.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function(name): expected a string, got {type(name).__name__}")
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        state, self.record = STATE.get(), None
        if (state.modes or state.keys.by_mode) and not OPEN.get():
            self.record = ops.profiler._record_function_enter_new(self.name, self.args)
        self.start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        if self.record is not None:
            ops.profiler._record_function_exit._RecordFunction(self.record)
        for each in OPEN.get():
            each._label(Span(self.name, self.start, time.perf_counter(), threading.get_ident()))

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(fn)
        def within(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return within


class Record:
    """The object that the operator which begins a region gives to the one that ends it."""


# Modes see a region that nothing profiles as PyTorch's two operators, which do nothing.
RECORD = "__torch__.torch.classes.profiler._RecordFunction"
LABELS = Library("profiler", "DEF")
LABELS.define(f"_record_function_enter_new(str name, str? args=None) -> {RECORD}")
LABELS.define(f"_record_function_exit._RecordFunction({RECORD} _0) -> ()")
LABELS.impl("_record_function_enter_new", lambda name, args=None: Record(), "CompositeExplicitAutograd")
LABELS.impl("_record_function_exit._RecordFunction", lambda record: None, "CompositeExplicitAutograd")


class profile:  # a function's name, as PyTorch's
    """A region in which operators and labels are timed; `start()` and `stop()` do what its beginning and end do.

    activities: of them, CPU is watched, and others are warned of. schedule: says at which steps to record; then
    `step()` ends each. on_trace_ready: called with this object when a window of recorded steps ends. record_shapes:
    keeps shapes of arguments. profile_memory: shows bytes of new results. with_flops: counts products. acc_events:
    keeps events of all windows, where otherwise each begins from nothing.
    Results: `events()`, `key_averages()`, `export_chrome_trace(path)`. `with_stack` and `with_modules` have no effect,
    and warn.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Schedule | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        acc_events: bool = False,
    ) -> None:
        wanted = set(supported_activities() if activities is None else activities)
        if ProfilerActivity.CPU not in wanted:
            raise AssertionError(
                f"No valid profiler activities found: expected ProfilerActivity.CPU, got {wanted or '{}'}"
            )
        for name, given in (
            *((str(one), True) for one in sorted(wanted - supported_activities(), key=str)),
            ("with_stack", with_stack),
            ("with_modules", with_modules),
        ):
            if given:
                warnings.warn(f"profile: {name} has no effect here; only calls on the CPU are timed", stacklevel=2)
        self.schedule, self.on_trace_ready = schedule or _default_schedule_fn, on_trace_ready
        self.record_steps, self.acc_events = schedule is not None, acc_events
        self.record_shapes, self.profile_memory, self.with_flops = record_shapes, profile_memory, with_flops
        self.running, self.step_num = False, 0
        self.current_action = self.schedule(0)
        self._mode: ProfilerMode | None = None  # while a window is recorded
        self._spans: list[Span] = []
        self._events: list[FunctionEvent] | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begins, with the first step. RuntimeError where it has begun."""
        if self.running:
            raise RuntimeError("profile: it runs already; stop() ends it")
        self.running = True
        self._turn(self.current_action)

    def step(self) -> None:
        """Ends a step of the schedule, and begins the next. RuntimeError outside of the region."""
        if not self.running:
            raise RuntimeError("profile: step() is for a profile that runs; begin it by `with` or start()")
        self._end_step()
        ended = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        if ended is ProfilerAction.RECORD_AND_SAVE:
            self._save()
        self._turn(self.current_action)

    def stop(self) -> None:
        """Ends. What was recorded so far is a window of its own."""
        self.running = False
        self._end_step()
        if self._mode is not None:
            self._save()

    def _turn(self, action: ProfilerAction) -> None:
        """Records from here on, or not."""
        if action in RECORDING and self._mode is None:
            self._spans = []
            self._mode = ProfilerMode(flops=self.with_flops)
            self._mode.__enter__()
            OPEN.set((*OPEN.get(), self))
        elif action not in RECORDING and self._mode is not None:  # a schedule that ends a window without saving it
            self._close()
        self._step_start = time.perf_counter()

    def _end_step(self) -> None:
        if self.record_steps and self._mode is not None:
            label = f"ProfilerStep#{self.step_num}"
            self._label(Span(label, self._step_start, time.perf_counter(), threading.get_ident()))

    def _close(self) -> ProfilerMode:
        mode, self._mode = self._mode, None
        assert mode is not None
        OPEN.set(tuple(one for one in OPEN.get() if one is not self))
        mode.__exit__(None, None, None)
        return mode

    def _save(self) -> None:
        """Ends a window, and hands it to whoever waits for it."""
        mode = self._close()
        kept = self._events if self.acc_events and self._events else []
        self._events = kept + nested(mode.events, self._spans, self.record_shapes)
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _label(self, span: Span) -> None:
        self._spans.append(span)

    # What was found ------------------------------------------------------------------------------------------------

    def events(self) -> EventList:
        """One event for each call and label of the last window, by time. AssertionError before there is one."""
        if self._events is None:
            raise AssertionError(
                "profile has recorded nothing yet: its results are there when it, or a window, has ended"
            )
        return EventList(self._events, profile_memory=self.profile_memory, with_flops=self.with_flops)

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """The events of each name together; with `group_by_input_shape`, those of the same name and shapes."""
        return self.events().key_averages(group_by_input_shape=group_by_input_shape)

    def add_metadata(self, key: str, value: str) -> None:
        """Writes a string into the trace's file."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Writes what a JSON text says into the trace's file."""
        self._metadata[key] = json.loads(value)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events for ui.perfetto.dev and chrome://tracing; compressed where `path` ends with .gz."""
        write_json(path, self._metadata | self.events().chrome())
