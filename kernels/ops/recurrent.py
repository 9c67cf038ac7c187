"""Recurrent networks: lstm, gru, rnn_tanh, rnn_relu over sequences, and the step that each repeats, `<name>_cell`.

All are written in other operators, so a mode sees matrix products and gates, and gradients follow. The products with
the input need no earlier step: a layer does them for all times at once; each step then adds that of its hidden state.

Sequences come padded, [time, batch, features], or packed: the elements of all sequences at the first time, then at the
second, ..., longest sequences first, and how many sequences there are at each time. Read next: frontend/nn/rnn.py.

Sources: Hochreiter and Schmidhuber, "Long short-term memory" (1997); Cho et al., "Learning phrase representations using
RNN encoder-decoder" (2014).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import STATE, dataclass, ops
from redispatch.dispatch.layers.autocast import autocast_key
from redispatch.dispatch.tensor import as_numpy, dtypes

from ..declare.operator import composite
from .copying import updated
from .dropout import dropout_op
from .linalg import linear
from .packing import check_lengths
from .rearrange import unsafe_chunk_op
from .shape import cat_op, stack_op

LSTM = 2  # of the modes that libraries count: relu, tanh, LSTM, GRU
FUSED = (dtypes.float32, dtypes.bfloat16, dtypes.float16)
State = Any  # a hidden state, or for lstm a hidden state and a cell
Step = Callable[[Any, State, "Weights"], State]


@dataclass(frozen=True)
class Weights:
    """Weights of one direction of a layer, for the input and the hidden state; biases and projection if there are."""

    of_input: Any
    of_hidden: Any
    input_bias: Any = None
    hidden_bias: Any = None
    projection: Any = None


def gates_of(hidden: Any, weights: Weights) -> Any:
    return linear.op.functional(hidden, weights.of_hidden, weights.hidden_bias)


# --- one step: from the input's share of the gates and the state to the next state -----------------------------------


def tanh_step(gates: Any, hidden: Any, weights: Weights) -> Any:
    return updated(gates_of(hidden, weights), "add", gates).tanh()


def relu_step(gates: Any, hidden: Any, weights: Weights) -> Any:
    return updated(gates_of(hidden, weights), "add", gates).relu()


def lstm_step(gates: Any, state: tuple[Any, Any], weights: Weights) -> tuple[Any, Any]:
    """c ← f c + i g, h ← o tanh(c): what is forgotten, let in and let out is for the gates to say."""
    return lstm_of_gates(updated(gates_of(state[0], weights), "add", gates), state, weights)


def lstm_of_gates(gates: Any, state: tuple[Any, Any], weights: Weights) -> tuple[Any, Any]:
    _, cell = state
    i, f, g, o = unsafe_chunk_op.functional(gates, 4, 1)
    i, f, g, o = i.sigmoid_(), f.sigmoid_(), g.tanh_(), o.sigmoid_()
    cell = (f * cell).add_(i * g)
    hidden = o * cell.tanh()
    if weights.projection is not None:
        hidden = hidden.matmul(weights.projection.t())
    return hidden, cell


def gru_step(gates: Any, hidden: Any, weights: Weights) -> Any:
    """h ← n + z (h - n), n the new content: the reset gate says how much of h goes into it, z how much of h stays."""
    of_input = unsafe_chunk_op.functional(gates, 3, 1)
    of_hidden = unsafe_chunk_op.functional(gates_of(hidden, weights), 3, 1)
    reset = updated(of_hidden[0], "add", of_input[0]).sigmoid_()
    stays = updated(of_hidden[1], "add", of_input[1]).sigmoid_()
    new = of_input[2].add(updated(of_hidden[2], "mul", reset)).tanh_()
    return (hidden - new).mul_(stays).add_(new)


def shown(state: State) -> Any:
    """The part of a state that the next layer sees."""
    return state[0] if isinstance(state, tuple) else state


def parts(state: State) -> tuple[Any, ...]:
    return state if isinstance(state, tuple) else (state,)


def like(state: State, made: Sequence[Any]) -> State:
    return tuple(made) if isinstance(state, tuple) else made[0]


# --- one direction of one layer --------------------------------------------------------------------------------------


def over_times(step: Step, input: Any, state: State, weights: Weights, backwards: bool) -> tuple[Any, State]:
    """The results at all times, [time, batch, features], and the last state."""
    gates = linear.op.functional(input, weights.of_input, weights.input_bias).unbind(0)
    results = []
    for one in reversed(gates) if backwards else gates:
        state = step(one, state, weights)
        results.append(shown(state))
    if backwards:
        results.reverse()
    return stack_op.functional(results, 0), state


class Packed:
    """Walks over packed sequences, which end, or backwards begin, at different times."""

    def __init__(self, batch_sizes: Any) -> None:
        check_lengths(batch_sizes)
        if not batch_sizes._shape.numel():
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        self.sizes = [int(size) for size in as_numpy(batch_sizes)]

    def __call__(self, step: Step, data: Any, state: State, weights: Weights, backwards: bool) -> tuple[Any, State]:
        gates = linear.op.functional(data, weights.of_input, weights.input_bias)
        return (self.backwards if backwards else self.forwards)(step, gates, state, weights)

    def forwards(self, step: Step, gates: Any, state: State, weights: Weights) -> tuple[Any, State]:
        results, ended, at, before = [], [], 0, self.sizes[0]
        for size in self.sizes:
            if size < before:  # the shortest sequences are over: their states are the last
                ended.append(tuple(part.narrow(0, size, before - size) for part in parts(state)))
                state = like(state, [part.narrow(0, 0, size) for part in parts(state)])
            state = step(gates.narrow(0, at, size), state, weights)
            results.append(shown(state))
            at, before = at + size, size
        ended.append(parts(state))
        last = [cat_op.functional(list(each), 0) for each in zip(*reversed(ended), strict=True)]
        return cat_op.functional(results, 0), like(state, last)

    def backwards(self, step: Step, gates: Any, state: State, weights: Weights) -> tuple[Any, State]:
        first, results, at, before = state, [], gates.shape[0], self.sizes[-1]
        state = like(first, [part.narrow(0, 0, before) for part in parts(first)])
        for size in reversed(self.sizes):
            if size > before:  # shorter sequences begin, with their own states
                more = [part.narrow(0, before, size - before) for part in parts(first)]
                both = zip(parts(state), more, strict=True)
                state = like(first, [cat_op.functional([old, new], 0) for old, new in both])
            at -= size
            state = step(gates.narrow(0, at, size), state, weights)
            results.append(shown(state))
            before = size
        return cat_op.functional(results[::-1], 0), state


# --- all layers ------------------------------------------------------------------------------------------------------


def all_weights(params: Sequence[Any], has_biases: bool, projected: bool) -> list[Weights]:
    """Yields the weights of each direction of each layer."""
    each = (4 if has_biases else 2) + projected
    if len(params) % each:
        raise RuntimeError("got an incorrect number of RNN parameters")
    found = []
    for k in range(0, len(params), each):
        own = params[k : k + each]
        biases = own[2:4] if has_biases else (None, None)
        found.append(Weights(own[0], own[1], biases[0], biases[1], own[-1] if projected else None))
    return found


def all_layers(
    walk: Any,
    step: Step,
    input: Any,
    states: Sequence[State],
    weights: Sequence[Weights],
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    join: int,
) -> tuple[Any, list[State]]:
    """The last layer's results, the two directions' side by side along `join`, and the last states of all."""
    directions = 2 if bidirectional else 1
    if len(states) != num_layers * directions or len(weights) != num_layers * directions:
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    last = []
    for layer in range(num_layers):
        results = []
        for direction in range(directions):
            at = layer * directions + direction
            result, state = walk(step, input, states[at], weights[at], direction == 1)
            results.append(result)
            last.append(state)
        input = cat_op.functional(results, join) if bidirectional else results[0]
        if dropout != 0 and train and layer < num_layers - 1:
            input = dropout_op.functional(input, dropout, True)
    return input, last


def lstm_over_times(step: Step, input: Any, state: State, weights: Weights, backwards: bool) -> tuple[Any, State]:
    """`over_times`; under autocast by the fused layer where PyTorch's CPU library has one, which is on the list as a
    whole. What has no such layer (projections, packed sequences, GRU) keeps its states in their own dtype."""
    fused = weights.projection is None and input.dtype in FUSED and input.device.type == "cpu" and input.numel()
    if not fused or STATE.get().excluded & autocast_key("cpu"):
        return over_times(step, input, state, weights, backwards)
    own = weights.of_input, weights.of_hidden
    biases = own if weights.input_bias is None else (weights.input_bias, weights.hidden_bias)
    network = LSTM, weights.of_hidden.shape[1], 1, weights.input_bias is not None, False, False, False
    result, hidden, cell, _ = ops.aten.mkldnn_rnn_layer.default(input, *own, *biases, *state, backwards, [], *network)
    return result, (hidden, cell)


OPTIONS = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def network(name: str, step: Step, over: Any = over_times, refuses: str = "whole", doc: str = "") -> Any:
    """`name` of padded sequences and of packed ones, for a state of one tensor, or of two for lstm.

    over: what walks over the times of padded sequences.
    """
    two = step is lstm_step
    hx_type, returns = ("Tensor[]", "(Tensor, Tensor, Tensor)") if two else ("Tensor", "(Tensor, Tensor)")

    def run(walk: Any, input: Any, hx: Any, params: Sequence[Any], has_biases: bool, *options: Any) -> Any:
        if not two:
            weights = all_weights(params, has_biases, False)
            result, last = all_layers(walk, step, input, hx.unbind(0), weights, *options)
            return result, stack_op.functional(last, 0)
        for part in hx:
            if part.dim() != 3:
                raise RuntimeError(f"Expected hidden state of 3 dimensions, but got {part.dim()}")
        if hx[0].shape[0] != hx[1].shape[0]:
            raise RuntimeError("Expected more hidden states in stacked_rnn")
        projected = hx[0].shape[2] != hx[1].shape[2]
        states = list(zip(*(part.unbind(0) for part in hx), strict=True))
        weights = all_weights(params, has_biases, projected)
        result, last = all_layers(walk, step, input, states, weights, *options)
        cells = stack_op.functional([cell for _, cell in last], 0)
        return result, stack_op.functional([hidden for hidden, _ in last], 0), cells

    def check_states(hx: Any) -> None:
        if two and len(hx) != 2:
            raise RuntimeError(f"{name} expects two hidden states")

    def padded(input: Any, hx: Any, params: Sequence[Any], has_biases: bool, *options_and_order: Any) -> Any:
        *options, batch_first = options_and_order
        check_states(hx)
        input = input.transpose(0, 1) if batch_first else input
        result, *states = run(over, input, hx, params, has_biases, *options, input.dim() - 1)
        return result.transpose_(0, 1) if batch_first else result, *states

    def packed(data: Any, batch_sizes: Any, hx: Any, params: Sequence[Any], has_biases: bool, *options: Any) -> Any:
        check_states(hx)
        return run(Packed(batch_sizes), data, hx, params, has_biases, *options, 1)

    of_packed = composite(
        f"{name}.data(Tensor data, Tensor batch_sizes, {hx_type} hx, {OPTIONS}) -> {returns}",
        refuses=refuses,
    )(packed)
    schema = f"{name}.input(Tensor input, {hx_type} hx, {OPTIONS}, bool batch_first) -> {returns}"
    return composite(schema, also=(of_packed,), doc=doc)(padded)


lstm = network(
    "lstm",
    lstm_step,
    lstm_over_times,
    doc="Returns the outputs and last states of a long short-term memory of several layers.",
)
gru = network("gru", gru_step, doc="Returns the outputs and last state of a gated recurrent unit of several layers.")
rnn_tanh = network("rnn_tanh", tanh_step, doc="Returns outputs and last state of a recurrent network with tanh.")
rnn_relu = network(
    "rnn_relu",
    relu_step,
    doc="Returns outputs and last state of a recurrent network with relu.",
    refuses="bool complex",
)

# --- cells -----------------------------------------------------------------------------------------------------------

CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
HALF = {"cuda": "lower_precision_fp"}


def check_cell(input: Any, weights: Weights, *hidden: Any) -> None:
    """RuntimeError where sizes do not belong together."""
    features, width = weights.of_input.shape[1], weights.of_hidden.shape[1]
    if input.shape[1] != features:
        raise RuntimeError(f"input has inconsistent input_size: got {input.shape[1]} expected {features}")
    for k, state in enumerate(hidden):
        if input.shape[0] != state.shape[0]:
            raise RuntimeError(f"Input batch size {input.shape[0]} doesn't match hidden{k} batch size {state.shape[0]}")
        if state.shape[1] != width:
            raise RuntimeError(f"hidden{k} has inconsistent hidden_size: got {state.shape[1]}, expected {width}")
        if state.dim() != 2:
            raise RuntimeError(f"Expected hidden{k} to have 2 dimensions, but got {state.dim()}")


def all_gates(input: Any, hidden: Any, weights: Weights) -> Any:
    """The gates, of the hidden state first, as PyTorch's cells compute them."""
    of_hidden = gates_of(hidden, weights)
    return updated(of_hidden, "add", linear.op.functional(input, weights.of_input, weights.input_bias))


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {CELL}) -> (Tensor, Tensor)", autocast=HALF, refuses="whole")
def lstm_cell(input: Any, hx: Sequence[Any], w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> tuple[Any, Any]:
    """Returns the states of a long short-term memory after one step."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    weights = Weights(w_ih, w_hh, b_ih, b_hh)
    check_cell(input, weights, *hx)
    return lstm_of_gates(all_gates(input, hx[0], weights), (hx[0], hx[1]), weights)


def cell(name: str, step: Callable[[Any, Any, Weights], Any], of: str, refuses: str) -> Any:
    """A step from the input and a state of one tensor to the next state."""

    def one_step(input: Any, hx: Any, *given: Any) -> Any:
        weights = Weights(*given)
        check_cell(input, weights, hx)
        return step(input, hx, weights)

    one_step.__name__ = name
    doc = f"Returns the state of a {of}."
    schema = f"{name}(Tensor input, Tensor hx, {CELL}) -> Tensor"
    return composite(schema, autocast=HALF, refuses=refuses, doc=doc)(one_step)


def gru_of_input(input: Any, hidden: Any, weights: Weights) -> Any:
    return gru_step(linear.op.functional(input, weights.of_input, weights.input_bias), hidden, weights)


gru_cell = cell("gru_cell", gru_of_input, "gated recurrent unit after one step", "whole")
rnn_tanh_cell = cell(
    "rnn_tanh_cell", lambda *given: all_gates(*given).tanh(), "recurrent network after one step, with tanh", "bool"
)
rnn_relu_cell = cell(
    "rnn_relu_cell",
    lambda *given: all_gates(*given).relu(),
    "recurrent network after one step, with relu",
    "bool complex",
)
