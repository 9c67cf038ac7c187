"""Node: one step of a graph, and how values of other nodes stand in its arguments.

    op             target                        what the step is
    placeholder    name of a parameter           an input; `args` may hold its default
    get_attr       dotted path                   a parameter, buffer or submodule of the module that owns the graph
    call_function  a function                    target(*args, **kwargs)
    call_method    name of a method              args[0].target(*args[1:], **kwargs)
    call_module    dotted path of a submodule    that module, called
    output         "output"                      args[0] is the result

A node stands in others' arguments as itself, in lists, tuples, dicts and slices of any depth. `users` are the nodes in
whose arguments it stands; whoever sets `args` or `kwargs` keeps that right, and containers in them cannot be changed.

Read next: graph.py.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from redispatch.dispatch import OpOverload, OpOverloadPacket, Tag
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.pytree import is_namedtuple_instance, register_pytree_node

Target = Callable[..., Any] | str
OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")


def _frozen(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args "
        "of a torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node, or call "
        "node.update_arg or node.update_kwarg"
    )


class immutable_list(list):  # PyTorch's name
    """A list in a node's arguments."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = pop = remove = reverse = (
        sort
    ) = _frozen

    def __hash__(self) -> int:  # type: ignore[override]  # it is not hashable, which raises
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


class immutable_dict(dict):  # PyTorch's name
    """A dict in a node's arguments."""

    __delitem__ = __setitem__ = __ior__ = clear = pop = popitem = setdefault = update = _frozen

    def __hash__(self) -> int:  # type: ignore[override]  # it is not hashable, which raises
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


register_pytree_node(immutable_list, lambda one: (list(one), None), lambda items, _: immutable_list(items))
register_pytree_node(
    immutable_dict,
    lambda one: (list(one.values()), list(one)),
    lambda items, keys: immutable_dict(zip(keys, items, strict=True)),
)


AGGREGATES = (tuple, list, dict, slice)


def map_aggregate(value: Any, fn: Callable[[Any], Any]) -> Any:
    """An argument with each leaf changed: what stands in lists, tuples, dicts and slices."""
    return map_items(value, lambda item: map_aggregate(item, fn)) if isinstance(value, AGGREGATES) else fn(value)


def map_items(value: Any, fn: Callable[[Any], Any]) -> Any:
    """A list, tuple, dict or slice with each of its items changed."""
    if is_namedtuple_instance(value):
        return type(value)(*map(fn, value))
    if isinstance(value, tuple):
        return tuple(map(fn, value))
    if isinstance(value, list):
        return immutable_list(map(fn, value))
    if isinstance(value, dict):
        return immutable_dict((fixed_key(key), fn(item)) for key, item in value.items())
    return slice(*map(fn, (value.start, value.stop, value.step)))


def fixed_key(key: Any) -> Any:
    """Returns the key of a dict. RuntimeError where it depends on a node: where the values stand would, too."""
    if isinstance(getattr(key, "node", key), Node):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {key}. Take numbers or strings "
            "for keys, and put the value of the node among the values"
        )
    return key


def map_arg(value: Any, fn: Callable[[Node], Any]) -> Any:
    """An argument with each Node in it changed."""
    return map_aggregate(value, lambda one: fn(one) if isinstance(one, Node) else one)


