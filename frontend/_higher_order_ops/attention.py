"""`nn.attention.flex_attention`: attention with scores and masks that are functions.

    causal = create_block_mask(lambda b, h, q, k: q >= k, None, None, 1024, 1024)
    out = flex_attention(q, k, v, score_mod=lambda score, b, h, q, k: score - (q - k), block_mask=causal)

A BlockMask says for each square block of a mask whether all, some or none of it is seen, so that a kernel may pass over
blocks. Here the scores are computed all (flex_attention.py), and the mask by its function.

Source: PyTorch's torch.nn.attention.flex_attention; Dong et al., "Flex attention" (2024).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops.creation import full, zeros
from redispatch.kernels.ops.ranges import arange
from redispatch.kernels.ops.shape import cat

from .flex_attention import flex_attention as flex_attention_op
from .flex_attention import of_all_scores

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

FlexKernelOptions = dict[str, Any]  # for kernels, of which there are none to choose from
_DEFAULT_SPARSE_BLOCK_SIZE = 128
Mask = Callable[..., Tensor]


class AuxRequest(NamedTuple):
    """The results that are wanted beside the attention."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """Those results: of each row the logarithm of its sum of exponentials, and its greatest score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask under which everything is seen."""
    return batch.new_ones((), dtype=dtypes.bool)


def same_score(score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    return score


def and_masks(*mask_mods: Mask) -> Mask:
    """A mask under which is seen what all of these have seen. RuntimeError for what is no function."""
    return combined(mask_mods, lambda x, y: x & y, True)


def or_masks(*mask_mods: Mask) -> Mask:
    """A mask under which is seen what any of these has seen. RuntimeError for what is no function."""
    return combined(mask_mods, lambda x, y: x | y, False)


def combined(masks: tuple[Mask, ...], both: Callable[..., Any], start: bool) -> Mask:
    if not all(map(callable, masks)):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def mask(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return reduce(both, (one(b, h, q, k) for one in masks), b.new_full((), start, dtype=dtypes.bool))

    return mask


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Returns a mask as a tensor [B, H, Q_LEN, KV_LEN]; for a function of scores, what it makes of zeros.

    Errors: AssertionError where `mod_fn` takes neither four nor five arguments.
    """
    places = [arange(size, device=device) for size in (B or 1, H or 1, Q_LEN, KV_LEN)]
    count = positional(mod_fn)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    if count == 4:
        return of_all_scores(mod_fn, (), 0)(*places)
    return of_all_scores(mod_fn, (0,), 0)(zeros(*map(len, places), device=device), *places)


def positional(function: Callable[..., Any]) -> int:
    code = getattr(function, "__code__", None)
    return 4 if code is None else code.co_argcount - len(function.__defaults__ or ())


# Blocks ---------------------------------------------------------------------------------------------------------------


def ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row of blocks (how many are wanted, the numbers of all with the wanted ones first)."""
    wanted = dense.to(dtypes.int32)
    return wanted.sum(-1).to(dtypes.int32), wanted.argsort(dim=-1, descending=True, stable=True).to(dtypes.int32)


def dense_of(count: Tensor, indices: Tensor) -> Tensor:
    """Of each row of blocks which are wanted: the inverse of `ordered`."""
    first = arange(indices.size(-1), device=indices.device) < count.unsqueeze(-1)
    return zeros(*indices.shape, dtype=dtypes.int32, device=indices.device).scatter(
        -1, indices.to(dtypes.int64), first.to(dtypes.int32)
    )


@dataclass(eq=False, repr=False)
class BlockMask:
    """A mask by blocks. *_num_blocks, *_indices: see `ordered`; of partly and of fully seen blocks, by rows of queries
    (kv) and by columns of keys (q). mask_mod: the mask within blocks that are partly seen.
    """

    seq_lengths: tuple[int, int]
    kv_num_blocks: Tensor
    kv_indices: Tensor
    full_kv_num_blocks: Tensor | None
    full_kv_indices: Tensor | None
    q_num_blocks: Tensor | None
    q_indices: Tensor | None
    full_q_num_blocks: Tensor | None
    full_q_indices: Tensor | None
    BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE)
    mask_mod: Mask = noop_mask

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Mask | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """Returns the mask whose rows of blocks are known. Errors: RuntimeError for indices of fewer dimensions than 2;
        AssertionError for one of the two facts on full blocks without the other.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
        lengths = seq_lengths or (kv_indices.size(-2) * size[0], kv_indices.size(-1) * size[1])
        columns: list[Any] = [None] * 4
        if compute_q_blocks:
            columns[:2] = ordered(dense_of(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                columns[2:] = ordered(dense_of(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        rows: list[Any] = [kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices]
        facts: list[Any] = [lengths, *rows, *columns, size, mask_mod or noop_mask]
        return cls(*facts)

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Returns all facts in the order of the operator; the lengths, and sizes of blocks, as numbers if `flatten`."""
        tensors = [getattr(self, one.name) for one in fields(self)][1:9]
        if flatten:
            return (*self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Returns the number of elements of the mask."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Returns the percentage that need not be computed."""
        blocks = int(self.kv_num_blocks.sum()) + int(
            0 if self.full_kv_num_blocks is None else self.full_kv_num_blocks.sum()
        )
        return 100 * (1 - blocks * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """Returns 1 for each block of which something is seen, and else 0."""
        found = dense_of(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found + dense_of(self.full_kv_num_blocks, self.full_kv_indices)
        return found

    def to(self, device: Any) -> BlockMask:
        """Returns the same on another device."""
        return self.each(lambda one: one.to(device))

    def __getitem__(self, index: Any) -> BlockMask:
        """Returns some of the batches, heads and rows of blocks. Which columns are read, is not known of it."""
        index = index if isinstance(index, tuple) else (index,)
        # A number keeps its dimension, as the operator wants all four.
        index = tuple(slice(one, one + 1 or None) if isinstance(one, int) else one for one in index)
        facts: list[Any] = [None if one is None else one[index] for one in self.as_tuple(False)[1:5]]
        facts += [self.BLOCK_SIZE, self.mask_mod]
        return BlockMask.from_kv_blocks(*facts)

    def each(self, change: Callable[[Tensor], Tensor]) -> BlockMask:
        """Returns a mask of which each tensor is changed."""
        found: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        changed: dict[str, Any] = {name: change(one) for name, one in found.items() if isinstance(one, Tensor)}
        return replace(self, **changed)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Returns the mask for so many queries and keys, of no more blocks than they need; none are added."""
        rows, columns = (-(-new // size) for new, size in zip((new_q_len, new_kv_len), self.BLOCK_SIZE, strict=True))

        def resized(count: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
            return ordered(dense_of(count, indices)[..., :rows, :columns])

        partly = resized(self.kv_num_blocks, self.kv_indices)
        fully: tuple[Any, Any] = (None, None)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            fully = resized(self.full_kv_num_blocks, self.full_kv_indices)
        return BlockMask.from_kv_blocks(*partly, *fully, self.BLOCK_SIZE, self.mask_mod, (new_q_len, new_kv_len))

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Returns a picture of each batch and head: ██ where all blocks are seen, at least partly, ░░ where some are.

        grid_size: the most rows and columns of a picture, in which a cell may be of several blocks; -1 for no such
        bound. limit: the most pictures.
        """
        dense = self.to_dense() > 0
        *lead, rows, columns = dense.shape
        sizes = grid_size if isinstance(grid_size, tuple) else (grid_size, grid_size)
        height, width = (
            1 if most == -1 else -(-have // most) for have, most in zip((rows, columns), sizes, strict=True)
        )
        lines: list[str] = []
        places = list(product(*map(range, lead)))
        for place in places[:limit]:
            lines += [*([""] if lines else []), str(place)]
            for row in range(0, rows, height):
                groups = (dense[place][row : row + height, at : at + width] for at in range(0, columns, width))
                lines.append("".join("██" if one.all() else "░░" if one.any() else "  " for one in groups))
        if len(places) > limit:
            lines += [
                "",
                "...",
                "To print out more, set BlockMask.to_string(limit=N)",
                "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
            ]
        else:
            lines.append("")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self) -> str:
        facts = {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        shown = {name: one.shape if isinstance(one, Tensor) else one for name, one in facts.items()}
        del shown["mask_mod"]
        shown |= {"shape": self.shape, "sparsity": f"{self.sparsity():.2f}%"}
        shown["mask_mod"] = getattr(self.mask_mod, "__name__", self.mask_mod)
        return "BlockMask(\n" + ",\n".join(f"    {name}={one}" for name, one in shown.items()) + "\n)"


def create_block_mask(
    mask_mod: Mask,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """Returns the blocks of a mask. separate_full_blocks: whether those that are seen in full are told from others.

    Errors: AssertionError where `mask_mod` does not take four arguments.
    """
    if positional(mask_mod) != 4:
        raise AssertionError(f"create_block_mask requires a mask_mod of 4 arguments, got {positional(mask_mod)}")
    rows, columns = BLOCK_SIZE if isinstance(BLOCK_SIZE, tuple) else (BLOCK_SIZE, BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = mask.expand(B or 1, H or 1, Q_LEN, KV_LEN)
    mask = filled_up(filled_up(mask, -1, columns), -2, rows)
    seen = mask.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows)).sum((-3, -1))
    whole = seen == rows * columns if separate_full_blocks else seen < 0
    facts: list[Any] = [
        *ordered((seen > 0) & ~whole),
        *(ordered(whole) if separate_full_blocks else (None, None)),
        (rows, columns),
        mask_mod,
        (Q_LEN, KV_LEN),
    ]
    return BlockMask.from_kv_blocks(*facts)


def filled_up(mask: Tensor, dim: int, block: int) -> Tensor:
    """The mask with nothing seen behind it, up to a multiple of the block."""
    shape = list(mask.shape)
    shape[dim] = -shape[dim] % block
    return cat([mask, full(shape, False, dtype=dtypes.bool, device=mask.device)], dim)


# The attention --------------------------------------------------------------------------------------------------------


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Returns the attention of [B, H, L, E] queries to keys [B, H, S, E] and their values [B, H, S, V].

    score_mod(score, batch, head, query, key): the score that counts. block_mask: whose function says what is seen.
    scale: 1 / √E by default. enable_gqa: whether several heads of queries may share one of keys. return_aux: what is
    returned beside it, as an AuxOutput; return_lse: the logarithms of the rows' sums, alone.
    Errors: NotImplementedError for other than 4 dimensions; ValueError for tensors or a mask that do not fit.
    """
    check(query, key, value, enable_gqa, block_mask)
    mask = block_mask or create_block_mask_of_all(query, key)
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    out, lse, largest = flex_attention_op(
        query, key, value, score_mod or same_score, mask.as_tuple(), scale, kernel_options or {}
    )
    if return_aux is not None:
        wanted = lse * math.log(2) if return_aux.lse else None
        return out, AuxOutput(wanted, largest * math.log(2) if return_aux.max_scores else None)
    return (out, lse * math.log(2)) if return_lse else out


def create_block_mask_of_all(query: Tensor, key: Tensor) -> BlockMask:
    """One block, in which everything is seen."""
    one, none = full((1, 1, 1), 1, dtype=dtypes.int32, device=query.device), zeros(1, 1, 1, 1, dtype=dtypes.int32)
    lengths = query.size(-2), key.size(-2)
    return BlockMask.from_kv_blocks(one, none.to(query.device), BLOCK_SIZE=1 << 30, seq_lengths=lengths)


def check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool, block_mask: BlockMask | None) -> None:
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype}, key.dtype: "
            f"{key.dtype}, and value.dtype: {value.dtype} instead."
        )
    heads, shared = query.size(1), key.size(1)
    if not enable_gqa and heads != shared:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={shared}. Try setting enable_gqa=True for GQA."
        )
    if heads % shared:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={shared}."
        )
    if block_mask is not None:
        length, others = block_mask.seq_lengths
        if (length, others) != (query.size(-2), key.size(-2)):
            raise ValueError(
                f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and "
                f"kv_len={key.size(-2)}. Create a block mask of these lengths."
            )
        batches, of_heads = block_mask.kv_num_blocks.shape[:2]
        if batches not in (1, query.size(0)) or of_heads not in (1, heads):
            raise ValueError(
                f"block_mask has {batches} batches and {of_heads} heads; expected 1 or {query.size(0)} batches, and 1 "
                f"or {heads} heads"
            )
