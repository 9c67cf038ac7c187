"""The table of properties: a function each, which says what must be true of an operator for a sample of its calls.

    @holds("arguments")
    def the_arguments_are_left_as_they_were(info, sample):
        ...

Such a function asks for what it needs by its parameters' names: `info`; `sample`, and is then called for each of them,
or `samples`, all of them; `dtype`. It fails by raising. What it returns says whether there was anything to check: False
means that there was not. `DoesNotApply` says why the property says nothing about this operator.

Read next: values.py, for how properties are written; ../test_operators.py, which checks them all.
"""

import inspect
import os
import textwrap
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from redispatch.testing.op_info import SampleInput

from ... import drawing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep

PROPERTIES = {}  # name -> Property, in the order in which they are checked

ALIKE = 3  # one in so many of the operators that are made by one rule is drawn, for all of its properties


class DoesNotApply(Exception):
    """The operator cannot have the property, for the reason that is the text."""


@dataclass(frozen=True)
class Property:
    """
    of:       which operators the property says something about.
    dtypes:   the dtypes in which it is checked, a function of the OpInfo.
    make:     the samples, a function of the OpInfo and the dtype.
    unless:   what an OpInfo or a sample may name under `skips` to be left out.
    most:     for how many samples it is checked.
    always:   whether it must be possible to check it with one of the samples at least.
    one_in:   how many operators there are for each that `make test` draws.
    """

    name: str
    check: Callable[..., Any]
    of: Callable[[Any], Any]
    dtypes: Callable[[Any], Iterable[Any]]
    make: Callable[[Any, Any], Iterable[Any]]
    unless: tuple[str, ...]
    most: int | None
    always: bool
    one_in: int

    def is_drawn(self, info):
        """Whether this run checks it. Operators of one family share a rule, and a third of them is drawn."""
        return drawing.one_in(self.one_in, self.name, info) and (not info.alike or drawing.one_in(ALIKE, "alike", info))

    def reason_against(self, info):
        """The OpInfo's reason why it does not hold; None where it says nothing."""
        return next((info.skips[one] for one in self.unless if one in info.skips), None)


def holds(
    name,
    *,
    of=lambda info: True,
    dtypes=lambda info: [info.main_dtype],
    requires_grad=False,
    thorough=None,
    make=None,
    unless=(),
    most=None,
    always=False,
    one_in=1,
):
    """Enters a function in the table, see Property; requires_grad, thorough: how samples are made, see OpInfo."""

    def entered(check):
        assert name not in PROPERTIES, name
        made = make or (lambda info, dtype: info.sample_inputs(dtype, requires_grad=requires_grad, thorough=thorough))
        PROPERTIES[name] = Property(name, check, of, dtypes, made, tuple(unless), most, always, one_in)
        return check

    return entered


# Checking -------------------------------------------------------------------------------------------------------------


@dataclass
class Findings:
    """The outcome of checks of one operator's properties."""

    held: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # name -> reason
    broken: list[str] = field(default_factory=list)  # paragraphs: property, sample, message, place
    first: Exception | None = None

    def fail(self, name, where, error):
        self.first = self.first or error
        text = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        place = place_of(error)
        self.broken.append(f"{name} for {where}{f' ({place})' if place else ''}\n{textwrap.indent(text, '    ')}")


def findings(info, properties):
    """Checks the properties, all of them to the end, whatever fails on the way."""
    found = Findings()
    for one in properties:
        reason = one.reason_against(info)
        if reason is not None:
            found.left_out[one.name] = reason
            continue
        before = len(found.broken)
        try:
            checked = sum(check_in(info, one, dtype, found) for dtype in one.dtypes(info))
        except DoesNotApply as reason:
            found.left_out[one.name] = str(reason)
            continue
        if len(found.broken) > before:
            continue
        if not checked and one.always:
            found.fail(one.name, "no sample", AssertionError("there is none with which it can be checked"))
        elif checked:
            found.held.append(one.name)
        else:
            found.left_out[one.name] = "no sample can be checked"
    return found


def check_in(info, one, dtype, found):
    """With how many samples the property could be checked in a dtype."""
    try:
        samples = [each for each in one.make(info, dtype) if not any(skip in skips_of(each) for skip in one.unless)]
    except Exception as error:
        found.fail(one.name, f"samples in {dtype.name}, which could not be made", error)
        return 0
    names = inspect.signature(one.check).parameters
    given = {"info": info, "dtype": dtype, "samples": samples}
    given = {name: value for name, value in given.items() if name in names}
    if "sample" not in names:
        return checked(one, given, f"its samples in {dtype.name}", found)
    count = 0
    for sample in samples:
        where = str(sample) if isinstance(sample, SampleInput) else str(sample.sample)
        count += checked(one, {**given, "sample": sample}, where, found)
        if count == one.most:
            break
    return count


def skips_of(sample):
    """The properties that a sample is left out of; an ErrorInput is left out of nothing."""
    return sample.skips if isinstance(sample, SampleInput) else ()


def checked(one, given, where, found):
    """Whether there was something to check. Where the property is broken, the findings say so."""
    try:
        return one.check(**given) is not False
    except DoesNotApply:
        raise
    except Exception as error:
        found.fail(one.name, where, error)
        return True


def place_of(error):
    """The place of an error: the innermost line of the tests."""
    places = [
        f"{frame.filename.removeprefix(ROOT)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(ROOT + "tests") and frame.filename != __file__
    ]
    return places[-1] if places else None
