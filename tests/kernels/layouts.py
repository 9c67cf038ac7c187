"""Awkward operands for the kernel tests: stepped, transposed, expanded, offset, empty and 0-d."""

import numpy as np
from hypothesis import strategies as st

from redispatch.kernels import DTYPES, Operand, as_ndarray


@st.composite
def layouts(draw, shape=None):
    """(shape, strides, offset, storage size) of a view that lies inside its storage; strides of 0 included."""
    if shape is None:
        shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    order = draw(st.permutations(range(len(shape))))
    strides, step = [0] * len(shape), 1
    for d in order:
        if draw(st.integers(0, 7)) == 0:
            continue  # expanded: stride 0
        step *= draw(st.sampled_from([1, 1, 2]))
        strides[d] = step
        step *= max(shape[d], 1)
    offset = draw(st.integers(0, 3))
    size = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
    return shape, tuple(strides), offset, max(size, 1)


def injective(layout):
    """Returns the layout without strides of 0 on real dimensions: one that can be written to."""
    shape, strides, offset, size = layout
    if not any(s == 0 and n > 1 for n, s in zip(shape, strides, strict=True)):
        return layout
    step, fixed = 1, []
    for n in reversed(shape):
        fixed.append(step)
        step *= max(n, 1)
    return shape, tuple(reversed(fixed)), offset, offset + step


def filled(layout, dtype, rng):
    """An operand with random content: small integers, so that every dtype holds them exactly."""
    shape, strides, offset, size = layout
    numbers = rng.integers(0 if dtype in ("bool", "uint8") else -8, 9, size)
    return Operand(to_storage(numbers, dtype), dtype, shape, strides, offset)


def to_storage(numbers, dtype):
    """numpy numbers as the storage of a dtype; 16-bit floats are rounded."""
    if dtype == "float16":
        return np.ascontiguousarray(numbers, np.float16).view(np.uint16).ravel()
    if dtype == "bfloat16":
        import ml_dtypes

        return np.ascontiguousarray(numbers).astype(ml_dtypes.bfloat16).view(np.uint16).ravel()
    return np.ascontiguousarray(numbers, DTYPES[dtype].storage).ravel()


def values(operand):
    """Returns the elements of an operand as a numpy array of a type numpy can compute with."""
    array = as_ndarray(operand)
    if operand.dtype == "float16":
        return array.view(np.float16).astype(np.float32)
    if operand.dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def dense(array, dtype=None):
    """A contiguous operand with the content of a numpy array."""
    array = np.asarray(array)
    dtype = dtype or array.dtype.name
    strides = tuple(s // array.itemsize for s in np.empty(array.shape, array.dtype).strides)
    return Operand(to_storage(array, dtype), dtype, array.shape, strides)


def ends(*operands):
    """Arrays and offsets, as a remembered kernel is called with."""
    return [part for x in operands for part in (x.array, x.offset)]
