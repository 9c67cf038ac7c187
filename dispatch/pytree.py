"""Pytrees: nested lists, tuples, dicts and the like, seen as a flat list of leaves and a description of the nesting.

    leaves, spec = tree_flatten({"w": x, "bias": [y, None]})     # [x, y, None]
    tree_unflatten([f(leaf) for leaf in leaves], spec)            # {"w": f(x), "bias": [f(y), f(None)]}

A subclass or mode that receives `args` and `kwargs` of any shape unwraps its tensors this way, on each call; so one
look-up by exact type decides what a node is, and mapping builds no spec. None is a leaf. A dict keeps the order of its
keys. Subclasses of list and dict are leaves unless registered; any namedtuple is a node. The names and the behaviour
are those of `torch.utils._pytree`; `tests/parity/pytree.py` compares the two on random trees.

In order: the registry of node types, TreeSpec, flattening, mapping, key paths, specs as JSON text.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

PyTree = Any
Context = Any
FlattenFn = Callable[[PyTree], tuple[Iterable[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
IsLeaf = Callable[[PyTree], bool]

# --- Key paths: how one child is reached from its parent ----------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """`[idx]` of a list, tuple or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey:
    """`[key]` of a dict."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """`.name` of a namedtuple or dataclass."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


# --- The registry of node types -----------------------------------------------------------------------------------


class NodeDef(NamedTuple):
    """The functions that take a node of one type apart, and put it together again."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None = None


class _Serializer(NamedTuple):
    """The JSON of a node's type and context. Without functions, the context must be JSON already."""

    typename: str
    to_dumpable_context: Callable[[Context], Any] | None = None
    from_dumpable_context: Callable[[Any], Context] | None = None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
