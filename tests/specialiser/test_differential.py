"""Every operator does the same specialised as boxed, in every form and under all circumstances (contexts.py).

What is compared is what world.py sees: values bit for bit, looks, aliasing, versions, the graph and what it saves,
gradients, what modes, subclasses, layers and kernels see on the way, and in which state; errors by class and text.

`make test` tries one form of each operator, which is drawn, in the most usual context and in another one, or in several
for the operators of CORE; `make test-all` tries all forms in all contexts.
"""

from functools import partial

import pytest

import redispatch as rd
from redispatch.autograd import backward, grad
from redispatch.dispatch import bind, call, describe, keyset
from redispatch.dispatch.tensor import Tensor
from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import SampleInput, is_factory
from redispatch.utils import _pytree as pytree

from .. import drawing
from .contexts import CONTEXTS, define_keys, spy_on_kernel
from .twice import assert_same

CORE = """
    add.Tensor rsub.Scalar mul.Tensor div.Tensor pow.Tensor_Scalar clamp eq.Tensor where.self exp relu sigmoid sum
    sum.dim_IntList mean max.dim var.correction cumsum mm addmm matmul linear bmm dot view transpose.int t expand
    select.int slice.Tensor squeeze.dim as_strided reshape split.Tensor unbind.int cat stack index.Tensor index_put
    gather masked_fill.Scalar embedding _softmax native_layer_norm cross_entropy_loss detach clone _to_copy copy
    fill.Scalar zero_ ones full_like arange bernoulli dropout
""".split()

MOST_USUAL_CONTEXT = next(context for context in CONTEXTS if context.name == "results that require grad")
PLAIN = next(context for context in CONTEXTS if context.name == "plain")
FEW, SOME = 2, 6  # in how many contexts, of those that are drawn, an operator is tried; and one of CORE

# One in so many is drawn: of the operators that are made by one rule, and of those that are called in many ways
ALIKE, WAYS = 3, 3

# Operators whose results hold whatever the memory held
UNDEFINED = ("empty", "resize_")


def forms(info):
    """(name, operator) of each form of an operator."""
    named = (("functional", info.op), ("in place", info.inplace), ("out", info.out))
    return [(name, op) for name, op in named if op is not None]


def has_values(info):
    return not any(part in info.name for part in UNDEFINED)


def small_samples(info, dtype):
    """Up to two samples: the first one with elements, and the one which differs from it most in how it is called."""
    found = [s for s in info.sample_inputs(dtype, thorough=False) if all(x.numel() for x in s.tensors())]
    if len(found) < 2:
        return found or info.sample_inputs(dtype, thorough=False)[:1]
    first = found[0]
    other = max(found[1:], key=lambda s: (len(s.kwargs.keys() ^ first.kwargs.keys()), str(s) != str(first)))
    return [first, other]


# Cases ----------------------------------------------------------------------------------------------------------------


def case(info, form, op, sample, context, face=None):
    """A case (twice.py): one call in one context."""

    def prepare():
        given = context.arguments(with_out(info, sample) if form == "out" else sample)
        if context.name.startswith("meta") and is_factory(info.op) and form == "functional":
            given.kwargs["device"] = rd.device("meta")
        if face:  # the first call of a public function takes the slow path, on which a default subclass gives views
            attempted(face, context.arguments(sample))

        def run(world):
            rd.manual_seed(0)
            with context.region(world):
                result = attempted(face or op, given)
            world.describe("result", result)
            world.describe("arguments", [*given.arguments, given.kwargs])
            differentiate(world, context, given.tensors(), result)

        return run

    return prepare


def attempted(function, sample):
    try:
        return function(*sample.arguments, **sample.kwargs)
    except Exception as error:
        return error


def with_out(info, sample):
    """The call of the out= form, with targets of the right looks that hold ones."""
    rd.manual_seed(0)
    copies = PLAIN.arguments(sample)  # some write over what they are given, beside their results
    found = info.op(*copies.arguments, **copies.kwargs)
    results = found if isinstance(found, tuple | list) else [found]
    targets = [rd.ones(0) if x is None else rd.ones_like(x.detach()) for x in results]
    return info.writing_to(targets, sample)


