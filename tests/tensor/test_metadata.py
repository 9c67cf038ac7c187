"""What a tensor says of itself, by whatever route it is asked."""

from __future__ import annotations

import math
import pickle
import re

import ml_dtypes
import numpy as np
import pytest

import redispatch as rd
from redispatch.dispatch.protocols.override import PLAIN_TENSORS
from redispatch.dispatch.tensor import dtypes, metadata_of
from redispatch.dispatch.tensor import metadata as module
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import no_dispatch

# Metadata: one object for tensors whose metadata is equal, and never a stale one --------------------------------------


def said(tensor):
    """The metadata of a tensor."""
    metadata = metadata_of(tensor)
    return metadata.dtype, metadata.shape, metadata.stride, metadata.device


def true_of(tensor):
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.device


class Wrapper(rd.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)


@pytest.mark.parametrize("kind", ["vulkan", "fpga", "xla", "lazy"])
def test_a_device_without_kernels_says_so_in_pytorchs_words(kind):
    key = {"lazy": "Lazy", "vulkan": "Vulkan"}.get(kind, kind.upper())
    says = f"from the '{key}' backend.* or was omitted during the selective/custom build process"
    for make in (rd.empty, rd.ones, rd.randn):
        with pytest.raises(NotImplementedError, match=says):
            make(2, device=kind)
    with pytest.raises(RuntimeError, match="not linked with support for" if kind != "lazy" else says):
        rd.ones(2).to(kind)
    assert rd.Tensor._make_wrapper_subclass(Wrapper, (2,), device=kind).device.type == kind


def test_a_name_of_a_device_without_a_key_is_refused():
    with pytest.raises(RuntimeError, match="grandfathered Caffe2 device type ideep"):
        rd.empty(2, device="ideep")
    with pytest.raises(ModuleNotFoundError, match="No module named 'torch.hpu'"):
        rd.empty(2, device="hpu")


def test_tensors_of_equal_metadata_have_one_object_for_it():
    assert metadata_of(rd.ones(2, 3)) is metadata_of(rd.zeros(6).view(2, 3)) is metadata_of(rd.ones(2, 3) + 1)


@pytest.mark.parametrize(
    "other",
    [
        lambda: rd.ones(3, 2),
        lambda: rd.ones(3, 2).t(),
        lambda: rd.ones(2, 3, dtype=rd.float64),
        lambda: rd.ones(2, 3, device="meta"),
    ],
)
def test_tensors_that_look_different_have_different_ones(other):
    assert metadata_of(rd.ones(2, 3)) is not metadata_of(other())


CHANGES = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "resize_": lambda x: x.resize_(4, 5),
    "resize_ smaller": lambda x: x.resize_(2),
    "set_": lambda x: x.set_(rd.arange(4.0)),
    "set_ storage": lambda x: x.set_(rd.arange(9.0).untyped_storage(), 1, (2, 2), (3, 1)),
    "data": lambda x: setattr(x, "data", rd.arange(4, dtype=rd.float64)),
    "out=": lambda x: rd.add(rd.ones(0), 1, out=x.resize_(0)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_tensor_changed_in_place_has_new_metadata(change):
    x = rd.arange(6.0).view(2, 1, 3).squeeze(1) if change is not CHANGES["squeeze_"] else rd.ones(2, 1, 3)
    before = said(x)
    assert_close(x + 1, x.clone().add(1))  # its metadata are in use
    change(x)
    assert said(x) == true_of(x) != before
    assert_close((x.fill_(2) * x).tolist(), rd.full(x.shape, 4.0).tolist())


def test_a_wrapper_that_follows_its_parts_has_new_metadata():
    x = TwoTensor(rd.ones(2, 3), rd.ones(2, 3))
    assert said(x) == true_of(x)
    x.t_()
    assert said(x) == true_of(x)
    assert x.shape == (3, 2)


def test_metadata_may_be_forgotten_and_made_again(monkeypatch):
    """Plays a table of metadata that has become too large: two objects say the same, and calls go on as before."""
    x = rd.ones(3, 7)
    first = metadata_of(x)
    monkeypatch.setattr(module, "LIMIT", 0)
    y = rd.ones(7, 3).t().contiguous()
    rd.ones(5, 3, 7)[0] + 1
    assert said(y) == said(x) and metadata_of(x) is first
    assert_close(x + y, rd.full((3, 7), 2.0))
    assert_close(y.add_(x), rd.full((3, 7), 2.0))


def test_the_table_of_metadata_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 10)
    for n in range(100):
        metadata_of(rd.ones(1000 + n))
    assert len(module._INTERNED) <= 10


