"""What the properties of operators share: calls of an operator's forms on samples, and how results are compared."""

import numpy as np

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import assert_close
from redispatch.testing.op_info import SampleInput
from redispatch.utils import _pytree as pytree


def run(info, sample, op=None):
    """The operator's result for a sample; one that draws numbers draws the same every time."""
    if info.random:
        rd.manual_seed(0)
    return (op or info.op)(*sample.arguments, **sample.kwargs)


def values(x):
    """A tensor as a numpy array that numpy can compute with; anything else as it is."""
    if isinstance(x, rd.dtype):
        return x.numpy
    if not isinstance(x, Tensor):
        return x
    x = x.detach().resolve_conj().resolve_neg()
    return (x.float() if x.dtype in (rd.bfloat16, rd.float16) else x).numpy().copy()


def expected(info, sample):
    """What numpy says."""
    args, kwargs = pytree.tree_map(values, (sample.arguments, dict(sample.kwargs)))
    with np.errstate(all="ignore"):
        return info.reference(*args, **kwargs)


def is_implicit(op):
    """Whether the operator is written in others, which are what the layers below the first see."""
    return "CompositeImplicitAutograd" in {key.name for key in op.registrations}


def as_list(result):
    """The results of a call one by one, those in a list among them, too."""
    return [x for item in result for x in as_list(item)] if isinstance(result, tuple | list) else [result]


def metadata(result):
    """Shape, strides, dtype of each tensor in a result; anything else as it is."""
    return [(tuple(x.shape), x.stride(), x.dtype) if isinstance(x, Tensor) else x for x in as_list(result)]


def close(actual, wanted, sample, **options):
    """assert_close, with the sample in the message. Results that are views or numbers are compared by value."""
    assert_close(as_list(actual), as_list(wanted), equal_nan=True, msg=lambda text: f"{sample}: {text}", **options)


def on_meta(info, sample):
    """The same call with every tensor on the meta device, and new ones made there."""
    meta = rd.device("meta")
    moved = sample.map(lambda x: x.to(meta)).map(lambda device: meta, rd.device)
    named = [argument.name for argument in info.op.schema.arguments]
    if "device" in named and not sample.tensors():
        moved.kwargs["device"] = meta
    return moved


def writing_into(info, targets):
    """The keywords by which the out= form takes these tensors: one each, or one for a list of them."""
    keywords = [info.out.schema.arguments[i].name for i in info.out.schema.out_positions]
    return dict(zip(keywords, targets, strict=True)) if info.out.schema.returns else {keywords[0]: targets}


def without_factory_options(info, sample):
    """A factory's call without the options that its out= form does not take."""
    taken = {argument.name for argument in info.out.schema.arguments}
    return SampleInput(sample.input, sample.args, {k: v for k, v in sample.kwargs.items() if k in taken})
