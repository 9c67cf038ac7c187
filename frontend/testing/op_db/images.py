"""Samples of pooling, padding, resizing, grids, folding and shuffles. References: window by window, point by point."""

from __future__ import annotations

from itertools import product
from math import ceil, floor, prod
from typing import Any

import numpy as np

from ..op_info import FLOATS, NUMBERS, OpInfo
from .common import call, calls, d, entries, first_result, given, later, per_axis, table, thorough, whole, x


def adjoint(function, dims):
    """The gradient of a linear function of images, (grad, image, ...), by images that are 1 at one place."""

    def reference(grad, x, *args):
        count = prod(x.shape[-dims:])
        columns = function(np.eye(count).reshape(count, 1, *x.shape[-dims:]), *args).reshape(count, -1)
        return (grad.reshape(-1, columns.shape[1]) @ columns.T).reshape(x.shape)

    return reference


# --- pooling ----------------------------------------------------------------------------------------------------------


def windows(sizes, kernel, stride, padding, dilation=(1,), ceil_mode=False):
    """For each axis and each window along it the places of its elements, those in the padding too."""
    dims = len(kernel)
    how = zip(
        sizes, kernel, per_axis(stride or kernel, dims), per_axis(padding, dims), per_axis(dilation, dims), strict=True
    )
    for size, k, step, p, apart in how:
        count = (ceil if ceil_mode else int)((size + 2 * p - apart * (k - 1) - 1) / step) + 1
        begins = [i * step - p for i in range(count) if i * step - p < size]
        yield [[begin + apart * j for j in range(k)] for begin in begins]


def pooled(x, axes, reduce):
    """reduce(elements, their places in the image, all places of the window, those in the padding too), side by side."""
    axes = list(axes)
    sizes, found = x.shape[-len(axes) :], []
    for window in product(*axes):
        whole = list(product(*window))
        inside = [one for one in whole if all(0 <= i < n for i, n in zip(one, sizes, strict=True))]
        elements = np.stack([x[(..., *one)] for one in inside], -1)
        found.append(reduce(elements, np.ravel_multi_index(tuple(zip(*inside, strict=True)), sizes), whole))
    return np.stack(found, -1).reshape(*found[0].shape, *map(len, axes))


def largest(x, axes):
    """The largest elements of windows, and their places in the image."""
    values, places = pooled(x, axes, lambda elements, at, _: np.stack([elements.max(-1), at[elements.argmax(-1)]]))
    return values, places.astype(np.int64)


def max_pool(x, kernel, *how):
    return largest(x, windows(x.shape[-len(kernel) :], kernel, *how))


def avg_pool(x, kernel, stride, padding, ceil_mode, count_padding=True, divisor=None):
    dims = len(kernel)
    ends = [size + p for size, p in zip(x.shape[-dims:], per_axis(padding, dims), strict=True)]

    def mean(elements, at, whole):
        counted = [one for one in whole if all(i < end for i, end in zip(one, ends, strict=True))]
        return elements.sum(-1) / (divisor or (len(counted) if count_padding else elements.shape[-1]))

    return pooled(x, windows(x.shape[-dims:], kernel, stride, padding, ceil_mode=ceil_mode), mean)


