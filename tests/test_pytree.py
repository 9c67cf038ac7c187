"""Pytrees: taking apart and putting together, mapping, matching, paths, and specs as text."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __eq__(self, other):
        return type(other) is Pair and (self.left, self.right) == (other.left, other.right)


@dataclass
class Settings:
    rate: float
    name: str | None = None


@pytest.fixture
def registered():
    """Pair and Settings are nodes, for one test."""
    pytree.register_pytree_node(Pair, lambda p: ([p.left, p.right], "ctx"), lambda children, _: Pair(*children))
    pytree.register_dataclass(Settings)
    yield
    pytree._deregister_pytree_node(Pair)
    pytree._deregister_pytree_node(Settings)


def nodes(children):
    keys = st.sampled_from(["a", "b", 1])
    dicts = st.dictionaries(keys, children, max_size=3)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.lists(children, max_size=3).map(lambda items: deque(items, maxlen=5)),
        st.builds(Point, children, children),
        dicts,
        dicts.map(OrderedDict),
        dicts.map(lambda items: defaultdict(list, items)),
    )


trees = st.recursive(st.integers() | st.none() | st.text(max_size=2), nodes, max_leaves=12)


def test_a_size_is_a_node_that_comes_back_as_a_tuple():
    leaves, spec = pytree.tree_flatten((rd.Size([2, 3]), 4))
    assert leaves == [2, 3, 4] and spec.children_specs[0].type is rd.Size
    doubled = pytree.tree_map(lambda n: 2 * n, rd.Size([2, 3]))
    assert doubled == (4, 6) and type(doubled) is tuple
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


@given(trees)
def test_a_tree_is_its_leaves_and_its_spec(tree):
    leaves, spec = pytree.tree_flatten(tree)
    back = pytree.tree_unflatten(leaves, spec)
    assert back == tree and type(back) is type(tree)
    assert spec.num_leaves == len(leaves) and pytree.tree_structure(back) == spec
    assert leaves == pytree.tree_leaves(tree) == list(pytree.tree_iter(tree))


@given(trees)
def test_mapping_one_tree_is_mapping_its_leaves(tree):
    leaves, spec = pytree.tree_flatten(tree)
    expected = pytree.tree_unflatten([(leaf,) for leaf in leaves], spec)
    assert pytree.tree_map(lambda leaf: (leaf,), tree) == expected
    assert pytree.tree_map(lambda leaf, same: (leaf,) if leaf is same else None, tree, tree) == expected


@given(trees)
def test_a_path_leads_to_its_leaf(tree):
    pairs, spec = pytree.tree_flatten_with_path(tree)
    assert spec == pytree.tree_structure(tree)
    assert [leaf for _, leaf in pairs] == pytree.tree_leaves(tree)
    assert all(pytree.key_get(tree, path) is leaf for path, leaf in pairs)


def test_a_spec_shows_the_nesting():
    tree = {"b": [1, (2, None)], "a": OrderedDict(x=3, y=Point(4, 5)), "d": deque([7, 8], maxlen=4), "z": ()}
    spec = pytree.tree_structure(tree)
    assert_expected_inline(
        repr(pytree.tree_structure({"b": [1, (2, None)], "d": defaultdict(list, q=deque([1, 2], 4)), "z": ()})),
        """\
