"""save and load: what comes back, what is shared, and that a file cannot have its way."""

import io
import pickle
import zipfile
from collections import OrderedDict
from fractions import Fraction

import pytest

import redispatch as rd
from redispatch import nn, serialization
from redispatch.dispatch.tensor import DTYPES
from redispatch.serialization.names import shipped
from redispatch.subclasses import Quantity, TwoTensor


def saved(value, **options):
    file = io.BytesIO()
    rd.save(value, file, **options)
    file.seek(0)
    return file


def back(value, **options):
    return rd.load(saved(value), **options)


class Config:
    def __init__(self, width):
        self.width = width


class Sub(rd.Tensor):
    pass


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_each_dtype_comes_back(dtype):
    x = rd.ones(2, 3).to(dtype)
    y = back(x)
    assert y.dtype is dtype and y.shape == (2, 3) and y.tolist() == x.tolist()


def test_save_and_load_are_called_as_pytorch_s_are():
    file = io.BytesIO()
    rd.save(rd.ones(2), file, pickle, 3, _use_new_zipfile_serialization=True)
    file.seek(0)
    assert rd.load(file, "cpu", pickle, weights_only=True).tolist() == [1, 1]
    for options in ({"_use_new_zipfile_serialization": False}, {"pickle_module": io}):
        with pytest.raises(NotImplementedError):
            saved(1, **options)
    with pytest.raises(NotImplementedError, match="cannot use"):
        rd.load(file, pickle_module=io)


def test_views_come_back_as_views_of_one_storage():
    x = rd.arange(6.0).view(2, 3)
    y, column = back([x, x.t()[1]])
    y[0, 1] = 7
    assert column.tolist() == [7.0, 4.0] and column.stride() == (3,)


def test_plain_values_and_containers_come_back():
    value = {
        "list": [1, -2.5, None, True, "text", b"bytes", 2**70, 1j],
        "tuple": ((), (1,), (1, 2, 3, 4)),
        "set": {1, 2},
        "ordered": OrderedDict(a=1),
        "library": (rd.float32, rd.Size([1, 2]), rd.device("cpu"), rd.strided, rd.channels_last),
    }
    assert back(value) == value


def test_a_state_dict_comes_back_with_its_metadata():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    state = back(model.state_dict())
    assert state._metadata == model.state_dict()._metadata
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    other.load_state_dict(state)
    assert rd.equal(other[0].weight, model[0].weight)


def test_parameters_keep_their_class_flag_and_attributes():
    p = nn.Parameter(rd.ones(2), requires_grad=False)
    p.tag = "kept"
    q, r = back([p, nn.Parameter(rd.ones(1))])
    assert type(q) is nn.Parameter and not q.requires_grad and q.tag == "kept"
    assert r.requires_grad and r.is_leaf


def test_tensors_keep_requires_grad_and_attributes_and_lose_their_history():
    x = rd.ones(2, requires_grad=True)
    x.tag = 3
    y, z = back([x, x * 2])
    assert y.requires_grad and y.tag == 3
    assert z.requires_grad and z.is_leaf


def test_what_is_still_to_be_done_to_the_elements_is_kept():
    x, y = rd.tensor([1 + 2j]), rd.tensor([3 + 4j])
    conjugate, negative = back([x.conj(), y.conj().imag])
    assert conjugate.is_conj() and conjugate.tolist() == [1 - 2j]
    assert negative.is_neg() and negative.tolist() == [-4]


def test_storages_come_back():
    typed, untyped = back([rd.FloatStorage([1.0, 2.0], _internal=True), rd.ones(2).untyped_storage()])
    assert typed.tolist() == [1.0, 2.0] and untyped.nbytes() == 8


def test_a_subclass_needs_to_be_allowed():
    x = rd.ones(2).as_subclass(Sub)
    x.tag = 1
    file = saved(x)
    with pytest.raises(pickle.UnpicklingError, match="asks for .*Sub, which is not allowed"):
        rd.load(file)
    file.seek(0)
    with serialization.safe_globals([Sub]):
        y = rd.load(file)
    assert type(y) is Sub and y.tag == 1 and serialization.get_safe_globals() == []


def test_a_wrapper_comes_back_with_what_it_wraps():
    x = back(TwoTensor(rd.ones(2), rd.zeros(2)))
    assert x.a.tolist() == [1, 1] and x.b.tolist() == [0, 0]
    assert (x + 1).b.tolist() == [1, 1]


def test_shipped_subclasses_need_no_allowance_and_nothing_else_of_their_modules_is_reached():
    length = back(Quantity(rd.ones(2), "m"))
    assert repr(length * length) == repr(Quantity(rd.ones(2), "m") * length)
    for module, name in (
        ("redispatch.subclasses.two_tensor", "pytree"),
        ("redispatch.subclasses.two_tensor", "rd"),
        ("redispatch.subclasses", "TwoTensor"),
        ("redispatch.testing", "check_subclass"),
    ):
        assert shipped(module, name) is None


def test_an_allowed_class_comes_back_with_its_attributes():
    serialization.add_safe_globals([Config])
    try:
        assert back(Config(rd.ones(2))).width.tolist() == [1, 1]
    finally:
        serialization.clear_safe_globals()


