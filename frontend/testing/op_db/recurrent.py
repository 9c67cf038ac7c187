"""Samples of kernels/ops/recurrent.py: every network, padded and packed, with one and two layers and directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..op_info import FLOATS, ErrorInput, Maker, OpInfo, SampleInput, sample

FEATURES, HIDDEN = 1, 2


# --- numpy's: one step, then over time, layers and directions ---------------------------------------------------------


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def share(x: Any, weight: Any, bias: Any) -> Any:
    return x @ weight.T + (0 if bias is None else bias)


def tanh_step(x: Any, state: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    return (np.tanh(share(x, w, b) + share(state[0], u, c)),)


def relu_step(x: Any, state: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    return (np.maximum(share(x, w, b) + share(state[0], u, c), 0),)


def lstm_step(x: Any, state: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    i, f, g, o = np.split(share(x, w, b) + share(state[0], u, c), 4, 1)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def gru_step(x: Any, state: Any, w: Any, u: Any, b: Any = None, c: Any = None) -> Any:
    of_input, of_hidden = np.split(share(x, w, b), 3, 1), np.split(share(state[0], u, c), 3, 1)
    reset, stays = (sigmoid(of_input[k] + of_hidden[k]) for k in (0, 1))
    new = np.tanh(of_input[2] + reset * of_hidden[2])
    return (new + stays * (state[0] - new),)


def through(step: Any, sequence: Any, states: Any, params: Any, biases: bool, layers: int, directions: int) -> Any:
    """One sequence [time, features] through all layers: the results and the last states."""
    each = 4 if biases else 2
    last = []
    for layer in range(layers):
        results = []
        for direction in range(directions):
            at = layer * directions + direction
            state, seen = tuple(part[at][None] for part in states), []
            for x in sequence[::-1] if direction else sequence:
                state = step(x[None], state, *params[each * at : each * (at + 1)])
                seen.append(state[0][0])
            results.append(np.stack(seen[::-1] if direction else seen))
            last.append([part[0] for part in state])
        sequence = np.concatenate(results, 1)
    return sequence, [np.stack(part) for part in zip(*last, strict=True)]


def padded(step: Any) -> Callable[..., Any]:
    def reference(
        x: Any,
        hx: Any,
        params: Any,
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        both: bool,
        batch_first: bool,
    ) -> Any:
        states = hx if isinstance(hx, list) else [hx]
        x = x if batch_first else x.swapaxes(0, 1)
        parts = [
            through(step, one, [part[:, b] for part in states], params, biases, layers, 1 + both)
            for b, one in enumerate(x)
        ]
        result = np.stack([one for one, _ in parts], 0 if batch_first else 1)
        return result, *(np.stack(last, 1) for last in zip(*(last for _, last in parts), strict=True))

    return reference


def packed(step: Any) -> Callable[..., Any]:
    def reference(
        data: Any, sizes: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool, both: bool
    ) -> Any:
        states = hx if isinstance(hx, list) else [hx]
        places = [[int(sizes[:t].sum()) + b for t in range(len(sizes)) if b < sizes[t]] for b in range(sizes[0])]
        result, lasts = None, []
        for b, place in enumerate(places):
            one, last = through(step, data[place], [part[:, b] for part in states], params, biases, layers, 1 + both)
            result = np.zeros((len(data), one.shape[1]), data.dtype) if result is None else result
            result[place] = one
            lasts.append(last)
        return result, *(np.stack(last, 1) for last in zip(*lasts, strict=True))

    return reference


# --- samples ----------------------------------------------------------------------------------------------------------


def weights(make: Maker, gates: int, biases: bool, layers: int, directions: int) -> list[Any]:
    made = []
    for layer in range(layers):
        for _ in range(directions):
            features = FEATURES if layer == 0 else HIDDEN * directions
            shapes = [(gates * HIDDEN, features), (gates * HIDDEN, HIDDEN), *[(gates * HIDDEN,)] * (2 * biases)]
            made += [make(*shape, low=-0.8, high=0.8) for shape in shapes]
    return made


CALLS = ((True, 1, False, False), (False, 2, False, True), (True, 2, True, False))


def sequences(gates: int, parts: int, pack: bool) -> Any:
    """Two sequences, padded to three times or packed; `parts` tensors are the state."""

    def samples(make: Maker) -> Iterator[SampleInput]:
        integer = make.index(1, below=2).dtype
        for biases, layers, both, batch_first in CALLS:
            directions = 1 + both
            state = [make(layers * directions, 2, HIDDEN) for _ in range(parts)]
            params = weights(make, gates, biases, layers, directions)
            options = (params, biases, layers, 0.0, True, both)
            given = state if parts == 2 else state[0]
            if pack:
                yield sample(make(4, FEATURES), make.values([2, 1, 1], integer), given, *options)
            else:
                shape = (2, 3, FEATURES) if batch_first else (3, 2, FEATURES)
                yield sample(make(*shape), given, *options, batch_first)

    return samples


def steps(gates: int, parts: int) -> Any:
    def samples(make: Maker) -> Iterator[SampleInput]:
        for biases in (True, False):
            state = [make(2, HIDDEN) for _ in range(parts)]
            given = state if parts == 2 else state[0]
            yield sample(make(2, FEATURES), given, *weights(make, gates, biases, 1, 1))

    return samples


def one_step(step: Any) -> Callable[..., Any]:
    def reference(x: Any, hx: Any, *params: Any) -> Any:
        made = step(x, hx if isinstance(hx, list) else [hx], *params)
        return made if len(made) == 2 else made[0]

    return reference


def inconsistent(gates: int, parts: int) -> Any:
    def errors(make: Maker) -> Iterator[ErrorInput]:
        params = weights(make, gates, True, 1, 1)
        for x, hidden, text in (
            ((2, 4), (2, HIDDEN), "input has inconsistent input_size: got 4 expected 1"),
            ((2, FEATURES), (3, HIDDEN), "Input batch size 2 doesn't match hidden0 batch size 3"),
            ((2, FEATURES), (2, 5), "hidden0 has inconsistent hidden_size: got 5, expected 2"),
        ):
            state = [make(*hidden) for _ in range(parts)]
            yield ErrorInput(sample(make(*x), state if parts == 2 else state[0], *params), RuntimeError, text)

    return errors


COMPOSED = {"second_gradients": "those of the cell, which is repeated; here they would take minutes"}
LENGTHS = {"expanded": "how many sequences go on must not stay the same where the data is shorter"}
BY_VALUE = {name: "how many steps there are depends on the values of the sizes" for name in ("meta", "subclass")}
NETWORKS = {
    "lstm": (4, 2, lstm_step),
    "gru": (3, 1, gru_step),
    "rnn_tanh": (1, 1, tanh_step),
    "rnn_relu": (1, 1, relu_step),
}

RECURRENT = [
    *(
        OpInfo(f"{n}.input", sequences(g, k, False), padded(step), FLOATS, skips=COMPOSED)
        for n, (g, k, step) in NETWORKS.items()
    ),
    *(
        OpInfo(f"{n}.data", sequences(g, k, True), packed(step), FLOATS, skips={**COMPOSED, **BY_VALUE, **LENGTHS})
        for n, (g, k, step) in NETWORKS.items()
    ),
    *(
        OpInfo(f"{n}_cell", steps(g, k), one_step(step), FLOATS, errors=inconsistent(g, k))
        for n, (g, k, step) in NETWORKS.items()
    ),
]
