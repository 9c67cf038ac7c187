"""Kernels that are marked as leaves call no operator, and ask the dispatch state nothing but whether it is inference.

The specialiser leaves out, around a leaf, what layers set in the state; so a leaf must not be able to tell. Here each
runs in a state that notes which of its fields are read: calling an operator reads several.
"""

import redispatch as rd
from redispatch.dispatch import STATE, Setting, within
from redispatch.dispatch.core.state import State
from redispatch.dispatch.tensor import Tensor

from ..driver import as_list, can_be_written, on_meta, run
from .table import holds


class Watched(State):
    """A dispatch state that notes who reads what of it."""

    def __getattribute__(self, name):
        if name != "inference" and not name.startswith("__"):
            object.__getattribute__(self, "__dict__")["asked"].add(name)
        return object.__getattribute__(self, name)


class LeafWatch:
    """In the place of a tracer: runs every leaf in a watched state. `faults` is (operator, key) -> what was asked."""

    def __init__(self):
        self.faults = {}
        self.leaves = 0

    def hop(self, op, entry, keyset, stack):
        if not getattr(entry.kernel.function, "__leaf__", False):
            return entry.kernel.boxed(op, keyset, stack)
        asked = set()
        state = object.__new__(Watched)
        object.__getattribute__(state, "__dict__").update(vars(STATE.get()) | {"asked": asked})
        self.leaves += 1
        with within(state):
            result = entry.kernel.boxed(op, keyset, stack)
        if asked:
            self.faults.setdefault((str(op), entry.key.name), set()).update(asked)
        return result


def watched(info, sample, op=None):
    """Notes what leaves asked while an operator ran on a sample."""
    watch = LeafWatch()
    with Setting(tracer=watch):
        run(info, sample, op)
    return watch.faults


@holds("leaves")
def leaves_ask_for_inference_mode_alone(info, sample):
    assert watched(info, sample.copy()) == {}


@holds("meta_leaves", unless=["meta"])
def leaves_on_the_meta_device_ask_for_inference_mode_alone(info, sample):
    assert watched(info, on_meta(info, sample)) == {}


@holds("inplace_leaves", of=lambda info: info.inplace)
def in_place_leaves_ask_for_inference_mode_alone(info, sample):
    wanted, target = run(info, sample.copy()), sample.copy().map(Tensor.detach)
    if can_be_written(wanted, target.input) or "inplace_view" in info.inplace.tags:
        assert watched(info, target, info.inplace) == {}
        return True
    return False


@holds("out_leaves", of=lambda info: info.out)
def out_leaves_ask_for_inference_mode_alone(info, sample):
    results = as_list(run(info, sample.copy()))
    if any(x is None for x in results):
        return False  # what was not asked for has no memory to be written to
    out = [rd.empty_like(x.detach()) for x in results]
    assert watched(info, info.writing_to(out, sample.map(Tensor.detach)), info.out) == {}
    return True
