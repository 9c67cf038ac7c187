"""The names from before there were dtypes."""

import warnings

import pytest

import redispatch as rd


def test_typed_tensors_are_tensors_of_their_dtype():
    x = rd.FloatTensor([1, 2])
    assert type(x) is rd.Tensor and x.dtype is rd.float32 and x.tolist() == [1.0, 2.0]
    assert rd.LongTensor(2, 3).shape == (2, 3) and rd.BoolTensor([1, 0]).tolist() == [True, False]
    assert rd.DoubleTensor().shape == (0,)
    assert isinstance(x, rd.FloatTensor) and not isinstance(x, rd.IntTensor) and not isinstance(1, rd.FloatTensor)
    assert not isinstance(rd.ones(2, device="meta"), rd.FloatTensor)
    assert rd.ones(1).type("torch.DoubleTensor").dtype is rd.float64
    assert rd.ones(1).type(rd.LongTensor).dtype is rd.int64
    with pytest.raises(TypeError, match=r"expected torch.LongTensor \(got torch.FloatTensor\)"):
        rd.LongTensor(x)
    assert repr(rd.FloatTensor) == "<class 'torch.FloatTensor'>"


def test_a_typed_storage_is_a_sequence_over_the_same_memory():
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
        copy = rd.ShortStorage(2).copy_(rd.FloatStorage([3.7, -2.0]))
        assert copy.tolist() == [3, -2] and copy.clone().resize_(4).size() == 4
        with pytest.raises(RuntimeError, match="size mismatch"):
            copy.copy_(rd.FloatStorage(3))
    assert copy.type() == "torch.ShortStorage" and "of size 2" in repr(copy)


def test_the_processor_is_named():
    assert rd.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512", "SVE256")
