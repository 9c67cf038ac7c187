"""What a tensor says of itself, by whatever route it is asked."""

from __future__ import annotations

import pickle
import re

import pytest

import redispatch as rd
from redispatch.dispatch.protocols.override import PLAIN_TENSORS
from redispatch.dispatch.tensor import metadata as module
from redispatch.dispatch.tensor import metadata_of
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