def shared_out(sizes, counts):
    """Divides each size into so many windows."""
    return [
        [range(i * size // n, -(-(i + 1) * size // n)) for i in range(n)] for size, n in zip(sizes, counts, strict=True)
    ]


def adaptive_max(x, counts):
    return largest(x, shared_out(x.shape[-len(counts) :], counts))


def adaptive_avg(x, counts):
    return pooled(x, shared_out(x.shape[-len(counts) :], counts), lambda elements, *_: elements.mean(-1))


def fractional(x, kernel, output_size, samples):
    """Windows placed at random."""
    dims = len(kernel)
    batched, found = x if x.ndim == dims + 2 else x[None], []
    for n, c in np.ndindex(*batched.shape[:2]):
        axes = []
        for axis, (size, k, count) in enumerate(zip(batched.shape[2:], kernel, output_size, strict=True)):
            shift, step = samples[n, c, 1 - axis if dims == 2 else axis], (size - k) / (count - 1) if count > 1 else 0
            starts = [int((i + shift) * step) - int(shift * step) for i in range(count - 1)] + [size - k]
            axes.append([range(start, start + k) for start in starts])
        found.append(largest(batched[n, c], axes))
    return tuple(np.stack(parts).reshape(*x.shape[:-dims], *output_size) for parts in zip(*found, strict=True))


def unpooled(x, places, output_size, *lists):
    dims = len(output_size)
    images = x.reshape(prod(x.shape[:-dims]), -1)
    out = np.zeros((len(images), prod(output_size)), x.dtype)
    np.put_along_axis(out, places.reshape(images.shape), images, 1)
    return out.reshape(*x.shape[:-dims], *output_size)


SIZES: Any = {1: [(2, 2, 5), (2, 4)], 2: [(2, 2, 5, 4), (2, 4, 4)], 3: [(1, 2, 3, 4, 3)]}


def of_windows(dims, dilated, more=()):
    """Calls with the sizes of windows; `more` arguments at the end, once in each way."""
    dilation = ([1] * dims,) if dilated else ()
    plain = [[2] * dims, [], [0] * dims, *dilation, False, *(one[0] for one in more)]
    padded = [[3] * dims, [2] * dims, [1] * dims, *dilation, True, *(one[-1] for one in more)]
    apart = [[2] * dims, [1] * dims, [1] * dims, [2] * dims, False]
    first = given(d(*SIZES[dims][0]), then=lambda x: calls([x, *padded], *[[x, *apart]] * dilated))
    return calls(*([d(*shape), *plain] for shape in SIZES[dims]), thorough(first))


def of_counts(dims):
    sizes = SIZES[dims]
    return calls(*([d(*s), [2] * dims] for s in sizes), thorough([d(*sizes[0]), [3] + [1] * (dims - 1)]))


def of_averages(dims, *last):
    return calls(*([s, count] for s in SIZES[dims] for count in ([2] * dims, [3] + [1] * (dims - 1))), *last)


def at_random(dims):
    image, how = (2, 2, 4, 3, 5)[: 2 + dims], [[2, 1, 3][:dims], [2, 2, 2][:dims]]
    numbers = x.values(np.linspace(0.06, 0.94, 4 * dims).reshape(2, 2, dims).tolist()).detach()
    return calls([d(*image), *how, numbers], [d(*image[1:]), *how, numbers[:1]])


def pooled_before(dims):
    rest = ([3, 4, 2][:dims], *(([2] * 3, [0] * 3) if dims == 3 else ()))
    places = [[np.arange(2**dims) * 2 + n % 2 for n in range(prod(lead))] for lead in ((2, 2), (2,))]
    shapes = [(*lead, *[2] * dims) for lead in ((2, 2), (2,))]
    return calls(
        *([s, whole(np.reshape(at, s).tolist()), *rest] for s, at in zip(shapes, places, strict=True)),
    )


IMAGE, INDEX = (1, 2, 2, 2), x.index(1, 2, 2, 2, below=4)
FAR = whole([[[[0, 1], [2, 3]], [[0, 1], [20, 3]]]])
INDICES = "Expected shape of indices to be same as that of the input tensor ([1, 2, 2, 2])"
POOLING = table(
    *(
        info
        for n in (1, 2, 3)
        for forward in [of_windows(n, True)]
        for info in (
            *entries(f"max_pool{n}d_with_indices", forward, FLOATS, reference=max_pool),
            *entries(f"max_pool{n}d", forward, FLOATS, reference=first_result(max_pool)),
            *entries(f"adaptive_max_pool{n}d", of_counts(n), FLOATS, reference=adaptive_max),
            *entries(f"adaptive_avg_pool{n}d", of_averages(n, [SIZES[n][0], [1] * n]), FLOATS, reference=adaptive_avg),
        )
    ),
    *entries("avg_pool1d", of_windows(1, False, [(True, False)]), FLOATS, reference=avg_pool),
    *(
        info
        for n in (2, 3)
        for fraction, counts, means, averages in [
            (at_random(n), of_counts(n), of_windows(n, False, [(True, False), (None, 3)]), of_averages(n))
        ]
        for info in (
            *entries(f"avg_pool{n}d", means, FLOATS, reference=avg_pool),
            *entries(f"_adaptive_avg_pool{n}d", averages, FLOATS, reference=adaptive_avg),
            *entries(f"fractional_max_pool{n}d", fraction, FLOATS, reference=fractional),
            *entries(f"max_unpool{n}d", pooled_before(n), FLOATS, reference=unpooled),
        )
    ),
    errors={
        "max_pool2d_with_indices": {
            "pad should be at most half of effective kernel size": [(1, 1, 4, 4), [2, 2], [], [2, 2], [1, 1], False],
            "stride should not be zero": [(1, 1, 4, 4), [2, 2], [0, 0], [0, 0], [1, 1], False],
            "dilation should be greater than zero": [(1, 1, 4, 4), [2, 2], [], [0, 0], [0, 0], False],
            "Output size is too small": [(1, 1, 4, 4), [5, 5], [], [0, 0], [1, 1], False],
            "tensor expected for input": [(4,), [2], [], [0], [1], False],
        },
        "adaptive_max_pool2d": {
            "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [4, 6]": [(4, 6), [2, 3]],
            "adaptive_max_pool2d(): internal error: output_size.size() must be 2": [(1, 2, 4, 6), [2]],
            "but input has sizes [1, 0, 4, 6] with dimension 1 being empty": [(1, 0, 4, 6), [2, 2]],
        },
        "fractional_max_pool2d": {
            "fractional_max_pool2d(): pool height 5 too large relative to input height 4": [
                *((2, 3, 4, 6), [5, 2], [2, 3], (2, 3, 2))
            ],
            "fractional_max_pool2d(): pool width 2 too large relative to input width 6": [
                *((2, 3, 4, 6), [2, 2], [2, 6], (2, 3, 2))
            ],
            "Expect _random_samples.size(0) no less then input batch size.": [
                *((2, 3, 4, 6), [2, 2], [2, 3], (1, 3, 2))
            ],
            "Expect _random_samples.size(2) equals to 2; got 3.": [(2, 3, 4, 6), [2, 2], [2, 3], (2, 3, 3)],
        },
        "max_unpool2d": {
            "There should be exactly two elements (height, width) in output_size, but got 1 elements.": [
                *(IMAGE, INDEX, [4])
            ],
            INDICES: [IMAGE, INDEX[:, :1], [4, 4]],
            "Found an invalid max index: 20 (output volumes are of size 4x4)": [IMAGE, FAR, [4, 4]],
            "elements in indices should be type int64 but got: Int": [IMAGE, INDEX.int(), [4, 4]],
        },
    },
    skips={
        "its derivative is the pooling itself, which refuses complex numbers": "complex_gradients: *avg_pool?d_backward"
    },
)

# --- padding ----------------------------------------------------------------------------------------------------------

MODES: Any = {"reflect": "reflect", "replicate": "edge", "circular": "wrap", "constant": "constant"}


def padded(x, widths, mode="constant", value=None):
    """Negative widths take away: afterwards, as from a padded image, and before, where the image goes round."""
    dims = len(widths) // 2
    if mode == "circular" and min(widths) < 0:
        x = padded(x, [min(width, 0) for width in widths])
        return padded(x, [max(width, 0) for width in widths], mode)
    pairs = [(0, 0)] * (x.ndim - dims) + list(zip(widths[::2], widths[1::2], strict=True))[::-1]
    filled: Any = {"constant_values": value or 0} if mode == "constant" else {}
    wider = np.pad(x, [(max(a, 0), max(b, 0)) for a, b in pairs], MODES[mode], **filled)
    return wider[tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pairs, wider.shape, strict=True))]


