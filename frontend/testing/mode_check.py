"""`check_mode(mode)`: the operator table under a mode, and what the mode breaks, by operator.

    print(check_mode(LoggingMode()))

A mode that watches must leave alone what it watches: each operator is called under it and without it, and values,
aliasing, in-place and out= forms, gradients, functionalization, vmap, copies, pickles and printing are compared
(layer_checks.py). Then the mode itself is entered twice, left by an exception, and asked for what it left behind.

Read next: subclass_check.py, the same for subclasses; report.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from redispatch.dispatch import STATE
from redispatch.dispatch.tensor import Tensor, dtype

from .layer_checks import Subject, stands_for
from .op_info import OpInfo
from .report import Broken, Recorder, Report
from .subclass_check import ALL_CHECKS, ATTRIBUTES, finished, names_of_checks, ordinary, run_table


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
    chosen = names_of_checks(checks)
    recorder = Recorder(Report(type(mode).__name__, chosen), not_supported or {}, ALL_CHECKS)
    run_table(subject, recorder, ops, chosen, dtype, samples, progress)
    if ATTRIBUTES in chosen and ops is None:
        for name, trial in VISITS.items():
            recorder.run(f"({name})", ATTRIBUTES, lambda: trial(subject), lambda: "x + x")  # noqa: B023  # run before the loop goes on
    return finished(recorder, whole=ops is None and checks is None)


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
    """When a call raises, the exception comes through, and the state is what it was."""
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
