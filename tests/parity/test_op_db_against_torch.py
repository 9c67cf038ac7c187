"""Every sample of the operator table, on both libraries: is the result the same in every respect?

Compared are values, dtypes, shapes and strides; which results share memory with which arguments; gradients; the class
and the first line of errors; and the sequence of operators that a dispatch mode sees. KNOWN lists where we differ
knowingly, each with the reason. Which operators a gradient is written in is reported, but is no failure: its values
are the same, and its formula is ours. The report at the end counts the operators that are equal in all respects.

Runs where real torch is: `make parity`. Read next: frontend/testing/op_info.py.
"""

from collections import defaultdict

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with real torch, which is not installed here")

from torch.utils._python_dispatch import TorchDispatchMode as TheirMode  # noqa: E402  # after the path is set

import redispatch as rd  # noqa: E402  # after importorskip: without torch nothing here is of use
from redispatch.dispatch.tensor import Tensor, UntypedStorage, shown  # noqa: E402  # after the path is set
from redispatch.testing.op_db import op_db  # noqa: E402  # after the path is set
from redispatch.testing.op_info import EVERY_DTYPE  # noqa: E402  # after the path is set
from redispatch.utils import _pytree as pytree  # noqa: E402  # after the path is set
from redispatch.utils._python_dispatch import TorchDispatchMode as OurMode  # noqa: E402  # after the path is set

TRANSFORMS = (
    "_fft_c2c _fft_c2r _fft_r2c stft stft.center fft_fft fft_ifft fft_rfft fft_irfft fft_hfft fft_ihfft fft_fft2 "
    "fft_ifft2 fft_rfft2 fft_irfft2 fft_hfft2 fft_ihfft2 fft_fftn fft_ifftn fft_rfftn fft_irfftn fft_hfftn fft_ihfftn"
)
# Autograd records for them the nodes of the operators on one tensor, and so has all derivatives.
ON_LISTS = " ".join(str(info) for info in op_db if str(info).startswith("_foreach_"))


def by_operator(rows):
    """operator -> what differs -> why, of rows: why -> "what, what: operators; what: operators"."""
    table = defaultdict(dict)
    for why, row in rows.items():
        for aspects, _, operators in (part.partition(": ") for part in row.split("; ")):
            for operator in operators.split():
                table[operator].update(dict.fromkeys(aspects.split(", "), why))
    return table


