"""Elements on a device: loops of the CPU's, indices, random numbers, ranges, complex numbers."""

import numpy as np
import pytest

import redispatch as rd
from redispatch.kernels import TARGET
from redispatch.kernels.cuda.loops import DeviceLoop
from redispatch.kernels.cuda.runtime.async_errors import LateIndexError
from redispatch.kernels.engine.compile import Kernel
from redispatch.kernels.ops.generators import drawing_from
from redispatch.testing import assert_close

pytestmark = pytest.mark.usefixtures("simulator")


# --- loops ------------------------------------------------------------------------------------------------------------


def doubling_loop(lo, hi, sizes, out, x):
    for i in range(lo, hi):
        out[i] = x[i] * len(sizes)


def test_a_loop_does_not_write_to_the_memory_of_the_cpu():
    loop = DeviceLoop(Kernel(doubling_loop), ("int64", "int64", "int64[]", "float32[]", "float32[]"), TARGET.get)
    assert loop.uses() == ({0}, {1})
    with pytest.raises(NotImplementedError, match="doubling_loop writes to the CPU's memory"):
        loop(0, 2, np.ones(1, np.int64), np.ones(2, np.float32), np.ones(2, np.float32))


def test_the_cpu_keeps_its_own_loops(simulator):
    x = rd.tensor([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
    for call in (
        lambda y: y.sort(1)[0],
        lambda y: y.cumsum(0),
        lambda y: y.var(1),
        lambda y: y[y > 1],
        lambda y: y.flip([1]),
    ):
        there, here = call(x.cuda()), call(x)
        assert here.device.type == "cpu" and rd.equal(there.cpu(), here) and rd.equal(call(x), here)
    assert TARGET.get() is None


def test_gradients_go_through_what_chooses_and_gathers(simulator):
    grads = []
    for on in ("cpu", "cuda"):
        x = rd.linspace(-1, 2, 12, device=on).reshape(3, 4).requires_grad_()
        index = rd.tensor([[0, 2, 1, 0]], device=on)
        loss = x.sort(1, descending=True)[0].cumsum(1).gather(0, index).sum() + x.max(0)[0].sum() + x[x > 0].sum()
        (loss + rd.nn.functional.pad(x[None], (1, 2), mode="replicate").pow(2).sum()).backward()
        grads.append(x.grad.cpu())
    rd.testing.assert_close(*grads)


# --- indices ----------------------------------------------------------------------------------------------------------


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


# --- random -----------------------------------------------------------------------------------------------------------


DRAWS = {
    "rand": lambda on: rd.rand(1003, device=on),
    "rand_double": lambda on: rd.rand(7, 9, device=on, dtype=rd.float64),
    "bernoulli_": lambda on: rd.empty(257, device=on).bernoulli_(0.3),
    "randint": lambda on: rd.randint(-5, 1 << 20, (301,), device=on),
    "wide_randint": lambda on: rd.randint(-(1 << 60), 1 << 61, (31,), device=on),
    "randperm": lambda on: rd.randperm(53, device=on),
    "uniform_16": lambda on: rd.empty(33, device=on, dtype=rd.bfloat16).uniform_(-2, 3),
    "dropout": lambda on: rd.nn.functional.dropout(rd.ones(1000, device=on), 0.4),
}
NEARLY = {
    "randn": lambda on: rd.randn(1003, device=on),
    "randn_double": lambda on: rd.randn(31, device=on, dtype=rd.float64),
    "exponential_": lambda on: rd.empty(257, device=on).exponential_(2.0),
    "normal_complex": lambda on: rd.randn(9, device=on, dtype=rd.complex64),
    "normal": lambda on: rd.normal(rd.arange(9.0, device=on), rd.ones(9, device=on)),
}


@pytest.mark.parametrize("name", DRAWS)
def test_bits_are_those_of_the_cpu(simulator, name):
    with drawing_from(rd.Generator(kind="philox").manual_seed(5)):
        here = DRAWS[name]("cpu"), DRAWS[name]("cpu")
    rd.cuda.manual_seed(5)
    for wanted in here:
        assert rd.equal(DRAWS[name]("cuda").cpu(), wanted)


@pytest.mark.parametrize("name", NEARLY)
def test_numbers_made_by_functions_differ_in_their_last_bits_at_most(simulator, name):
    with drawing_from(rd.Generator(kind="philox").manual_seed(5)):
        here = NEARLY[name]("cpu")
    rd.cuda.manual_seed(5)
    there = NEARLY[name]("cuda").cpu()
    rd.testing.assert_close(there, here, rtol=1e-6 if here.dtype != rd.float64 else 1e-14, atol=1e-6)


def test_a_checkpointed_function_drops_the_same_elements_again(simulator):
    x = rd.ones(40, device="cuda", requires_grad=True)
    found = []
    for again in (lambda f, x: f(x), rd.utils.checkpoint.checkpoint):
        rd.cuda.manual_seed(1)
        options = {} if not found else {"use_reentrant": False}
        again(lambda x: rd.nn.functional.dropout(x, 0.5) * x, x, **options).sum().backward()
        found.append((x.grad.cpu(), rd.cuda.get_rng_state()))
        x.grad = None
    assert rd.equal(found[0][0], found[1][0]) and rd.equal(found[0][1], found[1][1])
    before = rd.cuda.get_rng_state()
    with rd.random.fork_rng():
        rd.rand(3, device="cuda")
    assert rd.equal(rd.cuda.get_rng_state(), before)


def test_generators_of_a_device(simulator):
    generator = rd.Generator(device="cuda").manual_seed(3)
    assert generator.device == rd.device("cuda:0")
    first = rd.rand(4, device="cuda", generator=generator)
    assert rd.equal(first.cpu(), rd.rand(4, generator=rd.Generator(kind="philox").manual_seed(3)))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        rd.rand(4, device="cuda", generator=rd.Generator())
    state = rd.cuda.get_rng_state()
    once = rd.rand(4, device="cuda")
    rd.cuda.set_rng_state(state)
    assert rd.equal(rd.rand(4, device="cuda"), once)
    assert rd.cuda.initial_seed() == rd.cuda.default_generators[0].initial_seed()


# --- ranges -----------------------------------------------------------------------------------------------------------


RANGES = [(10,), (3, 17, 4), (-5, 6, 2), (0.5, 7.3, 0.7), (100, -20, -13), (0,)]
LINES = [(0, 1, 7), (-3.3, 9.7, 300), (5, 5, 1), (2, 8, 0)]


@pytest.mark.parametrize("dtype", [None, rd.float16, rd.bfloat16, rd.float64, rd.int64, rd.int8], ids=str)
def test_numbers_have_the_bits_of_the_cpus(dtype):
    for function, cases in ((rd.arange, RANGES), (rd.linspace, LINES)):
        for case in cases:
            if dtype is not None and not dtype.is_floating_point and isinstance(case[-1], float | int) and 0.7 in case:
                continue  # a step of 0
            if dtype is rd.int8 and 300 in case:
                continue
            here, there = function(*case, dtype=dtype), function(*case, dtype=dtype, device="cuda")
            assert there.is_cuda and there.dtype is here.dtype and rd.equal(there.cpu(), here), (function, case)


def test_numbers_are_written_into_what_there_is():
    for function, case in ((rd.arange, (0, 7.5, 0.3)), (rd.linspace, (0, 7.5, 25)), (rd.logspace, (0, 1, 25))):
        here, there = rd.zeros(50)[::2], rd.zeros(50, device="cuda")[::2]
        function(*case, out=here)
        function(*case, out=there)
        assert rd.equal(there.cpu(), here) and there.stride() == (2,)
    matrix = rd.ones(4, 10, device="cuda").t()[::2]
    assert rd.equal(rd.eye(5, 4, out=matrix).cpu(), rd.eye(5, 4))


@pytest.mark.parametrize("shape", [(4,), (3, 5), (5, 2), (0, 5)])
@pytest.mark.parametrize("dtype", [rd.float32, rd.int64, rd.bool, rd.complex64], ids=str)
def test_unit_matrices(shape, dtype):
    assert rd.equal(rd.eye(*shape, dtype=dtype, device="cuda").cpu(), rd.eye(*shape, dtype=dtype))


def test_they_can_be_recorded():
    def positions():
        return rd.arange(4, device="cuda") * 2 + rd.eye(4, device="cuda").sum(0) * rd.tensor(0.5)

    positions()
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        found = positions()
    graph.replay()
    assert found.tolist() == [0.5, 2.5, 4.5, 6.5]


NUMBERS = [rd.tensor(2.5), rd.tensor(3), rd.tensor(True), rd.tensor(1.5, dtype=rd.float64), rd.tensor(0.1).bfloat16()]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", [rd.float32, rd.bfloat16, rd.int64, rd.uint8, rd.complex64], ids=str)
def test_a_number_on_the_cpu(number, dtype):
    x = rd.arange(1, 7).to(dtype)
    for call in (
        lambda x: x * number,
        lambda x: number + x,
        lambda x: rd.where(x != 2, x, number),
        lambda x: x.eq(number),
        lambda x: rd.addcmul(x, x, number),
        lambda x: x.clone().copy_(x).div(number),
    ):
        found, wanted = call(x.cuda()), call(x)
        assert found.is_cuda and found.dtype is wanted.dtype
        assert_close(found.cpu(), wanted)


def test_numbers_of_the_cpu_are_those_of_each_call():
    x, one = rd.ones(3, device="cuda"), rd.tensor(1.0)
    for wanted in (1.0, 5.0, -2.0):
        one.fill_(wanted)
        assert (x * one).tolist() == [wanted] * 3
    assert x.mul_(one).tolist() == [-2.0] * 3


def test_other_tensors_of_the_cpu_are_refused():
    x, here, places = rd.ones(3, 3, device="cuda"), rd.ones(3, 3), rd.tensor([0])
    for call in (
        lambda: x + here,
        lambda: x @ here,
        lambda: rd.cat([x, here]),
        lambda: rd.nn.functional.layer_norm(x, (3,), here[0]),
        lambda: rd.ops.aten.native_layer_norm_backward(x, here, [3], x, x, x, x, [True, True, True]),
        lambda: x.index_select(0, places),
        lambda: x.gather(0, places.unsqueeze(0)),
        lambda: rd.nn.functional.embedding(places, x),
        lambda: rd.nn.functional.cross_entropy(x, rd.tensor([0, 1, 2])),
        lambda: here.mul_(x),
    ):
        with pytest.raises(RuntimeError, match="on the same device, but found at least two devices, c"):
            call()
    assert x[places].is_cuda and x[rd.arange(3) > 0].shape == (2, 3)  # but indices may be there


# --- complex ----------------------------------------------------------------------------------------------------------


FUNCTIONS = """
    abs exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh
    sigmoid reciprocal square sgn angle
""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_complex_numbers_gives_what_it_gives_on_the_cpu(name):
    parts = rd.linspace(-2, 2, 8)
    z = rd.complex(parts[:, None].expand(8, 8), parts * 1.1)
    function = getattr(rd, name)
    rd.testing.assert_close(function(z.cuda()).cpu(), function(z), rtol=2e-6, atol=2e-6)


def test_small_numbers_do_not_cancel():
    z = rd.tensor([1e-12 + 2e-12j, -3e-9 + 1e-15j], dtype=rd.complex128)
    wanted = z + z * z / 2
    for found in (rd.expm1(z.cuda()).cpu(), rd.expm1(z)):
        rd.testing.assert_close(found.real, wanted.real, rtol=1e-14, atol=0)
        rd.testing.assert_close(found.imag, wanted.imag, rtol=1e-14, atol=0)


def test_powers_and_lengths():
    z = rd.tensor([3 + 4j, -1 + 0.5j, 2 - 2j], dtype=rd.complex64)
    rd.testing.assert_close((z.cuda() ** z.cuda()).cpu(), z**z, rtol=1e-5, atol=1e-6)
    for order in (0, 1, 2, 3.0, float("inf")):
        rd.testing.assert_close(rd.linalg.vector_norm(z.cuda(), order).cpu(), rd.linalg.vector_norm(z, order))
