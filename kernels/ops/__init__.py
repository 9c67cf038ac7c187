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
    from ..declare import custom_op
    from . import (
        activations,
        aliases,
        arithmetic,
        attention,
        batch_norm,
        binary,
        comparison,
        complex_numbers,
        conversions,
        convolution,
        copying,
        creation,
        distances,
        distributions,
        dropout,
        dunders,
        einsum,
        elementary,
        embedding,
        extremes,
        fake_quantize,
        fft,
        float_parts,
        folding,
        from_data,
        functional_forms,
        functionalization,
        fused_attention,
        fused_layers,
        fused_updates,
        grid_sampling,
        index_functions,
        indexing,
        inquiries,
        integrals,
        legacy,
        linalg,
        loss,
        lu,
        margin_losses,
        masking,
        matrices,
        matrix_functions,
        max_pooling,
        moments,
        normalization,
        norms,
        other_libraries,
        packing,
        padding,
        pair_losses,
        plain_methods,
        pooling,
        probes,
        pseudo_inverse,
        random,
        ranges,
        rearrange,
        recurrent,
        reductions,
        rrelu,
        scans,
        scatter_gather,
        scattering,
        shape,
        solving,
        sorting,
        special,
        spectra,
        statistics,
        stft,
        unsafe_indexing,
        upsampling,
        view_copies,
        views,
        zero_tensors,
    )