_SERIALIZERS: dict[Any, _Serializer] = {}
_TYPE_OF_NAME: dict[str, Any] = {}
_NAMEDTUPLES: dict[str, type] = {}
CONSTANTS: set[type] = set()  # classes whose instances are nodes without children


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Context], Any] | None = None,
    from_dumpable_context: Callable[[Any], Context] | None = None,
    flatten_with_keys_fn: Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Context]] | None = None,
) -> None:
    """Makes each object whose exact type is `cls` a node: `flatten_fn(obj) -> (children, context)`, and
    `unflatten_fn(children, context) -> obj`. The context is compared with `==` where trees must match.

    Errors: ValueError where `cls` is registered, or only one of the two context functions is given.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    if serialized_type_name is not None:
        _SERIALIZERS[cls] = _Serializer(serialized_type_name, to_dumpable_context, from_dumpable_context)
        _TYPE_OF_NAME[serialized_type_name] = cls


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **keywords) -> None:
    """`register_pytree_node` under its older name; the two string functions have had no effect for long."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **keywords)


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Makes `cls` a leaf again."""
    del SUPPORTED_NODES[cls]
    CONSTANTS.discard(cls)
    serializer = _SERIALIZERS.pop(cls, None)
    if serializer is not None:
        del _TYPE_OF_NAME[serializer.typename]


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes the instances of a dataclass nodes; the fields (those of `__init__` unless named) are the children.

    A field that is None belongs to the context and is no child, so that optional parts come and go without leaves.
    """
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError("field_names must be specified with a list of all fields used to initialize the class")
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    names = [name for name in field_names if name not in (drop_field_names or ())]

    def flatten_with_keys(obj):
        values = [(name, getattr(obj, name)) for name in names]
        present = [(GetAttrKey(name), value) for name, value in values if value is not None]
        return present, [[key.name for key, _ in present], [name for name, value in values if value is None]]

    def flatten(obj):
        pairs, context = flatten_with_keys(obj)
        return [value for _, value in pairs], context

    def unflatten(children, context):
        present, absent = context
        return cls(**dict(zip(present, children, strict=True)), **dict.fromkeys(absent))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of an object that is a node without children."""

    value: Any


def register_constant(cls: type[Any]) -> None:
    """Makes the instances of a class part of the structure: nodes without children, compared by `==` and `hash`.

    Errors: TypeError where the class has not both of its own.
    """
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) in (getattr(object, method), None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{method}` implementation.")

    def flatten(obj):
        return [], ConstantNode(obj)

    SUPPORTED_NODES.pop(cls, None)  # once more changes nothing
    register_pytree_node(cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten)
    CONSTANTS.add(cls)


def is_constant_class(cls: type[Any]) -> bool:
    """Returns whether a class was registered by `register_constant`."""
    return cls in CONSTANTS


def is_structseq_class(cls: type) -> bool:
    """Whether `cls` is a tuple with named fields that C made, as `time.struct_time`, or of the results of an operator.

    The latter are namedtuples here, and structures of C in PyTorch: programs that ask get the same answer.
    """
    if not isinstance(cls, type) or not issubclass(cls, tuple):
        return False
    counts = (getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
    return cls.__module__ == "torch.return_types" or all(isinstance(count, int) for count in counts)


def is_structseq_instance(obj: object) -> bool:
    return is_structseq_class(type(obj))


def is_structseq(obj: object) -> bool:
    """Whether `obj` is such a tuple, or the class of one."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether `cls` was made by `namedtuple` or `NamedTuple`, or is a subclass of such a class."""
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and type(fields) is tuple
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: object) -> bool:
    """Whether `obj` is a namedtuple, or the class of one."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def _node(obj: PyTree) -> NodeDef | None:
    """The NodeDef that takes `obj` apart; None if it is a leaf."""
    cls = type(obj)
    node = SUPPORTED_NODES.get(cls)
    if node is None and issubclass(cls, tuple) and is_namedtuple_class(cls):
        return SUPPORTED_NODES[namedtuple]
    return node


def _get_node_type(tree: PyTree) -> Any:
    """Returns the class under which a value is taken apart: `namedtuple` for those of such a class."""
    return namedtuple if is_namedtuple_class(type(tree)) else type(tree)


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return (is_leaf is not None and is_leaf(tree)) or _node(tree) is None


# The built-in nodes. Their contexts: nothing for lists and tuples, the keys in order for dicts, the class for
# namedtuples, the maximal length for deques.


def _sequence_keys(sequence):
    return [(SequenceKey(i), child) for i, child in enumerate(sequence)], _context(sequence)


def _mapping_keys(mapping):
    return [(MappingKey(key), child) for key, child in mapping.items()], _context(mapping)


def _context(container) -> Any:
    node = _node(container)
    assert node is not None, "only called for the built-in nodes"
    return node.flatten_fn(container)[1]


def _namedtuple_keys(obj):
    return [(GetAttrKey(name), child) for name, child in zip(obj._fields, obj, strict=True)], type(obj)


def _named_type(context: type) -> str:
    name = next((name for name, cls in _NAMEDTUPLES.items() if cls is context), None)
    if name is None:
        raise NotImplementedError(f"{context} has no serialized name yet; call _register_namedtuple for it")
    return name


# A text from outside must not choose what gets imported, so only these may be the factory of a defaultdict.
_FACTORIES = {cls.__name__: cls for cls in (list, dict, set, int, float, bool, str, tuple)}


def _dump_defaultdict(context: Context) -> dict[str, Any]:
    factory, keys = context
    if factory is not None and _FACTORIES.get(factory.__name__) is not factory:
        raise NotImplementedError(f"a defaultdict of {factory!r} cannot be serialized; one of {list(_FACTORIES)} can")
    name = None if factory is None else factory.__name__
    return {"default_factory_module": "builtins", "default_factory_name": name, "dict_context": keys}


def _load_defaultdict(dumped: dict[str, Any]) -> Context:
    name = dumped["default_factory_name"]
    return [None if name is None else _FACTORIES[name], dumped["dict_context"]]


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Gives a namedtuple class the name under which specs that contain it are written. It is a node in any case."""
    _NAMEDTUPLES[serialized_type_name] = cls


def register_sequence(cls: type) -> None:
    """Makes the instances of a tuple class nodes, which come back as tuples."""
    _register_built_in(cls, lambda obj: (obj, None), lambda children, _: tuple(children), _sequence_keys)


def _register_built_in(cls: Any, flatten: FlattenFn, unflatten: UnflattenFn, with_keys: Any, *context: Any) -> None:
    """`context`: the functions that write it as JSON and read it, where it is none already."""
    dump, load = context or (None, None)
    register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=f"{cls.__module__}.{cls.__name__}",
        to_dumpable_context=dump,
        from_dumpable_context=load,
        flatten_with_keys_fn=with_keys,
    )


