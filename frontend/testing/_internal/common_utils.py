"""PyTorch's test case, as writers of extensions import it: `TestCase`, `run_tests`, `parametrize` and decorators.

Here is what programs take from there; PyTorch's own tests need far more. What asks for another platform or build
(`IS_WINDOWS`, `TEST_CUDA`, `TEST_WITH_ROCM`, ...) is False, and decorators that skip for its sake change nothing.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import redispatch as rd
from redispatch.autograd import gradcheck, gradgradcheck
from redispatch.testing import assert_close, make_tensor

try:
    Expecting: Any = import_module("expecttest").TestCase
except ImportError:  # whoever expects a text inline has it
    Expecting = unittest.TestCase

__all__ = [
    "TestCase",
    "first_sample",
    "freeze_rng_state",
    "gradcheck",
    "gradgradcheck",
    "instantiate_parametrized_tests",
    "make_tensor",
    "parametrize",
    "run_tests",
    "set_default_dtype",
    "subtest",
]

IS_LINUX, IS_MACOS, TEST_NUMPY = sys.platform == "linux", sys.platform == "darwin", True
SEED = 1234


class TestCase(Expecting):
    """A test case that begins with the same seed each time, and whose `assertEqual` knows tensors."""

    precision, rel_tol = 0.0, 0.0
    maxDiff = None

    def setUp(self) -> None:
        rd.manual_seed(SEED)

    def assertEqual(
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None, **how: Any
    ) -> None:
        """Asserts that two values are equal; what is in them may differ by the tolerance of its dtype."""
        numbers = (rd.Tensor, bool, int, float, complex, Sequence, dict)
        if isinstance(x, str) or not (isinstance(x, numbers) and isinstance(y, numbers)):
            if isinstance(x, rd.Tensor) or isinstance(y, rd.Tensor):
                x, y = rd.as_tensor(x), rd.as_tensor(y)
            else:
                return super().assertEqual(x, y, msg)
        if isinstance(x, rd.Tensor) != isinstance(y, rd.Tensor):
            x, y = (
                one if isinstance(one, rd.Tensor) else rd.as_tensor(one, dtype=other.dtype)
                for one, other in ((x, y), (y, x))
            )
        exact = {"check_dtype": how.pop("exact_dtype", True), "check_device": how.pop("exact_device", False)}
        exact["check_stride"] = how.pop("exact_stride", False)
        tolerance = (atol is None) != (rtol is None)
        try:
            assert_close(
                x,
                y,
                atol=0.0 if tolerance and atol is None else atol,
                rtol=0.0 if tolerance and rtol is None else rtol,
                equal_nan=how.pop("equal_nan", True),
                **exact,
            )
        except AssertionError as problem:
            raise self.failureException(self._formatMessage(msg, str(problem))) from None

    assertEqualIgnoreType = functools.partialmethod(assertEqual, exact_dtype=False)

    def assertNotEqual(self, first: Any, second: Any, msg: Any = None, **how: Any) -> None:
        try:
            self.assertEqual(first, second, msg, **how)
        except AssertionError:
            return
        raise self.failureException(self._formatMessage(msg, f"{first!r} == {second!r}"))


def run_tests(argv: list[str] | None = None) -> None:
    """Runs the tests of the program, and ends it."""
    unittest.main(argv=sys.argv if argv is None else argv)


# Tests that run for each of several values ----------------------------------------------------------------------------


class subtest:
    """The values for one test of several; `name` stands in its name."""

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Sequence[Any] = ()) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, decorators


class parametrize:
    """Has a method become one test for each value, or each tuple of values of several parameters."""

    def __init__(self, arg_str: str, arg_values: Any, name_fn: Callable[..., str] | None = None) -> None:
        self.names = [name.strip() for name in arg_str.split(",")]
        self.values, self.name_of = list(arg_values), name_fn

    def __call__(self, function: Any) -> Any:
        function.parameters = [self, *getattr(function, "parameters", ())]
        return function

    def cases(self) -> Iterator[tuple[str, dict[str, Any], Sequence[Any]]]:
        for number, value in enumerate(self.values):
            case = value if isinstance(value, subtest) else subtest(value)
            values = [case.arg_values] if len(self.names) == 1 else list(case.arg_values)
            name = case.name or (self.name_of(*values) if self.name_of else None)
            if name is None:
                name = "_".join(said(key, one, number) for key, one in zip(self.names, values, strict=True))
            yield name, dict(zip(self.names, values, strict=True)), case.decorators


def said(name: str, value: Any, number: int) -> str:
    """Returns how a parameter stands in the name of a test: with its value, where that is short, or its number."""
    if isinstance(value, rd.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, bool | int | float | str | rd.device):
        return f"{name}_{value}".replace(".", "_")
    return f"{name}_{getattr(value, '__name__', f'{type(value).__name__}{number}')}"


def instantiate_parametrized_tests(generic_cls: Any) -> Any:
    """Replaces each test with `parametrize` by its cases; returns the class."""
    for name, function in list(vars(generic_cls).items()):
        if not hasattr(function, "parameters"):
            continue
        delattr(generic_cls, name)
        for case in itertools.product(*(one.cases() for one in function.parameters)):
            given = {key: value for _, values, _ in case for key, value in values.items()}
            test = functools.wraps(function)(functools.partialmethod(function, **given).__get__(None, generic_cls))
            for decorator in (one for _, _, several in case for one in several):
                test = decorator(test)
            setattr(generic_cls, "_".join([name, *(part for part, _, _ in case)]), test)
    return generic_cls


# Regions and samples --------------------------------------------------------------------------------------------------


@contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A region after which random numbers go on as if it had not been."""
    state = rd.get_rng_state()
    try:
        yield
    finally:
        rd.set_rng_state(state)


@contextmanager
def set_default_dtype(dtype: Any) -> Iterator[None]:
    """A region with another default dtype."""
    former = rd.get_default_dtype()
    rd.set_default_dtype(dtype)
    try:
        yield
    finally:
        rd.set_default_dtype(former)


def first_sample(test: Any, samples: Any) -> Any:
    """Returns the first of some samples; the test is skipped where there are none."""
    for sample in samples:
        return sample
    raise unittest.SkipTest("there are no samples")


def unchanged(decorated: Any = None, *args: Any, **kwargs: Any) -> Any:
    """A decorator that would skip a test on another platform: with or without arguments, it changes nothing."""
    return decorated if inspect.isfunction(decorated) or inspect.isclass(decorated) else lambda function: function


def __getattr__(name: str) -> Any:
    if name.startswith(("TEST_", "IS_", "TEST_WITH_")):
        return False
    if name.startswith(("skipIf", "slowTest", "skipCUDA", "serialTest", "unMarkDynamo", "xfailIf", "markDynamo")):
        return unchanged
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
