"""RNN, GRU and LSTM over sequences, and their single steps: RNNCell, GRUCell, LSTMCell.

Sequences are (time, batch, features), with `batch_first` (batch, time, features), without a batch (time, features), or
a PackedSequence. kernels/ops/recurrent.py has what they compute.
"""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from redispatch.amp.autocast_mode import is_autocast_enabled
from redispatch.kernels.ops import creation, recurrent

from . import init
from .derived import unusual
from .module import Module
from .parameter import empty_parameters

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Layers of one or two directions, each with weights of the input and of the hidden state, and their biases.

    The parameters of layer k are weight_ih_lk, weight_hh_lk, bias_ih_lk and bias_hh_lk, those of the backward direction
    end in _reverse; an LSTM with projections has weight_hr_lk. All start uniform in ±1/sqrt(hidden_size).
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_dropout(dropout, num_layers)
        check_options(bias, batch_first, input_size, hidden_size, num_layers, proj_size)
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        directions, width = 2 if bidirectional else 1, proj_size or hidden_size
        rows = GATES[mode] * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else width * directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, columns), "weight_hh": (rows, width)}
            if bias:
                shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
            if proj_size:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in ("", "_reverse")[:directions]:
                named = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                empty_parameters(self, device, dtype, **named)
                self._all_weights.append([*named])
        self.reset_parameters()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what `pickle` kept; before PyTorch 1.8 there was no projection."""
        super().__setstate__({"proj_size": 0, **state})

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Any]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Nothing: it serves a library for another device."""

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False}
        return f"{self.input_size}, {self.hidden_size}{unusual(self, proj_size=0, **usual)}"

    # Running ------------------------------------------------------------------------------------------------------

    def _run(self, input: Any, hx: Any) -> tuple[Any, tuple[Any, ...]]:
        """The results and the last states, from the states `hx`; zeros for None."""
        packed = input if hasattr(input, "batch_sizes") else None
        alone = packed is None and input.dim() == 2
        if packed is None and input.dim() not in (2, 3):
            kind = self.mode.partition("_")[0]
            noun = "D tensor" if kind == "RNN" else "D"
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}{noun} instead")
        data = input.data if packed is not None else input.unsqueeze(0 if self.batch_first else 1) if alone else input
        batch_sizes = None if packed is None else packed.batch_sizes
        if hx is None:
            sizes = self._state_sizes(data, batch_sizes)
            states = [creation.zeros(*size, dtype=data.dtype, device=data.device) for size in sizes]
        else:
            if packed is None:
                self._check_dims(hx, alone)
            states = [state.unsqueeze(1) if alone else state for state in hx]
        given: Any = tuple(states) if self.mode == "LSTM" else states[0]
        if hx is not None and packed is not None:
            given = self.permute_hidden(given, packed.sorted_indices)
        self.check_forward_args(data, given, batch_sizes)
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        operator: Any = getattr(recurrent, self.mode.lower())
        if packed is not None:
            result, *last = operator(data, batch_sizes, given, self._flat_weights, *options)
            result = type(packed)(result, batch_sizes, packed.sorted_indices, packed.unsorted_indices)
            return result, self.permute_hidden(tuple(last), packed.unsorted_indices)
        result, *last = operator(data, given, self._flat_weights, *options, self.batch_first)
        if alone:
            return result.squeeze(0 if self.batch_first else 1), tuple(state.squeeze(1) for state in last)
        return result, tuple(last)

    def _check_dims(self, hx: tuple[Any, ...], alone: bool) -> None:
        dims, wanted = [state.dim() for state in hx], 2 if alone else 3
        if all(dim == wanted for dim in dims):
            return
        which = "unbatched 2-D" if alone else "batched 3-D"
        if len(dims) == 2:
            found = f"hx and cx should also be {wanted}-D but got ({dims[0]}-D, {dims[1]}-D) tensors"
        else:
            found = f"hx should also be {wanted}-D but got {dims[0]}-D tensor"
        raise RuntimeError(f"For {which} input, {found}")

    # PyTorch's names of what a call checks; subclasses override them, and call them.

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raises an error for an input that does not fit, and RuntimeError for states that do not."""
        self.check_input(input, batch_sizes)
        sizes = self._state_sizes(input, batch_sizes)
        if len(sizes) == 1:
            return self.check_hidden_size(hidden, sizes[0])
        for index, (state, size) in enumerate(zip(hidden, sizes, strict=True)):
            self.check_hidden_size(state, size, f"Expected hidden[{index}] size {{}}, got {{}}")

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raises ValueError for an input of another dtype than the weights', RuntimeError for another size."""
        dtype, dims = self._flat_weights[0].dtype, 3 if batch_sizes is None else 2
        if input.dtype != dtype and not is_autocast_enabled("cpu"):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def _state_sizes(self, input: Any, batch_sizes: Any) -> list[tuple[int, ...]]:
        return [self.get_expected_hidden_size(input, batch_sizes)]

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, ...]:
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Returns a state, or each of several, with its batch in this order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(self.permute_hidden(state, permutation) for state in hx)
        return hx.index_select(1, permutation)


