"""im2col and col2im on a device (kernels/cuda/folding.py). Shapes, dtypes and errors are in kernels/ops/folding.py."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda import Launch
from redispatch.kernels.cuda import folding as kernels
from redispatch.kernels.cuda.templates import THREADS, Written, accumulating
from redispatch.kernels.ops.folding import Blocks, blocks_of_columns, blocks_of_images, col2im_op, im2col_op

from .structured import ByWork, Task


def task(written: Written, out: Tensor, x: Tensor, blocks: Blocks) -> list[Task]:
    """A thread for each element of the result, where there are any."""
    count = out._shape.numel()
    if not count:
        return []
    kernel = written.kernel(accumulating(x._dtype.name), (out._dtype.name, x._dtype.name))
    how = (blocks.size, blocks.counts, blocks.kernel, blocks.stride, blocks.padding, blocks.dilation)
    where = Launch(kernel, (-(-count // THREADS), 1, 1), (THREADS, 1, 1))
    return [Task(where, (0, 1), (count, *(number for pair in how for number in pair)))]


def columns(out: Tensor, self: Tensor, *how: Any) -> list[Task]:
    return task(kernels.COLUMNS, out, self, blocks_of_images(self, *how))


def added_up(out: Tensor, self: Tensor, *how: Any) -> list[Task]:
    return task(kernels.IMAGES, out, self, blocks_of_columns(self, *how))


OPERATORS = (ByWork(im2col_op, columns, ("self",)), ByWork(col2im_op, added_up, ("self",)))
