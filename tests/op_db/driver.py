"""What the properties of operators share: calls of an operator's forms on samples, and how results are compared."""

import numpy as np

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.testing import assert_close
from redispatch.testing.op_info import OpInfo, metadata
from redispatch.testing.op_info import each as as_list
from redispatch.utils import _pytree as pytree

__all__ = ["as_list", "close", "expected", "is_implicit", "metadata", "on_meta", "run", "values"]


run = OpInfo.run


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
    of = sample.forward
    call = (sample.arguments, dict(sample.kwargs)) if of is None else ((sample.input, *of.arguments), dict(of.kwargs))
    args, kwargs = pytree.tree_map(values, call)
    with np.errstate(all="ignore"):
        return info.reference(*args, **kwargs)


def is_implicit(op):
    """Whether the operator is written in others, which are what the layers below the first see."""
    return "CompositeImplicitAutograd" in {key.name for key in op.registrations}


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
