"""compile: a function that runs as recorded graphs where it can, and as it stands where not. Never wrong.

The first call runs the function itself, by its converted text (transform.py), with every read logged (reads.py) and
every call of the library's functions recorded as a node of a graph. So its results, its writes and its random numbers
are the function's own. A later call for which all guards hold (guards.py) runs what the backend has made of the graph.
What cannot be guarded, or is an effect beside tensors, is an escape: such a program runs as it stands, and `explain`
says why. Read next: backends.py.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any, NamedTuple

from redispatch._functorch.aot_autograd import surroundings
from redispatch.compiler import STANCE
from redispatch.dispatch import STATE, TorchFunctionMode
from redispatch.dispatch.pytree import tree_flatten, tree_map, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.fx.graph import Graph
from redispatch.fx.graph_module import GraphModule
from redispatch.fx.node import Node
from redispatch.overrides import get_overridable_functions

from .guards import Guards
from .known import FACTS, PRIMITIVES, TENSORS, described
from .reads import Log, Path

METADATA = set(
    "dim ndim ndimension dtype device layout element_size itemsize is_floating_point is_complex is_signed get_device "
    "requires_grad is_leaf is_sparse is_cuda is_cpu is_quantized is_meta is_mkldnn is_nested is_conj is_neg is_xpu "
    "is_mps is_inference shape size stride numel nelement nbytes storage_offset is_contiguous __len__ "
    "is_same_size".split()
)
DIMENSIONS = {"dim", "ndim", "ndimension", "get_device", "element_size", "itemsize"}  # integers that are no sizes
REFUSED = set(
    "grad grad_fn data backward register_hook register_post_accumulate_grad_hook retain_grad requires_grad_ set_ "
    "_backward_hooks volatile output_nr _version names retains_grad share_memory_ resize_ __deepcopy__ __reduce_ex__ "
    "detach_ _base untyped_storage storage data_ptr apply_ map_ map2_ grad_dtype".split()
)
LIMIT = 8  # recorded programs of one function
NUMBERS = itertools.count()
MAKING = RLock()  # while a program is recorded or compiled


@cache
def recorded_functions() -> set[int]:
    """Returns the ids of the library's functions that ask function modes."""
    return {id(one) for group in get_overridable_functions().values() for one in group}


def is_leaf(function: Any) -> bool:
    """Whether a call of a function is recorded as one call."""
    if getattr(function.__globals__.get("entry_point"), "function", None) is function:
        return True
    return id(function) in recorded_functions() or hasattr(function, "__overridable__")