def in_mode(mode):
    return lambda x, widths: padded(x, widths, mode)


PADDED: Any = {1: [(2, 2, 4), (2, 4)], 2: [(2, 2, 3, 4), (2, 3, 4)], 3: [(1, 2, 2, 3, 4)]}
WIDTHS, FEWER = [1, 2, 2, 0, 1, 1], [-1, 1, 0, -1, 0, 0]


def paddings(dims):
    first, widths = PADDED[dims][0], WIDTHS[: 2 * dims]
    more = thorough([first, FEWER[: 2 * dims]], [(0, *first[1:]), widths])
    return calls(*([shape, widths] for shape in PADDED[dims]), more)


IN_MODES = calls(
    *([*given, mode] for mode in MODES for given in (((2, 2, 4), [1, 2]), ((2, 3, 4), [1, 0, 2, 1]))),
    [(2, 3), [1, -1], "constant", 2.0],
    thorough([(1, 2, 2, 3, 4), [1, 1, 0, 1, 1, 0], "circular"], [(2, 2, 4), [-1, 2], "circular"]),
)
BY_ZEROS = calls(
    *([(2, 3), [1, 2]], [(2, 3), [-1, 1, 0, 2], 1], [(2, 3), []], [x(3, 2).t(), [1, 0]], [(0, 3), [1, 1, 2, 0], 1])
)
FOUR = (2, 3, 4, 5)
PADDING = table(
    *(
        info
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for dims in (1, 2, 3)
        for name, samples, forward in [(f"{kind}_pad{dims}d", paddings(dims), in_mode(mode))]
        for info in (OpInfo(name, samples, forward, NUMBERS),)
    ),
    OpInfo("pad", IN_MODES, padded, NUMBERS),
    OpInfo("constant_pad_nd", BY_ZEROS, lambda x, widths, value=0: padded(x, widths, value=value)),
    OpInfo("_pad_circular", calls([(2, 2, 4), [1, 2]], [(2, 3, 4), [1, 0, 2, 1]]), in_mode("circular"), NUMBERS),
    OpInfo(
        "_pad_enum",
        calls(*([(2, 2, 4), [1, 2], mode] for mode in range(4))),
        lambda x, widths, mode: padded(x, widths, ["reflect", "replicate", "circular", "constant"][mode]),
        NUMBERS,
    ),
    errors={
        "reflection_pad2d": {
            "padding size is expected to be 4, but got: 3": [(1, 2, 4, 5), [1, 1, 1]],
            "got: padding (5, 1) at dimension 3 of input [1, 2, 4, 5]": [(1, 2, 4, 5), [5, 1, 0, 0]],
            "Argument #6: Padding size should be less than the corresponding input dimension": [
                *((1, 2, 4, 5), [1, 1, 0, 4])
            ],
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size": [(4, 5), [1, 1, 1, 1]],
            "and other non-zero dimensions for input, but got: [1, 0, 4, 5]": [(1, 0, 4, 5), [1, 1, 1, 1]],
        },
        "replication_pad1d": {
            "padding size is expected to be 2": [(2, 5), [1]],
            "input (W: 5) is too small. Calculated output W: 0": [(2, 5), [-3, -2]],
        },
        "reflection_pad2d_backward replication_pad2d_backward": {
            "gradOutput width unexpected. Expected: 7, Got: 5": [(1, 2, 6, 5), (1, 2, 4, 5), [1, 1, 1, 1]]
        },
        "pad": {
            "Padding length must be divisible by 2": [FOUR, [1]],
            "two times the input dimension but got padding length 10 and input of dimension 4": [FOUR, [1] * 10],
            "NotImplementedError: Unrecognised padding mode mirror": [FOUR, [1, 1], "mirror"],
            "NotImplementedError: Padding size 2 is not supported for 4D input tensor.": [FOUR, [1, 1], "reflect"],
            'Padding mode "reflect" doesn\'t take in value argument': [FOUR, [1, 1], "reflect", 1.0],
            "Padding value causes wrapping around more than once.": [FOUR, [6, 0, 0, 0], "circular"],
            "Negative padding value is resulting in an empty dimension": [FOUR, [-4, -2, 0, 0], "circular"],
        },
        "constant_pad_nd": {
            "Length of pad must be even but instead it equals 1": [(2, 3), [1]],
            "Length of pad should be no more than twice the number of dimensions of the input.": [(2,), [1, 1, 1, 1]],
        },
    },
    in_nn="pad",
)