@pytest.mark.parametrize("place", ["meta", rd.device("meta"), {"cpu": "meta"}], ids=str)
def test_map_location_moves_storages(place):
    assert back([rd.ones(2)], map_location=place)[0].is_meta


def test_map_location_may_be_a_function():
    seen = []

    def place(storage, where):
        seen.append((storage.nbytes(), where))

    assert back(rd.ones(2), map_location=place).tolist() == [1, 1]
    assert seen == [(8, "cpu")]


def test_a_mapped_file_is_read_where_it_lies_and_not_written(tmp_path):
    path = tmp_path / "x.pt"
    rd.save(rd.arange(4.0), path)
    x = rd.load(path, mmap=True)
    x += 1
    assert x.tolist() == [1, 2, 3, 4] and x.data_ptr() % 64 == 0
    assert rd.load(path).tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="must be a file path"):
        rd.load(io.BytesIO(), mmap=True)


def test_each_storage_begins_at_a_multiple_of_64(tmp_path):
    path = tmp_path / "x.pt"
    rd.save([rd.ones(3), rd.ones(5), rd.ones(7)], path)
    data = path.read_bytes()
    assert zipfile.ZipFile(path).namelist()[3] == "x/data.pkl"
    for count in (3, 5, 7):
        assert data.find(rd.ones(count).numpy().tobytes()) % 64 == 0


def archive_of(instructions):
    """A file with this pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", instructions)
        archive.writestr("archive/version", "3\n")
        archive.writestr("archive/data/0", bytes(8))
    file.seek(0)
    return file


@pytest.mark.parametrize(
    "count, offset, size, stride",
    [(2, 0, 3, 1), (2, 1, 2, 1), (2, -1, 1, 1), (2, 0, 2, 2**62), (2, 0, -1, 1), (2, 0, 2, -1), (3, 0, 1, 1)],
)
def test_a_tensor_that_reaches_past_its_storage_is_refused(count, offset, size, stride):
    storage = b"(Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI%d\ntQ" % count
    numbers = b"I%d\n(I%d\nt(I%d\ntI00\n" % (offset, size, stride)
    with pytest.raises(RuntimeError):
        rd.load(archive_of(b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + numbers + b"NtR."))
    fine = b"((Vstorage\nctorch\nFloatStorage\nV0\nVcpu\nI2\ntQI0\n(I2\nt(I1\ntI00\nNtR."
    assert rd.load(archive_of(b"ctorch._utils\n_rebuild_tensor_v2\n" + fine)).tolist() == [0, 0]


def test_files_that_are_no_archives_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="is no zip archive"):
        rd.load(io.BytesIO(b"something else"))
    with pytest.raises(RuntimeError, match="holds no data.pkl"):
        empty = io.BytesIO()
        zipfile.ZipFile(empty, "w").close()
        rd.load(io.BytesIO(empty.getvalue()))
    whole = saved(rd.ones(100)).getvalue()
    with pytest.raises(RuntimeError, match="is no zip archive"):
        rd.load(io.BytesIO(whole[: len(whole) // 2]))
    at = whole.find(rd.ones(100).numpy().tobytes())
    with pytest.raises(RuntimeError, match="data/0 is damaged"):
        rd.load(io.BytesIO(whole[:at] + b"?" + whole[at + 1 :]))


def test_weights_only_false_reads_what_is_allowed_and_nothing_else():
    assert rd.load(saved({"a": rd.ones(2)}), weights_only=False)["a"].tolist() == [1, 1]
    own = saved(Fraction(1, 2))
    with pytest.raises(pickle.UnpicklingError, match="Fraction") as refused:
        rd.load(own, weights_only=False)
    assert "no file runs code here" in refused.value.__notes__[0]


def test_errors_say_what_was_expected(tmp_path):
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        rd.save(1, 3)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'seek'"):
        rd.load(3)
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        rd.save(1, tmp_path / "none" / "x.pt")
    with pytest.raises(RuntimeError, match="view the same data as different types"):
        x = rd.ones(2)
        saved([x, x.view(rd.int32)])


class NotAllowed:
    pass


def test_the_names_that_load_would_refuse_are_listed_and_nothing_is_run():
    file = io.BytesIO()
    rd.save({"weight": rd.ones(2), "other": [NotAllowed()]}, file)
    file.seek(0)
    assert rd.serialization.get_unsafe_globals_in_checkpoint(file) == [f"{__name__}.NotAllowed"]
    with rd.serialization.safe_globals([NotAllowed]):
        file.seek(0)
        assert rd.serialization.get_unsafe_globals_in_checkpoint(file) == []


def test_members_of_a_file_by_name():
    file = io.BytesIO()
    rd.save(rd.arange(3.0), file)
    file.seek(0)
    reader = rd.PyTorchFileReader(file)
    assert reader.has_record("data/0") and not reader.has_record("data/1") and "data.pkl" in reader.get_all_records()
    assert reader.get_storage_from_record("data/0", 3, rd.float32).tolist() == [0, 1, 2]
    assert reader.get_storage_from_record("data/0", 12, rd.UntypedStorage).dtype is rd.uint8
    with pytest.raises(RuntimeError, match="data/0 has 3 elements of torch.float32, and 4 were asked for"):
        reader.get_storage_from_record("data/0", 4, rd.float32)
