"""What the properties of operators share: calls of an operator's forms on samples, and how results are compared."""

import redispatch as rd
from redispatch.testing import assert_close
from redispatch.testing.op_info import OpInfo, metadata
from redispatch.testing.op_info import each as as_list

__all__ = ["as_list", "can_be_written", "close", "expected", "is_implicit", "metadata", "on_meta", "run"]


run, expected = OpInfo.run, OpInfo.expected


def is_implicit(op):
    """Whether the operator is written in others, which are what the layers below the first see."""
    return "CompositeImplicitAutograd" in {key.name for key in op.registrations}


def close(actual, wanted, sample, **options):
    """assert_close, with the sample in the message. Results that are views or numbers are compared by value."""
    assert_close(as_list(actual), as_list(wanted), equal_nan=True, msg=lambda text: f"{sample}: {text}", **options)


def can_be_written(results, into):
    """Whether results, one or a list of them, can be stored in tensors."""
    pairs = zip(as_list(results), as_list(into), strict=True)
    return all(x.shape == target.shape and rd.can_cast(x.dtype, target.dtype) for x, target in pairs)


def on_meta(info, sample):
    """The same call with every tensor on the meta device, and new ones made there."""
    meta = rd.device("meta")
    moved = sample.map(lambda x: x.to(meta)).map(lambda device: meta, rd.device)
    named = [argument.name for argument in info.op.schema.arguments]
    if "device" in named and not sample.tensors():
        moved.kwargs["device"] = meta
    return moved