# --- resizing: each axis is a dense matrix, row by row ----------------------------------------------------------------


def nearest(i, size, step, align):
    return {min(floor(i * step), size - 1): 1.0}


def nearest_exact(i, size, step, align):
    return {min(floor((i + 0.5) * step), size - 1): 1.0}


def line(i, size, step, align):
    at = min(max(i * step if align else (i + 0.5) * step - 0.5, 0), size - 1)
    found = {floor(at): 1 - at % 1}
    found[min(floor(at) + 1, size - 1)] = found.get(min(floor(at) + 1, size - 1), 0) + at % 1
    return found


def keys(x, a):
    x = abs(x)
    if x < 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0


def cubic(i, size, step, align):
    at = i * step if align else (i + 0.5) * step - 0.5
    found: Any = {}
    for place in range(floor(at) - 1, floor(at) + 3):
        inside = min(max(place, 0), size - 1)
        found[inside] = found.get(inside, 0) + keys(at - place, -0.75)
    return found


def under(hill, radius):
    def row(i, size, step, align):
        width, middle = max(step, 1), (i + 0.5) * step
        near = [p for p in range(size) if abs(p + 0.5 - middle) < radius * width]
        weights = {place: hill((place + 0.5 - middle) / width) for place in near}
        return {place: weight / sum(weights.values()) for place, weight in weights.items()}

    return row