KNOWN = by_operator(
    {
        "PyTorch's is exact to 8 digits": "values: polygamma polygamma_ special_polygamma",
        "PyTorch's trigamma, to 8 digits": "gradients: digamma special_digamma special_psi",
        "PyTorch's are exact to 6 digits near their zeros; ours are mpmath's": (
            "values: special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"
        ),
        "PyTorch's is exact to fewer digits below 0; ours is mpmath's": "values: special_airy_ai",
        "PyTorch keeps the result, with which its gradient cancels far below 0": "operators: special_log_ndtr",
        "PyTorch's series is exact to 3 digits; ours is mpmath's": "values: _standard_gamma_grad",
        "PyTorch's way by matrix products is less exact: ours does them in float64": "values: _cdist_forward",
        "the last bits, which are compared exactly: another FFT": f"values: {TRANSFORMS}",
        "as for values": f"gradients: {TRANSFORMS}",
        "PyTorch's library takes no transform without elements": f"errors: {TRANSFORMS}",
        "the strides that constant_pad_nd gives": f"gradient metadata: {TRANSFORMS}",
        "PyTorch detaches the result which it saves within reach of the mode": "operators: polar prod",
        "PyTorch's has the wrong sign where the distance is negative": "gradients: polar",
        "the strides of a real part": "gradient metadata: polar",
        "the last bits, which are compared exactly": "values: vdot",
        "PyTorch refuses to record a complex copy of reals": "errors, node: view_as_complex_copy",
        "PyTorch's gradient is that of another part; ours is that of finite differences": (
            "gradients: as_strided_scatter"
        ),
        "PyTorch's has values in the triangle that is not read": "gradients: cholesky_inverse",
        "as for cholesky_inverse": "gradients: cholesky_solve",
        "the strides of a gradient without elements": "gradient metadata: constant_pad_nd prod.dim_int",
        "PyTorch reads whatever lies behind the scores of the classes": "errors 2: _ctc_loss",
        "PyTorch adds 1e-12 to the variance where ours is at least that": "gradients: binary_cross_entropy_backward",
        "lift_fresh of the lengths, where PyTorch's C++ fills an empty tensor unseen": "operators: ctc_loss.IntList",
        "PyTorch's CPU has one operator of oneDNN for a layer": "operators, node: lstm.input",
        "PyTorch leaves the loss of no samples unset": "values: multi_margin_loss",
        "linalg_vector_norm, where PyTorch has norm.ScalarOpt_dim": "operators, node: pairwise_distance",
        "negative fractions as uint8, which C++ leaves undefined": "values: smooth_l1_loss_backward",
        "as for pairwise_distance": "operators, errors: triplet_margin_loss",
        "the last bits of float32, where terms of a sum cancel": "gradients: convolution_backward",
        "the strides that PyTorch's columns of patches have": "gradient metadata: convolution_backward",
        "rows are put where they belong all at once, not step by step": (
            "operators, node: _pack_padded_sequence_backward _pad_packed_sequence"
        ),
        "mul.Tensor with a number, where PyTorch's C++ calls mul.Scalar": "operators: cross_entropy_loss",
        "the same products and quotients in another order": (
            "operators: cov corrcoef gradient.tensorarrayint gradient.tensorarray gradient.array"
        ),
        "edges and middle in another order": (
            "operators: gradient.scalarint gradient.scalararray gradient.scalarrayint gradient.scalarrayarray"
        ),
        "the step of a dimension of size 1": "gradient metadata: bilinear pad_sequence",
        "parts of one gradient, where PyTorch copies some of them": "gradient metadata: block_diag",
        "ours takes the elements; PyTorch selects from all tuples": "operators, node: combinations",
        "ours is a convolution like the others": "operators, node: slow_conv3d thnn_conv2d conv_tbc_backward",
        "as for convolution": "errors, error text 0: slow_conv3d thnn_conv2d",
        "PyTorch reads another kernel than it is given": "errors 1, error text 1: slow_conv3d thnn_conv2d",
        "the last bits of float32": (
            "gradients: slow_conv3d thnn_conv2d grid_sampler_2d_backward grid_sampler_3d_backward "
            "_grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward linalg_lstsq"
        ),
        "new_empty, where PyTorch's C++ has empty": "operators: unflatten_dense_tensors",
        "PyTorch has an operator of its own for the first and last dimension": "operators, node: _weight_norm",
        "those of its parts": "errors, error text, error class: _weight_norm",
        "none is none; PyTorch's is a tensor of zeros": "gradients: slice_inverse",
        "ours has a derivative; PyTorch's has none": (
            "node, gradient errors: copy _addmm_activation _native_multi_head_attention native_channel_shuffle "
            "hardsigmoid_backward heaviside logit_backward mish_backward silu_backward _chunk_cat"
        ),
        "PyTorch ignores scale_grad_by_freq here and gives a wrong one": "gradient errors: embedding_dense_backward",
        "the same grid, its axes laid out in fewer steps": "operators: affine_grid_generator_backward",
        "PyTorch's is for float32 alone": (
            "errors: _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward"
        ),
        "the strides of a turned weight": "gradient metadata: conv_tbc_backward",
        "the workspace is empty: nothing is kept for backward": "metadata: mkldnn_rnn_layer",
        "PyTorch detaches the results which it saves within reach of the mode": "operators: mkldnn_rnn_layer",
        "PyTorch's has one for biases that it was told not to use": "gradients: mkldnn_rnn_layer",
        "oneDNN has no float64": "errors: mkldnn_rnn_layer",
        "as for errors": "error text 0: mkldnn_rnn_layer",
        "PyTorch multiplies a float64 by a sixth that was rounded to float32": "gradients: hardsigmoid",
        "as for hardsigmoid": "values: hardsigmoid_backward",
        "PyTorch's gradient of the value does not take negative indices": "gradient errors: index_fill.int_Tensor",
        "mul.Tensor and add.Tensor with a number, where PyTorch's C++ calls the overloads Scalar": "operators: isclose",
        "what is fresh has no history to record": "node: lift_fresh",
        "PyTorch's gradient does not take negative starts": "gradient errors: narrow_copy",
        "PyTorch saves the result, too, and detaches it": "operators: linalg_householder_product orgqr",
        "PyTorch has none for no columns": "gradients: linalg_householder_product orgqr",
        "the signs of vectors, which are those of the LAPACK in use": "values: _linalg_svd linalg_svd svd",
        "PyTorch makes an empty result first": (
            "operators: linalg_matrix_rank linalg_matrix_rank.atol_rtol_float linalg_matrix_rank.atol_rtol_tensor "
            "linalg_matrix_rank.tol_tensor"
        ),
        "PyTorch writes over the inverse that its derivative needs": (
            "operators, gradient errors: linalg_cond linalg_cond.p_str"
        ),
        "PyTorch counts one version less": "gradient error text: vander",
        "PyTorch asks an operator which dtype integers are promoted to": "operators: vander",
        "PyTorch's fails for factors that were not wanted; ours is none": "gradient errors: lu_unpack",
        "PyTorch gives an empty mask the dtype of the input, others bool": "metadata: native_dropout",
        "new_empty of no classes, where PyTorch calls empty": "operators: one_hot",
        "as for prod": "operators: prod.dim_int",
        "the strides of the gradient of a transposed tensor": "gradient metadata: put",
        "as for put": "gradient metadata: take",
        "PyTorch's gradient takes no source larger than the index": "gradient errors: scatter_reduce.two",
        "a tensor of that size is given back as it is": "aliasing, operators, node: sum_to_size",
        "PyTorch's C++ reads the places unseen": "operators: tensor_split.tensor_indices_or_sections",
        "PyTorch's gradient asks for a weight": (
            "gradient errors: _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional"
        ),
        "a functional form has a node of its own": (
            "node: _batch_norm_no_update _batch_norm_with_update _batch_norm_with_update_functional"
        ),
        "of nothing PyTorch's has the wrong shape": (
            "metadata, gradient errors: _unsafe_masked_index _unsafe_masked_index_put_accumulate"
        ),
        "PyTorch names nodes of lists otherwise, or has no derivative": f"node, gradient errors: {ON_LISTS}",
        "PyTorch detaches a result that cannot require grad within reach of the mode": "operators: view.dtype",
    }
)

