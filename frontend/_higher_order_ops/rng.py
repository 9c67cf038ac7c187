"""Random operators in graphs whose numbers somebody draws twice: an operator that tells where its generator was, and
one that draws from there.

    state, noise = run_and_save_rng_state(torch.ops.aten.rand.default, [3])
    same = run_with_rng_state(state, torch.ops.aten.rand.default, [3])

The second leaves the generator as it was. Whatever kind of generator it is, the numbers are those that the operator
draws by itself: so a backward graph can compute again what a forward graph did not keep.

Source: PyTorch's torch._prims.rng_prims. Read next: ../_functorch/partitioners.py.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.tensor import KINDS, Tensor
from redispatch.dispatch.tensor.devices import as_device
from redispatch.kernels.ops.generators import Generator, default_generator

from .control_flow import BodyOperator, functionalize_functions


def generator_of(args: Any, kwargs: dict[str, Any]) -> Generator:
    """Returns the generator that an operator draws from for these arguments: one among them, or that of the device."""
    leaves = tree_leaves((args, kwargs))
    given = next((one for one in leaves if isinstance(one, Generator)), None)
    if given is not None:
        return given
    device = kwargs.get("device") or next((one.device for one in leaves if isinstance(one, Tensor)), "cpu")
    kind = KINDS.get(as_device(device).type)
    return kind.generators[as_device(device).index or 0] if kind and kind.generators else default_generator


def run_saving(op: OpOverload, *args: Any, **kwargs: Any) -> tuple[Tensor, Any]:
    """(the state of the generator before the operator drew, the operator's result)."""
    state = generator_of(args, kwargs).get_state()
    return state, op(*args, **kwargs)


def run_from(rng_state: Tensor, op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """The operator's result for a state of the generator, which afterwards is where it was."""
    generator = generator_of(args, kwargs)
    before = generator.get_state()
    generator.set_state(rng_state)
    try:
        return op(*args, **kwargs)
    finally:
        generator.set_state(before)


run_and_save_rng_state = BodyOperator("run_and_save_rng_state", run_saving)
run_with_rng_state = BodyOperator("run_with_rng_state", run_from)
for operator in (run_and_save_rng_state, run_with_rng_state):
    functionalize_functions(operator)