def matrix(row, size, count, scale, align):
    step = (size - 1) / max(count - 1, 1) if align else 1 / scale if scale else size / count
    made = np.zeros((count, size))
    for i in range(count):
        for place, weight in row(i, size, step, align).items():
            made[i, place] = weight
    return made


def resized(row, aligns):
    def reference(x, output_size, *how):
        align, scales = (how[0], how[1:]) if aligns else (False, how)
        for axis, count in enumerate(output_size, 2):
            made = matrix(row, x.shape[axis], count, scales[axis - 2] if scales else None, align)
            x = np.moveaxis(np.tensordot(x, made, (axis, 1)), -1, axis)
        return x

    return reference


def resized_by_list(row, aligns):
    def reference(x, output_size, *how):
        *align, factors = how
        counts = output_size or [int(n * factor) for n, factor in zip(x.shape[2:], factors, strict=True)]
        return resized(row, aligns)(x, counts, *align, *(factors or []))

    return reference


SMALL, LARGE = [3, 2, 4], [5, 7, 3]


def resizings(dims, aligns, always):
    """To two sizes, by factors, and with the corners aligned where there is that choice."""
    shape, plain = (2, 2, *(4, 3, 5)[:dims]), [False] * aligns
    return calls(
        *([shape, size[:dims], *plain] for size in (SMALL, LARGE)),
        [shape, [6, 4, 7][:dims], *plain, *[1.5] * dims],
        *([[shape, LARGE[:dims], True]] if aligns and always else []),
        thorough([shape, [1] * dims, *plain]),
    )


def resizings_by_list(dims, aligns):
    shape, plain = (2, 2, *(4, 3, 5)[:dims]), [False] * aligns
    return calls([shape, LARGE[:dims], *plain, None], [shape, None, *plain, [1.5, 2.0, 0.5][:dims]])


