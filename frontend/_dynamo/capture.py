"""compile: a function that runs as compiled segments where it can, and as it stands where not. Never wrong.

The first call runs the function itself, by its converted text (transform.py), with every read logged (reads.py) and
every call of the library's functions recorded as a node of a graph (recorder.py). So its results, its writes and its
random numbers are the function's own. A later call for which all guards hold (guards.py) walks the segments: it runs
what the backend has made of a graph, does the step behind it, and goes on with the segment that belongs to what the
step gave. Where there is none, Python is fed up to that place (feeding.py), and another segment is recorded.
What cannot be guarded is an escape: there Python goes on by itself, and `explain` says why. Read next: backends.py.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from redispatch._functorch.aot_autograd import surroundings
from redispatch._functorch.sizes import sizes_of
from redispatch.autograd import is_grad_enabled, set_grad_enabled
from redispatch.compiler import STANCE
from redispatch.dispatch import STATE
from redispatch.dispatch.tensor import Tensor

from . import config
from .effects import take_back
from .feeding import Feeder
from .known import described
from .paths import Path
from .reads import Log
from .recorder import Recorder, is_leaf
from .segments import MAKING, Returned, Segment, Standing, Step, key_of
from .symbols import SymbolicLog, changing_dims, rehearsed

WORTH = 8  # calls that a graph must have for Python to be fed where it ends, rather than run as it stands


class Program:
    """The first segment of a function, and the state of the dispatcher that it is for."""

    def __init__(self, segment: Segment, state: tuple[Any, ...], recorder: Recorder) -> None:
        self.segment, self.state = segment, state
        named, facts = recorder.log.named, [one.facts for one in recorder.sources if one.facts is not None]
        self.shapes = [one.metadata.shape for one in facts]
        # what programs share that are for other sizes of the same inputs
        self.inputs = [named(one.place) for one in recorder.sources if isinstance(one.place, Path)]
        self.inputs += [f"{one.metadata.dtype} {len(one.metadata.shape)}" for one in facts]

    @property
    def stands(self) -> bool:
        """Whether the function runs as it stands: all of it, as so little of it was recorded."""
        return isinstance(self.segment.end, Standing) and len(self.segment.calls) < WORTH


class Compiled:
    """A function that runs as recorded programs, and where it has none as it stands. strict: that is an error."""

    def __init__(self, function: Any, backend: Callable[..., Any], strict: bool, dynamic: bool | None = None) -> None:
        self.function, self.backend, self.strict, self.dynamic = function, backend, strict, dynamic
        self.plain = function  # what runs as it stands
        self.programs: list[Program] = []
        self.told = False  # whether it was said that the text of a function is not known
        self.full = False  # whether there are as many programs as there may be
        EVERY.add(self)

    def reset(self) -> None:
        """Forgets all programs."""
        self.programs, self.full = [], False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state, stance = STATE.get(), STANCE.get()
        seen = state.function_modes or state.modes or state.pre_dispatch_modes or state.levels
        if seen or state.tracer is not None or stance == "force_eager" or config.disable:
            return self.plain(*args, **kwargs)
        program, inputs = self.find(args, kwargs)
        if config.error_on_recompile:
            stance = "fail_on_recompile"
        kept = self.programs and stance in ("eager_on_recompile", "fail_on_recompile")
        if program is None and not (self.full or kept):
            with MAKING:
                program, inputs = self.find(args, kwargs)  # which another thread may have recorded meanwhile
                if program is None:
                    return self.capture(args, kwargs)
        if program is None and kept and stance == "fail_on_recompile":
            raise RuntimeError(f"a program of {self.function} would be recorded anew, which the stance refuses")
        if program is None or program.stands:
            return self.plain(*args, **kwargs)
        segment = program.segment
        end = segment.end
        if isinstance(end, Returned) and segment.grad is state.grad_enabled:
            given = [*inputs, *segment.run(inputs)]
            return end.made(given) if segment.sizes is None else end.made(given, segment.sizes.bind(sizes_of(inputs)))
        return self.walk(program.segment, inputs, args, kwargs)

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program | None, Any]:
        """The program whose guards hold, and the tensors that it takes."""
        known = surroundings() if self.programs else None
        for program in self.programs:
            if program.state == known:
                inputs = program.segment.guards.check(args, kwargs, ())
                sizes = program.segment.sizes
                if type(inputs) is list and (sizes is None or sizes.bind(sizes_of(inputs)) is not None):
                    return program, inputs
        return None, None

    # Walking ----------------------------------------------------------------------------------------------------------

    def walk(self, segment: Segment, carried: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result, by segments and the steps between them; `carried` are the inputs of the first."""
        chain: list[tuple[Segment, Any]] = []
        grad = is_grad_enabled()
        try:
            while True:
                if segment.grad is not is_grad_enabled():
                    set_grad_enabled(segment.grad)
                carried += segment.run(carried)
                if segment.grad_behind is not is_grad_enabled():
                    set_grad_enabled(segment.grad_behind)
                end = segment.end
                if isinstance(end, Returned):
                    return end.made(carried)
                if type(end) is Standing:
                    chain.append((segment, None))
                    break
                result = end.done(carried, args, kwargs)
                carried += end.tensors(result)
                chain.append((segment, result))
                following, inputs = self.following(end, result, carried, args, kwargs)
                if following is None:
                    break
                carried += inputs
                segment = following
        finally:
            if is_grad_enabled() is not grad:
                set_grad_enabled(grad)
        if type(end) is Standing or end.full or STANCE.get() in ("eager_on_recompile", "fail_on_recompile"):
            return self.fed(chain, carried, args, kwargs, "Python goes on by itself")
        with MAKING:
            return self.fed(chain, carried, args, kwargs, "")

    def following(
        self, step: Step, result: Any, carried: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Segment | None, Any]:
        """The segment behind a step that gave this, and the tensors that it takes from outside."""
        for one in step.children.get(key_of(result), ()):
            inputs = one.guards.check(args, kwargs, carried)
            if type(inputs) is list:
                return one, inputs
        return None, None

    def fed(
        self, chain: list[Any], carried: list[Tensor], args: tuple[Any, ...], kwargs: dict[str, Any], reason: str
    ) -> Any:
        """Runs Python from the beginning, fed with what the chain gave; it records what is behind, without a reason."""
        take_back(chain)
        log = self.log(args, kwargs)
        log.reason, log.strict = reason, self.strict and not reason
        recorder = Recorder(log, self.backend, Feeder(chain, carried))
        result = self.recorded(recorder, args, kwargs)
        if not reason:
            for segment in recorder.segments:
                segment.prepare(recorder.carried)
            step = chain[-1][0].end
            self.attach(step, key_of(chain[-1][1]), recorder.segments)
        return result

    # Recording --------------------------------------------------------------------------------------------------------

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function, and records it."""
        state = surroundings()
        recorder = Recorder(self.log(args, kwargs), self.backend)
        recorder.dynamic = self.dynamic
        result = self.recorded(recorder, args, kwargs)
        first, *rest = recorder.segments
        program = Program(first, state, recorder)
        if recorder.log.no_source and not self.told:
            self.told = True
            warnings.warn(f"{described(self.function)} runs as it stands: {recorder.log.reason}", stacklevel=4)
        program = self.general(program, recorder, args, kwargs) if recorder.exact and not rest else program
        if not program.stands:  # while what the graphs take is at hand: backends are given it
            for segment in (program.segment, *rest):
                segment.prepare(recorder.carried)
        self.programs.append(program)
        self.chained(first, rest)
        if len(self.programs) >= config.recompile_limit:
            self.full = True
            warnings.warn(
                f"{described(self.function)} has {config.recompile_limit} compiled programs, and runs as it stands "
                f"where none of them fits. The last was recorded because {self.misses(args, kwargs)}",
                stacklevel=4,
            )
        return result

    def general(self, program: Program, real: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program:
        """The program for many sizes, if only they were others in one before; else this one."""
        known = [one for one in self.programs if one.state == program.state and one.inputs == program.inputs]
        changing = changing_dims(real.new, [one.shapes for one in known], self.dynamic)
        if self.dynamic is False or not any(changing) or not isinstance(program.segment.end, Returned):
            return program
        log = self.log(args, kwargs, SymbolicLog)
        made = rehearsed(lambda recorder: self.recorded(recorder, args, kwargs), log, real, changing)
        return program if made is None else Program(made.segments[0], program.state, made)

    def log(self, args: tuple[Any, ...], kwargs: dict[str, Any], kind: type[Log] = Log) -> Log:
        """A log that knows the arguments."""
        log = kind(self.strict, is_leaf, config.accumulated_recompile_limit)
        root, names = Path(None, "args"), Path(None, "kwargs")
        log.guard(root, "len", len(args))
        log.guard(names, "keys", tuple(kwargs))
        for i, one in enumerate(args):
            log.register(one, Path(root, f"[{i}]"))
        for key, one in kwargs.items():
            log.register(one, Path(names, f"[{key!r}]"))
        for one in (self.function, getattr(self.function, "__self__", self.function)):
            log.root(one)
        return log

    def recorded(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function under a recorder."""
        state = surroundings()
        with recorder:
            result = recorder.log.call(self.function, *args, **kwargs)
            if surroundings() != state:
                recorder.log.escape("the state of the dispatcher is another afterwards")
        if not recorder.log.reason:
            recorder.returns(result)
        return result

    def chained(self, first: Segment, rest: Sequence[Segment]) -> None:
        """Puts segments behind each other, each behind the one step result that the recorder noted."""
        for segment in rest:
            step = first.end
            assert isinstance(step, Step)
            self.attach(step, next(iter(step.children)), [segment])
            first = segment

    def attach(self, step: Step, key: Any, segments: Sequence[Segment]) -> None:
        """Puts segments behind a step."""
        if not segments:
            return
        step.children.setdefault(key, []).append(segments[0])
        self.chained(segments[0], segments[1:])
        if sum(map(len, step.children.values())) >= config.recompile_limit and not step.full:
            step.full = True
            warnings.warn(
                f"{described(self.function)} goes on in {config.recompile_limit} ways behind a break, and by itself "
                f"where none of them fits: {step.reason}",
                stacklevel=6,
            )

    def misses(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The guard of the last program but one that did not hold."""
        if len(self.programs) < 2:
            return "it was called"
        guards = self.programs[-2].segment.guards
        failed = guards.check(args, kwargs, ())
        return guards.said(failed) if isinstance(failed, int) else "the state of the dispatcher was another"


EVERY: weakref.WeakSet[Compiled] = weakref.WeakSet()