def test_there_is_one_object_for_each_device():
    assert rd.device("cuda", 1) is rd.device("cuda:1") is not rd.device("cuda")
    assert pickle.loads(pickle.dumps(rd.device("meta"))) is rd.device("meta")
    assert hash(rd.device("cpu")) == hash(rd.ones(1).device)


# Wrappers whose handler is asked for sizes, strides, device and layout ------------------------------------------------

# And what `_make_wrapper_subclass` takes.


def wrapper_class(log, answers=None):
    """A class of wrappers that notes what its handler is asked, and answers by `answers` or by what it wraps."""

    class Asked(rd.Tensor):
        @staticmethod
        def __new__(cls, inner, **policies):
            return rd.Tensor._make_wrapper_subclass(cls, inner.shape, strides=inner.stride(), **policies)

        def __init__(self, inner, **policies):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(str(func))
            if str(func) in (answers or {}):
                return answers[str(func)]
            args, kwargs = pytree.tree_map_only(cls, lambda x: x.inner, (args, kwargs or {}))
            return pytree.tree_map_only(rd.Tensor, cls, func(*args, **kwargs))

    return Asked


SIZE, STRIDE, DIM = "aten.sym_size.default", "aten.sym_stride.default", "aten.dim.default"
CONTIGUOUS, LAST = "aten.is_contiguous.default", "aten.is_contiguous.memory_format"

# (policies, question, answer, what the handler was asked), as PyTorch asks it
QUESTIONS = [
    ("sizes", lambda x: x.shape, (2, 3), [SIZE]),
    ("sizes", lambda x: x.size(), (2, 3), [SIZE]),
    ("sizes", lambda x: x.size(-1), 3, [DIM, SIZE]),
    ("sizes", lambda x: x.stride(), (3, 1), [STRIDE]),
    ("sizes", lambda x: x.dim(), 2, [DIM]),
    ("sizes", lambda x: x.ndim, 2, [DIM]),
    ("sizes", lambda x: len(x), 2, [DIM, SIZE]),
    ("sizes", lambda x: x.numel(), 6, ["aten.sym_numel.default"]),
    ("sizes", lambda x: x.nbytes, 24, ["aten.numel.default"]),
    ("sizes", lambda x: x.storage_offset(), 0, ["aten.sym_storage_offset.default"]),
    ("sizes", lambda x: x.is_contiguous(), True, [CONTIGUOUS]),
    ("strides", lambda x: x.stride(1), 1, [STRIDE]),
    ("strides", lambda x: x.is_contiguous(memory_format=rd.channels_last), False, [LAST]),
    ("strides", lambda x: (x.shape, x.dim(), x.numel()), ((2, 3), 2, 6), []),
    ("device", lambda x: x.device, rd.device("cpu"), ["prim.device.default"]),
    ("device", lambda x: (x.is_cpu, x.is_cuda, x.is_meta), (True, False, False), ["prim.device.default"] * 3),
    ("device", lambda x: x.get_device(), -1, ["prim.device.default"]),
    ("device", lambda x: (x.layout, x.shape), (rd.strided, (2, 3)), []),
    ("layout", lambda x: x.layout, rd.strided, ["prim.layout.default"]),
    ("", lambda x: (x.shape, x.stride(), x.device, x.layout), ((2, 3), (3, 1), rd.device("cpu"), rd.strided), []),
]


def policies(name):
    if name in ("sizes", "strides"):
        return {"dispatch_sizes_strides_policy": name}
    return {f"dispatch_{name}": True} if name else {}