WAYS = [
    *((f"upsample_nearest{dims}d", dims, nearest, False) for dims in (1, 2, 3)),
    *((f"_upsample_nearest_exact{dims}d", dims, nearest_exact, False) for dims in (1, 2, 3)),
    ("upsample_linear1d", 1, line, True),
    ("upsample_bilinear2d", 2, line, True),
    ("upsample_trilinear3d", 3, line, True),
    ("upsample_bicubic2d", 2, cubic, True),
    ("_upsample_bilinear2d_aa", 2, under(lambda x: 1 - abs(x), 1), True),
    ("_upsample_bicubic2d_aa", 2, under(lambda x: keys(x, -0.5), 2), True),
    ("_upsample_lanczos2d_aa", 2, under(lambda x: float(np.sinc(x) * np.sinc(x / 3)), 3), True),
]
FILTERS = [name for name, *_ in WAYS if name.endswith("_aa")]  # with one, aligned corners only change the factor
EXACTLY_ONE = "Must specify exactly one of output_size and scale_factors"
GRAD_SHAPE = "Expected grad_output to have the same shape as output; output.size(3) = 4 but got grad_output.size(3) = 5"
UPSAMPLING = table(
    *(
        info
        for name, dims, row, aligns in WAYS
        for how in [(dims, aligns, name not in FILTERS)]
        for info in (
            OpInfo(name, resizings(*how), resized(row, aligns), FLOATS),
            OpInfo(f"{name}.vec", resizings_by_list(dims, aligns), resized_by_list(row, aligns), FLOATS),
        )
    ),
    errors={
        "upsample_nearest2d": {
            "It is expected output_size equals to 2, but got size 1": [(1, 2, 4, 5), [3]],
            "It is expected input_size equals to 4, but got size 3": [(2, 4, 5), [3, 3]],
            "Input and output sizes should be greater than 0, but got input (H: 4, W: 5)": [(1, 2, 4, 5), [0, 3]],
            "Non-empty 4D data tensor expected but got a tensor with sizes [1, 0, 4, 5]": [(1, 0, 4, 5), [2, 3]],
        },
        "upsample_nearest2d_backward": {
            GRAD_SHAPE: [(1, 2, 4, 5), [4, 4], [1, 2, 2, 2]],
            "Expected grad_output to be a tensor of dimension 4 but got: dimension 3": [
                *((2, 4, 5), [4, 5], [1, 2, 2, 2])
            ],
        },
        "upsample_nearest2d.vec": {EXACTLY_ONE: calls([(1, 2, 4, 5), [3, 3], [2.0, 2.0]], [(1, 2, 4, 5), None, None])},
    },
    skips={"PyTorch's filters take no 16-bit floats": "bfloat16: *_aa*"},
)

# --- sampling at the points of a grid ---------------------------------------------------------------------------------


def places(at, size, mode, padding, align):
    """The elements along an axis that count for a point at the coordinate `at`, and their weights."""
    at = (at + 1) / 2 * (size - 1) if align else ((at + 1) * size - 1) / 2
    if mode == 2:
        found: Any = {}
        for whole in range(floor(at) - 1, floor(at) + 3):
            place = int(inside(whole, size, padding, align))
            found[place] = found.get(place, 0) + keys(at - whole, -0.75)
    else:
        at = inside(at, size, padding, align)
        found = {round(at): 1.0} if mode == 1 else {floor(at): 1 - at % 1, floor(at) + 1: at % 1}
    return {place: weight for place, weight in found.items() if 0 <= place < size}


def inside(at, size, padding, align):
    if padding == 2:
        low, span = (0, size - 1) if align else (-0.5, size)
        at = low + abs((at - low + span) % (2 * span) - span) if span else 0
    return min(max(at, 0), size - 1) if padding else at


def sampled(x, grid, mode, padding, align):
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]), x.dtype)
    for n, *point in np.ndindex(*grid.shape[:-1]):
        axes = [
            places(float(at), size, mode, padding, align).items()
            for at, size in zip(grid[(n, *point)][::-1], x.shape[2:], strict=True)
        ]
        for terms in product(*axes):
            weight = np.prod([one for _, one in terms])
            out[(n, slice(None), *point)] += weight * x[(n, slice(None), *(place for place, _ in terms))]
    return out


