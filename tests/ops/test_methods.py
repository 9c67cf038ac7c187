"""What a tensor has beside operators: plain and special methods, names from before dtypes, named results."""

import operator
import pickle
import re
import warnings

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing import assert_close
from redispatch.utils import _pytree as pytree
from redispatch.utils import settings

# Methods in plain Python, limits of dtypes, the default device, settings, and `trace` of a matrix ---------------------


def test_python_functions_are_written_over_elements():
    x = rd.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.apply_(lambda v: v * 2) is x and x.tolist() == [[2, 4], [6, 8]]
    assert x.t().map_(rd.tensor([1.0, 10.0]), lambda a, b: a + b).tolist() == [[3, 16], [5, 18]]
    assert x.map2_(x.clone(), x.clone(), lambda a, b, c: a + b - c).tolist() == [[3, 5], [16, 18]]


def test_new_makes_a_tensor_of_the_same_dtype():
    x = rd.ones(1, dtype=rd.int32)
    assert x.new([1, 2]).dtype is rd.int32 and x.new(2, 3).shape == (2, 3) and x.new().numel() == 0


def test_dim_order_goes_from_the_outermost_dimension_in():
    assert rd.ones(2, 3).t().dim_order() == (1, 0)
    assert rd.ones(2, 3, 4, 5).to(memory_format=rd.channels_last).dim_order() == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        rd.ones(1, 2).dim_order(ambiguity_check=True)
    assert rd.ones(1, 2).dim_order(ambiguity_check=[rd.contiguous_format]) == (0, 1)


def test_layouts_that_are_not_built_say_so():
    x = rd.ones(2)
    assert x.to_dense() is x and x.dense_dim() == 1 and not x.is_sparse_csr
    with pytest.raises(RuntimeError, match="indices expected sparse coordinate tensor layout but got Strided"):
        x.indices()
    with pytest.raises(NotImplementedError, match="sparse tensors are not built"):
        x.to_sparse()
    with pytest.raises(
        NotImplementedError, match="Could not run 'aten::q_scale' with arguments from the 'CPU' backend"
    ):
        x.q_scale()


def test_is_set_to_asks_for_the_same_elements():
    x = rd.ones(2, 3)
    assert x.is_set_to(x[:]) and not x.is_set_to(x[1:]) and not x.is_set_to(x.clone())


def test_limits_are_those_of_the_dtype():
    assert repr(rd.finfo(rd.float32)) == (
        "finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38, eps=1.19209e-07, smallest_normal=1.17549e-38, "
        "tiny=1.17549e-38, dtype=float32)"
    )
    assert rd.finfo(rd.complex64) == rd.finfo(rd.float32) == rd.finfo()
    assert rd.finfo(rd.bfloat16).eps == 2**-7 and rd.finfo(rd.float16).bits == 16
    assert (rd.iinfo(rd.uint8).min, rd.iinfo(rd.int16).max) == (0, 32767)
    for ask, kind in ((rd.finfo, rd.int32), (rd.iinfo, rd.float32), (rd.iinfo, rd.bool)):
        with pytest.raises(TypeError):
            ask(kind)


UNSURE = {
    "put_": lambda: rd.zeros(4).put_(rd.tensor([1]), rd.ones(1)),
    "max_unpooling2d_forward_out": lambda: rd.nn.functional.max_unpool1d(rd.ones(1, 1, 1), rd.tensor([[[1]]]), 2),
    "max_unpooling3d_forward_out": lambda: rd.nn.functional.max_unpool3d(
        rd.ones(1, 1, 1, 1, 1), rd.zeros(1, 1, 1, 1, 1, dtype=rd.long), 2
    ),
}


@pytest.mark.parametrize("name", UNSURE)
def test_deterministic_programs_are_refused_what_pytorch_refuses(name):
    UNSURE[name]()
    try:
        rd.use_deterministic_algorithms(True)
        with pytest.raises(RuntimeError, match=f"^{name} does not have a deterministic implementation, but you set"):
            UNSURE[name]()
        rd.zeros(4).put_(rd.tensor([1, 1]), rd.ones(2), accumulate=True)
        rd.use_deterministic_algorithms(True, warn_only=True)
        with pytest.warns(UserWarning, match=f"^{name} does not have a deterministic implementation"):
            UNSURE[name]()
    finally:
        rd.use_deterministic_algorithms(False)


