"""Helpers of the tests on the simulated device: comparisons with the CPU, and rules for machine code.

The machine code of a kernel has no spills and no calls, but wide accesses, and no precision that nobody asked for;
test_lint.py has these rules broken.
"""

import itertools
import re

import redispatch as rd
from redispatch.kernels.cuda import compiler
from redispatch.kernels.cuda.sass import machine_code
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree

# --- comparisons with the CPU -----------------------------------------------------------------------------------------


def compare(found, wanted):
    """Both have the same metadata and numbers."""
    for ours, theirs in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
        if not isinstance(theirs, rd.Tensor):
            assert ours == theirs or ours != ours
            continue
        assert (ours.shape, ours.dtype, ours.stride()) == (theirs.shape, theirs.dtype, theirs.stride())
        assert_close(ours.detach().cpu(), theirs.detach(), equal_nan=True)


def check_entry(info, dtype, most=None):
    """An entry's samples, or the first of them, give on the device what they give on the CPU."""
    for sample in itertools.islice(info.sample_inputs(dtype), most):
        wanted = info.op(*sample.copy().arguments, **sample.kwargs)
        moved = sample.map(lambda x: x.cuda()).map(lambda on: rd.device("cuda"), rd.device)
        compare(info.op(*moved.arguments, **moved.kwargs), wanted)


def same_gradients(function, *tensors):
    """A function of tensors has the same result on both devices, and the same gradients of it."""
    here = [x.detach().clone().requires_grad_(x.is_floating_point() or x.is_complex()) for x in tensors]
    there = [x.detach().cuda().requires_grad_(x.is_floating_point() or x.is_complex()) for x in tensors]
    ours, theirs = function(*there), function(*here)
    compare(ours, theirs)
    slope = rd.randn(theirs.shape).to(theirs.dtype)
    theirs.backward(slope)
    ours.backward(slope.cuda())
    for a, b in zip(there, here, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if b.grad is not None:
            assert_close(a.grad.cpu(), b.grad, equal_nan=True)


# --- rules for machine code -------------------------------------------------------------------------------------------


TARGETS = ("sm_80", "sm_90")
REGISTERS = 128  # of a lane: with more, a card runs fewer than 512 of them at once on each of its processors

# Sines of large angles are reduced by digits of 2 / pi, for which libdevice has memory of the lane's own (7 words for
# float32), one product in double precision (by pi / 2^65), and for float64 a function that is called.
ANGLES = ("__local_depot0[28]", "0d3BF921FB54442D19", "trig_reduction_slowpath")
# Series that lose too much in single precision are summed in double precision, and are too long to be written in place.
SERIES = ("special_", "polygamma", "igamma", "i0", "digamma", "mvlgamma")
LIBDEVICE = re.compile(r"__internal_\w+")  # functions of its own, for float64: pow, and the angles'
VECTOR = re.compile(r"(ld|st)\.global(\.nc)?\.v(4\.[bfsu]32|2\.[bfsu]64)")
SEVERAL = re.compile(r"(ld|st)\.global(\.nc)?\.v[24]\.")
NARROW = {"int8*", "uint8*", "int16*", "uint16*"}  # several of which are one word


def is_wide(source):
    """Whether the kernel is asked to compute with float64, or does not say by its signature what it computes with."""
    kinds = (*source.signature, source.real or "")
    if source.name.endswith("_on_device"):
        return True
    return any(kind.startswith(("float64", "complex128")) for kind in kinds)


def problems(source, target, text=None):
    """Says what is wrong with a kernel for such cards. `text` is PTX that they are given, where it is of older
    ones; by default it is compiled for them."""
    cubin = compiler.cubin(source, target) if text is None else compiler.link(text, target)
    text = compiler.ptx(source, target) if text is None else text
    code = machine_code(cubin, source.name)
    found = []
    angles = any(word in text for word in ANGLES)
    if (code.frame or code.stack) and not angles:
        found.append(f"{max(code.frame, code.stack)} bytes of memory of the lane's own: registers are spilled")
    if code.registers > REGISTERS:
        found.append(f"{code.registers} registers")
    if code.unresolved:
        found.append(f"unresolved: {', '.join(code.unresolved)}")
    series = source.name.startswith(SERIES)
    if re.search(r"\.f64\b", text) and not (is_wide(source) or series or angles):
        found.append("double precision, where none was asked for")
    if ".extern" in text:
        found.append("a symbol is left open")
    if source.name.endswith("_contiguous"):
        if re.search(r"^\s*call\b", text, re.M) and not series and not (is_wide(source) and LIBDEVICE.search(text)):
            found.append("a call")
        if "load_" in source.text and "ld.global" in text and not VECTOR.search(text):
            found.append("no access of 16 bytes")
    pointed = {kind for kind in source.signature if kind.endswith("*")}
    if source.name.endswith("_in_rows") and not (SEVERAL.search(text) or pointed <= NARROW):
        found.append("no access to several elements")
    return found


def check(made, compiled=True):
    """AssertionError that says which kernels break a rule. Not `compiled`: newer cards are given what was compiled for
    the oldest, which spares most of the time."""
    wrong = {}
    for source in made:
        for target in TARGETS:
            found = problems(source, target, None if compiled else compiler.ptx(source, TARGETS[0]))
            if found:
                wrong[f"{source.name}({', '.join(source.signature)}) for {target}"] = found
    assert not wrong, wrong
