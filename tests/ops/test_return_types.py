"""The named tuples that operators with several results give, and the module where programs find them."""

import pickle

import redispatch as rd
from redispatch.utils import _pytree as pytree


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
