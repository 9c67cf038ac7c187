"""The tour: what can be seen while a model runs. Each function does one thing and returns what it saw, as text.

Read next: the mode or subclass that a function uses; story.py for the order in which all is told.
"""

from __future__ import annotations

import redispatch as rd
from redispatch.modes.flop_counter import FlopCounterMode
from redispatch.subclasses.checked_tensor import CheckedTensor, NonFiniteError
from redispatch.subclasses.logging_tensor import Log, LoggingTensor

from .train import LEARNING_RATE, Classifier, Split, Trainer, swish


def own_operator() -> str:
    """What the decorator made of `swish`: its schema, who answers for it, what it looks like without data."""
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