def test_settings_are_kept_for_whoever_asks():
    rd.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert rd.get_deterministic_debug_mode() == 1 and rd.is_deterministic_algorithms_warn_only_enabled()
        rd.set_deterministic_debug_mode("error")
        assert rd.are_deterministic_algorithms_enabled()
    finally:
        rd.use_deterministic_algorithms(False)
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        rd.set_deterministic_debug_mode("often")
    with pytest.warns(UserWarning, match="is not one of 'highest', 'high', or 'medium'"):
        rd.set_float32_matmul_precision("low")
    assert rd.get_float32_matmul_precision() == "highest" and rd.set_flush_denormal(True) is False
    with pytest.raises(TypeError, match="only floating-point types"):
        settings.set_default_tensor_type("torch.IntTensor")


def test_trace_adds_up_a_matrix_or_follows_calls():
    assert rd.trace(rd.tensor([[1.0, 2.0], [3.0, 4.0]])).item() == 5
    with rd.trace() as hops:
        rd.ones(2)
    assert "aten.ones.default" in str(hops)


def test_trace_of_a_matrix_can_be_overridden():
    class Loud(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert rd.trace(rd.ones(2, 2).as_subclass(Loud)) is rd.trace


# Python's operators on tensors, among themselves and with numpy's arrays ----------------------------------------------


class Declines(rd.Tensor):
    """A class that answers NotImplemented to everything."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Other(rd.Tensor):
    """A class with the default handler, which declines calls with unrelated classes."""


def test_operators_that_nobody_handles_are_unsupported():
    x = rd.ones(2).as_subclass(Declines)
    for attempt in (lambda: x + 1, lambda: 1 + x, lambda: x * rd.ones(2).as_subclass(Other)):
        with pytest.raises(TypeError, match="unsupported operand type"):
            attempt()


def test_functions_that_nobody_handles_say_who_was_asked():
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'"):
        rd.add(rd.ones(2).as_subclass(Declines), 1)


def test_an_error_of_the_handler_comes_through():
    class Fails(rd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise TypeError("mine")

    with pytest.raises(TypeError, match="mine"):
        rd.ones(2).as_subclass(Fails) + 1


def test_iterating_over_a_subclass_gives_the_subclass():
    x = rd.ones(2, 3).as_subclass(Other)
    assert [type(row) for row in x] == [Other, Other]
    assert type(reversed(x)) is Other
    assert reversed(rd.tensor([1, 2])).tolist() == [2, 1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
def test_arithmetic_of_a_tensor_with_an_array_gives_a_tensor(name):
    function = getattr(operator, name)
    result = function(rd.full((2,), 3.0), np.full(2, 2.0))
    assert_close(result, rd.tensor([function(3.0, 2.0)] * 2, dtype=rd.float64))


def test_numpy_functions_of_a_tensor_give_a_tensor():
    assert_close(np.exp(rd.zeros(2)), rd.ones(2))
    assert_close(np.isnan(rd.zeros(2)), rd.zeros(2, dtype=rd.uint8))


def test_equality_with_an_array_is_by_element():
    assert (rd.ones(2) == np.ones(2)).tolist() == [True, True]
    assert (np.ones(2) == rd.ones(2)).tolist() == [True, True]
    assert (rd.ones(1) == np.array(["a"])) is False


def test_plus_is_the_tensor_itself_and_no_operation_on_truth_values():
    x = rd.ones(2)
    assert +x is x
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        +rd.tensor(True)


def test_a_number_may_come_first():
    x = rd.tensor([1.0, 2.0], requires_grad=True)
    assert rd.sub(3, x).tolist() == [2.0, 1.0]
    assert rd.autograd.grad(rd.mul(2, x).sum(), x)[0].tolist() == [2.0, 2.0]


# The names from before there were dtypes ------------------------------------------------------------------------------


def test_typed_tensors_are_tensors_of_their_dtype():
    x = rd.FloatTensor([1, 2])
    assert type(x) is rd.Tensor and x.dtype is rd.float32 and x.tolist() == [1.0, 2.0]
    assert rd.LongTensor(2, 3).shape == (2, 3) and rd.BoolTensor([1, 0]).tolist() == [True, False]
    assert rd.DoubleTensor().shape == (0,)
    assert isinstance(x, rd.FloatTensor) and not isinstance(x, rd.IntTensor) and not isinstance(1, rd.FloatTensor)
    assert not isinstance(rd.ones(2, device="meta"), rd.FloatTensor)
    assert rd.ones(1).type("torch.DoubleTensor").dtype is rd.float64
    assert rd.ones(1).type(rd.LongTensor).dtype is rd.int64
    with pytest.raises(TypeError, match=r"dtype=long int, .*\(got TensorOptions\(dtype=float,"):
        rd.LongTensor(x)
    assert repr(rd.FloatTensor) == "<class 'torch.FloatTensor'>"


def test_a_typed_storage_is_a_sequence_over_the_same_memory():
    rd.storage._reset_warn_typed_storage_removal()
    x = rd.arange(6.0).view(2, 3)
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        storage = x.storage()
    assert len(storage) == storage.size() == 6 and storage.tolist() == list(storage) == [0, 1, 2, 3, 4, 5]
    storage[1] = 7
    assert x[0, 1] == 7 and storage[-5] == 7
    storage.fill_(2)
    assert x.sum() == 12
    assert storage.untyped() is x.untyped_storage() and storage.data_ptr() == x.data_ptr()
    with pytest.raises(IndexError, match="index 6 out of range for storage of size 6"):
        storage[6]


def test_storages_are_made_by_size_or_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rd.FloatStorage(3).size() == 3
        assert rd.LongStorage([1, 2]).tolist() == [1, 2] and rd.LongStorage([1]).element_size() == 8
        assert rd.Storage(2).dtype is rd.get_default_dtype()
        copy = rd.FloatStorage([3.7, -2.0]).short()
        assert copy.tolist() == [3, -2] and copy.clone().resize_(4).size() == 4
        assert rd.IntStorage(2).copy_(rd.FloatStorage([1.0, -2.0])).tolist() == [0x3F800000, -0x40000000]  # bytes
        with pytest.raises(RuntimeError, match="size does not match, self was 4 bytes but src was 12 bytes"):
            copy.copy_(rd.FloatStorage(3))
    assert copy.type() == "torch.ShortStorage" and "of size 2" in repr(copy)
    assert isinstance(copy, rd.ShortStorage) and not isinstance(copy, rd.IntStorage)


def test_a_typed_storage_warns_once():
    rd.storage._reset_warn_typed_storage_removal()
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as caught:
        rd.FloatStorage(2).untyped()
        len(rd.ones(2).storage())
    assert len(caught) == 1 and caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rd.ones(2)._typed_storage()._element_size() == 4


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: rd.FloatStorage(device="cpu"), RuntimeError, "Keyword argument 'device' cannot be specified"),
        (lambda: rd.FloatStorage(1, 2), RuntimeError, "Too many positional arguments"),
        (lambda: rd.FloatStorage(rd.ones(1)), TypeError, "Argument type not recognized"),
        (lambda: rd.FloatStorage("1"), TypeError, "invalid data type 'str'"),
        (
            lambda: rd.TypedStorage(wrap_storage=rd.UntypedStorage(2)),
            RuntimeError,
            "Argument 'dtype' must be specified",
        ),
        (lambda: rd.storage._LegacyStorage(), RuntimeError, "Only child classes of _LegacyStorage can be instantiated"),
        (lambda: rd._C.StorageBase(), RuntimeError, "Cannot directly construct StorageBase"),
        (lambda: rd.UntypedStorage([1.5]), RuntimeError, "one of the items was of type float instead of int"),
        (lambda: rd.UntypedStorage(4)[::2], RuntimeError, "only a step of 1 is supported"),
        (lambda: rd.UntypedStorage(4)[4], IndexError, "index 4 out of range for storage of size 4"),
        (lambda: rd.UntypedStorage(3).byteswap(rd.int16), RuntimeError, "the length of data is not a multiple of 2"),
        (lambda: rd.UntypedStorage(3, device="meta")[0], NotImplementedError, "Not available for 'meta' device type"),
        (lambda: rd.UntypedStorage(3, device="meta").cpu(), NotImplementedError, "Cannot copy out of meta tensor"),
        (lambda: rd.tensor(rd.DoubleStorage(1)), RuntimeError, "Expected a Storage of type Float or an Untyped"),
        (lambda: rd.ones(1).set_(rd.LongStorage(1)), RuntimeError, "Expected a Storage of type Float"),
        (lambda: rd.ShortStorage.from_buffer(b"abc", "big"), ValueError, "must be a multiple of element size"),
        (lambda: rd.ShortStorage.from_buffer(b"ab", "big", 1, 4), ValueError, "offset must be non-negative"),
        (lambda: rd.FloatStorage.from_file("/no such file", False, 3), RuntimeError, "unable to open file"),
    ],
)
@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_a_storage_refuses(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_bytes_of_a_storage_are_read_and_written():
    untyped = rd.tensor([1, 2], dtype=rd.int16).untyped_storage()
    part = untyped[2:]
    assert untyped.tolist() == [1, 0, 2, 0] and part.tolist() == [2, 0] and untyped[-2] == 2
    part[0] = 5
    untyped[0:2] = 257
    assert untyped.short().tolist() == [1, 1, 5, 0] and rd.tensor(untyped, dtype=rd.int16).tolist() == [257, 5]
    untyped.byteswap(rd.int16)
    assert untyped.tolist() == [1, 1, 0, 5]
    untyped.kept = "an attribute of its own"
    assert rd.ones(0, dtype=rd.int16).set_(untyped).untyped_storage().kept
    assert rd.ones(2).set_().shape == (0,) and rd.ones(1).set_(rd.arange(4.0), 1, (2,)).tolist() == [1, 2]


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_storages_are_made_of_buffers_and_files(tmp_path):
    assert rd.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert rd.BoolStorage.from_buffer(b"\0x4A").tolist() == [False, True, True, True]
    shared = rd.FloatTensor(rd.FloatStorage.from_file(tmp_path / "numbers", True, 3)).fill_(2)
    copied = rd.FloatTensor(rd.FloatStorage.from_file(tmp_path / "numbers", False, 3))
    shared[1] = 3
    copied[0] = 7
    assert rd.FloatTensor(rd.FloatStorage.from_file(tmp_path / "numbers", True, 3)).tolist() == [2, 3, 2]
    assert rd.from_file(str(tmp_path / "numbers"), size=2).tolist() == [2, 3]


def test_the_processor_is_named():
    assert rd.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512", "SVE256")


# The named tuples that operators with several results give, and the module where programs find them -------------------


def test_a_result_has_its_class_by_name():
    found = rd.ones(2, 2).max(0)
    kind = rd.return_types.max
    assert type(found) is kind and isinstance(found, tuple)
    values, indices = found
    assert values is found.values and indices is found[1]
    made = kind((1, 2))
    assert made == (1, 2) and made.indices == 2 and type(pytree.tree_map(lambda x: x, made)) is kind
    assert "values=1,\nindices=2)" in repr(made)


def test_results_are_pickled():
    found = pickle.loads(pickle.dumps(rd.tensor([3.0, 1.0]).sort()))
    assert type(found) is rd.return_types.sort and found.values.tolist() == [1, 3]


class Unknown:
    """Neither a tensor nor a number."""


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow", "lshift", "rshift", "and", "xor", "or", "mod"])
def test_an_operator_leaves_what_it_does_not_know_to_the_other_operand(name):
    x = rd.tensor([1, 2])
    for form in (f"__{name}__", f"__i{name}__", f"__r{name}__"):
        assert getattr(x, form)(Unknown()) is NotImplemented


def test_a_number_is_divided_by_a_tensor_for_the_remainder():
    assert rd.remainder(5, rd.tensor([3, 4])).tolist() == [2, 1]
    assert rd.remainder(5.5, rd.tensor([3, 4])).tolist() == [2.5, 1.5]
    x = rd.tensor([3.0], requires_grad=True)
    rd.remainder(5, x).backward()
    assert x.grad.tolist() == [-1]


def test_a_complex_factor_needs_complex_operands():
    with pytest.raises(RuntimeError, match="For non-complex input tensors, argument alpha must not be a complex"):
        rd.add(rd.ones(1), rd.ones(1), alpha=1j)


def test_factors_among_the_tensors_are_read_as_pytorch_once_wrote_them():
    a, b = rd.ones(2, 2), rd.eye(2)
    calls = [
        (lambda: rd.add(a, 2, b), a + 2 * b, "add\\(Tensor input, Number alpha, Tensor other"),
        (
            lambda: rd.addmm(3, a, 2, b, b),
            3 * a + 2 * b,
            "addmm\\(Number beta, Tensor input, Number alpha",
        ),
        (lambda: rd.addmm(3, a, b, b), 3 * a + b, "addmm\\(Number beta, Tensor input, Tensor mat1"),
        (lambda: a.addmm(3, 2, b, b), 3 * a + 2 * b, "addmm\\(Number beta, Number alpha, Tensor mat1"),
        (lambda: a.clone().addcmul_(2, b, b), a + 2 * b, "addcmul_\\(Number value, Tensor tensor1, Tensor tensor2"),
        (lambda: rd.addcdiv(a, 2, b, a, out=rd.empty(2, 2)), a + 2 * b, "addcdiv"),
    ]
    for call, wanted, text in calls:
        with pytest.warns(UserWarning, match=f"This overload of \\w+ is deprecated:\n\t{text}"):
            assert rd.equal(call(), wanted)
    for refused in (lambda: rd.add(a, b, 2), lambda: rd.mul(a, 2, b), lambda: rd.addmm(a, 2, b, b)):
        with pytest.raises(TypeError):
            refused()


def test_diff_wants_as_many_dimensions_in_front():
    with pytest.raises(RuntimeError, match="diff expects prepend or append to be the same dimension as input"):
        rd.ones(2, 3).diff(dim=0, prepend=rd.ones(3))


def test_vectors_of_tensors_are_made_and_taken_apart():
    parts = [rd.ones(2, 2), rd.zeros(3)]
    flat = rd._utils._flatten_dense_tensors(parts)
    assert flat.tolist() == [1, 1, 1, 1, 0, 0, 0] and rd._utils._element_size(rd.complex32) == 4
    assert [part.shape for part in rd._utils._unflatten_dense_tensors(flat, parts)] == [(2, 2), (3,)]


# What PyTorch takes and gives at the edge of its functions ------------------------------------------------------------


def test_two_numbers_add_up_to_a_tensor():
    assert rd.add(1, 2).item() == 3 and rd.add(1, 2).dtype is rd.int64 and rd.mul(2.0, 3).dtype is rd.float32
    assert rd.div(7, 2, rounding_mode="floor").item() == 3 and rd.sub(2, 3, alpha=2).item() == -4
    for refused in (rd.bitwise_left_shift, rd.copysign):
        with pytest.raises(TypeError, match="invalid combination of arguments"):
            refused(1, 2)


def test_an_operator_with_an_underscore_is_a_function_when_it_is_asked_for():
    assert rd._softmax(rd.zeros(2), 0, False).tolist() == [0.5, 0.5] and rd._softmax is rd._softmax
    assert rd._fft_r2c(rd.ones(2), [0], 0, True, out=rd.empty(0, dtype=rd.complex64)).tolist() == [2, 0]
    assert not hasattr(rd, "_no_such_operator")


def test_out_must_not_be_what_is_read_at_places():
    x, index = rd.arange(6.0), rd.tensor([2, 1, 0])
    written = [
        lambda: rd.gather(x, 0, index, out=x),
        lambda: rd.take(x, index, out=x),
        lambda: rd.masked_select(x, x > 0, out=x),
        lambda: rd.cat([x, x], out=x),
        lambda: rd.kthvalue(x, 5, out=(x, rd.tensor(0))),
        lambda: rd.index_select(rd.ones(3, 6), 1, index, out=rd.ones(1, 6).expand(2, 6)),
    ]
    for call in written:
        with pytest.raises(RuntimeError, match="unsupported operation"):
            call()
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        rd.gather(x, 0, index, out=rd.empty(3, dtype=rd.float64))
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_value_that_fills_a_place_twice_has_its_gradient_once():
    value = rd.tensor(1.0, requires_grad=True)
    rd.zeros(3).index_fill(0, rd.tensor([1, 1, -2]), value).sum().backward()
    assert value.grad.item() == 1


def test_none_is_no_tensor_of_a_list():
    for join in (rd.cat, rd.stack, rd.hstack):
        with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got NoneType"):
            join([rd.ones(2), None])


def test_narrow_integers_are_counted_before_they_are_cut_off():
    assert rd.arange(0, -8.5, -4.0, dtype=rd.int16).tolist() == [0, -4, -8]
    assert rd.arange(0, -8.5, -4.0, dtype=rd.int64).tolist() == [0, -4]


@pytest.mark.parametrize("make", [rd.Tensor, rd.FloatTensor, lambda *args, **how: rd.ones(1).new(*args, **how)])
def test_old_constructors_read_five_forms(make):
    assert make().shape == (0,) and make(2, 3).shape == make(rd.Size([2, 3])).shape == make(size=(2, 3)).shape == (2, 3)
    assert make([3, 4], device="cpu").tolist() == make(data=(3, 4)).tolist() == [3, 4]
    x = rd.rand(2)
    assert make(x).data_ptr() == make(other=x).data_ptr() == make(x.untyped_storage()).data_ptr() == x.data_ptr()
    for args, how in [
        (((6, 0), 1), {}),
        (([1], [2]), {}),
        ((rd.Size([2]), 3), {}),
        ((), {"foo": 3}),
        ((1,), {"size": 2}),
    ]:
        with pytest.raises(TypeError, match="new\\(\\) received an invalid combination"):
            make(*args, **how)
    with pytest.raises(RuntimeError, match="expects device type: cpu but device type: meta"):
        make(2, device="meta")


def test_python_functions_over_elements_give_elements():
    x = rd.arange(1, 4)
    assert x.clone().apply_(lambda k: k + 1.5).tolist() == [2, 3, 4]
    with pytest.raises(TypeError, match="'str' object cannot be interpreted as an integer"):
        x.apply_(lambda k: "s")
    with pytest.raises(TypeError, match="must be real number, not str"):
        rd.rand(2).apply_(lambda k: "s")
    with pytest.raises(RuntimeError, match="Can't call map2_\\(\\) on Variable that requires grad"):
        rd.ones(2).map2_(rd.ones(2), rd.ones(2, requires_grad=True), lambda a, b, c: a)


def test_the_order_of_dimensions_is_that_of_memory():
    assert rd.empty(2, 3, 4, 5, memory_format=rd.channels_last).dim_order() == (0, 2, 3, 1)
    assert rd.empty(2, 3).expand(4, 2, 3).dim_order() == (0, 1, 2) and rd.empty(2, 1, 3).transpose(
        1, 2
    ).dim_order() == (0, 1, 2)
    assert rd.empty(2, 2, 1, 2).dim_order(ambiguity_check=[rd.contiguous_format, rd.channels_last]) == (0, 1, 2, 3)
    for check in (True, [rd.contiguous_format, rd.channels_last]):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            rd.empty(2, 1, 2, 2).dim_order(ambiguity_check=check)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        rd.empty(2).dim_order(ambiguity_check="contiguous")


# How public functions read their arguments ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: rd.zeros(2, 3.0), 'at pos 2 with error "type must be tuple of ints,but got float"'),
        (lambda x: rd.zeros((None, 2)), "must be tuple of ints, but found element of type NoneType at pos 0"),
        (lambda x: rd.zeros((True, 2)), "found element of type bool at pos 0"),
        (lambda x: x.sum(dim=0.5), "got (dim=float, ), but expected one of"),
        (lambda x: x.sum((0.5, 1)), "got (tuple), but expected one of"),
        (lambda x: x.cumsum(rd.tensor([0])), "argument 'dim' (position 1) must be int, not Tensor"),
        (lambda x: x.cumsum(np.array(0)), "must be int, not numpy.ndarray"),
        (lambda x: rd.isclose(x, x, rd.ones((), requires_grad=True)), "'rtol' (position 3) must be float, not Tensor"),
        (lambda x: rd.amax(x, 0, 1), "argument 'keepdim' (position 3) must be bool, not int"),
        (lambda x: rd.empty(2, requires_grad=1), "argument 'requires_grad' must be bool, not int"),
    ],
)  # fmt: skip
def test_arguments_are_read_strictly(call, text):
    with pytest.raises(TypeError, match=re.escape(text)):
        call(rd.ones(2, 2))


def test_what_stands_for_a_number_is_read():
    assert rd.zeros((2, True)).shape == (2, 1) and rd.zeros(rd.tensor(2), np.array(3)).shape == (2, 3)
    assert rd.zeros((rd.tensor([3]), np.int32(2))).shape == (3, 2)
    assert rd.isclose(rd.ones(1), rd.ones(1), rd.tensor(1.0), True).item()
    assert [len(part) for part in rd.arange(4).tensor_split(rd.tensor([3]))] == [3, 1]


def test_truth_values_are_close_where_they_are_equal():
    a, b = rd.tensor([True, False]), rd.tensor([True, True])
    assert rd.isclose(a, b).tolist() == [True, False] and rd.allclose(a, a) and not rd.allclose(a, b)