class Recorder(TorchFunctionMode):
    """Records the calls of the library's functions in a graph."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log, self.graph = log, Graph()
        self.nodes: dict[int, Any] = {}
        self.kept: list[Any] = []
        self.inputs: list[tuple[Path, Tensor]] = []
        self.exact = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = name_of(func)
        if name in REFUSED:
            self.log.escape(f"a tensor's {name} is read or written")
        inside = None if self.log.reason else self.written(args, kwargs)
        result = func(*args, **kwargs)
        if not self.log.reason:
            self.record(func, name, inside, result)
        return result

    def record(self, func: Any, name: str, inside: Any, result: Any) -> None:
        """Makes a call a node; one that asks for metadata has them guarded."""
        self.kept.append(result)
        leaves, _ = tree_flatten(result)
        tensors = [one for one in leaves if isinstance(one, Tensor)]
        if not tensors and result is not None or name == "__get__":
            if name in METADATA:  # what a result of operators is may depend on sizes, too
                read = tree_flatten((func, inside))[0]
                sized = isinstance(result, int | tuple) and not isinstance(result, bool) and name not in DIMENSIONS
                self.exact |= (
                    sized
                    or name in ("is_contiguous", "is_same_size")
                    or not all(node.op == "placeholder" for node in read if isinstance(node, Node))
                )
            else:
                self.log.escape(f"{name} gives what depends on a tensor's values")
            return
        if any(type(one) is not Tensor and id(one) not in self.nodes for one in tensors):
            self.log.escape(f"{name} gives a subclass of Tensor")
            return
        if any(one is not None and not isinstance(one, Tensor) for one in leaves):
            self.log.escape(f"{name} gives more than tensors")
            return
        args, kwargs = inside
        node = self.graph.call_function(func, args, kwargs)
        if isinstance(result, Tensor):
            # `contiguous` gives its input, where it lies so: for others it may not
            self.exact |= id(result) in self.nodes and not name.endswith("_")
            self.nodes.setdefault(id(result), node)
        elif isinstance(result, list | tuple):
            self.exact |= not hasattr(result, "_fields")  # how many there are may depend on sizes
            for i, one in enumerate(result):
                if isinstance(one, Tensor):
                    self.nodes[id(one)] = self.graph.call_function(item, (node, i))
                elif one is not None:
                    self.log.escape(f"{name} gives tensors in a tree")
        elif result is not None:
            self.log.escape(f"{name} gives a {type(result).__name__}")

    def written(self, args: Any, kwargs: Any) -> Any:
        """The arguments with nodes in the place of tensors."""
        return tree_map(self.node, (tuple(args), dict(kwargs)))

    def node(self, value: Any) -> Any:
        """The node of a tensor; other values stay."""
        if not isinstance(value, Tensor):
            if type(value) not in PRIMITIVES | FACTS:
                self.log.escape(f"a {type(value).__name__} is given to an operator")
            return value
        found = self.nodes.get(id(value))
        if found is None:
            path = self.log.path_of.get(id(value))
            if path is None or type(value) not in TENSORS:
                self.log.escape(
                    "a tensor comes from code that is not shown" if path is None else "a subclass of Tensor"
                )
                return value
            found = self.nodes[id(value)] = self.graph.placeholder(f"input_{len(self.inputs)}")
            self.inputs.append((path, value))
            self.kept.append(value)
        return found


def name_of(func: Any) -> str:
    """The name of a function, or of the attribute that a getter reads."""
    name = getattr(func, "__name__", "")
    if name in ("__get__", "__set__", "__delete__"):
        owner = func.__self__
        name = getattr(getattr(owner, "fget", None), "__name__", name)
    return name


def item(values: Any, index: int) -> Any:
    """One of several results."""
    return values[index]


class Program:
    """A recorded graph, its guards, and how results are made of what it gives."""

    def __init__(self, recorder: Recorder, result: Any, backend: Callable[..., Any]) -> None:
        log = recorder.log
        leaves, self.structure = tree_flatten(result)
        self.constant = [None if isinstance(one, Tensor) else one for one in leaves]
        for one in leaves:
            if not isinstance(one, Tensor) and type(one) not in PRIMITIVES | FACTS:
                log.escape(f"a {type(one).__name__} is returned")
        seen: list[int] = []
        containers(result, seen)
        if len(set(seen)) != len(seen) or any(one in log.path_of for one in seen):
            log.escape("a container is returned that others see")
        self.output = [recorder.node(one) if isinstance(one, Tensor) else None for one in leaves]
        number_of = {id(recorder.nodes[id(tensor)]): i for i, (_, tensor) in enumerate(recorder.inputs)}
        # a result that is an input, or another result, is that very tensor
        self.places: list[Any] = []
        given: list[Any] = []
        for node in self.output:
            if node is None:
                self.places.append(None)
            elif id(node) in number_of:
                self.places.append(("input", number_of[id(node)]))
            else:
                if node not in given:
                    given.append(node)
                self.places.append(("result", given.index(node)))
        order(recorder.graph)
        recorder.graph.output(tuple(given))
        if log.reason:
            return
        recorder.graph.lint()
        self.graph = GraphModule({}, recorder.graph)
        self.examples = [tensor for _, tensor in recorder.inputs]
        self.guards = Guards(log.guards, recorder.inputs, log.constants, recorder.exact, next(NUMBERS))
        self.state = surroundings()
        self.backend = backend
        self.compiled: Callable[..., Any] | None = None
        if not self.state[0] and any(one.requires_grad for one in leaves if isinstance(one, Tensor)):
            self.compiled = self.graph.forward  # views say so where nothing is recorded; no joint graph knows of it

    def run(self, inputs: list[Any]) -> Any:
        """The function's result for these inputs."""
        if self.compiled is None:
            with MAKING:
                if self.compiled is None:
                    self.compiled, self.examples = self.backend(self.graph, self.examples), []
        found = self.compiled(*inputs)
        leaves = [
            constant if place is None else inputs[place[1]] if place[0] == "input" else found[place[1]]
            for constant, place in zip(self.constant, self.places, strict=True)
        ]
        return tree_unflatten(leaves, self.structure)


