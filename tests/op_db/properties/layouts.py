"""How the arguments lie in memory makes no difference to the values."""

import redispatch as rd

from ... import drawing
from ..driver import close, run
from .table import holds

TIMES = 3  # that everything is tried, each with other dimensions


def lying(x, how, random):
    """A tensor of the same shape whose elements lie stepped, transposed, shifted or expanded (stride 0).

    An expanded one has other values: those of its first row, along that dimension.
    """
    x = x.detach()
    if x.dim() == 0 or x.numel() == 0:
        return x
    if how == "expanded":
        dim = random.randrange(x.dim())
        return x.narrow(dim, 0, 1).expand(x.shape)
    if how == "transposed":
        order = random.sample(range(x.dim()), x.dim())
        back = [order.index(d) for d in range(x.dim())]
        return x.permute(order).contiguous().permute(back)
    room = rd.zeros((*x.shape[:-1], 2 * x.shape[-1] + 1), dtype=x.dtype)
    strides = room.stride() if how == "shifted" else (*room.stride()[:-1], 2)
    return room.as_strided(x.shape, strides, 1).copy_(x)


def a_few(info, dtype):
    return [sample for sample in info.sample_inputs(dtype, thorough=True) if "layouts" not in sample.skips][:3]


@holds("layouts", make=a_few, unless=["layouts"], one_in=4)
def tensors_that_are_not_contiguous_give_what_contiguous_ones_give(info, sample):
    """In one way that is drawn; in all of them, several times, where everything is tried."""
    ways = ["stepped", "transposed", "shifted", *(["expanded"] if "expanded" not in info.skips else [])]
    for how in drawing.draw(ways, "layouts", info):
        for time in range(TIMES if drawing.everything else 1):
            random = drawing.generator("layouts", info, how, time)
            other = sample.map(lambda x, how=how, random=random: lying(x, how, random))
            if info.mutates:  # no two of the elements to be written may share a place
                other = type(other)(sample.input.detach().clone(), other.args, other.kwargs)
            dense = other.map(lambda x: x.contiguous().clone())
            found, wanted = run(info, other), run(info, dense)
            close(found, wanted, f"{how}: {other}", check_stride=False)
