"""`redispatch.compiler`: what programs written for `torch.compile` ask and declare.

A compiled function runs itself when it is recorded, and as it stands wherever it cannot be recorded: so what asks about
compiling answers no, and what marks a function for a tracer hands it back. Read next: _dynamo/eval_frame.py.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

import numpy as np

from redispatch.dispatch import pytree
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.from_data import from_numpy

from . import _names

# compile and its kin bring graphs and loops: they are imported when they are looked for
PLACES, __getattr__, __dir__ = _names.late(
    globals(), {"redispatch._dynamo.eval_frame": "compile explain list_backends reset"}
)
__all__ = [
    *PLACES,
    "allow_in_graph",
    "assume_constant_result",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "nested_compile_region",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]
STANCES = ("default", "eager_then_compile", "aot_eager_then_compile", "force_eager", "eager_on_recompile",
           "fail_on_recompile")  # fmt: skip


def is_compiling() -> bool:
    """False: no program is being traced."""
    return False


def is_dynamo_compiling() -> bool:
    """False: no program is being traced."""
    return False


def is_exporting() -> bool:
    """False: no program is being exported."""
    return False


def unchanged(fn: Any) -> Any:
    """`fn`."""
    return fn


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`fn`, which is not traced; a decorator where it is not given."""
    return unchanged if fn is None else fn


def _disable_dynamo(fn: Any = None, recursive: bool = True) -> Any:
    """`disable`, as PyTorch's own files use it."""
    return disable(fn, recursive)


def nested_compile_region(fn: Any = None, **options: Any) -> Any:
    """`fn` as a region that a compiler may compile once for all its calls; a decorator where it is not given.

    In a graph that is traced from a call, the region's operators stand where it is called, as in PyTorch's.
    """
    if fn is None:
        return partial(nested_compile_region, **options)

    @wraps(fn)
    def region(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    region.__marked_compile_region_fn__ = fn  # type: ignore[attr-defined]  # by which a compiler knows it
    return region


def allow_in_graph(fn: Any) -> Any:
    """`fn`, which a tracer would not look into; a list of functions for a list.

    Errors: TypeError for what cannot be called.
    """
    if isinstance(fn, list | tuple):
        return [allow_in_graph(one) for one in fn]
    return checked("allow_in_graph", fn)


def assume_constant_result(fn: Any) -> Any:
    """`fn`, whose result a tracer would take for constant; here it is called each time."""
    return checked("assume_constant_result", fn)


def substitute_in_graph(
    original_fn: Callable[..., Any], *, can_constant_fold_through: bool = False, skip_signature_check: bool = False
) -> Callable[[Any], Any]:
    """A decorator that hands back its function, which a tracer would look into in the place of `original_fn`."""
    checked("substitute_in_graph", original_fn)
    return unchanged


def checked(name: str, fn: Any) -> Any:
    """`fn`. TypeError unless it can be called."""
    if not callable(fn):
        raise TypeError(f"{name}(fn): expected a function, got {type(fn).__name__}")
    return fn


STEP_BEGINS: list[Callable[[], None]] = []  # what is done about graphs of CUDA: _inductor/recorded.py


def cudagraph_mark_step_begin() -> None:
    """Begins a step: what recorded graphs gave in the one before is lost, and its memory is used again."""
    for begin in STEP_BEGINS:
        begin()


STANCE: ContextVar[str] = ContextVar("stance", default="default")


class set_stance:  # a function's name, as PyTorch's
    """Says how compiled functions run: for good when called, for a region as a context manager or decorator.

    stance: "force_eager" makes `compile` hand back what it is given; the others leave it as it is.
    Errors: RuntimeError for another stance.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None):
        if stance not in STANCES:
            raise RuntimeError(f"invalid set_stance stance '{stance}': expected one of {', '.join(STANCES)}")
        self.stance, self.former = stance, STANCE.get()
        STANCE.set(stance)

    def __enter__(self) -> set_stance:
        STANCE.set(self.stance)
        return self

    def __exit__(self, *error: object) -> None:
        STANCE.set(self.former)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        STANCE.set(self.former)  # it is for calls of `fn` only

        @wraps(fn)
        def within(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance):
                return fn(*args, **kwargs)

        return within


def wrap_numpy(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors made of one of numpy arrays: arguments go in as arrays, resulting arrays come as tensors.

    No gradient flows through: as in PyTorch, that is for the tracer.
    """

    @wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = pytree.tree_map_only(Tensor, lambda x: x.numpy(), (args, kwargs))
        return pytree.tree_map_only(np.ndarray, from_numpy, fn(*args, **kwargs))

    return wrapped