def order(graph: Graph) -> None:
    """Puts placeholders first."""
    first = next((node for node in graph.nodes if node.op != "placeholder"), None)
    for node in list(graph.nodes):
        if node.op == "placeholder" and first is not None:
            first.prepend(node)


def containers(value: Any, seen: list[int]) -> None:
    """Notes the containers of a result that can be told apart; twice one that cannot be made anew."""
    if isinstance(value, list | dict):
        seen.append(id(value))
    if isinstance(value, dict) and not all(type(key) in PRIMITIVES for key in value):
        seen += [id(value)] * 2  # a key may be a tensor
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            containers(one, seen)


class Standing(NamedTuple):
    """Guards of all that was read up to an escape: a call that reads the same runs as it stands."""

    guards: Guards
    state: tuple[Any, ...]
    reason: str


class Compiled:
    """A function that runs as recorded programs, and where it has none as it stands. strict: that is an error."""

    def __init__(self, function: Any, backend: Callable[..., Any], strict: bool) -> None:
        self.function, self.backend, self.strict = function, backend, strict
        self.programs: list[Program | Standing] = []
        self.full = False  # whether there are as many programs as there may be
        EVERY.add(self)

    def reset(self) -> None:
        """Forgets all programs."""
        self.programs, self.full = [], False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        state, stance = STATE.get(), STANCE.get()
        seen = state.function_modes or state.modes or state.pre_dispatch_modes or state.levels
        if seen or state.tracer is not None or stance == "force_eager":
            return self.function(*args, **kwargs)
        program, inputs = self.find(args, kwargs)
        kept = self.programs and stance in ("eager_on_recompile", "fail_on_recompile")
        if program is None and not (self.full or kept):
            with MAKING:
                program, inputs = self.find(args, kwargs)  # which another thread may have recorded meanwhile
                if program is None:
                    return self.capture(args, kwargs)
        if program is None and kept and stance == "fail_on_recompile":
            raise RuntimeError(f"a program of {self.function} would be recorded anew, which the stance refuses")
        return program.run(inputs) if isinstance(program, Program) else self.function(*args, **kwargs)

    def find(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Program | Standing | None, Any]:
        """The program whose guards hold, and the tensors that it takes."""
        known = surroundings() if self.programs else None
        for program in self.programs:
            if program.state == known:
                inputs = program.guards.check(args, kwargs)
                if type(inputs) is list:
                    return program, inputs
        return None, None

    def capture(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs the function, and records it."""
        log = Log(self.strict, is_leaf)
        root, names = Path(None, "args"), Path(None, "kwargs")
        log.guard(root, "len", len(args))
        log.guard(names, "keys", tuple(kwargs))
        for i, one in enumerate(args):
            log.register(one, Path(root, f"[{i}]"))
        for key, one in kwargs.items():
            log.register(one, Path(names, f"[{key!r}]"))
        for one in (self.function, getattr(self.function, "__self__", self.function)):
            log.root(one)
        state = surroundings()
        recorder = Recorder(log)
        with recorder:
            result = log.call(self.function, *args, **kwargs)
        if surroundings() != state:
            log.escape("the state of the dispatcher is another afterwards")
        program = None if log.reason else Program(recorder, result, self.backend)
        if log.reason:
            guards = Guards(log.guards, [], log.constants, False, next(NUMBERS))
            self.programs.append(Standing(guards, state, log.reason))
        else:
            assert program is not None
            self.programs.append(program)
        if len(self.programs) >= LIMIT:
            self.full = True
            warnings.warn(
                f"{described(self.function)} has {LIMIT} compiled programs, and runs as it stands where none of them "
                f"fits. The last was recorded because {self.misses(args, kwargs)}",
                stacklevel=4,
            )
        return result

    def misses(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The guard of the last program but one that did not hold."""
        if len(self.programs) < 2:
            return "it was called"
        guards = self.programs[-2].guards
        failed = guards.check(args, kwargs)
        return guards.said(failed) if isinstance(failed, int) else "the state of the dispatcher was another"


EVERY: weakref.WeakSet[Compiled] = weakref.WeakSet()
