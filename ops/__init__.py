"""The operators, a family per file: schema, meta, scalar body, derivative and public face of each stand together.

Read declare.py, structured.py, planned.py, pointwise.py and public.py first: they are how a family is written.
Importing the room defines every operator.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keeps Python from looking for garbage. Declaring operators makes many objects which all stay, and to look through
    them again and again would be a third of the import's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


with collector_paused():
    from . import (
        activations,
        aliases,
        arithmetic,
        attention,
        batch_norm,
        blends,
        comparison,
        constant_pad,
        contractions,
        conversions,
        convolution,
        copying,
        creation,
        ctc,
        custom_op,
        diagonals,
        distances,
        dropout,
        dunders,
        elementary,
        embedding_bag,
        extremes,
        fourier,
        from_data,
        gates,
        indexing,
        legacy,
        linalg,
        loss,
        margin_losses,
        moments,
        normalization,
        number_forms,
        padding,
        pair_losses,
        pairs,
        parts,
        pooling,
        random,
        rectifiers,
        reductions,
        replacing,
        rrelu,
        scans,
        scatter_gather,
        scatter_reduce,
        scattering,
        searching,
        shape,
        sizes,
        softmax,
        sorting,
        special,
        trigonometry,
        upsampling,
        view_copies,
        views,
    )

__all__ = [
    "activations",
    "aliases",
    "arithmetic",
    "attention",
    "batch_norm",
    "blends",
    "comparison",
    "constant_pad",
    "contractions",
    "conversions",
    "convolution",
    "copying",
    "creation",
    "ctc",
    "custom_op",
    "diagonals",
    "distances",
    "dropout",
    "dunders",
    "elementary",
    "embedding_bag",
    "extremes",
    "fourier",
    "from_data",
    "gates",
    "indexing",
    "legacy",
    "linalg",
    "loss",
    "margin_losses",
    "moments",
    "normalization",
    "number_forms",
    "padding",
    "pair_losses",
    "pairs",
    "parts",
    "pooling",
    "random",
    "rectifiers",
    "reductions",
    "replacing",
    "rrelu",
    "scans",
    "scatter_gather",
    "scatter_reduce",
    "scattering",
    "searching",
    "shape",
    "sizes",
    "softmax",
    "sorting",
    "special",
    "trigonometry",
    "upsampling",
    "view_copies",
    "views",
]
