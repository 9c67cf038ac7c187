"""Operators that are put together from others on a device, segment_reduce, and programs that train, against the CPU."""

import copy

import pytest

import redispatch as rd
from redispatch.demo.train import Classifier, Split, Trainer, load_digits
from redispatch.nn import functional as F

from .helpers import compare, same_gradients

pytestmark = pytest.mark.usefixtures("simulator")


# --- put together -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_every_form_of_a_structured_operator_has_a_kernel(name):
    x = rd.arange(12.0).reshape(3, 4)
    function, out = getattr(rd, name), rd.empty(0, device="cuda")
    assert function(x.cuda(), 1, out=out) is out and rd.equal(out.cpu(), function(x, 1))
    turned = x.cuda().t()
    getattr(turned, f"{name}_")()
    assert rd.equal(turned.cpu(), function(x.t()))


def test_what_cannot_be_drawn_from_is_an_error_at_once():
    bad = rd.tensor([1.0, -1.0], device="cuda")
    for draw in (lambda: rd.multinomial(bad, 1), lambda: rd.poisson(bad), lambda: rd.multinomial(bad * 0, 1)):
        with pytest.raises(RuntimeError, match=r"element < 0|non-negative|sum of probabilities <= 0"):
            draw()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_gradients_of_bags(mode):
    index, offsets = rd.tensor([0, 2, 4, 2, 1, 2]), rd.tensor([0, 3, 3, 4])
    same_gradients(
        lambda w: F.embedding_bag(index.to(w.device), w, offsets.to(w.device), mode=mode, padding_idx=1),
        rd.randn(5, 3),
    )


def test_a_bag_with_an_index_out_of_bounds_is_told_of():
    F.embedding_bag(rd.tensor([0, 7]).cuda(), rd.ones(5, 3).cuda(), rd.tensor([0]).cuda())
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 5"):
        rd.cuda.synchronize()


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_gradients_of_sampling_at_a_grid(padding):
    x, grid = rd.randn(2, 2, 4, 5), rd.rand(2, 3, 3, 2) * 2.6 - 1.3
    same_gradients(lambda x, grid: F.grid_sample(x, grid, padding_mode=padding, align_corners=False), x, grid)


def test_gradients_of_windows_distances_and_norms():
    same_gradients(lambda x: F.fold(F.unfold(x, 3, padding=1) * 2, (4, 5), 3, padding=1), rd.randn(1, 2, 4, 5))
    for p in (1.0, 2.0, 3.0, float("inf")):
        same_gradients(lambda a, b, p=p: rd.cdist(a, b, p), rd.randn(2, 4, 3), rd.randn(2, 3, 3))
    same_gradients(lambda x: rd.pdist(x), rd.randn(4, 3))
    same_gradients(lambda x: x.norm() + x.norm(3.0, dim=0).sum() + x.renorm(2, 0, 1.0).sum(), rd.randn(3, 4))


def test_a_loss_of_alignments_and_its_gradient():
    scores, targets = rd.randn(6, 2, 4), rd.tensor([[1, 2, 2], [3, 1, 0]])
    same_gradients(
        lambda x: F.ctc_loss(x.log_softmax(2), targets.to(x.device), rd.tensor([6, 5]), rd.tensor([3, 2])), scores
    )