def differentiate(world, context, inputs, result):
    """The gradients of what the call gave, down to the leaves; and with `graph`, their own graph."""
    outputs = [x for x in pytree.tree_leaves(result) if isinstance(x, Tensor) and x._requires_grad()]
    wanted = [x for x in inputs if x._requires_grad()]
    if not outputs or not wanted:
        return
    seeds = [seed_of(x) for x in outputs]
    if context.graph:
        world.describe("second order", attempted_gradients(outputs, wanted, seeds))
    try:
        with context.backward(world):
            backward(outputs, seeds)
    except Exception as error:
        world.say("backward raised", error)
    for x in inputs:
        world.describe("leaf", x._get_grad() if x._autograd is not None else None)
    later = type(world)(world.values)
    later.describe("after backward", [inputs, outputs])
    world.lines += later.lines


def attempted_gradients(outputs, wanted, seeds):
    try:
        return grad(outputs, wanted, seeds, create_graph=True, allow_unused=True)
    except Exception as error:
        return error


def seed_of(x):
    """A gradient for an output: 1, 2, 3, ..."""
    if x.is_meta:
        return rd.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    return rd.arange(1, x.numel() + 1, dtype=x.dtype).reshape(x.shape)


# What is tried --------------------------------------------------------------------------------------------------------


def applies(info, form, context):
    """Whether a context says something about an operator: subclasses and keys of tensors need tensors."""
    if context.subclass and ("subclass" in info.skips or is_factory(info.op)):
        return False
    return not (context.spied and not info.op.registrations)


def contexts_of(info, form):
    """The contexts in which a form of an operator is tried: the most usual one, and others that are drawn."""
    possible = [context for context in CONTEXTS if applies(info, form, context)]
    others = [context for context in possible if context is not MOST_USUAL_CONTEXT]
    count = SOME if str(info) in CORE else FEW
    return [MOST_USUAL_CONTEXT, *drawing.draw(others, "context", info, form, count=count - 1)]


def each_form():
    """Parametrizes a test by operator and form: one form of each operator, which is drawn."""
    return pytest.mark.parametrize(
        "info, form, op",
        [
            pytest.param(info, form, op, id=op.name().removeprefix("aten::"))
            for info in op_db
            if not info.alike or drawing.one_in(ALIKE, "alike, compared", info)
            for form, op in drawing.draw(forms(info), "form", info)
        ],
    )


def compare(info, form, op, contexts):
    if any(context.keys for context in contexts):
        define_keys()
    cases = dict(cases_of(info, form, op, [context for context in contexts if not context.spied]))
    assert_same(cases, values=has_values(info))
    spied = dict(cases_of(info, form, op, [context for context in contexts if context.spied]))
    if spied:
        with spy_on_kernel(op):
            assert_same(spied, values=has_values(info))


def cases_of(info, form, op, contexts):
    """(name, case): each context with the first sample, every third with another, and by the public function."""
    face = (info.face or info.method) if form == "functional" else None
    for number, context in enumerate(contexts):
        dtype = next((d for d in info.dtypes if d.name == context.dtype), info.main_dtype)
        first, *others = small_samples(info, dtype) or [None]
        if first is None:  # every call is an error
            return
        yield f"{context}: {first}", case(info, form, op, first, context)
        if others and number % 3 == 0:
            yield f"{context}: {others[0]}", case(info, form, op, others[0], context)
        if face is not None and number % 3 == 1:
            yield f"{context}, by its function: {first}", case(info, form, op, first, context, face)


@pytest.mark.filterwarnings("ignore:at.* is deprecated and it is just left for JIT")  # as PyTorch warns, each time
@pytest.mark.filterwarnings("ignore:torch.* is deprecated in favor of torch.linalg")  # and where it would end
@each_form()
def test_an_operator_does_the_same_specialised_as_boxed(info, form, op):
    compare(info, form, op, contexts_of(info, form))