def affine(theta, size, align):
    axes = [np.linspace(-1, 1, n) if align and n > 1 else (2 * np.arange(n) + 1) / n - 1 for n in size[2:]]
    points = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size[2:])], -1)
    return np.einsum("nij,...j->n...i", theta, points)


@later
def points(make, *shape):
    """A grid with points in the image and around it, none at a bend; 0 and 1 where there are no fractions."""
    numbers = 1.37 * np.sin(1.7 * np.arange(1, 1 + prod(shape)))
    if not (make.dtype.is_floating_point or make.dtype.is_complex):
        numbers = (numbers > 0).astype(int)
    return make.values(numbers.reshape(shape).tolist())


def grid_calls(dims):
    image, grid = ((2, 2, 3, 4), (2, 2, 3, 2)) if dims == 2 else ((1, 2, 3, 2, 4), (1, 2, 1, 3, 3))
    ways = product((0, 1, 2) if dims == 2 else (0, 1), (0, 1, 2))
    return [[image, points(*grid), mode, padding, (mode + padding) % 2 == 1] for mode, padding in ways]


AFFINE = [((2, 2, 3), [2, 1, 3, 4], False), ((2, 2, 3), [2, 1, 1, 4], True), ((1, 3, 4), [1, 1, 2, 3, 2], True)]
AFFINE_GRIDS = calls(*map(list, AFFINE))


FALLBACK = "_grid_sampler_2d_cpu_fallback"
NO_GRID = {
    "expected grid and input to have same batch size, but got input with sizes [2, 3, 4, 5]": [
        *(FOUR, (1, 3, 3, 2), 0, 0, False)
    ],
    "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes": [
        *(FOUR, (2, 3, 3, 3), 0, 0, False)
    ],
    "but input has sizes [2, 3, 0, 5] with dimension 2 being empty": [(2, 3, 0, 5), (2, 3, 3, 2), 0, 0, False],
}
GRIDS = table(
    *(
        info
        for n in (2, 3)
        for name in [f"grid_sampler_{n}d"]
        for info in (OpInfo(name, calls(*grid_calls(n)), sampled, FLOATS),)
    ),
    OpInfo(FALLBACK, calls(*grid_calls(2)), sampled, FLOATS),
    OpInfo("grid_sampler", calls(grid_calls(2)[0], grid_calls(3)[0]), sampled, FLOATS),
    OpInfo("affine_grid_generator", AFFINE_GRIDS, affine, FLOATS),
    errors={
        f"grid_sampler_2d {FALLBACK}": NO_GRID,
        "grid_sampler_3d grid_sampler": {
            "grid_sampler(): bicubic interpolation only supports 4D input": [
                *((1, 2, 3, 4, 5), (1, 2, 2, 2, 3), 2, 0, False)
            ]
        },
        "affine_grid_generator": {
            "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.": [(2, 2, 3), [2, 1, 4], False]
        },
    },
    skips={
        "in 8 bits points come to lie on bends, where differences mean nothing": "bfloat16: *grid_sampler*_backward"
    },
)

# --- columns, shuffles ------------------------------------------------------------------------------------------------

HOW, OTHER = ([2, 3], [1, 1], [0, 0], [1, 1]), ([2, 2], [1, 2], [1, 1], [2, 1])


def unfolded(x, kernel, dilation, padding, stride):
    x = np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p, p) for p in padding])
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, (-2, -1))
    windows = windows[..., :: stride[0], :: stride[1], :: dilation[0], :: dilation[1]]
    columns = np.moveaxis(windows, (-2, -1), (-4, -3))
    return columns.reshape(*x.shape[:-3], x.shape[-3] * prod(kernel), prod(windows.shape[-4:-2]))


