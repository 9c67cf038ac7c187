"""The story: the demo from beginning to end, in the order in which it is told.

Read next: whatever room of the library a section made you curious about.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import redispatch as rd
from redispatch.utils._terminal import Progress, heading, show

from . import picture, tour
from .train import BATCH, Classifier, Split, Trainer, load_digits, predictions

EPOCHS = 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: the accuracy on the held-out fifth, where the picture lies, how many seconds it all took."""

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
    show(tour.own_operator())

    heading(f"3. Training: 64 -> 128 -> 10, swish between, Adam, {epochs} epochs")
    trainer = Trainer(Classifier(), train, held_out)
    before_training = perf_counter()
    learn(trainer, epochs)

    heading("4. One epoch more, under bfloat16 autocast")
    show(tour.epoch_in_bfloat16(trainer))
    training = perf_counter() - before_training
    answers = predictions(trainer.model, held_out.images).tolist()  # the model as trained: the tour goes on with it

    heading("5. A mode that counts: the floating-point operations of one training step")
    show(tour.flops_of_a_step(trainer, train.first(BATCH)))

    heading("6. A subclass that writes down what touches it: one image, forward and back")
    show(tour.logged_pass(trainer.model, held_out.first(1)))

    heading("7. A subclass that checks: one batch")
    show(tour.checked_batch(trainer.model, held_out.first(BATCH)))

    heading("8. One add, through every key")
    show(tour.trace_of_one_add())

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
