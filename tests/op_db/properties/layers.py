"""The layers above a kernel change nothing in what it computes: modes, subclasses, inference, tracing."""

import redispatch as rd
from redispatch.dispatch.tensor import Tensor
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.utils import _pytree as pytree

from ...seeing import Seen, SeenFunctions
from ..driver import as_list, close, is_implicit, metadata, run
from .table import holds


@holds("dispatch_mode", unless=["dispatch_mode"], one_in=2)
def a_dispatch_mode_that_hands_on_changes_nothing(info, sample):
    wanted = run(info, sample.copy())
    with Seen() as mode:
        found = run(info, sample.copy())
    assert metadata(found) == metadata(wanted)
    close(found, wanted, sample, rtol=0, atol=0)
    assert is_implicit(info.op) or any(info.op is func for func, *_ in mode.calls), f"the mode saw {mode.names}"


@holds("function_mode", of=lambda info: info.face or info.method, unless=["function_mode"])
def a_function_mode_that_hands_on_changes_nothing(info, sample):
    face = info.face or info.method
    wanted = run(info, sample.copy(), face)
    copied = sample.copy()
    with SeenFunctions() as mode:
        found = run(info, copied, face)
    close(found, wanted, sample, rtol=0, atol=0)
    functions = [func for func, *_ in mode.calls]
    assert face in functions, f"the mode saw {functions}"


def wrapped(sample):
    """The call with each tensor twice, as a TwoTensor."""
    return sample.map(lambda x: TwoTensor(x.detach(), x.detach().clone()).requires_grad_(x.requires_grad))


@holds("subclass", unless=["subclass"], one_in=2)
def a_wrapper_subclass_gives_wrapped_results(info, sample):
    if any(x._storage.nbytes() != x.numel() * x.element_size() for x in sample.tensors()):
        sample = sample.copy()
    wanted, found = run(info, sample.copy()), run(info, wrapped(sample))
    inner = pytree.tree_map_only(TwoTensor, lambda x: x.a, found)
    assert metadata(found) == metadata(wanted)
    close(inner, wanted, sample, rtol=0, atol=0)
    assert all(type(x) is TwoTensor for x in as_list(found) if isinstance(x, Tensor))


@holds("inference", unless=["inference", "reference"])
def inference_mode_gives_the_same_values(info, sample):
    if any(x.requires_grad for x in sample.tensors()):
        return False
    wanted = run(info, sample.copy())
    with rd.inference_mode():
        found = run(info, sample.copy())
        assert metadata(found) == metadata(wanted)
        close(found, wanted, sample, rtol=0, atol=0)
    return True


def first_recorded(info, dtype):
    return info.sample_inputs(dtype, requires_grad=not info.mutates)[:1]


@holds("trace", make=first_recorded, unless=["trace"])
def a_trace_begins_with_the_operator_and_ends_in_a_kernel(info, sample):
    with rd.trace() as hops:
        run(info, sample)
    first, *_ = taken = [hop for hop in hops if hop.op.schema.name != "aten::manual_seed"]
    assert first.op is info.op, str(hops)
    assert all(hop.error is None for hop in taken), str(hops)
    deepest = taken[-1]
    assert not deepest.children and deepest.key not in ("Python", "PythonTLSSnapshot"), str(hops)
    recorded = any(x.requires_grad for x in sample.tensors())
    if recorded and not is_implicit(info.op):
        assert first.key == "AutogradCPU", str(hops)
