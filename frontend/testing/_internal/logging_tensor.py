"""PyTorch's LoggingTensor, by which its tests and many programs see what operators run.

    with capture_logs() as logs:
        x = LoggingTensor(rd.ones(2), requires_grad=True)
        (x * 2).sum().backward()

It logs by the module `logging`, and numbers tensors as they are shown. subclasses/logging_tensor.py is this library's
own, which carries its log along.
"""

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import redispatch as rd
from redispatch.overrides import enable_reentrant_dispatch
from redispatch.utils import _dtype_abbrs
from redispatch.utils._mode_utils import no_dispatch
from redispatch.utils._python_dispatch import TorchDispatchMode
from redispatch.utils._pytree import tree_map, tree_map_only
from redispatch.utils.weak import WeakTensorKeyDictionary

__all__ = [
    "LoggingTensor",
    "LoggingTensorMode",
    "LoggingTensorReentrant",
    "capture_logs",
    "capture_logs_with_logging_tensor_mode",
    "log_input",
    "no_dispatch",
]

LOGGER = logging.getLogger("LoggingTensor")


def note(func: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """Logs a call of an operator and returns its result."""
    LOGGER.info(f"{func.__module__}.{func.__name__}", args, kwargs, result)
    return result


def log_input(name: str, var: Any) -> None:
    """Logs a tensor under a name."""
    LOGGER.info("input", (name,), {}, var)


class LoggingTensor(rd.Tensor):
    """A wrapper around `elem`. requires_grad: whether its graph is recorded; otherwise that of `elem` may be."""

    elem: rd.Tensor
    __slots__ = ["elem"]

    context: Any = nullcontext

    @staticmethod
    def __new__(cls, elem: rd.Tensor, *args: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        made = rd.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=requires_grad,
        )
        made.elem = elem.detach() if requires_grad else elem
        return made

    def __repr__(self) -> str:
        return super().__repr__(tensor_contents=f"{self.elem}")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with cls.context():
            inner_args, inner_kwargs = tree_map_only(cls, lambda one: one.elem, (args, kwargs or {}))
            result = tree_map_only(rd.Tensor, cls, func(*inner_args, **inner_kwargs))
        return note(func, args, kwargs or {}, result)


class LoggingTensorReentrant(LoggingTensor):
    """Logs the operators, too, that a decomposed one is made of: each runs with all layers as the user had them."""

    context = enable_reentrant_dispatch


class LoggingTensorMode(TorchDispatchMode):
    """Logs every operator."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return note(func, args, kwargs or {}, func(*args, **(kwargs or {})))


class Handler(logging.Handler):
    """Writes what is logged into lists: a line for each call, and where it was made if that is wanted."""

    def __init__(self, lines: list[str], places: list[Any] | None, every_tensor: bool) -> None:
        super().__init__()
        self.lines, self.places = lines, places
        self.numbered = rd.Tensor if every_tensor else LoggingTensor
        self.numbers: Any = WeakTensorKeyDictionary()
        self.given = itertools.count()  # of a tensor that is gone, nobody else gets the number

    def shown(self, value: Any, typed: bool = False) -> str:
        if not isinstance(value, self.numbered):
            return repr(value)
        if value not in self.numbers:
            self.numbers[value] = next(self.given)
        shape = f": {_dtype_abbrs.dtype_abbrs[value.dtype]}[{', '.join(map(str, value.shape))}]" if typed else ""
        return f"${self.numbers[value]}{shape}"

    def emit(self, record: Any) -> None:
        args, kwargs, result = record.args
        given = [str(tree_map(self.shown, one)) for one in args]
        given += [f"{name}={tree_map(self.shown, one)}" for name, one in kwargs.items()]
        returned = tree_map(lambda one: self.shown(one, True), result)
        self.lines.append(f"{returned} = {record.msg}({', '.join(given)})")
        if self.places is not None:
            self.places.append(traceback.extract_stack())


@contextmanager
def capture_logs(
    is_mode: bool = False, python_tb: bool = False, script_tb: bool = False, cpp_tb: bool = False
) -> Iterator[Any]:
    """A region whose operators are logged; hands out the lines, and with a `*_tb` the stacks of their calls, too.

    is_mode: whether every tensor has a number, and not wrappers alone.
    """
    lines: list[str] = []
    places: list[Any] | None = [] if python_tb or script_tb or cpp_tb else None
    handler = Handler(lines, places, is_mode)
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield lines if places is None else (lines, places)
    finally:
        LOGGER.removeHandler(handler)


@contextmanager
def capture_logs_with_logging_tensor_mode(
    python_tb: bool = False, script_tb: bool = False, cpp_tb: bool = False
) -> Iterator[Any]:
    """A region in which `LoggingTensorMode` is active; hands out the lines."""
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs
