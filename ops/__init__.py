"""The operators, a family per file: schema, meta, scalar body, derivative and public face of each stand together.

Read declare.py, structured.py, planned.py, pointwise.py and public.py first: they are how a family is written.
Importing the room defines every operator.
"""

from . import (
    arithmetic,
    comparison,
    copying,
    creation,
    custom_op,
    dunders,
    elementary,
    extremes,
    from_data,
    indexing,
    linalg,
    loss,
    moments,
    normalization,
    random,
    reductions,
    scans,
    scatter_gather,
    scattering,
    shape,
    softmax,
    views,
)

__all__ = [
    "arithmetic",
    "comparison",
    "copying",
    "creation",
    "custom_op",
    "dunders",
    "elementary",
    "extremes",
    "from_data",
    "indexing",
    "linalg",
    "loss",
    "moments",
    "normalization",
    "random",
    "reductions",
    "scans",
    "scatter_gather",
    "scattering",
    "shape",
    "softmax",
    "views",
]
