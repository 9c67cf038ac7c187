"""How the arguments lie in memory makes no difference to the values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import redispatch as rd
from redispatch.testing.op_db import op_db

from .driver import close, run, thinned


@st.composite
def awkward(draw, x, how):
    """A tensor of the same shape whose elements lie stepped, transposed, shifted or expanded (stride 0).

    An expanded one has other values: those of its first row, along that dimension.
    """
    x = x.detach()
    if x.dim() == 0 or x.numel() == 0:
        return x
    if how == "expanded":
        dim = draw(st.integers(0, x.dim() - 1))
        return x.narrow(dim, 0, 1).expand(x.shape)
    if how == "transposed":
        order = draw(st.permutations(range(x.dim())))
        back = [order.index(d) for d in range(x.dim())]
        return x.permute(order).contiguous().permute(back)
    room = rd.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), dtype=x.dtype)
    strides = room.stride() if how == "shifted" else (*room.stride()[:-1], 2)
    return room.as_strided(x.shape, strides, 1).copy_(x)


@pytest.mark.parametrize("info", thinned([info for info in op_db if "layouts" not in info.skips]))
def test_tensors_that_are_not_contiguous_give_what_contiguous_ones_give(info):
    samples = [
        sample for sample in info.sample_inputs(info.main_dtype, thorough=True) if "layouts" not in sample.skips
    ][:3]
    ways = ["stepped", "transposed", "shifted", *(["expanded"] if "expanded" not in info.skips else [])]

    @settings(max_examples=6, database=None)
    @given(st.data())
    def holds(data):
        how = data.draw(st.sampled_from(ways))
        for sample in samples:
            lying = sample.map(lambda x: data.draw(awkward(x, how)))
            if info.mutates:  # no two of the elements to be written may share a place
                lying = type(lying)(sample.input.detach().clone(), lying.args, lying.kwargs)
            dense = lying.map(lambda x: x.contiguous().clone())
            close(run(info, lying), run(info, dense), sample, check_stride=False)

    holds()
