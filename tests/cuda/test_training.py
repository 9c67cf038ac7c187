"""Programs that train, on the simulator, with the losses that they have on the CPU."""

import copy

import pytest

import redispatch as rd
from redispatch.demo.train import Classifier, Split, Trainer, load_digits

pytestmark = pytest.mark.usefixtures("simulator")


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