def check_dropout(dropout: Any, num_layers: int) -> None:
    if not isinstance(dropout, Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:  # type: ignore[operator]  # not None here
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:  # type: ignore[operator]  # not None here
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


def check_options(bias: Any, batch_first: Any, inputs: Any, hidden: Any, num_layers: int, proj_size: int) -> None:
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", inputs, int),
        ("hidden_size", hidden, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", inputs), ("hidden_size", hidden), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden:
        raise ValueError("proj_size has to be smaller than hidden_size")


class RNN(RNNBase):
    """h ← tanh(W x + b + U h + c), or with `nonlinearity="relu"` that of relu.

    Shapes: input and h₀ -> (results, last h); h is (layers · directions, batch, hidden_size), the results are like the
    input with directions · hidden_size features.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        result, (last,) = self._run(input, None if hx is None else (hx,))
        return result, last


class GRU(RNNBase):
    """Gated recurrent units: a new state is mixed from the old one and new content. Shapes as RNN's."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        result, (last,) = self._run(input, None if hx is None else (hx,))
        return result, last


class LSTM(RNNBase):
    """Long short-term memory: gates say what a cell forgets, takes in and shows.

    Shapes: input and (h₀, c₀) -> (results, (last h, last c)), as RNN's; with `proj_size`, h has so many features.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, ...]]:
        return self._run(input, hx)

    def _state_sizes(self, input: Any, batch_sizes: Any) -> list[tuple[int, ...]]:
        return [self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)]

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, ...]:
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)


# --- cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """The weights of one step."""

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        biases = rows if bias else None
        weights = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
        empty_parameters(self, device, dtype, **weights, bias_ih=biases, bias_hh=biases)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws all weights anew, uniform in ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}{unusual(self, bias=True, nonlinearity='tanh')}"

    def _step(self, cell: Any, input: Any, states: Any, count: int) -> tuple[Any, ...]:
        """The next states, from these; zeros for None. With or without a batch."""
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for index, state in enumerate(states or ()):
            if state.dim() not in (1, 2):
                which = f"hx[{index}]" if count == 2 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.dim()}D instead")
        alone = input.dim() == 1
        input = input.unsqueeze(0) if alone else input
        if states is None:
            zeros = creation.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)
            states = (zeros,) * count
        elif alone:
            states = [state.unsqueeze(0) for state in states]
        given = states[0] if count == 1 else list(states)
        made = cell(input, given, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        made = made if count == 2 else (made,)
        return tuple(state.squeeze(0) for state in made) if alone else tuple(made)


class RNNCell(RNNCellBase):
    """tanh(W x + b + U h + c), or that of relu: (batch, features) and h -> the next h."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = recurrent.rnn_tanh_cell if self.nonlinearity == "tanh" else recurrent.rnn_relu_cell
        return self._step(cell, input, None if hx is None else (hx,), 1)[0]


class GRUCell(RNNCellBase):
    """One step of a GRU: (batch, features) and h -> the next h."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._step(recurrent.gru_cell, input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (batch, features) and (h, c) -> the next (h, c)."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, ...]:
        return self._step(recurrent.lstm_cell, input, hx, 2)