def folded(x, size, kernel, *how):
    image = np.zeros((*x.shape[:-2], x.shape[-2] // prod(kernel), *size), x.dtype)
    return adjoint(unfolded, 2)(x, image, kernel, *how)


def columns_of(make):
    for one in BLOCKS(make):
        yield from call(unfolded(np.zeros(tuple(one.input.shape)), *one.args).shape, [3, 4], *one.args)(make)


def pixel_shuffle(x, r):
    *lead, channels, height, width = x.shape
    split = x.reshape(*lead, channels // r**2, r, r, height, width)
    n = len(lead)
    turned = split.transpose(*range(n + 1), n + 3, n + 1, n + 4, n + 2)
    return turned.reshape(*lead, channels // r**2, height * r, width * r)


def pixel_unshuffle(x, r):
    parts = [x[..., i::r, j::r] for i in range(r) for j in range(r)]
    return np.stack(parts, -3).reshape(*x.shape[:-3], -1, x.shape[-2] // r, x.shape[-1] // r)


def channel_shuffle(x, groups):
    return np.concatenate([x[:, i :: x.shape[1] // groups] for i in range(x.shape[1] // groups)], 1)


BLOCKS = calls(*([(2, 2, 3, 4), *how] for how in (HOW, OTHER)), [(2, 3, 4), *HOW], thorough([(0, 2, 3, 4), *HOW]))
CHANNELS = calls([(2, 4, 3), 2], [(1, 6, 2, 2), 2])
PLAIN = [[1, 1], [0, 0], [1, 1]]
UNEVEN = "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=3 is not divisible"
EMPTY = "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input"
NOT_PRODUCT = "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got"
COLUMNS = table(
    OpInfo("im2col", BLOCKS, unfolded, FLOATS),
    OpInfo("col2im", columns_of, folded, FLOATS),
    OpInfo("pixel_shuffle", calls([(2, 4, 2, 3), 2], [(8, 2, 1), 2], [(1, 2, 4, 1, 2), 2]), pixel_shuffle),
    OpInfo("pixel_unshuffle", calls([(2, 1, 4, 6), 2], [(2, 2, 4), 2]), pixel_unshuffle),
    *entries("channel_shuffle native_channel_shuffle", CHANNELS, reference=channel_shuffle),
    errors={
        "im2col": {
            "It is expected kernel_size equals to 2, but got size 1": [FOUR, [2], *PLAIN],
            "kernel size should be greater than zero, but got kernel_height: 0": [FOUR, [0, 2], *PLAIN],
            "padding should be non-negative, but got pad_height: -1 pad_width: 0": [
                *(FOUR, [2, 2], [1, 1], [-1, 0], [1, 1])
            ],
            "stride should be greater than zero, but got stride_height: 0": [FOUR, [2, 2], [1, 1], [0, 0], [0, 1]],
            "calculated shape of the array of sliding blocks as (-2, 4)": [FOUR, [7, 2], *PLAIN],
            EMPTY: [(2, 0, 4, 5), *HOW],
        },
        "col2im": {
            "It is expected output_size equals to 2, but got size 1": [(2, 12, 12), [4], [2, 2], *PLAIN],
            NOT_PRODUCT: [(2, 12, 12), [4, 5], [5, 2], *PLAIN],
            "to match the calculated number of sliding blocks 3 * 3 = 9, but got input.size(2)=12.": [
                *((2, 12, 12), [4, 4], [2, 2], *PLAIN)
            ],
        },
        "pixel_shuffle": {
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)": [(2, 2), 2],
            "pixel_shuffle expects a positive upscale_factor, but got 0": [(4, 2, 2), 0],
            "but input.size(-3)=8 is not divisible by 9": [(8, 2, 2), 3],
        },
        "pixel_unshuffle": {UNEVEN: [(1, 3, 4), 2]},
        "channel_shuffle native_channel_shuffle": {
            "channel_shuffle expects input with > 2 dims, but got input with sizes [4, 4]": [(4, 4), 2],
            "Number of channels must be divisible by groups. Got 4 channels and 3 groups.": [(1, 4, 4), 3],
        },
    },
)

IMAGES = [*POOLING, *PADDING, *UPSAMPLING, *GRIDS, *COLUMNS]
