"""The demo: its operator, its data, its training, what the tour shows, the picture, and the whole story."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

import redispatch as rd
from redispatch.autograd import gradcheck
from redispatch.demo import data, picture, story, tour
from redispatch.demo.train import BATCH, Classifier, History, Trainer, accuracy, swish
from redispatch.modes.flop_counter import FlopCounterMode

REASON = "the digits come with scikit-learn (`pip install scikit-learn`), an extra of the demo"


@pytest.fixture
def digits():
    pytest.importorskip("sklearn", reason=REASON)
    return data.load_digits()


# The operator ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (2, 3, 4)])
def test_swish_is_x_times_its_sigmoid(shape):
    x = np.random.default_rng(0).normal(size=shape) * 4
    np.testing.assert_allclose(swish(rd.tensor(x)).numpy(), x / (1 + np.exp(-x)), rtol=1e-12)


def test_swish_reads_views_as_they_are_laid_out():
    x = rd.linspace(-2, 2, 12).view(3, 4)
    assert rd.equal(swish(x.t()), swish(x).t())
    assert rd.equal(swish(x[:, 1:3]), swish(x)[:, 1:3])


def test_swish_has_its_derivative_and_the_next():
    x = rd.tensor([-3.0, -0.5, 0.0, 0.5, 3.0], dtype=rd.float64, requires_grad=True)
    assert gradcheck(swish, (x,))
    (first,) = rd.autograd.grad(swish(x).sum(), x, create_graph=True)
    assert first.requires_grad
    assert gradcheck(lambda x: rd.autograd.grad(swish(x).sum(), x, create_graph=True)[0], (x,))


def test_swish_has_metadata_without_data():
    fake = swish(rd.empty(3, 4, dtype=rd.float64, device="meta"))
    assert (fake.shape, fake.dtype, fake.device.type) == ((3, 4), rd.float64, "meta")


def test_swish_works_in_float32_under_autocast():
    with rd.autocast("cpu"):
        assert swish(rd.ones(2, dtype=rd.bfloat16)).dtype is rd.float32


def test_swish_has_its_cost():
    with FlopCounterMode(display=False) as flops:
        swish(rd.ones(2, 3))
    assert flops.get_total_flops() == 24


# Data and training ----------------------------------------------------------------------------------------------------


def test_the_held_out_fifth_is_always_the_same(digits):
    train, held_out = digits
    assert (len(train), len(held_out)) == (1438, 359)
    assert train.images.shape == (1438, 64) and train.images.dtype is rd.float32
    assert 0 == train.images.min().item() and train.images.max().item() == 1
    again = data.load_digits()[1]
    assert rd.equal(held_out.images, again.images) and rd.equal(held_out.labels, again.labels)


def test_batches_are_all_images_once(digits):
    few = digits[0].first(10)
    batches = list(few.batches(4, np.random.default_rng(0)))
    assert [len(batch) for batch in batches] == [4, 4, 2]
    seen = sorted(tuple(image) for batch in batches for image in batch.images.tolist())
    assert seen == sorted(map(tuple, few.images.tolist()))


def test_two_epochs_are_enough_to_be_better_than_chance(digits):
    train, held_out = digits
    rd.manual_seed(4)
    trainer = Trainer(Classifier(hidden=32), train.first(480), held_out)
    before = accuracy(trainer.model, held_out)
    assert list(trainer.epochs(2))[-1] > max(0.5, before)
    assert len(trainer.history.losses) == 2 * math.ceil(480 / BATCH)
    assert np.mean(trainer.history.losses[-5:]) < np.mean(trainer.history.losses[:5])


# The tour -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def trainer(digits):
    train, held_out = digits
    rd.manual_seed(0)
    trainer = Trainer(Classifier(hidden=16), train.first(96), held_out.first(48))
    trainer.epoch()
    return trainer


def test_the_flops_of_a_step_name_the_custom_operator(trainer):
    table = tour.flops_of_a_step(trainer, trainer.train.first(8))
    forward, back = 2 * 8 * (64 * 16 + 16 * 10), 2 * 8 * (64 * 16 + 2 * 16 * 10)
    assert re.search(rf"aten\.addmm +2 +{forward:,} ", table)
    assert re.search(rf"aten\.mm +3 +{back:,} ", table)
    assert re.search(rf"demo\.swish +1 +{4 * 8 * 16:,} ", table)


def test_one_image_leaves_its_track_through_model_and_gradients(trainer):
    lines = tour.logged_pass(trainer.model, trainer.held_out.first(1)).splitlines()
    assert lines[:3] == [
        "$1: f32[1, 16] = aten.addmm.default(f32[16], $0, f32[64, 16])",
        "$2: f32[1, 16] = demo.swish.default($1)",
        "$3: f32[1, 10] = aten.addmm.default(f32[10], $2, f32[16, 10])",
    ]
    assert sum("aten.mm.default" in line for line in lines) == 3


def test_the_planted_mistake_is_named(trainer):
    text = tour.checked_batch(trainer.model, trainer.held_out.first(8))
    assert "every result on the way is finite" in text
    assert "aten.log.default made the first value that is not finite" in text


def test_autocast_chooses_a_dtype_for_each_part(trainer):
    text = tour.epoch_in_bfloat16(trainer)
    assert text.splitlines()[0] == (
        "images float32 -> hidden bfloat16 -> swish float32 -> output bfloat16 -> loss float32"
    )
    assert all(parameter.dtype is rd.float32 for parameter in trainer.model.parameters())


def test_the_trace_goes_through_every_key():
    text = tour.trace_of_one_add()
    explained, hops = text.split("\n\n")
    keys = [line.split()[0] for line in explained.splitlines()[2:]]
    assert keys == [
        "PythonTLSSnapshot",
        "AutocastCPU",
        "AutogradCPU",
        "ADInplaceOrView",
        "Python",
        "BackendSelect",
        "CPU",
    ]
    taken = re.findall(r"\[(\w+)\]  ", hops)
    assert taken == ["PythonTLSSnapshot", "AutogradCPU", "Python", "Python", "CPU"]


# The picture ----------------------------------------------------------------------------------------------------------


def verdict(label, predicted):
    return picture.Verdict(np.linspace(0, 1, 64, dtype=np.float32), label, predicted)


def test_the_picture_shows_mistakes_first_and_needs_no_other_file():
    html = picture.page([verdict(1, 1), verdict(2, 7)], History([2.0, 0.5, 0.1], [0.5, 0.9]), 10, 1.5)
    assert re.findall(r'<figure class="(\w+)">', html) == ["wrong", "right"]
    assert "<b>7</b><small>is 2</small>" in html
    assert "50.0%" in html and "All 1 mistakes first, then 1 of those that it got right." in html
    assert not re.search(r'(src|href)="(?!data:)', html)


@pytest.mark.parametrize("losses", [[1e-9], [0.0, 3.0], [5.0] * 3])
def test_charts_take_any_loss_and_a_single_epoch(losses):
    html = picture.page([verdict(1, 1)], History(losses, [0.1]), 1, 0.1)
    assert "nan" not in html and "inf" not in html


# The story ------------------------------------------------------------------------------------------------------------


def test_a_short_run_tells_everything(digits, tmp_path, capsys):
    outcome = story.tell(tmp_path / "out", epochs=2, images=240)
    told = capsys.readouterr().out
    headings = re.findall(r"^(\d)\. .*\n-+$", told, re.MULTILINE)
    assert headings == list("123456789")
    assert "held-out accuracy" in told
    assert told.rstrip().splitlines()[-1].endswith("s altogether.")
    assert outcome.picture == tmp_path / "out" / "digits.html"
    assert outcome.picture.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_whole_run_gets_96_percent_of_the_held_out_digits(digits, tmp_path):
    outcome = story.tell(tmp_path)
    assert outcome.accuracy >= 0.96


def test_the_story_is_the_same_each_time(digits, tmp_path):
    first, second = (story.tell(tmp_path, epochs=1, images=96) for _ in range(2))
    assert first.accuracy == second.accuracy


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn", None)
    with pytest.raises(data.MissingExtra, match="pip install scikit-learn"):
        story.tell(Path("unused"))