# Errors ---------------------------------------------------------------------------------------------------------------

ERRORS_IN = [
    c for c in CONTEXTS if c.name in ("plain", "requires grad", "mode", "inference_mode", "two tensors", "meta")
]


@pytest.mark.parametrize(
    "info", [info for info in op_db if info.errors and drawing.one_in(WAYS, "errors", info)], ids=str
)
def test_a_call_that_cannot_work_raises_the_same(info):
    """The class and the text are the same; so is what is left of the arguments."""
    cases = {}
    for number, wrong in enumerate(info.error_inputs()):
        op = info.inplace if wrong.form == "inplace" else info.op
        for context in ERRORS_IN:
            if applies(info, wrong.form, context):
                cases[f"{number} {context}: {wrong.sample}"] = case(info, "functional", op, wrong.sample, context)
    assert_same(cases)


def spoiled(sample):
    """(what is wrong, call): the sample with something of another type in the place of each argument, and the like."""
    for position in range(len(sample.arguments)):
        for wrong in (None, "text", 1.5, 100, [1, None]):
            arguments = list(sample.arguments)
            arguments[position] = wrong
            yield f"{wrong!r} at {position}", SampleInput(arguments[0], tuple(arguments[1:]), sample.kwargs)
    yield "one more", SampleInput(sample.input, (*sample.args, 1), sample.kwargs)
    yield "an unknown keyword", SampleInput(sample.input, sample.args, {**sample.kwargs, "unknown": 1})
    yield "one less", SampleInput(sample.input, sample.args[:-1], {})
    for x in sample.tensors():
        for what, change in CHANGES.items():
            yield f"{what} {x._summary()}", sample.map(lambda y, x=x, change=change: change(y) if y is x else y)


CHANGES = {
    "integers in": lambda x: x.detach().to(rd.int64),
    "another shape for": lambda x: rd.ones(5, 1, 3, 2, dtype=x.dtype),
    "nothing in": lambda x: rd.ones(0, dtype=x.dtype),
    "on meta": lambda x: x.detach().to("meta"),
}


def some_of_core(what):
    return [info for info in op_db if str(info) in CORE and drawing.one_in(WAYS, what, info)]


@pytest.mark.parametrize("info", some_of_core("wrong arguments"), ids=str)
def test_wrong_arguments_give_the_same_error_or_result(info):
    sample = small_samples(info, info.main_dtype)[0]
    face = info.face or info.method
    cases = {}
    for what, wrong in spoiled(sample):
        cases[what] = case(info, "functional", info.op, wrong, MOST_USUAL_CONTEXT)
        if face is not None:
            cases[f"{what}, by its function"] = case(info, "functional", info.op, wrong, MOST_USUAL_CONTEXT, face)
    if info.inplace is not None:
        for what, wrong in spoiled(sample):
            cases[f"{what}, in place"] = case(info, "functional", info.inplace, wrong, MOST_USUAL_CONTEXT)
    assert_same(cases)


# Ways to call ---------------------------------------------------------------------------------------------------------

BACKENDS_KEYS = [
    keyset("CPU"),
    keyset("CPU", "ADInplaceOrView"),
    keyset("CPU", "AutogradCPU", "ADInplaceOrView"),
    keyset("Meta"),
    0,
]


@pytest.mark.parametrize("info", some_of_core("ways to call"), ids=str)
def test_every_way_to_call_an_operator_does_the_same(info):
    """From its packet, boxed with a stack, without its own layers, and from given keys on."""
    op = info.op
    ways = {
        "packet": op.overloadpacket,
        "stack": lambda *args, **kwargs: call(op, bind(op.schema, args, kwargs)),
        "decompose": op.decompose,
        **{describe(keys): partial(op.redispatch, keys) for keys in BACKENDS_KEYS},
    }
    cases = {
        f"{name}, {context}": case(info, "functional", op, sample, context, way)
        for sample in small_samples(info, info.main_dtype)[:1]
        for context in CONTEXTS[:2]
        for name, way in ways.items()
    }
    assert_same(cases, values=has_values(info))
