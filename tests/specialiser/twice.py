"""Runs things twice from equal starting points, boxed and specialised, and says where they differ.

A *case* is a function without arguments that prepares a run: `case()` makes new tensors, and gives a function of a
`World` which does something with them and describes them. Cases are prepared boxed, all of them before any of them
runs: so all that is specialised is what the runs themselves call.
"""

import difflib
from contextlib import contextmanager

from redispatch.dispatch import STATE
from redispatch.dispatch.config import config

from .world import World


@contextmanager
def specialize(value):
    """A region in which calls run boxed (False), specialised (True), or so and strictly ("strict")."""
    former = config.specialize
    if former is value:  # to set it again would drop all code
        yield
        return
    config.specialize = value
    try:
        yield
    finally:
        config.specialize = former


def lines_of(run, **options):
    """What a run has left behind, errors and the dispatch state included."""
    world, before = World(**options), STATE.get()
    try:
        run(world)
    except Exception as error:
        world.say("raised", error)
    if STATE.get() is not before:
        world.lines.append(f"left its state behind: {STATE.get()!r} after {before!r}")
        STATE.set(before)
    return world.lines


def differences(cases, how="strict", **options):
    """{name: text} for each of the cases, {name: case}, that does not do the same twice; the text is a diff."""
    with specialize(False):
        boxed_runs = {name: case() for name, case in cases.items()}
        other_runs = {name: case() for name, case in cases.items()}
        boxed = {name: lines_of(run, **options) for name, run in boxed_runs.items()}
    with specialize(how):
        other = {name: lines_of(run, **options) for name, run in other_runs.items()}
    return {name: difference(boxed[name], other[name]) for name in cases if boxed[name] != other[name]}


def difference(boxed, specialised):
    """What is different, as a diff with some lines around it."""
    return "\n".join(difflib.unified_diff(boxed, specialised, "boxed", "specialised", lineterm="", n=2))


def assert_same(cases, how="strict", **options):
    """Fails where a case does not do the same twice."""
    found = differences(cases, how, **options)
    assert not found, "\n\n".join(f"{name}:\n{text}" for name, text in found.items())
