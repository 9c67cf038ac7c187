"""Each operator gives on a user's device, by the CPU fallback, what it gives on the CPU; boxed and specialised."""

import pytest

import redispatch as rd
from redispatch import backend
from redispatch.testing import assert_close
from redispatch.testing.op_db import op_db
from redispatch.utils import _pytree as pytree

from .. import drawing
from .board import Board

# What asks for memory of the CPU by its schema, or is about where a tensor is
ELSEWHERE = {
    "aten::get_device": "says which device it is",
    "aten::to.device": "moves to the device that the sample names",
    "aten::set_.source_Storage_storage_offset": "the storage of the sample is the CPU's",
    "aten::_pack_padded_sequence": "lengths must be on the CPU",
    "aten::_pack_padded_sequence_backward": "lengths must be on the CPU",
    "aten::_pad_packed_sequence": "lengths must be on the CPU",
    "aten::lstm.data": "batch sizes must be on the CPU",
    "aten::gru.data": "batch sizes must be on the CPU",
    "aten::rnn_tanh.data": "batch sizes must be on the CPU",
    "aten::rnn_relu.data": "batch sizes must be on the CPU",
}
INFOS = [info for info in op_db if info.name not in ELSEWHERE]


@pytest.fixture(scope="module")
def memory():
    return Board(1 << 24)


@pytest.mark.parametrize(
    "info",
    [pytest.param(info, id=str(info)) for info in INFOS if drawing.one_in(60, "board", info)],
)
def test_an_operator_gives_what_it_gives_on_the_cpu(info, memory):
    with backend.register("board", allocator=memory, fallback="cpu"):
        for sample in info.sample_inputs(info.main_dtype):
            rd.manual_seed(0)
            wanted = info.op(*sample.copy().arguments, **sample.kwargs)
            rd.manual_seed(0)
            moved = sample.map(lambda x: x.board()).map(lambda on: rd.device("board"), rd.device)
            found = info.op(*moved.arguments, **moved.kwargs)
            for ours, theirs in zip(pytree.tree_leaves(found), pytree.tree_leaves(wanted), strict=True):
                if isinstance(theirs, rd.Tensor):
                    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
                    if not theirs.is_meta and "empty" not in info.name:
                        assert_close(ours.cpu(), theirs, equal_nan=True)
                else:
                    assert ours == theirs or ours != ours