register_sequence(tuple)
_register_built_in(list, lambda obj: (obj, None), lambda children, _: list(children), _sequence_keys)
_register_built_in(deque, lambda obj: (obj, obj.maxlen), deque, _sequence_keys)
_register_built_in(
    dict,
    lambda obj: (obj.values(), list(obj)),
    lambda children, keys: dict(zip(keys, children, strict=True)),
    _mapping_keys,
)
_register_built_in(
    OrderedDict,
    lambda obj: (obj.values(), list(obj)),
    lambda children, keys: OrderedDict(zip(keys, children, strict=True)),
    _mapping_keys,
)
_register_built_in(
    defaultdict,
    lambda obj: (obj.values(), [obj.default_factory, list(obj)]),
    lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
    _mapping_keys,
    _dump_defaultdict,
    _load_defaultdict,
)
_register_built_in(
    namedtuple,  # the function: all namedtuple classes share this entry
    lambda obj: (obj, type(obj)),
    lambda children, cls: cls._make(children),
    _namedtuple_keys,
    _named_type,
    lambda name: _NAMEDTUPLES[name],
)

BUILTIN_TYPES = frozenset(SUPPORTED_NODES)
STANDARD_DICT_TYPES = frozenset([dict, OrderedDict, defaultdict])


def __getattr__(name: str) -> Any:
    """Returns a function of a built-in type by PyTorch's private name for it: `_dict_flatten_with_keys`."""
    for kind, node in SUPPORTED_NODES.items():
        field = name.removeprefix(f"_{kind.__name__.lower()}_")
        if kind in BUILTIN_TYPES and field in ("flatten", "unflatten", "flatten_with_keys"):
            return getattr(node, f"{field}_fn")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# --- TreeSpec -----------------------------------------------------------------------------------------------------