# Which operators a gradient is written in is told, but is no failure.
ITS_OWN_FORMULA = {"backward operators": "the derivative's formula is ours; its values are compared as well"}


# --- from ours to theirs ----------------------------------------------------------------------------------------------


def to_torch(x):
    """A value of ours as torch's: tensors with the same strides, dtypes and the like by name."""
    if isinstance(x, Tensor):
        flat = torch.empty_strided(tuple(x.shape), x.stride(), dtype=to_torch(x.dtype))
        if x.dtype is rd.bfloat16:
            flat.copy_(torch.from_numpy(shown(x.detach()).astype(np.float32)))
        else:
            flat.copy_(torch.from_numpy(np.array(shown(x.detach()))))
        return flat.requires_grad_(x.requires_grad)
    if isinstance(x, rd.dtype):
        return getattr(torch, x.name)
    if isinstance(x, rd.device):
        return torch.device(str(x))
    if isinstance(x, rd.memory_format | type(rd.strided)):
        return getattr(torch, str(x).removeprefix("torch."))
    return x


def theirs(sample):
    args, kwargs = pytree.tree_map(to_torch, (sample.arguments, dict(sample.kwargs)))
    return args, kwargs


def torch_op(name):
    """torch's operator "aten::add.Tensor"."""
    _, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload or "default")


