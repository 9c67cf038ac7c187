"""SchemaCheckMode: checks for every operator that runs that its schema tells the truth.

    with SchemaCheckMode():
        model(x)

What it teaches: a schema is a promise that layers rely on. An operator that writes an argument without saying so, or
returns a view that it calls new, breaks autograd and functionalization far away from where it was called; under this
mode it is an error at the call. How serious it is: a tool for tests. Every argument is copied at every call.

Read next: frontend/testing/schema_check.py, which does the comparing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from redispatch.testing.schema_check import observed
from redispatch.utils._python_dispatch import TorchDispatchMode

from .findings import warn_user


class Mutation(NamedTuple):
    """A write of an argument, done or possible."""

    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    """Shared memory of a result and an argument."""

    op_name: str
    arg_name: str
    output_number: str


class SchemaCheckMode(TorchDispatchMode):
    """A region in which an operator that breaks a promise of its schema raises RuntimeError.

    What was found is in `ops`, `mutated` and `aliasing`. A schema that says too much breaks no promise, but costs a
    copy wherever writes are to be avoided: arguments declared as written that were not are in `unmutated`, and for
    operators other than the library's own a warning says so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []
        self.mutated: list[Mutation] = []
        self.unmutated: list[Mutation] = []
        self.aliasing: list[Aliasing] = []

    def reset_cache(self) -> None:
        """Forgets what was found."""
        for found in (self.ops, self.mutated, self.unmutated, self.aliasing):
            found.clear()

    def display_ops(self) -> None:
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name
        self.ops.append(name)
        seen = observed(func, args, kwargs or {})
        self.mutated += [Mutation(name, argument) for argument in seen.mutated]
        self.unmutated += [Mutation(name, argument) for argument in seen.unmutated]
        self.aliasing += [Aliasing(name, argument, output) for argument, output in seen.aliasing]
        if seen.unmutated and not name.startswith("aten::"):
            warn_user(
                f"{name}: argument {', '.join(seen.unmutated)} is declared as written and was not; if it never is, "
                "leave the exclamation mark out of the schema"
            )
        return seen.result


# These share memory with what their schemas do not name: the mode is there to say so.
NOT_SUPPORTED = {
    "set_* set_data/values,functionalization": "shares memory with what its schema does not name",
}
