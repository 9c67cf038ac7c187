"""The story: the demo from beginning to end, in the order in which it is told.

Read next: whatever room of the library a section made you curious about.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import redispatch as rd
from redispatch.modes.flop_counter import FlopCounterMode
from redispatch.subclasses.checked_tensor import CheckedTensor, NonFiniteError
from redispatch.subclasses.logging_tensor import Log, LoggingTensor
from redispatch.utils.text import Progress, heading, show

from . import picture
from .train import BATCH, LEARNING_RATE, Classifier, Split, Trainer, load_digits, predictions, swish

EPOCHS = 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of the demo: the accuracy on the held-out fifth, where the picture lies, how many seconds it all took."""

    accuracy: float
    picture: Path
    seconds: float


def tell(folder: Path, epochs: int = EPOCHS, images: int | None = None) -> Outcome:
    """Runs the demo, prints what happens, and writes `folder/digits.html`.

    images: train on so many only. Errors: MissingExtra where scikit-learn is not installed.
    """
    start = perf_counter()
    rd.manual_seed(0)

    heading("1. The data")
    train, held_out = load_digits()
    train = train if images is None else train.first(images)
    show(f"{len(train):,} digits of 8 x 8 pixels to learn from, {len(held_out)} held out")

    heading("2. An operator of our own: swish, registered with a decorator around a numba loop")
    show(own_operator())

    heading(f"3. Training: 64 -> 128 -> 10, swish between, Adam, {epochs} epochs")
    trainer = Trainer(Classifier(), train, held_out)
    before_training = perf_counter()
    learn(trainer, epochs)

    heading("4. One epoch more, under bfloat16 autocast")
    show(epoch_in_bfloat16(trainer))
    training = perf_counter() - before_training
    answers = predictions(trainer.model, held_out.images).tolist()  # the model as trained: the tour goes on with it

    heading("5. A mode that counts: the floating-point operations of one training step")
    show(flops_of_a_step(trainer, train.first(BATCH)))

    heading("6. A subclass that writes down what touches it: one image, forward and back")
    show(logged_pass(trainer.model, held_out.first(1)))

    heading("7. A subclass that checks: one batch")
    show(checked_batch(trainer.model, held_out.first(BATCH)))

    heading("8. One add, through every key")
    show(trace_of_one_add())

    heading("9. The picture")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "digits.html"
    verdicts = judge(held_out, answers)
    file.write_text(picture.page(verdicts, trainer.history, len(train), training), encoding="utf-8")
    show(f"{file.resolve()}  (open it in a browser)")

    outcome = Outcome(sum(v.right for v in verdicts) / len(verdicts), file, perf_counter() - start)
    print(f"\n{outcome.accuracy:.1%} of the held-out digits right, in {outcome.seconds:.1f} s altogether.")
    return outcome


def learn(trainer: Trainer, epochs: int) -> None:
    """Trains with a progress line."""
    start = perf_counter()
    progress = Progress(epochs)
    for accuracy in trainer.epochs(epochs):
        loss = trainer.history.losses[-1]
        progress.advance(f"loss {loss:.4f}  held-out accuracy {accuracy:.1%}  {perf_counter() - start:4.1f} s")


def judge(split: Split, answers: list[int]) -> list[picture.Verdict]:
    """Each image beside what it shows and what it was taken for."""
    images, labels = split.images.numpy(), split.labels.tolist()
    return [picture.Verdict(image, label, got) for image, label, got in zip(images, labels, answers, strict=True)]


# --- The tour: what can be seen while a model runs. Each function does one thing and returns what it saw, as text -----


def own_operator() -> str:
    """Shows the decorator's work on `swish`: its schema, its kernels, its metadata without data."""
    x = rd.linspace(-2, 2, 5, requires_grad=True)
    swish(x).sum().backward()
    fake = swish(rd.empty(3, 4, device="meta"))
    return (
        f"{rd.explain(rd.ops.demo.swish.default, x)}\n\n"
        f"x          {numbers(x)}\n"
        f"swish(x)   {numbers(swish(x))}\n"
        f"gradient   {numbers(x.grad)}\n"
        f"on meta    {list(fake.shape)} of {fake.dtype}, without data"
    )


def numbers(x: rd.Tensor) -> str:
    return "  ".join(f"{value:7.4f}" for value in x.tolist())


def flops_of_a_step(trainer: Trainer, batch: Split) -> str:
    """The floating-point operations of one whole training step: forward, backward and optimizer."""
    with FlopCounterMode(display=False) as flops:
        trainer.step(batch)
    return flops.get_table()


def logged_pass(model: Classifier, image: Split) -> str:
    """Every operator that touches one image on its way to a loss and back."""
    log = Log()
    model.zero_grad()
    loss = rd.nn.functional.cross_entropy(model(LoggingTensor(image.images, log)), image.labels)
    log.lines.append("                                       --- backward ---")
    loss.backward()
    return str(log)


def checked_batch(model: Classifier, batch: Split) -> str:
    """A batch whose every result is checked, forward and backward; then the same batch with a mistake in it."""
    model.zero_grad()
    images = CheckedTensor(batch.images)
    loss = rd.nn.functional.cross_entropy(model(images), batch.labels)
    loss.backward()
    told = (
        f"{len(batch)} images, forward and backward: loss {loss.item():.4f}, and every result on the way is finite.\n"
    )
    try:
        model(images.log())
    except NonFiniteError as error:
        return f"{told}The logarithm of the pixels, of which many are 0:\n  {error}"
    raise AssertionError("the logarithm of 0 went unseen")


def epoch_in_bfloat16(trainer: Trainer) -> str:
    """One epoch whose forward passes run under bfloat16 autocast; and in which dtype each part of the model worked."""
    model, few = trainer.model, trainer.train.first(4)
    before = trainer.history.accuracies[-1]
    trainer.set_learning_rate(LEARNING_RATE / 10)
    after = trainer.epoch(lambda: rd.autocast("cpu", dtype=rd.bfloat16))
    with rd.autocast("cpu", dtype=rd.bfloat16), rd.no_grad():
        hidden = model.hidden(few.images)
        active = swish(hidden)
        scores = model.output(active)
        loss = trainer.loss_of(scores, few.labels)
    steps = [("images", few.images), ("hidden", hidden), ("swish", active), ("output", scores), ("loss", loss)]
    dtypes = " -> ".join(f"{name} {str(x.dtype).rpartition('.')[2]}" for name, x in steps)
    return f"{dtypes}\nheld-out accuracy {before:.1%} before, {after:.1%} after"


def trace_of_one_add() -> str:
    """One `add` with everything switched on: who answers at each key, and every hop that the call took."""
    x = LoggingTensor(rd.ones(2, requires_grad=True), Log())
    with rd.autocast("cpu"), FlopCounterMode(display=False), rd.trace() as hops:
        x + 1
    first = next(iter(hops))
    assert first.op is not None  # only the root of the tree has none
    return f"{rd.explain(first.op, first.keyset)}\n\n{hops}"