# --- what is compared -------------------------------------------------------------------------------------------------


def as_list(result):
    return [x for item in result for x in as_list(item)] if isinstance(result, tuple | list) else [result]


def metadata(x):
    if not isinstance(x, Tensor | torch.Tensor):
        return type(x).__name__
    return str(x.dtype), tuple(x.shape), tuple(x.stride()), x.storage_offset()


def value(x):
    """A result as something comparable: numpy values, or the number that it is."""
    if isinstance(x, Tensor):
        values = shown(x.detach())
        return values.astype(np.float32) if x.dtype is rd.bfloat16 else values
    if isinstance(x, torch.Tensor):
        x = torch.zeros_like(x) if x._is_zerotensor() else x.detach()
        return (x.float() if x.dtype is torch.bfloat16 else x).resolve_conj().resolve_neg().numpy()
    return x


def same_values(ours, other):
    if not isinstance(ours, np.ndarray):
        return ours == other
    if ours.shape != other.shape:
        return False
    if ours.dtype.kind not in "fc":
        return np.array_equal(ours, other)
    rtol, atol = (1.3e-6, 1e-5) if ours.dtype == np.float32 else (1e-12, 1e-12)
    return np.allclose(ours, other, rtol=rtol, atol=atol, equal_nan=True)


def memory(x):
    """The address of a tensor's memory."""
    return x.untyped_storage().data_ptr()


def aliasing(results, arguments):
    """For each result, the arguments that it shares memory with, and whether it is one of them."""
    kinds = Tensor | torch.Tensor
    given = [x for x in pytree.tree_leaves(arguments) if isinstance(x, kinds)]
    return [
        [(i, x is result) for i, x in enumerate(given) if memory(x) and memory(x) == memory(result)]
        for result in results
        if isinstance(result, kinds)
    ]


