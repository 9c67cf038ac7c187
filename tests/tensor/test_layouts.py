"""Layouts: one has kernels, the others are names."""

import pytest

import redispatch as rd
from redispatch.subclasses import TwoTensor


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
