"""Windows of images as columns of a matrix, and columns added up to images again, on a GPU: a thread for each element.

A pixel gathers what belongs to it from the columns, row by row of the window, as the CPU adds them: no atomics, and the
same bits each time. Images lie row by row; a plane is a channel of one of them. Read next:
`runtime/folding.py`.
"""

# ruff: noqa: F821  # names that the compiled text is given
# mypy: disable-error-code="name-defined"
# Names like load_x, store_out, zero are put there by `Written`.

from __future__ import annotations

import numpy as np

from .compiler import CUDA as cuda
from .convolution import divided
from .templates import THREADS, Written

int64 = np.int64


def columns_of_images(out, x, elements, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw):
    """Element (plane, ky, kx, j, i) of the columns: that element of window (j, i), zero outside of the image."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < elements:
        line = divided(index, ow)
        row = divided(line, oh)
        tap_line = divided(row, kw)
        plane = divided(tap_line, kh)
        j, i = line - row * oh, index - line * ow
        at_y = j * sh - ph + (tap_line - plane * kh) * dh
        at_x = i * sw - pw + (row - tap_line * kw) * dw
        value = zero
        if at_y >= 0 and at_y < h and at_x >= 0 and at_x < w:
            value = load_x(x[(plane * h + at_y) * w + at_x])
        out[index] = store_out(value)


def images_of_columns(out, x, elements, h, w, oh, ow, kh, kw, sh, sw, ph, pw, dh, dw):
    """Pixel (plane, at_y, at_x) of the images: the sum of what the columns x have of it."""
    index = int64(cuda.blockIdx.x) * THREADS + int64(cuda.threadIdx.x)
    if index < elements:
        line = divided(index, w)
        plane = divided(line, h)
        at_y, at_x = line - plane * h + ph, index - line * w + pw
        total = zero
        for ky in range(kh):
            from_top = at_y - ky * dh
            j = divided(max(from_top, 0), sh)
            if from_top == j * sh and j < oh:
                for kx in range(kw):
                    from_left = at_x - kx * dw
                    i = divided(max(from_left, 0), sw)
                    if from_left == i * sw and i < ow:
                        total += load_x(x[(((plane * kh + ky) * kw + kx) * oh + j) * ow + i])
        out[index] = store_out(total)


COLUMNS = Written(columns_of_images, ("out", "x"))
IMAGES = Written(images_of_columns, ("out", "x"))