def test_a_gradient_scaler_halves_its_scale_where_a_gradient_is_not_finite():
    x = rd.ones(3, device="cuda", requires_grad=True)
    scaler = rd.amp.GradScaler("cuda", init_scale=8.0, growth_interval=1)
    optimizer = rd.optim.SGD([x], lr=1.0)
    for factor, scale, value in ((1.0, 16.0, 0.0), (float("inf"), 8.0, 0.0)):
        optimizer.zero_grad()
        scaler.scale((x * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_scale() == scale and x.tolist() == [value] * 3


# --- segments ---------------------------------------------------------------------------------------------------------


LENGTHS = [3, 0, 1, 40, 6]
WAYS = ["mean", "min", *(pytest.param(way, marks=pytest.mark.long) for way in ("sum", "prod", "max"))]


def reduced(way, initial=None, **runs):
    def function(x):
        given = {name: rd.tensor(value, device=x.device) for name, value in runs.items()}
        return rd.segment_reduce(x, way, **given, initial=initial)

    return function


@pytest.mark.parametrize("way", WAYS)
def test_runs_shared_by_lanes_and_runs_side_by_side(way):
    for shape in ((50,), (50, 3), (50, 40)):
        x = 1 + rd.randn(shape, generator=rd.Generator().manual_seed(4)) / 4
        for initial in (None, 1):
            compare(reduced(way, initial, lengths=LENGTHS)(x.cuda()), reduced(way, initial, lengths=LENGTHS)(x))


def test_runs_by_their_ends_in_rows_and_what_is_not_a_number():
    x = rd.arange(12.0).reshape(2, 6)
    x[1, 2] = float("nan")
    for runs in ([[0, 2, 6], [3, 3, 5]], [[1, 1, 1], [0, 6, 6]]):

        def call(x, runs=runs):
            return rd.segment_reduce(x, "min", offsets=rd.tensor(runs, device=x.device), axis=1)

        compare(call(x.cuda()), call(x))
    empty = rd.zeros(0, 3)
    compare(reduced("mean", lengths=[0, 0])(empty.cuda()), reduced("mean", lengths=[0, 0])(empty))


@pytest.mark.parametrize(
    "way", [pytest.param("sum", marks=pytest.mark.long), pytest.param("mean", marks=pytest.mark.long), "prod", "max"]
)
def test_gradients(way):
    x = rd.tensor([3.0, 0.0, 2.0, 2.0, float("nan"), 0.0, 0.0, 1.0]).reshape(8, 1) * rd.ones(8, 2)
    same_gradients(reduced(way, lengths=[2, 0, 3, 3]), x)
    same_gradients(reduced(way, 2, offsets=[1, 4, 4]), x)


def test_errors_are_the_cpus_and_unsafe_calls_wait_for_nothing():
    x = rd.arange(6.0)
    for runs in ({"lengths": [1, 2]}, {"lengths": [7, -1]}, {"offsets": [0, 9]}, {}):
        with pytest.raises(RuntimeError) as there:
            reduced("sum", **runs)(x.cuda())
        with pytest.raises(RuntimeError) as here:
            reduced("sum", **runs)(x)
        assert str(there.value) == str(here.value)
    data, lengths = x.cuda(), rd.tensor([2, 4]).cuda()
    rd.segment_reduce(data, "sum", lengths=lengths, unsafe=True)
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        found = rd.segment_reduce(data, "sum", lengths=lengths, unsafe=True)
    graph.replay()
    assert found.tolist() == [1, 14]
    wrong = rd.segment_reduce(data, "sum", offsets=rd.tensor([-3, 2, 99]).cuda(), unsafe=True)
    assert wrong.tolist() == [1, 14]  # what lies outside is left out


# --- programs that train ----------------------------------------------------------------------------------------------


def test_the_digits_demo_trains_with_the_losses_of_the_cpu():
    pytest.importorskip("sklearn", reason="the demo's digits come with scikit-learn")
    rd.manual_seed(0)
    model = Classifier(hidden=20)
    there = copy.deepcopy(model).cuda()
    digits = load_digits()[0].first(24)
    ours, theirs = Trainer(model, digits, digits), Trainer(there, digits, digits)
    batches = [digits.first(n) for n in (24, 9, 24)]
    wanted = [ours.step(batch) for batch in batches]
    found = [theirs.step(Split(batch.images.cuda(), batch.labels.cuda())) for batch in batches]
    assert found == pytest.approx(wanted, rel=1e-4) and wanted[2] < wanted[0]
    for a, b in zip(there.parameters(), model.parameters(), strict=True):
        assert a.is_cuda and rd.allclose(a.cpu(), b, atol=1e-4)


@pytest.mark.parametrize("fast", [False, True])
def test_gradients_are_checked_on_the_device(fast):
    x = rd.randn(3, dtype=rd.float64).cuda().requires_grad_()
    assert rd.autograd.gradcheck(lambda x: x * x, x, fast_mode=fast)
