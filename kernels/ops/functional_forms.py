"""Functional forms of operators that have none of their own: `uniform` for `uniform_`.

    zero_form = functional_form_of(zero_inplace_op)     # zero(Tensor self) -> Tensor

Most operators that write come with a form that does not, whose schema is the same without the `!`. One rule makes it
for the rest: what is written is copied first, and the copy is returned, behind what the operator returns itself. The
layer Functionalize puts these forms in the place of what writes.

PyTorch generates the same forms, under the same names. Read next: functionalization.py.
"""

from __future__ import annotations

import re
from typing import Any

from redispatch.dispatch import OpOverload, Tag, call
from redispatch.dispatch.schema.text import BETWEEN, head
from redispatch.dispatch.tensor.geometry import loop_order

from ..declare.declare import Operator
from ..declare.operator import composite
from .batch_norm import batch_norm_legit_op, batch_norm_with_update_op
from .copying import clone_op, resize_inplace_op, zero_inplace_op
from .distributions import cauchy_op, geometric_op, log_normal_op
from .embedding import embedding_renorm_op
from .fused_updates import FUSED_UPDATES, _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_
from .random import (
    SEEDED,
    bernoulli_p_op,
    bernoulli_tensor_op,
    exponential_op,
    normal_op,
    random_from_op,
    random_op,
    random_to_op,
    uniform_op,
)
from .rrelu import backward, with_noise_op

WRITTEN = re.compile(r"\(([a-z])!\)")

MADE: dict[OpOverload, OpOverload] = {}  # an operator that writes -> the form that was made of it here


def functional_form_of(writing: Operator, name: str = "", *, derivative: bool = True) -> Operator:
    """The operator with the same arguments which writes none of them.

    name: where it is not the same without the `_`. derivative: whether it has the derivative of the one that writes.
    """
    text = writing.text
    arguments = [one for one in text.arguments if one != "*"]
    own = BETWEEN.split(text.returns.strip("()")) if text.returns.startswith("(") else [text.returns]
    own = [one for one in own if one]
    returned = WRITTEN.findall(text.returns)
    written = [position for position, one in enumerate(arguments) if WRITTEN.search(one)]
    behind = [position for position in written if not set(WRITTEN.findall(arguments[position])) & set(returned)]
    results = [WRITTEN.sub("", one) for one in (*own, *(f"{arguments[position]}_out" for position in behind))]
    returns = results[0].removesuffix(" self_out") if len(results) == 1 else f"({', '.join(results)})"
    called = head(name or writing.base_name.removesuffix("_"), text.overload_name)
    drawn = ("nondeterministic_seeded",) if Tag.nondeterministic_seeded in writing.functional.tags else ()
    schema = f"{called}({', '.join(WRITTEN.sub('', one) for one in text.arguments)}) -> {returns}"
    late = False if name or len(results) > 1 else None
    made = Operator(schema, tags=drawn, late_out=late, refuses=writing.refuses)

    def form(*args: Any) -> Any:
        given = [copy_of(value) if position in written else value for position, value in enumerate(args)]
        found = call(writing.functional, given)
        every = [] if found is None else list(found) if isinstance(found, tuple) else [found]
        every += [given[position] for position in behind]
        return tuple(every) if len(every) > 1 else every[0]

    form.__name__ = f"{made.base_name}_kernel"
    made.explicit(form)
    MADE[writing.functional] = made.functional
    if derivative and writing.rules:
        fixed = tuple(range(1, len(results)))
        made.derivative(*writing.rules, node=f"{writing.node}_functional", nondifferentiable=fixed)
    elif derivative:
        made.not_differentiable()
    return made


def copy_of(value: Any) -> Any:
    """A copy of a tensor, or of each in a list."""
    if isinstance(value, list | tuple):
        return [copy_of(one) for one in value]
    return value if value is None else clone_op.functional(value)


zero_op = functional_form_of(zero_inplace_op)
resize_op = functional_form_of(resize_inplace_op)
embedding_renorm_functional_op = functional_form_of(embedding_renorm_op)
fused_update_ops = [functional_form_of(op) for op in FUSED_UPDATES]
amp_unscale_op = functional_form_of(_amp_foreach_non_finite_check_and_unscale_.op)
amp_update_scale_op = functional_form_of(_amp_update_scale_.op)
batch_norm_functional_op = functional_form_of(batch_norm_legit_op, "_native_batch_norm_legit_functional")
batch_norm_updating_op = functional_form_of(batch_norm_with_update_op, "_batch_norm_with_update_functional")
rrelu_functional_op = functional_form_of(with_noise_op, "rrelu_with_noise_functional", derivative=False)
rrelu_functional_op.derivative(
    self=lambda grad, self, result1, lower, upper, training: backward(grad, self, result1, lower, upper, training),
    nondifferentiable=(1,),
)

# Operators that draw numbers: the former values count for nothing, only how they lie in memory.
bernoulli_tensor_functional_op = functional_form_of(bernoulli_tensor_op)


@composite(
    "bernoulli.float(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    tags=SEEDED,
    method=False,
    function=False,
)
def bernoulli_float_functional_op(self: Any, p: float, generator: Any) -> Any:
    """Returns the numbers of `bernoulli_`, in the order of memory; those of `bernoulli.p` are in that of dimensions."""
    if self.is_contiguous():
        return bernoulli_p_op.functional(self, p, generator=generator)
    order = loop_order(tuple(self.shape), (self.stride(),))[::-1]
    drawn = bernoulli_p_op.functional(self.permute(order), p, generator=generator)
    return drawn.permute([order.index(dim) for dim in range(len(order))])


cauchy_functional_op = functional_form_of(cauchy_op)
exponential_functional_op = functional_form_of(exponential_op)
geometric_functional_op = functional_form_of(geometric_op)
log_normal_functional_op = functional_form_of(log_normal_op)
normal_functional_op = functional_form_of(normal_op, "normal_functional")
random_functional_op = functional_form_of(random_op)
random_from_functional_op = functional_form_of(random_from_op)
random_to_functional_op = functional_form_of(random_to_op)
uniform_functional_op = functional_form_of(uniform_op)