class Node:
    """See above. `meta`: what tracers and passes note of the value: `val`, `tensor_meta`, `stack_trace`, ..."""

    def __init__(
        self,
        graph: Any,
        name: str,
        op: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in OPCODES:
            raise AssertionError(f"Node op {op!r} is not one of {', '.join(OPCODES)}")
        if op == "call_function" and not callable(target):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a "
                "Callable is expected"
            )
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._set(args, kwargs)

    # Arguments ----------------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Any, ...]:
        return self._args

    @args.setter
    def args(self, args: Iterable[Any]) -> None:
        self._set(tuple(args), self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Any]) -> None:
        self._set(self._args, kwargs)

    def _set(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found: dict[Node, None] = {}

        def note(one: Node) -> Node:
            found[one] = None
            return one

        self._args, self._kwargs = map_arg(args, note), map_arg(dict(kwargs), note)
        for node in self._input_nodes:
            node.users.pop(self, None)
        for node in found:
            node.users[self] = None
        self._input_nodes = found

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Has `new_input` stand where `old_input` stood."""
        self._set(
            *(map_arg(one, lambda node: new_input if node is old_input else node) for one in (self._args, self._kwargs))
        )

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Has `replace_with` stand wherever this node stood; gives the nodes that were changed.

        delete_user_cb: whether a user is to be changed. propagate_meta: whether `replace_with` gets this node's `meta`.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("propagate_meta: the replacement has a meta of its own")
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if user is not replace_with and delete_user_cb(user)]
        for user in changed:
            self.graph._tell("replace", self, replace_with.name, user)
            user.replace_input_with(self, replace_with)
        return changed

    # Its place in the list ----------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, node: Node) -> None:
        """Moves a node of this graph to the place before this one."""
        if node.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if node is self:
            return
        node._remove_from_list()
        before = self._prev
        before._next, node._prev = node, before
        node._next, self._prev = self, node

    def append(self, node: Node) -> None:
        """Moves a node of this graph to the place behind this one."""
        if node is not self:
            self._next.prepend(node)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    # What it is ---------------------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """Returns where the program made the call, if the tracer has noted it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Returns whether the step must stay though nobody uses its value: it writes, draws numbers, or is an input or
        output. impure_random: whether to count those that draw, after which others draw other numbers."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if isinstance(self.target, OpOverload):
                draws = Tag.nondeterministic_seeded in self.target.tags
                return self.target.schema.is_mutable or (impure_random and draws)
            return self.target in IMPURE
        if self.op == "call_method":
            return str(self.target).endswith("_") and not str(self.target).startswith("__")
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                return True
            target = owner.get_submodule(str(self.target))
            return getattr(target, "_is_impure", False)
        return False

    def _rename(self, candidate: str) -> None:
        """Gives it a name, or one like it that nobody has."""
        if candidate != self.name:
            self.name = self.graph._namespace.create_name(candidate)

    def _pretty_print_target(self, target: Any) -> str:
        return target if isinstance(target, str) else qualified_name(target)

    def format_node(self) -> str:
        """One line of text."""
        typed = f"{type_name(self.type)} " if self.type is not None else ""
        target = self._pretty_print_target(self.target)
        head = f"%{self.name} : {typed}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "output":
            return f"return {self.args[0]}"
        if self.op == "placeholder":
            default = f"(default={self.args[0]})" if self.args else ""
            return head + default
        if self.op == "get_attr":
            return head
        kwargs = ", ".join(f"{key}: {_shown(value)}" for key, value in self.kwargs.items())
        args = ", ".join(_shown(one) for one in self.args) + ("," if len(self.args) == 1 else "")
        return f"{head}(args = ({args}), kwargs = {{{kwargs}}})"

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: Node) -> bool:
        """Returns whether it comes before another node of the same graph."""
        node = self._next
        while node is not self.graph._root:
            if node is other:
                return True
            node = node._next
        return False

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self


def written_at(node: Node) -> str:
    """Returns the lines of the user's program that a node comes from, to end an error with; "" if none were noted."""
    return f"\nThe node comes from:\n{node.stack_trace}" if node.stack_trace else ""


IMPURE: set[Any] = set()  # functions whose calls stay though nobody uses the result
_side_effectful_functions = IMPURE  # PyTorch's name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Enters a function whose calls must stay in graphs though nobody uses their results."""
    IMPURE.add(fn)
    return fn


def _shown(value: Any) -> str:
    if isinstance(value, Node):
        return f"%{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    return value if isinstance(value, str) else str(value)


def qualified_name(function: Any) -> str:
    """Returns how a graph calls a function: `operator.add`, `torch.ops.aten.add.Tensor`, `torch.relu`."""
    if isinstance(function, OpOverload | OpOverloadPacket):
        return f"torch.ops.{function}"
    if isinstance(function, HigherOrderOperator):
        return f"torch.ops.higher_order.{function}"
    name: str = getattr(function, "__name__", repr(function))
    module: str = getattr(function, "__module__", None) or ""
    if module == "builtins" or getattr(builtins, name, None) is function:
        return f"builtins.{name}"
    if module.partition(".")[0] == "redispatch":
        module = f"torch{module.removeprefix('redispatch')}"
    name = getattr(function, "__qualname__", name)
    return f"{'operator' if module == '_operator' else module}.{name}" if module else name


def type_name(annotation: Any) -> str:
    """An annotation as code writes it."""
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, type) and not getattr(annotation, "__args__", None):
        return qualified_name(annotation)
    return repr(annotation).replace("typing.", "").replace("redispatch.", "torch.")


def _get_qualified_name(func: Any) -> str:
    """Returns the path of a function: `_operator.add`, `torch.relu`, `len`."""
    name = qualified_name(func)
    return f"_{name}" if name.startswith("operator.") else name.removeprefix("builtins.")


def _type_repr(obj: Any) -> str:
    """Returns an annotation as code writes it."""
    return type_name(obj).removeprefix("builtins.")
