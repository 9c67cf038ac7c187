"""Our checkpoints against PyTorch's: gradients, how often functions run again, warnings and errors of small programs.

Run with a Python that has torch: `python tests/parity/checkpointing.py`. Exits non-zero on any difference.
"""

from __future__ import annotations

import sys
import warnings

import torch
import torch.utils.checkpoint

import redispatch
import redispatch.utils.checkpoint

KINDS = (False, True, None)  # use_reentrant


class Programs:
    """Programs over one of the two libraries. Each returns what is to be compared."""

    def __init__(self, library):
        self.lib, self.checkpointing = library, library.utils.checkpoint
        self.checkpoint = library.utils.checkpoint.checkpoint
        self.calls = 0

    def leaf(self, *values):
        return self.lib.tensor(values, dtype=self.lib.float64, requires_grad=True)

    def step(self, x, factor=1, depth=0):
        self.calls += 1
        y = x.sin()
        if depth:
            y = self.checkpoint(self.step, y, depth=depth - 1, use_reentrant=False)
        return ((y * y).exp() * factor).cos()

    def gradients(self, result, *leaves):
        result.sum().backward()
        return [leaf.grad.tolist() for leaf in leaves], self.calls, type(result.grad_fn).__name__

    # Each takes the kind of checkpoint

    def plain(self, kind):
        x = self.leaf(0.1, 0.2)
        return self.gradients(self.checkpoint(self.step, x * 1, use_reentrant=kind), x)

    def keywords(self, kind):
        x, factor = self.leaf(0.1), self.leaf(2.0)
        return self.gradients(self.checkpoint(self.step, x, factor=factor, use_reentrant=kind), x, factor)

    def nested(self, kind):
        x = self.leaf(0.1)
        return self.gradients(self.checkpoint(self.step, x, 1, 2, use_reentrant=kind), x)

    def again(self, kind):
        x = self.leaf(0.1)
        loss = self.checkpoint(self.step, x, use_reentrant=kind).sum()
        loss.backward(retain_graph=True)
        return self.gradients(loss, x)

    def some(self, kind):
        x = self.leaf(0.1)
        return self.lib.autograd.grad(self.checkpoint(self.step, x, use_reentrant=kind).sum(), x)[0].tolist()

    def to_inputs(self, kind):
        x = self.leaf(0.1)
        self.checkpoint(self.step, x, use_reentrant=kind).sum().backward(inputs=[x])
        return x.grad.tolist()

    def second(self, kind):
        x = self.leaf(0.1)
        loss = self.checkpoint(self.step, x, use_reentrant=kind).sum()
        (slope,) = self.lib.autograd.grad(loss, x, create_graph=True)
        return self.gradients(slope, x)[:2]

    def inside(self, kind, early_stop=True, retain=True):
        def function(x):
            self.calls += 1
            z = x.sin().cos()
            (slope,) = self.lib.autograd.grad(z.sum(), x, retain_graph=retain)
            return slope * x.exp() * (z if retain else 1)

        x = self.leaf(0.3)
        with self.checkpointing.set_checkpoint_early_stop(early_stop):
            return self.gradients(self.checkpoint(function, x, use_reentrant=kind), x)

    def inside_to_the_end(self, kind):
        return self.inside(kind, early_stop=False)

    def inside_once(self, kind):
        return self.inside(kind, retain=False)

    def inside_once_to_the_end(self, kind):
        return self.inside(kind, early_stop=False, retain=False)

    def without_leaves(self, kind):
        return self.checkpoint(self.step, self.leaf(1.0).detach(), use_reentrant=kind).requires_grad

    def in_vain(self, kind):
        self.checkpoint(lambda x: x.detach(), self.leaf(1.0), use_reentrant=kind).sum().backward()

    def under_autocast(self, kind):
        seen = []

        def function(x):
            seen.append(str((x @ x).dtype).rpartition(".")[2])
            return (x @ x).sum().float()

        x = self.lib.ones(2, 2, requires_grad=True)
        with self.lib.autocast("cpu", dtype=self.lib.bfloat16):
            result = self.checkpoint(function, x, use_reentrant=kind)
        return seen, self.gradients(result, x)

    def written(self, kind):
        x = self.leaf(0.1)
        middle = x * 1
        result = self.checkpoint(self.step, middle, use_reentrant=kind)
        middle.add_(1)
        return self.gradients(result, x)

    def looked_twice(self, kind):
        class Twice(self.lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2 + 0 * ctx.saved_tensors[0] + 0 * ctx.saved_tensors[0]

        x = self.leaf(0.1)
        return self.gradients(self.checkpoint(lambda x: Twice.apply(x.sin()), x, use_reentrant=kind), x)

    def sequence(self, kind):
        found = []
        for segments in (1, 2, 3, 7):
            x = self.leaf(0.5)
            result = self.checkpointing.checkpoint_sequential([self.step] * 7, segments, x, use_reentrant=kind)
            found.append(self.gradients(result, x))
        return found

    def too_many_segments(self, kind):
        x = self.leaf(0.5)
        return self.gradients(self.checkpointing.checkpoint_sequential([self.step], 2, x, use_reentrant=kind), x)

    def other_runs(self, kind):
        """Functions that save something else when they run again."""
        first, shorter, longer = (lambda x: x.sin().exp()), (lambda x: x.sin()), (lambda x: x.sin().exp().sin())
        wider, coarser = (lambda x: first(x.repeat(2))), (lambda x: first(x.float()))
        found = []
        for other in (shorter, longer, wider, coarser):
            for options in ({}, {"early_stop": False}, {"determinism_check": "none"}):
                found.append(self.outcome(self.runs_slow, kind, first, other, options))
        return found

    def runs_slow(self, kind, first, other, options):
        runs = []

        def function(x):
            runs.append(1)
            return (first if len(runs) == 1 else other)(x)

        x = self.leaf(0.3)
        return self.gradients(self.checkpoint(function, x, use_reentrant=kind, **options), x)[0]

    def options(self, kind):
        wrong = {"determinism_check": "exact"}, {"debug": True, "context_fn": lambda: None}, {"no_such": 1}
        return [self.outcome(self.with_options, kind, options) for options in wrong]

    def with_options(self, kind, options):
        return self.checkpoint(self.step, self.leaf(1.0), use_reentrant=kind, **options).tolist()

    def outcome(self, function, *args, **kwargs):
        """The result of a call, or the class and message of its error; and its warnings."""
        self.calls = 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = rounded(function(*args, **kwargs))
            except Exception as error:
                text = str(error).partition("\n\nTip")[0].replace("Programs.step", "step")
                result = f"{type(error).__name__}: {text}"
        return result, [f"{w.category.__name__}: {w.message}" for w in caught]


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return type(value)(map(rounded, value)) if isinstance(value, list | tuple) else value


def main() -> int:
    names = [name for name, one in vars(Programs).items() if getattr(one, "__code__", None) and takes_kind(one)]
    differences = 0
    for name in names:
        for kind in KINDS:
            ours, theirs = (p.outcome(getattr(p, name), kind) for p in map(Programs, (redispatch, torch)))
            if ours != theirs:
                differences += 1
                print(f"{name}, use_reentrant={kind}\n  ours    {ours}\n  theirs  {theirs}")
    print(f"{len(names) * len(KINDS)} programs, {differences} differences")
    return bool(differences)


def takes_kind(method) -> bool:
    return method.__code__.co_varnames[:2] == ("self", "kind")


if __name__ == "__main__":
    sys.exit(main())
