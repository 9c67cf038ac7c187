"""Attention on a device: one launch forward, three backward (kernels/cuda/attention.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels import Operand
from redispatch.kernels.cuda.attention import Attention
from redispatch.kernels.ops import fused_attention
from redispatch.kernels.ops.attention_choice import SDPAParams, has_widths
from redispatch.kernels.ops.fused_attention import given_bias, random_count, scale_of
from redispatch.kernels.ops.random import drawn

from .decompositions import apart_from_target
from .launch_recorder import refuse
from .operands import operand
from .rng_state import write_seed
from .structured import SCRATCH, ByWork, Task

FLOATS = dtypes.float16, dtypes.bfloat16, dtypes.float32
OUT, LOGS, SEED, OFFSET, Q, K, V, BIAS = range(8)  # where forward's tensors stand, results first


def call_of(query: Tensor, key: Tensor, value: Tensor, bias: Any, dropout_p: float, is_causal: bool, scale: Any) -> Any:
    more: Operand | None = None if bias is None else operand(bias)
    given = operand(query), operand(key), operand(value), more
    return Attention(*given, is_causal, scale_of(query, scale), dropout_p)


def forward_work(
    outs: tuple[Tensor, ...], query: Tensor, key: Tensor, value: Tensor, attn_bias: Any, compute_log_sumexp: bool,
    dropout_p: float, is_causal: bool, scale: Any,
) -> list[Task]:  # fmt: skip
    out, logs = outs[:2]
    call = call_of(query, key, value, attn_bias, dropout_p, is_causal, scale)
    launch, rest = call.forward(operand(out), logs._shape[2])
    bias = BIAS if attn_bias is not None else Q  # read by nobody
    return [Task(launch, (OUT, LOGS, SEED, OFFSET, Q, K, V, bias), rest)]


def backward_work(
    outs: tuple[Tensor | None, ...], grad_out: Tensor, query: Tensor, key: Tensor, value: Tensor, attn_bias: Any,
    out: Tensor, logsumexp: Tensor, philox_seed: Tensor, philox_offset: Tensor, dropout_p: float, mask: Sequence[bool],
    is_causal: bool, scale: Any,
) -> list[Task]:  # fmt: skip
    grad, q, k, v, bias, result, logs, seed, offset = range(4, 13)
    attn_bias = given_bias(attn_bias)
    bias = bias if attn_bias is not None else q
    call = call_of(query, key, value, attn_bias, dropout_p, is_causal, scale)
    of_query, of_key, of_value, of_bias = (None if x is None else operand(x) for x in outs)
    slope, kept, scratch = operand(grad_out), logsumexp._shape[2], 4 * query._shape[:3].numel()
    read = (grad, q, k, v, bias, logs, seed, offset)
    tasks = [Task(*told(call.products(slope, operand(out)), (SCRATCH, grad, result)), scratch)]
    if of_query is not None or of_bias is not None:
        first = call.of_queries(of_query, of_bias, slope, kept)
        tasks.append(Task(*told(first, (0, 3, SCRATCH, *read)), scratch))
    if of_key is not None or of_value is not None:
        second = call.of_keys(of_key, of_value, slope, kept)
        tasks.append(Task(*told(second, (1, 2, SCRATCH, *read)), scratch))
    return tasks


def told(launch: Any, tensors: tuple[int, ...]) -> tuple[Any, tuple[int, ...], tuple[int, ...]]:
    return launch[0], tensors, launch[1]


class FusedAttention(ByWork):
    """Kernels for tensors whose rows are dense; what they do not take is computed by definition.

    Seed and offset of dropout lie on the device before the kernel runs, which reads them there, as backward will.
    """

    def __init__(self, op: Any, work: Any, definition: Any, dense: Sequence[str]) -> None:
        super().__init__(op, work, dense)
        self.definition: Any = apart_from_target(definition)
        at = self.op.names.index
        self.dropout_at, self.causal_at = at("dropout_p"), at("is_causal")
        self.three_at, self.bias_at = (at("query"), at("key"), at("value")), at("attn_bias")

    def to_copy(self, args: tuple[Any, ...]) -> tuple[int, ...]:
        given = [(i, args[i]) for i in self.dense if args[i] is not None]
        return tuple(i for i, x in given if x._shape[3] > 1 and x._stride[3] != 1)

    def is_taken(self, args: tuple[Any, ...]) -> bool:
        """Whether the kernels are for such arguments."""
        self.op.metas_function(*args)
        query, key, value = three = [args[i] for i in self.three_at]
        bias = args[self.bias_at]
        bias = bias if bias is None else given_bias(bias)
        call = SDPAParams(query, key, value, bias, args[self.dropout_at], args[self.causal_at], True)
        elements = all(x._shape.numel() for x in three)
        return elements and query._dtype in FLOATS and has_widths(call) is None

    def run_functional(self, *args: Any) -> Any:
        if not self.is_taken(args):
            return self.definition(*args)
        results = self.results(args)
        if self.op is fused_attention.efficient_op and args[self.dropout_at] > 0:
            refuse()  # the seed is written as a number
            write_seed(results[SEED], results[OFFSET], *drawn(None, random_count(*args[:2]), args[0]._device))
        self.launch(results, args)
        return results


OPERATORS = (
    FusedAttention(
        fused_attention.efficient_op,
        forward_work,
        fused_attention.efficient_definition,
        ("query", "key", "value"),
    ),
    FusedAttention(
        fused_attention.efficient_backward_op,
        backward_work,
        fused_attention.efficient_backward_definition,
        ("grad_out_", "query", "key", "value", "out"),
    ),
)