class TreeSpec:
    """The nesting of a tree without its leaves: type and context of the node, and a spec for each child."""

    __slots__ = ("type", "context", "_children", "num_leaves", "num_nodes")

    def __init__(self, type: Any, context: Context, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type = type
        self.context = context
        self._children = children = list(children_specs)
        self.num_leaves = self.num_nodes = 0
        for child in children:
            self.num_leaves += child.num_leaves
            self.num_nodes += child.num_nodes
        self.num_nodes += 1

    @property
    def num_children(self) -> int:
        return len(self._children)

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        return self._children[index]

    def is_leaf(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self is other or (
            self.type == other.type and self.context == other.context and self._children == other._children
        )

    def __hash__(self) -> int:  # without the context, which is often a list
        return hash((self.type, tuple(self._children)))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        inner = indent + 2
        children = (",\n" + " " * inner).join(child._text(inner) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self.context!r}, [{children}])"

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this shape with these leaves. ValueError where their number is another."""
        if not isinstance(leaves, list | tuple):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees of `tree` that stand where this spec has its leaves. ValueError where the nodes differ."""
        subtrees: list[PyTree] = []
        self._split(tree, subtrees)
        return subtrees

    def _split(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        for spec, child in zip(self._children, self._matching_children(tree), strict=True):
            spec._split(child, subtrees)

    def _matching_children(self, tree: PyTree) -> list[PyTree]:
        """The children of `tree` in the order of this spec's. ValueError where it is another kind of node."""
        node = _node(tree)
        kind = type(tree) if node is None else node.type
        both_dicts = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if node is None or (kind != self.type and not both_dicts):
            raise ValueError(f"Node type mismatch; expected {self.type}, but got {kind}.")
        children, context = node.flatten_fn(tree)
        children = list(children)
        if len(children) != len(self._children):
            raise ValueError(f"Node arity mismatch; expected {len(self._children)}, but got {len(children)}.")
        if both_dicts:  # dicts may differ in class and in order
            keys = self.context[1] if self.type is defaultdict else self.context
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            if missing or extra:
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            return [tree[key] for key in keys]
        if self.type is not deque and context != self.context:  # the maximal length of a deque is no part of its shape
            raise ValueError(f"Node context mismatch for {self.type}; expected {self.context!r}, but got {context!r}.")
        return children


class LeafSpec(TreeSpec):
    """The spec of one leaf, written `*`."""

    __slots__ = ()

    def __init__(self) -> None:
        self.type = self.context = None
        self._children: list[TreeSpec] = []
        self.num_leaves = self.num_nodes = 1

    def is_leaf(self) -> bool:
        return True

    def _text(self, indent: int) -> str:
        return "*"

    def _build(self, leaves: Iterator[Any]) -> PyTree:
        return next(leaves)

    def _split(self, tree: PyTree, subtrees: list[PyTree]) -> None:
        subtrees.append(tree)


PyTreeSpec = TreeSpec
_LEAF = LeafSpec()


def treespec_leaf() -> LeafSpec:
    return _LEAF


def treespec_tuple(specs: Iterable[TreeSpec] = (), /) -> TreeSpec:
    return TreeSpec(tuple, None, specs)


def treespec_dict(mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **more: TreeSpec):
    specs = dict(mapping, **more)
    return TreeSpec(dict, list(specs), specs.values())


# --- Flattening ---------------------------------------------------------------------------------------------------


def tree_flatten(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves from left to right, and the spec that builds the tree from them.

    `is_leaf(subtree)` is asked before the registry: where it says True, the whole subtree is one leaf.

    >>> import redispatch as rd
    >>> from redispatch.utils import _pytree as pytree
    >>> leaves, spec = pytree.tree_flatten({"a": [1, 2], "b": 3})
    >>> leaves
    [1, 2, 3]
    >>> pytree.tree_unflatten(leaves, spec)
    {'a': [1, 2], 'b': 3}
    """
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf | None) -> TreeSpec:
    node = _node(tree) if is_leaf is None or not is_leaf(tree) else None
    if node is None:
        leaves.append(tree)
        return _LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(node.type, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """The tree of this spec with these leaves: the inverse of `tree_flatten`."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): expected a TreeSpec, not {type(treespec).__name__}")
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves, one by one."""
    node = _node(tree) if is_leaf is None or not is_leaf(tree) else None
    if node is None:
        yield tree
        return
    for child in node.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves, from left to right."""
    leaves: list[Any] = []
    _collect(tree, leaves, is_leaf)
    return leaves


def _collect(tree: PyTree, leaves: list[Any], is_leaf: IsLeaf | None) -> None:
    node = _node(tree) if is_leaf is None or not is_leaf(tree) else None
    if node is None:
        leaves.append(tree)
    else:
        for child in node.flatten_fn(tree)[0]:
            _collect(child, leaves, is_leaf)


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of a call's arguments, those of the keyword arguments last."""
    return tree_leaves((args, kwargs))


def tree_structure(tree: PyTree, is_leaf: IsLeaf | None = None) -> TreeSpec:
    return tree_flatten(tree, is_leaf)[1]


def _broadcast_to_and_flatten(tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf | None = None) -> list[Any] | None:
    """The leaves that `tree` has once each of its leaves is repeated over the subtree of `treespec` at its place.

    None where the two do not match. This is how `in_dims=0` or `in_dims=(0, None)` stands for a whole argument tree.
    """
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    try:
        children = treespec._matching_children(tree)  # in the order of the spec, also for dicts (PyTorch takes tree's)
    except ValueError:
        return None
    leaves: list[Any] = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        leaves += part
    return leaves


# --- Mapping ------------------------------------------------------------------------------------------------------


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """The tree of `func(leaf, *others)`, where the others are the subtrees of `rests` at the same place.

    Errors: ValueError where one of `rests` has other nodes than `tree` above its leaves.

    >>> import redispatch as rd
    >>> from redispatch.utils import _pytree as pytree
    >>> pytree.tree_map(lambda x: x * 2, {"a": [1, 2], "b": 3})
    {'a': [2, 4], 'b': 6}
    """
    if not rests:
        return _map(func, tree, is_leaf)
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*group) for group in zip(leaves, *map(spec.flatten_up_to, rests), strict=True)])


def _map(func: Callable[[Any], Any], tree: PyTree, is_leaf: IsLeaf | None) -> PyTree:
    if is_leaf is not None and is_leaf(tree):
        return func(tree)
    cls = type(tree)
    # The three types that arguments consist of, without the detour over children and context.
    if cls is tuple:
        return tuple([_map(func, child, is_leaf) for child in tree])
    if cls is list:
        return [_map(func, child, is_leaf) for child in tree]
    if cls is dict:
        return {key: _map(func, child, is_leaf) for key, child in tree.items()}
    node = _node(tree)
    if node is None:
        return func(tree)
    children, context = node.flatten_fn(tree)
    return node.unflatten_fn([_map(func, child, is_leaf) for child in children], context)


