"""`dataclass` of the house against the standard library's: the same classes, made by either."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, field, replace
from typing import ClassVar

import pytest

from redispatch.dispatch import dataclass

FORMS = [{}, {"frozen": True}, {"slots": True}, {"frozen": True, "slots": True}, {"eq": False}, {"repr": False}]


def classes(make):
    """The same three classes by one decorator: with defaults, derived, and without fields."""

    @make
    class Point:
        """A place."""

        kinds: ClassVar[int] = 2
        x: int
        y: float = 0.5
        tags: list = field(default_factory=list, compare=False)
        note: str = field(default="", repr=False, kw_only=True)
        made: int = field(default=7, init=False)

        def far(self):
            return self.x > 9

    @make
    class Named(Point):
        """A place with a name."""

        name: str = "here"

    @make
    class Empty:
        """Nothing."""

    return Point, Named, Empty


def answers(point, named, empty):
    """All that can be seen of the instances."""
    a, b, c = point(1), point(x=1, tags=[2]), point(1, 2.5, note="n")
    n = named(3, name="there")
    yield [repr(one).partition(" at 0x")[0] for one in (a, b, c, n, empty())]
    yield [a == b, a == c, a == n, n == replace(n), empty() == empty(), a != b, a == 3]
    yield [one.__hash__ is None for one in (a, n, empty())]
    if a.__hash__ is not None and point.__eq__ is not object.__eq__:
        yield [hash(a) == hash(b), hash(n) == hash(replace(n)), len({a, b, c})]
    yield dataclasses.asdict(c), dataclasses.astuple(n), [one.name for one in dataclasses.fields(named)]
    yield [str(inspect.signature(kind)) for kind in (point, named, empty)]
    yield point.__match_args__, replace(a, x=10).far(), a.tags is not point(1).tags, hasattr(a, "__dict__"), a.made
    changes = [lambda: setattr(a, "x", 2), lambda: delattr(a, "y"), lambda: point()]
    changes += [lambda: setattr(n, "z", 1)] if hasattr(n, "__dict__") else []  # else the standard library's has a bug
    for change in changes:
        try:
            yield change()
        except (FrozenInstanceError, AttributeError, TypeError) as error:
            yield type(error), str(error).rpartition("Point.")[2]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_a_class_does_what_the_standard_librarys_does(form):
    ours, theirs = (classes(make(**form)) for make in (dataclass, dataclasses.dataclass))
    assert [*answers(*ours)] == [*answers(*theirs)]


@dataclass(frozen=True, slots=True)
class Kept:
    """Frozen, and with slots: what pickle cannot do by itself."""

    x: int
    y: tuple = (1,)


def test_a_frozen_class_with_slots_is_copied_and_pickled():
    kept = Kept(1, (2, 3))
    assert copy.copy(kept) == copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept)) == kept
    match kept:
        case Kept(1, (first, _)):
            assert first == 2


def test_methods_of_ones_own_are_left():
    @dataclass(frozen=True)
    class Own:
        """A class that brings each method."""

        x: int

        def __init__(self):
            object.__setattr__(self, "x", 3)

        def __repr__(self):
            return "own"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 5

    assert (repr(Own()), Own() == 1, hash(Own()), Own().x) == ("own", True, 5, 3)


def test_what_is_derived_without_a_decorator_has_attributes_of_its_own():
    @dataclass(frozen=True)
    class Base:
        """Frozen."""

        x: int

    class Derived(Base):
        pass

    derived = Derived(1)
    derived.more = 2
    assert derived.more == 2
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        derived.x = 3


def test_an_import_compiles_no_methods_but_initializers():
    program = (
        "import dataclasses, redispatch.dispatch\nmade = []\ncreate = dataclasses._create_fn\n"
        "dataclasses._create_fn = lambda name, *args, **kwargs: made.append(name) or create(name, *args, **kwargs)\n"
        "import redispatch\nprint(made)"
    )
    if sys.version_info >= (3, 13):
        pytest.skip("there the standard library's has another way")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
