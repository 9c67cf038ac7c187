"""Batching rules: what an operator does to a whole batch, derived from the operator's shape class.

Most operators need no rule of their own. How shapes go through an operator is nearly always one of a few ways, and the
way is known from its tags, its schema and its name, or its declaration says so (`batching="leading"`):

    pointwise   broadcast from the right                              add, exp, where         pointwise.py
    dims        name the dimensions they work along, or sizes         sum, cumsum, view       by_dims.py
    full        work along all dimensions                             max, median             by_dims.py
    leading     work on the last dimensions, whatever is in front     tril, linalg_inv        by_dims.py
    matrices    products of matrices and vectors                      mm, addmm, dot          products.py
    images      take any number of images                             max_pool2d, upsample    images.py
    indices     take tensors of indices                               index, embedding        indices.py
    random      draw numbers                                          rand, bernoulli         random.py
    losses      pointwise, then reduced if asked for                  mse_loss                losses.py
    parts       have a kernel in other operators, or a formula        dist, trace, put        decompositions.py
    dynamic     the shape or a number depends on values: refused      nonzero, item           fallback.py

The rest is called once for each example (fallback.py), with a warning that says how to give it a rule.

Read next: by_dims.py; ../../dispatch/transforms/batched.py has what rules are made of.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from redispatch.dispatch import OpOverload, Tag
from redispatch.dispatch.autograd.forward import composite_kernel
from redispatch.dispatch.layers.transforms import BATCHING
from redispatch.dispatch.transforms import batched
from redispatch.kernels.declare.declare import DECLARED

from . import indices as indices
from . import norms as norms
from . import products as products
from . import views as views
from .by_dims import COUNTED, dims_rule, full_rule, leading_rule
from .decompositions import by_its_kernel, written_over
from .fallback import CLASSES, Rule, one_by_one, refuse
from .images import images_rule, rank_of_image
from .losses import LOSS, LOSS_BACKWARD
from .pointwise import check_writes, pointwise_rule
from .random import draws, is_random, random_call
from .rows import row_rule


def shape_class(op: OpOverload) -> str:
    """The operator's class of shapes: a word of the list above; "composite" for what is written in other operators,
    "out" and "view" for what vmap refuses, and "other" for what is called once for each example."""
    if op.schema.is_out:
        return "out"
    if composite_kernel(op) is not None:
        return "composite"
    if is_random(op):
        return "random"
    own = BATCHING.get(op)
    return class_without_rule(op) if own is None else CLASSES.get(own, "other")


def class_without_rule(op: OpOverload) -> str:
    """Returns the class of an operator that has declared none, by tags, declaration, schema and name."""
    tags, schema = set(op.tags), op.schema
    if Tag.dynamic_output_shape in tags or Tag.data_dependent_output in tags:
        return "dynamic"
    declared = DECLARED.get(op)
    if declared is not None and declared.batching:
        return declared.batching
    if Tag.pointwise in tags:
        return "pointwise"
    if by_its_kernel(op) is not None:
        return "parts"
    if op.namespace == "aten" and (schema.tensor_positions or schema.tensor_list_positions):
        if rank_of_image(op):
            return "images"
        if any(argument.name in COUNTED for argument in schema.arguments):
            return "dims"
        if op._opname.lstrip("_").startswith("linalg_"):
            return "leading"
    if schema.is_view or Tag.inplace_view in tags:
        return "view"
    return "other" if written_over(op, rule_of) is None else "parts"


@lru_cache(None)
def rule_of(op: OpOverload) -> Rule:
    """The batching rule of an operator that has declared none."""
    found = "out" if op.schema.is_out else class_without_rule(op)
    if found in ("out", "dynamic", "view"):
        return refuse(op, found)
    backward = op._opname.endswith("_backward")
    if found == "losses":
        return LOSS_BACKWARD if backward else LOSS
    if found == "pointwise" and backward:  # most backwards want all their arguments of one shape
        return leading_rule
    if found == "parts":
        return by_its_kernel(op) or written_over(op, rule_of)
    return RULES[found]


RULES: dict[str, Rule] = {
    "full": full_rule,
    "pointwise": pointwise_rule,
    "dims": dims_rule,
    "leading": leading_rule,
    "images": images_rule,
    "other": one_by_one,
}


batched.RULES.fill(batched.Rules(rule_of, row_rule, draws, random_call, check_writes))