def tree_map_(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Calls `func` as `tree_map` does, forgets the results and returns `tree` itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for group in zip(leaves, *map(spec.flatten_up_to, rests), strict=True):
        func(*group)
    return tree


TypesOrPredicate = type | tuple[type, ...] | types.UnionType | Callable[[Any], bool]


def _predicate(what: TypesOrPredicate) -> Callable[[Any], bool]:
    if isinstance(what, type | tuple | types.UnionType):
        return lambda leaf: isinstance(leaf, what)
    if callable(what):
        return what
    raise TypeError(f"expected a type, a tuple or union of types, or a predicate, not {what!r}")


def map_only(what: TypesOrPredicate, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is applied where the value is of these types, others are passed through."""
    applies = _predicate(what)
    return lambda func: lambda leaf: func(leaf) if applies(leaf) else leaf


def tree_map_only(
    type_or_types_or_pred: TypesOrPredicate,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """The tree with `func` applied to the leaves of these types; the other leaves stay."""
    return _map(map_only(type_or_types_or_pred)(func), tree, is_leaf)


def tree_map_only_(
    type_or_types_or_pred: TypesOrPredicate,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf | None = None,
) -> PyTree:
    """Calls `func` for the leaves of these types, and returns `tree` itself."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None) -> bool:
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: TypesOrPredicate, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether `pred` holds for all leaves of these types."""
    applies = _predicate(type_or_types)
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if applies(leaf))


def tree_any_only(
    type_or_types: TypesOrPredicate, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether `pred` holds for some leaf of these types."""
    applies = _predicate(type_or_types)
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if applies(leaf))


# --- Leaves with their paths --------------------------------------------------------------------------------------


def tree_flatten_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """Flattens like `tree_flatten`, with each leaf as `(path, leaf)`. ValueError for a node type that has no keys."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    return list(_paths((), tree, is_leaf))


def _paths(path: KeyPath, tree: PyTree, is_leaf: IsLeaf | None) -> Iterator[tuple[KeyPath, Any]]:
    node = _node(tree) if is_leaf is None or not is_leaf(tree) else None
    if node is None:
        yield path, tree
        return
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _paths((*path, key), child, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf | None = None) -> PyTree:
    """Maps like `tree_map`, with the path as the first argument: `func(path, leaf, *others)`."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *group) for pair, *group in zip(pairs, *others, strict=True)])


def keystr(kp: KeyPath) -> str:
    """The path as one would write it: `['layers'][0].weight`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """Returns the part of `obj` at the end of the path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# --- Specs as JSON text -------------------------------------------------------------------------------------------

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The spec as JSON: `[protocol, {"type": ..., "context": ..., "children_spec": [...]}]`, in PyTorch's format.

    Errors: NotImplementedError for a node type that was registered without a `serialized_type_name`.
    """
    if protocol is None:
        protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL
    _check_protocol(protocol)
    return json.dumps([protocol, _to_json(treespec)])


def _check_protocol(protocol: Hashable) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def _to_json(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    serializer = _SERIALIZERS.get(spec.type)
    if serializer is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Register it with a `serialized_type_name`."
        )
    dump = serializer.to_dumpable_context or json.dumps
    children = [_to_json(child) for child in spec.children_specs]
    return {"type": serializer.typename, "context": dump(spec.context), "children_spec": children}


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec that `treespec_dumps` wrote. Imports nothing: only types registered in this process can occur.

    Errors: ValueError for another protocol, NotImplementedError for an unknown type.
    """
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_json(schema)


def _from_json(schema: dict[str, Any]) -> TreeSpec:
    name = schema["type"]
    if name is None and schema["context"] is None and not schema["children_spec"]:
        return _LEAF
    if name not in _TYPE_OF_NAME:
        raise NotImplementedError(f"No pytree node type is registered under the name {name!r}.")
    cls = _TYPE_OF_NAME[name]
    load = _SERIALIZERS[cls].from_dumpable_context or json.loads
    return TreeSpec(cls, load(schema["context"]), [_from_json(child) for child in schema["children_spec"]])


class _Asterisk:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The tree with `*` for each leaf: `{'a': [*, *]}`."""
    return repr(treespec.unflatten([_Asterisk()] * treespec.num_leaves))
