"""Passes over graphs, as objects that say whether they changed it, and who runs them in an order that fits them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from itertools import combinations
from typing import Any, NamedTuple

from ..graph_module import GraphModule

__all__ = ["PassBase", "PassManager", "PassResult", "pass_result_wrapper", "this_before_that_pass_constraint"]
__path__: list[str] = []  # PyTorch has the modules `pass_base` and `pass_manager`: _moved.py

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]  # whether the first may come before the second


class PassResult(NamedTuple):
    """The module after a pass, and whether it is another than before."""

    graph_module: Any
    modified: bool


class PassBase(ABC):
    """A pass: `call` does the work, between the checks `requires` and `ensures`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """Returns the module after the pass."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  # a pass may have no such check
        """Raises what it likes where the pass cannot be run."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  # as above
        """Raises what it likes where the pass has not done its work."""


def pass_result_wrapper(fn: Pass) -> Pass:
    """Returns a pass made of a function that returns a module, or nothing because it changed its own."""
    if fn is None:
        return None

    @wraps(fn, assigned=("__name__", "__doc__") if inspect.isfunction(fn) else ())
    def wrapped(gm: Any) -> PassResult:
        result = fn(gm)
        return result if isinstance(result, PassResult) else PassResult(gm if result is None else result, True)

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """Returns the constraint that one pass comes before another one."""
    return lambda a, b: a != that or b != this


these_before_those_pass_constraint = this_before_that_pass_constraint


class PassManager:
    """Runs passes, `steps` times at the most or until they change nothing.

    constraints: which may come before which; the passes are put in such an order.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes, self.constraints, self.steps = passes or [], constraints or [], steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Adds a pass to the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Adds a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check: Callable[[Any], None]) -> None:
        """Has this function look at the module before all, and after each pass if that is wanted."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign, assignment]  # of this manager

    def check(self, module: Any) -> None:
        """Checks nothing, unless `add_checks` was called."""

    def validate_constraints(self) -> None:
        """Raises RuntimeError where the passes stand in an order that they may not have."""
        for a, b in [] if self._validated else combinations(self.passes, 2):
            if not all(constraint(a, b) for constraint in self.constraints):
                i, j = self.passes.index(a), self.passes.index(b)
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {b} before {a} but found {a} at index {i} and {b} at "
                    f"index {j} in pass list."
                )
        self._validated = True

    def solve_constraints(self) -> None:
        """Puts the passes in an order that they may have. RuntimeError where there is none."""
        left, ordered = [*self.passes], []
        while left:
            free = (a for a in left if all(ok(a, b) for b in left if b != a for ok in self.constraints))
            first = next(free, None)
            if first is None:
                raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
            left.remove(first)
            ordered.append(first)
        self.passes, self._validated = ordered, True

    def __call__(self, module: Any) -> PassResult:
        """Returns the module after all passes. An Exception says in which of them there was one."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        ever = False
        for _ in range(self.steps):
            modified = False
            for number, one in enumerate(self.passes):
                try:
                    result = one(module)
                    if not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {name_of(one)} should be type PassResult."
                            "Please wrap it with pass_result_wrapper()"
                        )
                    module, modified = result.graph_module, modified or result.modified
                    if isinstance(module, GraphModule):
                        module.graph.lint()
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as problem:
                    before = [name_of(other) for other in self.passes[:number]]
                    raise Exception(
                        f"An error occurred when running the '{name_of(one)}' pass after the following passes: {before}"
                        f"\n{problem}"
                    ) from problem
            ever = ever or modified
            if not modified:
                break
        return PassResult(module, ever)


def name_of(one: Pass) -> str:
    """Returns the name of a pass for an error."""
    return one.__name__ if inspect.isfunction(one) else type(one).__name__