TreeSpec(dict, ['b', 'd', 'z'], [TreeSpec(list, None, [*,
    TreeSpec(tuple, None, [*,
      *])]),
  TreeSpec(defaultdict, [<class 'list'>, ['q']], [TreeSpec(deque, 4, [*,
      *])]),
  TreeSpec(tuple, None, [])])""",
    )
    assert pytree.treespec_pprint(spec.child(0)) == "[*, (*, *)]"
    assert (spec.type, spec.context, spec.num_children, spec.num_nodes) == (dict, ["b", "a", "d", "z"], 4, 15)
    assert isinstance(spec.child(0).child(0), pytree.LeafSpec) and spec.child(0).child(0).is_leaf()
    assert [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)][2:5] == [
        "['b'][1][1]",
        "['a']['x']",
        "['a']['y'].x",
    ]


def test_a_dict_keeps_its_order_and_matches_in_any():
    assert pytree.tree_flatten({2: "b", 1: "a"})[0] == ["b", "a"]
    assert pytree.tree_map(lambda x, y: (x, y), {"a": 1, "b": 2}, OrderedDict(b=3, a=4)) == {"a": (1, 4), "b": (2, 3)}


def test_subclasses_of_containers_are_leaves_and_those_of_namedtuples_are_nodes():
    class MyList(list):
        pass

    class MyPoint(Point):
        pass

    assert pytree.tree_is_leaf(MyList([1])) and pytree.tree_is_leaf(None)
    assert type(pytree.tree_map(str, MyPoint(1, 2))) is MyPoint
    assert pytree.is_namedtuple(MyPoint) and pytree.is_namedtuple(Point(1, 2)) and not pytree.is_namedtuple((1, 2))


def test_is_leaf_is_asked_before_the_registry():
    assert pytree.tree_leaves([1, (2, 3)], is_leaf=lambda t: type(t) is tuple) == [1, (2, 3)]
    assert pytree.tree_map(len, [(1, 2), ()], is_leaf=lambda t: type(t) is tuple) == [2, 0]


def test_mapping_some_types_leaves_the_others_alone():
    tree = [1, "a", True, None]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == [-1, "a", -1, None]
    assert pytree.tree_map_only((int, str), lambda x: x * 2, tree) == [2, "aa", 2, None]
    assert pytree.tree_map_only(int | str, lambda x: x * 2, tree) == [2, "aa", 2, None]
    assert pytree.tree_map_only(lambda x: x is None, str, tree) == [1, "a", True, "None"]
    seen = []
    assert pytree.tree_map_only_(str, seen.append, tree) is tree and seen == ["a"]
    with pytest.raises(TypeError, match="a tuple or union of types"):
        pytree.tree_map_only("int", str, tree)


def test_questions_about_leaves():
    assert pytree.tree_any(lambda x: x > 1, [1, (2,)]) and not pytree.tree_all(lambda x: x > 1, [1, (2,)])
    assert pytree.tree_all_only(int, lambda x: x > 1, ["a", 2]) and not pytree.tree_any_only(str, str.isupper, ["a", 2])
    assert pytree.arg_tree_leaves(1, [2], k=3) == [1, 2, 3]


@pytest.mark.parametrize(
    ("tree", "rest", "words"),
    [
        ([1, 2], [1], "Node arity mismatch; expected 2, but got 1."),
        ([1, 2], (1, 2), "Node type mismatch; expected <class 'list'>, but got <class 'tuple'>."),
        ([1, 2], 3, "Node type mismatch; expected <class 'list'>, but got <class 'int'>."),
        ({"a": 1}, {"b": 1}, "Node keys mismatch; missing key(s): {'a'}; extra key(s): {'b'}."),
    ],
)
def test_trees_that_do_not_match_are_an_error(tree, rest, words):
    with pytest.raises(ValueError) as caught:
        pytree.tree_map(lambda x, y: x, tree, rest)
    assert str(caught.value) == words


def test_the_wrong_number_of_leaves_is_an_error():
    with pytest.raises(ValueError, match="`leaves` has length 2 but the spec refers to a pytree that holds 1 items"):
        pytree.tree_unflatten([1, 2], pytree.tree_structure([1]))


def test_a_prefix_is_repeated_over_the_tree_that_it_stands_for():
    spec = pytree.tree_structure([1, (2, 3)])
    assert pytree._broadcast_to_and_flatten(0, spec) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten([0, None], spec) == [0, None, None]
    assert pytree._broadcast_to_and_flatten((0, None), spec) is None
    assert pytree._broadcast_to_and_flatten([0, [1]], spec) is None
    assert pytree._broadcast_to_and_flatten({"b": 1, "a": 0}, pytree.tree_structure({"a": "x", "b": "y"})) == [0, 1]


def test_a_registered_type_is_a_node(registered):
    tree = [Pair(1, [2]), Settings(0.1)]
    assert pytree.tree_flatten(tree)[0] == [1, 2, 0.1]
    assert pytree.tree_map(str, tree) == [Pair("1", ["2"]), Settings("0.1")]
    assert pytree.keystr(pytree.tree_leaves_with_path(Settings(1.0, "n"))[1][0]) == ".name"
    with pytest.raises(ValueError, match="flatten_with_keys_fn"):
        pytree.tree_flatten_with_path(Pair(1, 2))
    with pytest.raises(NotImplementedError, match="serialization name"):
        pytree.treespec_dumps(pytree.tree_structure(Pair(1, 2)))


def test_a_type_is_registered_once():
    with pytest.raises(ValueError, match="<class 'list'> is already registered as pytree node."):
        pytree.register_pytree_node(list, list, list)


def test_a_constant_is_part_of_the_structure():
    @dataclass(frozen=True)
    class Kind:
        name: str

    class Unequal:
        pass

    class Unhashable:
        def __eq__(self, other):
            return True

    for _ in range(2):
        pytree.register_constant(Kind)
    try:
        leaves, spec = pytree.tree_flatten([Kind("a"), 1])
        assert leaves == [1] and pytree.tree_unflatten([2], spec) == [Kind("a"), 2]
        assert pytree.tree_leaves_with_path(Kind("a")) == [] and pytree.is_constant_class(Kind)
        assert pytree.tree_structure(Kind("a")) == pytree.tree_structure(Kind("a")) != pytree.tree_structure(Kind("b"))
    finally:
        pytree._deregister_pytree_node(Kind)
    assert not pytree.is_constant_class(Kind)
    for refused, lacks in ((Unequal, "__eq__"), (Unhashable, "__hash__")):
        with pytest.raises(TypeError, match=f"non-default `{lacks}`"):
            pytree.register_constant(refused)


def test_a_size_is_a_node_and_becomes_a_tuple():
    leaves, spec = pytree.tree_flatten(rd.ones(2, 3).shape)
    assert leaves == [2, 3] and pytree.tree_unflatten(leaves, spec) == (2, 3)
    assert pytree.tree_map(str, rd.ones(2, 3).shape) == ("2", "3")


def test_a_spec_survives_as_text():
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    spec = pytree.tree_structure([{"a": (1, None)}, Point(1, deque([2], 3)), OrderedDict(k=1), defaultdict(list, q=1)])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert_expected_inline(
        pytree.treespec_dumps(pytree.tree_structure({"a": [1]})),
        """[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [{"type": "builtins.list", "context": "null", "children_spec": [{"type": null, "context": null, "children_spec": []}]}]}]""",  # noqa: E501
    )
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        pytree.treespec_loads("[2, 3]")
    with pytest.raises(NotImplementedError, match="os.system"):
        pytree.treespec_loads('[1, {"type": "os.system", "context": "null", "children_spec": []}]')
