"""Indices on a device: an index out of bounds touches no memory, and is told of when the program waits."""

import pytest

import redispatch as rd
from redispatch.kernels.cuda.runtime.async_errors import LateIndexError

BAD = {
    "gather": lambda x, i: x.gather(0, i[None]),
    "index_select": lambda x, i: x.index_select(0, i),
    "index": lambda x, i: x[i],
    "take": lambda x, i: x.take(i * 4),
    "embedding": lambda x, i: rd.nn.functional.embedding(i, x),
    "scatter_add": lambda x, i: x.scatter_add(0, i[None], x[:1]),
    "index_put_": lambda x, i: x.index_put((i,), x[0]),
    "index_add": lambda x, i: x.index_add(0, i, x.repeat(2, 1)[: len(i)]),
    "index_copy": lambda x, i: x.index_copy(0, i, x.repeat(2, 1)[: len(i)]),
    "index_fill": lambda x, i: x.index_fill(0, i, 7.0),
    "put": lambda x, i: x.put(i * 4, x.view(-1)[: len(i)]),
}


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_bounds_is_told_of_at_the_next_wait(simulator, name):
    x = rd.arange(12.0).reshape(3, 4).cuda()
    index = rd.tensor([0, 2, 3, 1]).cuda()
    late = BAD[name](x, index)
    with pytest.raises(IndexError, match=rf"^{name}: index (3|12) is out of bounds for dimension 0 with size (3|12)\."):
        late.cpu()
    rd.cuda.synchronize()  # told once
    assert x.cpu().tolist() == rd.arange(12.0).reshape(3, 4).tolist()
    assert BAD[name](x, index.remainder(3)).cpu().shape == late.shape


def test_a_late_error_names_operator_index_and_size_and_is_of_either_class(simulator):
    x = rd.ones(5, device="cuda")
    for wait in (rd.cuda.synchronize, lambda: rd.cuda.current_stream().synchronize(), lambda: x.sum().item()):
        x[rd.tensor([1, -6]).cuda()]
        with pytest.raises(RuntimeError, match="told of now that the program waits") as raised:
            wait()
        error = raised.value
        assert isinstance(error, IndexError) and isinstance(error, LateIndexError)
        assert (error.operator, error.index, error.dim, error.size) == ("index", -6, 0, 5)


@pytest.mark.parametrize("dtype", [rd.uint8, rd.int16, rd.int64, rd.float16, rd.bfloat16, rd.float32, rd.complex64])
def test_equal_places_add_up(simulator, dtype):
    index = rd.tensor([2, 0, 2, 2, 1, 0, 2] * 5)
    source = (rd.arange(35) % 3).to(dtype)
    here = rd.zeros(3, dtype=dtype).index_add(0, index, source)
    assert rd.equal(rd.zeros(3, dtype=dtype, device="cuda").index_add(0, index.cuda(), source.cuda()).cpu(), here)


@pytest.mark.parametrize("how", ["sum", "prod", "amax", "amin"])
def test_places_are_combined_in_every_way(simulator, how):
    index, source = rd.tensor([0, 1, 1, 2, 0, 1]), rd.tensor([2.0, -3.0, 5.0, 0.5, 4.0, 1.5])
    here = rd.ones(3).scatter_reduce(0, index, source, how)
    assert rd.equal(rd.ones(3, device="cuda").scatter_reduce(0, index.cuda(), source.cuda(), how).cpu(), here)


def test_the_gradient_of_an_embedding_is_that_of_the_cpu(simulator):
    weight, index = rd.randn(5, 3), rd.tensor([[1, 4, 1], [0, 1, 2]])
    grads = []
    for on in ("cpu", "cuda"):
        w = weight.detach().to(on).clone().requires_grad_()
        rd.nn.functional.embedding(index.to(on), w, padding_idx=2).pow(2).sum().backward()
        grads.append(w.grad.cpu())
    rd.testing.assert_close(*grads)