@pytest.mark.parametrize(("name", "question", "answer", "asked"), QUESTIONS)
def test_a_handler_is_asked_what_its_tensor_was_made_to_ask(name, question, answer, asked):
    log = []
    x = wrapper_class(log)(rd.ones(2, 3), **policies(name))
    assert question(x) == answer
    assert log == asked


def test_the_handlers_answer_counts_and_none_means_the_face():
    answers = {SIZE: [7, 8], STRIDE: None, DIM: None, "prim.device.default": rd.device("meta")}
    x = wrapper_class([], answers)(rd.ones(2, 3), dispatch_sizes_strides_policy="sizes", dispatch_device=True)
    assert (x.shape, x.size(1), len(x)) == (rd.Size([7, 8]), 8, 7)
    assert (x.stride(), x.dim()) == ((3, 1), 2)
    assert x.device == rd.device("meta") and x.is_meta
    with no_dispatch():
        assert x.shape == (2, 3) and x.device.type == "cpu"
    assert repr(x).startswith("Asked(")  # asks nobody


def test_the_library_itself_reads_the_face():
    log = []
    x = wrapper_class(log)(rd.ones(2, 3), dispatch_sizes_strides_policy="sizes")
    (x + 1).sum()
    assert log == ["aten.add.Tensor", "aten.sum.default"]


def test_only_classes_with_such_tensors_take_the_long_road():
    kind, asked = wrapper_class([]), wrapper_class([])
    for one in (kind(rd.ones(1)), asked(rd.ones(1)), asked(rd.ones(1), dispatch_layout=True)):
        one.abs()
    assert id(kind) in PLAIN_TENSORS and id(asked) not in PLAIN_TENSORS


def test_existing_memory_may_ask_too():
    log = []
    kind = wrapper_class(log, {SIZE: [5]})
    x = rd.Tensor._make_subclass(kind, rd.ones(2), dispatch_sizes_strides_policy="sizes")
    assert (x.size(), log) == ((5,), [SIZE])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((2, 3),), None, ""),
        (((2, 3), (1, 2), 3), None, ""),
        (((2, 3), (1,)), RuntimeError, r"sizes \(2\) must match dimensionality of strides \(1\)"),
        ((3,), TypeError, "argument 'size' .position 2. must be tuple of ints, not int"),
        (((2.5,),), TypeError, "but found element of type float at pos 0"),
        (((-1,),), RuntimeError, "size must not be negative"),
        (((2,), (-1,)), RuntimeError, "strides must not be negative"),
        (((2,), 5), TypeError, "argument 'strides' must be tuple of ints, not int"),
        (((2,), None, 3), RuntimeError, "setting storage offset without stride not supported"),
        (((2,), None, None, None, "float"), TypeError, "argument 'dtype' must be torch.dtype, not str"),
    ],
)
def test_what_a_wrappers_face_may_be(arguments, error, message):
    kind = wrapper_class([])
    for _ in range(2):  # what was remembered makes no difference
        if error is None:
            x = rd.Tensor._make_wrapper_subclass(kind, *arguments)
            assert (tuple(x.shape), x.stride()) == (arguments[0], arguments[1] if len(arguments) > 1 else (3, 1))
        else:
            with pytest.raises(error, match=message):
                rd.Tensor._make_wrapper_subclass(kind, *arguments)


def test_a_list_that_changes_makes_another_face():
    kind, size = wrapper_class([]), [2, 3]
    first = rd.Tensor._make_wrapper_subclass(kind, size)
    size.append(4)
    assert (rd.Tensor._make_wrapper_subclass(kind, size).shape, first.shape) == ((2, 3, 4), (2, 3))
    rd.set_default_dtype(rd.float64)
    try:
        assert rd.Tensor._make_wrapper_subclass(kind, (2,)).dtype is rd.float64
    finally:
        rd.set_default_dtype(rd.float32)
    assert rd.Tensor._make_wrapper_subclass(kind, (2,)).dtype is rd.float32