class OurLog(OurMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class TheirLog(TheirMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def outcome(call, *args, **kwargs):
    """(the results as a list, None) or (None, the error)"""
    try:
        return as_list(call(*args, **kwargs)), None
    except Exception as error:
        return None, error


def first_line(error):
    return str(error).split("\n")[0].strip()


def compare(info, sample, requires_grad):
    """The differences between the two libraries for one call: aspect -> description."""
    mine = sample.copy()
    args, kwargs = theirs(sample)
    if info.mutates:  # a leaf that requires grad cannot be written to
        mine = mine.map(lambda x: x.detach())
        args, kwargs = theirs(mine)
    rd.manual_seed(0), torch.manual_seed(0)
    with OurLog() as our_log:
        ours, our_error = outcome(info.op, *mine.arguments, **mine.kwargs)
    with TheirLog() as their_log:
        other, their_error = outcome(torch_op(info.name), *args, **kwargs)
    if our_error or their_error:
        return compare_errors(our_error, their_error)
    found = {}
    if len(ours) != len(other):
        return {"values": f"{len(ours)} results instead of {len(other)}"}
    for a, b in zip(ours, other, strict=True):
        if metadata(a) != metadata(b):
            found["metadata"] = f"{metadata(a)} instead of {metadata(b)}"
        elif (info.random or info.reference is not None) and not same_values(value(a), value(b)):
            found["values"] = f"{a} instead of {b}"
        if getattr(a, "requires_grad", False) != getattr(b, "requires_grad", False):
            found["requires_grad"] = f"{getattr(a, 'requires_grad', False)}"
        elif requires_grad and isinstance(a, Tensor):
            names = type(a.grad_fn).__name__, type(b.grad_fn).__name__
            if names[0] != names[1]:
                found["node"] = f"{names[0]} instead of {names[1]}"
    sharing = aliasing(ours, (mine.arguments, mine.kwargs)), aliasing(other, (args, kwargs))
    if sharing[0] != sharing[1]:
        found["aliasing"] = f"{sharing[0]} instead of {sharing[1]}"
    if our_log.seen != their_log.seen:
        found["operators"] = f"{our_log.seen} instead of {their_log.seen}"
    if requires_grad and not info.random and "requires_grad" not in found:
        found |= compare_gradients(ours, other, mine.tensors(), pytree.tree_leaves((args, kwargs)))
    return found


def compare_errors(ours, other):
    if ours is None or other is None:
        return {"errors": f"{ours!r:.150} instead of {other!r:.150}"}
    found = {}
    if type(other).__name__ not in [kind.__name__ for kind in type(ours).__mro__]:
        found["error class"] = f"{type(ours).__name__} instead of {type(other).__name__}"
    if first_line(ours) != first_line(other):
        found["error text"] = f"{first_line(ours)!r} instead of {first_line(other)!r}"
    return found


def compare_gradients(ours, other, our_inputs, their_inputs):
    """The gradients of the sum of all results' squares, and which operators compute them."""
    their_inputs = [x for x in their_inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    our_inputs = [x for x in our_inputs if x.requires_grad]
    our_results = [x for x in ours if isinstance(x, Tensor) and x.requires_grad]
    their_results = [x for x in other if isinstance(x, torch.Tensor) and x.requires_grad]
    if not our_results or not our_inputs:
        return {}
    our_seeds = [x.detach().clone() for x in our_results]
    their_seeds = [to_torch(x) for x in our_seeds]
    with OurLog() as our_log:
        a, our_error = outcome(rd.autograd.grad, our_results, our_inputs, our_seeds, allow_unused=True)
    with TheirLog() as their_log:
        b, their_error = outcome(torch.autograd.grad, their_results, their_inputs, their_seeds, allow_unused=True)
    if our_error or their_error:
        return {f"gradient {k}": v for k, v in compare_errors(our_error, their_error).items()}
    found = {}
    for x, y in zip(a, b, strict=True):
        if (x is None) != (y is None):
            found["gradients"] = f"{x} instead of {y}"
        elif x is not None and not same_values(value(x), value(y)):
            found["gradients"] = f"{x} instead of {y}"
        elif x is not None and metadata(x) != metadata(y):
            found["gradient metadata"] = f"{metadata(x)} instead of {metadata(y)}"
    if our_log.seen != their_log.seen:
        found["backward operators"] = f"{our_log.seen} instead of {their_log.seen}"
    return found


# --- the tests --------------------------------------------------------------------------------------------------------


def skip_what_is_not_compared(info, record_property):
    """Skips an operator that the table leaves out of the comparison, and hands the reason on to the report."""
    if "parity" in info.skips:
        record_property(f"parity:{info}", {"not compared": info.skips["parity"]})
        pytest.skip(info.skips["parity"])


def judge(info, found, known, record_property):
    """Hands the findings on to the report in conftest.py; fails for those that have no reason in `known`."""
    grave = {aspect: text for aspect, text in found.items() if aspect not in known}
    record_property(f"parity:{info}", {aspect: known.get(aspect, f"NOT KNOWN: {found[aspect]}") for aspect in found})
    assert not grave, "\n".join(f"{aspect}: {text}" for aspect, text in grave.items())


# What differs only in dtypes beyond OpInfo.dtypes -> why
KNOWN_IN_DTYPES = by_operator(
    {
        "PyTorch's overflows in 16 bits": "values: matrix_exp linalg_matrix_exp",
        "PyTorch expects the norm of complex numbers to be complex, and fails": (
            "errors: norm.ScalarOpt_dtype norm.ScalarOpt_dim_dtype"
        ),
        "coordinates from -1 to 1 mean nothing in uint8": (
            "values: affine_grid_generator affine_grid_generator_backward"
        ),
        "PyTorch computes float16 in float16, ours in float32": (
            "values: grid_sampler grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward"
        ),
        "of float32 and float64 alone; PyTorch's steps refuse one after the other": (
            "errors: histogram.bin_ct histogram.bins_tensor histogramdd histogramdd.int_bins "
            "histogramdd.TensorList_bins _histogramdd_bin_edges _histogramdd_from_bin_cts "
            "_histogramdd_from_bin_tensors"
        ),
        "likewise": (
            "error text: histogram.bin_ct histogram.bins_tensor histogramdd histogramdd.int_bins "
            "histogramdd.TensorList_bins _histogramdd_bin_edges _histogramdd_from_bin_cts "
            "_histogramdd_from_bin_tensors"
        ),
        "PyTorch's is for float32 alone": (
            "errors, error text: _grid_sampler_2d_cpu_fallback _grid_sampler_2d_cpu_fallback_backward"
        ),
        "as for convolution": "errors, error text: conv_tbc conv_tbc_backward",
        "what is refused first": "error text: _native_multi_head_attention embedding_renorm_",
        "the workspace is empty: nothing is kept for backward": "metadata: mkldnn_rnn_layer",
        "what oneDNN has depends on the processor": "errors, error text, error class: mkldnn_rnn_layer",
        "oneDNN keeps states of 16 bits in float32": "values: mkldnn_rnn_layer",
        "the product of two is rounded before it meets the third": "values: _trilinear bilinear",
        "it is the difference that is refused": "error text: gradient.tensorarrayint gradient.tensorarray",
        "PyTorch calls the type of the weight now one way, now another": (
            "error text: _embedding_bag _embedding_bag_forward_only embedding_bag embedding_bag.padding_idx"
        ),
        "one kernel here takes every dtype; PyTorch's refuse bool and complex numbers, and some integers": (
            "errors: convolution convolution_backward _convolution _convolution.deprecated _convolution_mode conv1d "
            "conv2d conv3d conv_transpose1d conv_transpose2d.input conv_transpose3d.input conv1d.padding "
            "conv2d.padding conv3d.padding"
        ),
        "PyTorch adds up 16-bit floats in 16 bits where it is transposed": (
            "values: convolution convolution_backward _convolution _convolution.deprecated _convolution_mode conv1d "
            "conv2d conv3d conv_transpose1d conv_transpose2d.input conv_transpose3d.input conv1d.padding "
            "conv2d.padding conv3d.padding"
        ),
        "what is refused first: complex deviations": "error text: normal.float_Tensor normal.Tensor_Tensor",
        "no normal numbers with complex means": "errors: normal.Tensor_float",
        "PyTorch computes the gradient of bools as floats and then refuses to store it": "errors: glu_backward",
        "the name of a kernel": "error text: glu_backward histc nll_loss2d_forward nll_loss_nd max_pool1d",
        "it is a step of the computation that refuses bool": "error class, error text: rms_norm",
        "PyTorch's operator says it otherwise than its method, whose words these are": "error text: requires_grad_",
        "the last bits of complex64, after many steps": "values: gru.input",
        "which of two matrices is named first": "error text: rnn_tanh.input rnn_tanh.data",
        "PyTorch's structured kernel writes bool in the place of Bool": "error text: clamp",
        "PyTorch wraps a negative start in uint8 before it counts": "values: linspace",
        "PyTorch gives an empty mask the dtype of the input, others bool": "metadata: native_dropout",
        "PyTorch's is exact to 8 digits": "values: polygamma polygamma_ special_polygamma",
        "PyTorch calls the second one trigamma": "error text: polygamma polygamma_ special_polygamma",
        "a tensor of that size is given back as it is": "metadata: sum_to_size",
        "without gradients, PyTorch takes no integers here": "errors: max_pool1d",
        "no complex numbers of 16-bit floats": "errors: complex view_as_complex view_as_complex_copy",
        "PyTorch's is of its own making": "error text: _conj _conj_copy",
        "PyTorch never looks at negative bools": "errors: _neg_view _neg_view_copy",
        "how the type of a tensor is written": "error text: stft stft.center",
        "the name of a library": "error text: _fft_r2c",
    }
)
NARROW = {"float16": (2e-3, 2e-3), "bfloat16": (1.6e-2, 1e-2), "complex64": (1.3e-6, 1e-5), "float32": (1.3e-6, 1e-5)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", op_db, ids=str)
def test_the_operator_is_torchs_in_the_other_dtypes(info, record_property):
    """Values, looks and errors of one call in each dtype that the next test leaves out; no gradients."""
    skip_what_is_not_compared(info, record_property)
    found = {}
    for dtype in EVERY_DTYPE:
        if dtype in info.dtypes or dtype.name in info.not_sampled:
            continue
        sample = info.sample_inputs(dtype, thorough=False)[0]
        if any(isinstance(x, UntypedStorage) for x in sample.arguments):
            continue
        for aspect, text in compare_results(info, sample).items():
            found.setdefault(aspect, f"{text}    for {sample}, {dtype}")
    judge(info, found, KNOWN.get(str(info), {}) | KNOWN_IN_DTYPES.get(str(info), {}), record_property)


def compare_results(info, sample):
    """The differences between the two libraries in the results, or the errors, of one call."""
    args, kwargs = theirs(sample)
    mine = sample.copy()
    ours, our_error = outcome(info.op, *mine.arguments, **mine.kwargs)
    other, their_error = outcome(torch_op(info.name), *args, **kwargs)
    if our_error or their_error:
        return compare_errors(our_error, their_error)
    found = {}
    for a, b in zip(ours, other, strict=True):
        if metadata(a) != metadata(b):
            found["metadata"] = f"{metadata(a)} instead of {metadata(b)}"
        elif not info.random and info.reference is not None and not nearly(value(a), value(b), metadata(a)[0]):
            found["values"] = f"{a} instead of {b}"
    return found


def nearly(ours, other, dtype):
    if not isinstance(ours, np.ndarray) or ours.dtype.kind not in "fc":
        return same_values(ours, other)
    rtol, atol = NARROW.get(dtype.rpartition(".")[2], (1e-11, 1e-12))
    return np.allclose(ours, other, rtol=rtol, atol=atol, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("info", op_db, ids=str)
def test_the_operator_is_torchs(info, record_property):
    skip_what_is_not_compared(info, record_property)
    found = {}
    theirs_exists = outcome(torch_op, info.name)[1] is None
    assert theirs_exists, f"torch has no {info.name}"
    assert str(info.op._schema) == str(torch_op(info.name)._schema)
    for dtype in info.dtypes:
        for requires_grad in (False, True) if dtype.is_floating_point and info.gradients else (False,):
            for sample in info.sample_inputs(dtype, requires_grad, thorough=True):
                if any(isinstance(x, UntypedStorage) for x in sample.arguments):
                    continue
                for aspect, text in compare(info, sample, requires_grad).items():
                    found.setdefault(aspect, f"{text}    for {sample}, {dtype}")
    for number, case in enumerate(info.error_inputs()):
        op = info.inplace if case.form == "inplace" else info.op
        args, kwargs = theirs(case.sample)
        _, our_error = outcome(op, *case.sample.arguments, **case.sample.kwargs)
        _, their_error = outcome(torch_op(op.qualified_name), *args, **kwargs)
        for aspect, text in compare_errors(our_error, their_error).items():
            found[f"{aspect} {number}"] = text
    judge(info, found, ITS_OWN_FORMULA | KNOWN.get(str(info), {}), record_property)