def test_storage_size_extra_keys_and_an_unknown_policy():
    kind = wrapper_class([])
    make = rd.Tensor._make_wrapper_subclass
    assert make(kind, (2, 3), storage_size=100).untyped_storage().nbytes() == 100
    assert make(kind, (2, 3), (1, 2), 4).untyped_storage().nbytes() == 40
    extra = make(kind, (2,), _extra_dispatch_keys=rd._C.DispatchKeySet(rd._C.DispatchKey.Conjugate))
    assert rd._C._dispatch_keys(extra).has(rd._C.DispatchKey.Conjugate) and not make(kind, (2,)).is_conj()
    assert make(kind, (2,), device="meta", requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy: both; expected 'strides' or 'sizes'"):
        make(kind, (2,), dispatch_sizes_strides_policy="both")
    with pytest.raises(TypeError, match=r"cls must be a type \(got int\)"):
        make(3, (2,))


# Layouts: one has kernels, the others are names -----------------------------------------------------------------------


def test_layouts_without_kernels_are_names_that_wrappers_may_show():
    assert str(rd.sparse_coo) == "torch.sparse_coo" and rd.ones(1).layout is not rd.sparse_coo
    shown = rd.Tensor._make_wrapper_subclass(TwoTensor, (2,), layout=rd.sparse_csr)
    assert shown.layout is rd.sparse_csr


@pytest.mark.parametrize(
    "make",
    [
        lambda: rd.zeros(2, layout=rd.sparse_coo),
        lambda: rd.zeros_like(rd.ones(2), layout=rd.jagged),
        lambda: rd.ones(2).new_full((2,), 1, layout=rd.sparse_bsr),
    ],
)
def test_no_operator_makes_a_tensor_of_another_layout(make):
    for _ in range(3):  # what calls with the other layout leave behind does not let it pass
        rd.zeros(2, layout=rd.strided), rd.zeros_like(rd.ones(2), layout=rd.strided)
        rd.ones(2).new_full((2,), 1, layout=rd.strided)
    with pytest.raises(NotImplementedError, match="no operator makes a tensor of the layout torch"):
        make()


# What a tensor answers about one of its dimensions --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["size", "stride"])
def test_a_size_that_there_is_not_is_said_as_pytorch_says_it(name):
    x = rd.ones(2, 3)
    assert (getattr(x, name)(-1), getattr(x, name)(dim=0)) == {"size": (3, 2), "stride": (1, 3)}[name]
    with pytest.raises(IndexError, match=re.escape("expected to be in range of [-2, 1], but got 2")):
        getattr(x, name)(2)
    with pytest.raises(IndexError, match="Dimension specified as -1 but tensor has no dimensions"):
        getattr(rd.tensor(1.0), name)(-1)
    for wrong in ("a", 1.0, True):
        with pytest.raises(TypeError, match=re.escape(f"{name}(): argument 'dim' (position 1) must be int, not")):
            getattr(x, name)(wrong)


def test_the_stride_of_a_single_image_does_not_matter_for_channels_last():
    x = rd.ones(1, 3, 4, 5).contiguous(memory_format=rd.channels_last)[0][None]
    assert x.stride() == (3, 1, 15, 3) and x.is_contiguous(memory_format=rd.channels_last)
    assert not rd.ones(1, 3, 4, 5).is_contiguous(memory_format=rd.channels_last)


def test_bytes_are_close_whichever_is_greater():
    x, y = rd.tensor([5, 255], dtype=rd.uint8), rd.tensor([6, 254], dtype=rd.uint8)
    assert rd.isclose(x, y, rtol=0, atol=1).all() and rd.isclose(y, x, rtol=0, atol=1).all()


@pytest.mark.parametrize("name", ["float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"])
def test_eight_bits_are_read_and_rounded_to_as_the_formats_say(name):
    element = getattr(rd, name)
    kind = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(256, dtype=np.uint8)
    values = rd.from_numpy(codes).view(element).float()
    np.testing.assert_array_equal(values.numpy(), codes.view(kind).astype(np.float32))
    finite = np.unique(np.abs(values.numpy()[np.isfinite(values.numpy())]))
    between = np.concatenate([finite, (finite[1:] + finite[:-1]) / 2, finite * 1.01, [1e-9, 0.0]]).astype(np.float32)
    between = between[between <= finite[-1]]
    both = np.concatenate([between, -between])
    stored = rd.from_numpy(both).to(element)
    np.testing.assert_array_equal(stored.float().numpy(), both.astype(kind).astype(np.float32))
    assert rd.tensor(float("nan")).to(element).isnan() and stored[:1].item() == 0


def test_beyond_the_largest_eight_bit_float_is_what_pytorch_says():
    huge = rd.tensor([1e6, -1e6])
    assert huge.to(rd.float8_e4m3fn).float().tolist() == [448, -448]
    assert huge.to(rd.float8_e5m2).float().tolist() == [math.inf, -math.inf]
    assert huge.to(rd.float8_e4m3fnuz).float().isnan().all()


def test_wide_unsigned_integers_wrap_compare_and_say_what_they_promote_to():
    x = rd.tensor([-1, 2**16 + 3]).to(rd.uint16)
    assert x.tolist() == [65535, 3] and (x == x).all() and x[1].item() == 3
    assert rd.tensor(2**64 - 1, dtype=rd.uint64).item() == 2**64 - 1
    assert rd.from_numpy(np.ones(2, np.uint32)).dtype is rd.uint32 and rd.iinfo(rd.uint32).max == 2**32 - 1
    assert (x * 0.5).dtype is rd.float32
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported, attempted to"):
        rd.promote_types(rd.uint16, rd.int32)
    with pytest.raises(
        RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote Float8_e"
    ):
        rd.promote_types(rd.float8_e5m2, rd.float32)


@pytest.mark.parametrize("one", "float16 bool int32 uint32 float8_e4m3fn int3 bits8 qint8".split())
def test_of_several_reasons_against_a_promotion_the_first_is_given(one):
    words = [
        "Promotion for uint16, uint32, uint64 types",
        "Promotion for Float8",
        "Promotion from",
        "quantized numbers",
    ]
    own = {"float8_e4m3fn": 1, "bits8": 2, "qint8": 3}.get(one, 0)
    one = getattr(rd, one)
    for place, other in enumerate([rd.uint16, rd.float8_e8m0fnu, rd.bits16, rd.quint8]):
        if one is rd.float16 and place == 0:
            assert rd.promote_types(one, other) is one
        else:
            with pytest.raises(RuntimeError, match=words[max(own, place)]):
                rd.promote_types(one, other)


def test_bits_have_no_part_in_the_dtype_of_a_result():
    bits = rd.empty(2, dtype=rd.bits8)
    assert rd.result_type(bits, 1) is rd.bits8 and rd.result_type(bits, 1j) is rd.complex64
    with pytest.raises(RuntimeError, match="unsupported scalarType"):
        rd.result_type(bits, rd.ones(2))
    assert (
        rd.can_cast(rd.float32, rd.bits8) and not rd.can_cast(rd.bits8, rd.bool) and not rd.can_cast(rd.cfloat, rd.int3)
    )


@pytest.mark.parametrize("number, error", [(-1, OverflowError), (1.0, TypeError), (2**64, OverflowError)])
def test_uint64_is_made_of_whole_numbers_from_0_to_2_to_the_64(number, error):
    assert rd.tensor([2**64 - 1, True], dtype=rd.uint64).tolist() == [2**64 - 1, 1]
    with pytest.raises(error):
        rd.tensor([number], dtype=rd.uint64)


def test_complex32_is_a_pair_of_halves():
    x = rd.tensor([1 + 2j, -0.5j]).to(rd.complex32)
    assert x.tolist() == [1 + 2j, -0.5j] and rd.view_as_real(x).dtype is rd.float16 and x.real.tolist() == [1, 0]
    assert x.abs().dtype is rd.float16 and (x * x).tolist() == [-3 + 4j, -0.25]
    assert rd.ones(1).half().chalf().dtype is rd.complex32 and x.to(rd.complex64).tolist() == [1 + 2j, -0.5j]
    wide = [rd.promote_types(rd.complex32, other) for other in (rd.int64, rd.float16, rd.bfloat16, rd.float64)]
    assert wide == [rd.complex32, rd.complex32, rd.complex64, rd.complex128]
    assert rd.result_type(rd.ones(1).half(), 1j) is rd.complex32
    with pytest.raises(TypeError, match="Got unsupported ScalarType ComplexHalf"):
        x.numpy()


@pytest.mark.parametrize("element", [t for t in dtypes.RARE.values() if t is not rd.float8_e8m0fnu], ids=str)
def test_rare_dtypes_are_moved_indexed_sorted_and_saved(element):
    wide = rd.complex64 if element.is_complex else rd.float32 if element.is_floating_point else rd.int64
    numbers = rd.tensor([[3, 1, 2], [0, 4, 5]]).to(wide)
    x = numbers.to(element)
    results = [
        lambda t: t.t().contiguous(), lambda t: rd.zeros_like(t).copy_(t[1]), lambda t: t[rd.tensor([1, 0, 1])],
        lambda t: rd.cat([t, t]), lambda t: rd.where(numbers.real > 1, t, t[:1]), lambda t: t.clone().fill_(3),
        lambda t: t * t, lambda t: pickle.loads(pickle.dumps(t)),
    ] + [lambda t: t.sort(1)[0]] * element.name.startswith("uint")  # fmt: skip
    for result in results:
        found, wanted = result(x), result(numbers)
        assert found.dtype is element and rd.equal(found.to(wide), wanted.to(element).to(wide))
    assert x.tolist() == numbers.tolist()
    for refused, kernel in (
        (lambda t: t.flip(0), "flip_cpu"), (lambda t: t.cumprod(0, dtype=t.dtype), "cumprod_out_cpu"),
        (lambda t: rd.logical_not(t), "logical_not_cpu"), (lambda t: t**2, "pow"), (lambda t: t.dot(t), "dot"),
        (lambda t: rd.linspace(0, 1, 2, dtype=element), "linspace_cpu"), (lambda t: t.take(rd.tensor(0)), "take_cpu"),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for '{element.tensor_name}'"):
            refused(x[0] if kernel == "dot" else x)
        if kernel != "linspace_cpu":
            refused(numbers[0] if kernel == "dot" else numbers)  # of the same numbers, where they are of another dtype
    if element.is_complex:
        assert rd.equal((x * 1j).conj().clone().to(wide), (numbers * 1j).conj())


# What decompositions ask (the whole of it is compared with PyTorch in tests/parity/prims_common.py) ------------------


def test_decompositions_ask_for_dtypes_and_strides():
    from redispatch import _prims, _prims_common
    from redispatch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND

    half, whole = rd.ones(2, dtype=rd.float16), rd.ones(2, dtype=rd.int64)
    asked = {kind.name: _prims_common.elementwise_dtypes(half, whole, type_promotion_kind=kind) for kind in KIND}
    assert asked["DEFAULT"] == (rd.float32, rd.float16) and asked["NO_OPMATH"] == (rd.float16, rd.float16)
    assert asked["ALWAYS_BOOL"] == (rd.float32, rd.bool)
    x = rd.ones(2, 3, 4).permute(2, 0, 1)
    assert _prims_common.compute_elementwise_output_strides(x, x) == x.stride() == (1, 12, 4)
    assert _prims_common.compute_elementwise_output_logical_to_physical_perm(x, x) == ([1, 2, 0], False)
    assert _prims_common.make_channels_last_strides_for((2, 3, 4, 5)) == (60, 1, 15, 3)
    with pytest.raises(RuntimeError, match="Stride mismatch! Strides are .*mismatched at 0"):
        _prims.utils.compare_tensor_meta(x, x.contiguous(), check_strides=True)
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"):
        _prims_common.canonicalize_dims(2, (0, 2))


@pytest.mark.parametrize("name", ["abs", "mm", "linear"])
def test_exponents_alone_are_refused_where_other_numbers_of_8_bits_compute(name):
    calls = {"abs": rd.abs, "mm": lambda x: x.mm(x), "linear": lambda x: rd.nn.functional.linear(x, x)}
    assert calls[name](rd.ones(2, 2).to(rd.float8_e4m3fn)).dtype is rd.float8_e4m3fn
    with pytest.raises(NotImplementedError, match="(abs_cpu|addmm_impl_cpu_)\" not implemented for 'Float8_e8m0fnu'"):
        calls[name](rd.ones(2, 2).to(rd.float8_e8m0fnu))
