"""aot_function: a function whose forward and backward are traced ahead, parted, and handed to compilers as graphs.

    f = aot_function(model, fw_compiler=show, bw_compiler=show)      # show(graph_module, example_inputs) -> a callable

At its first call with arguments of some metadata the function runs twice, on tensors without data. The first run finds
out what it does to the outside (`Effects`): the inputs that it writes, and the results that are views of inputs or of
each other. The second is traced: the results, then the gradients of the inputs by the gradients of the results, in one
*joint graph*, whose operators write nothing. A partitioner parts it in two. From then on a call runs the forward graph
within an `autograd.Function`, whose backward runs the other, and afterwards has the effects: inputs are written, views
are made of what they are views of.

Note [What a graph takes and returns]
Graphs know plain tensors alone. A subclass with `__tensor_flatten__` is taken apart where it enters, and put together
where it leaves, gradients as well. Inputs that share memory, of which one is written, are views of one input, their
memory. The forward returns the new values of written inputs, then the results, then what several results are views of.
A written input whose new value no gradient comes from gets a gradient of zeros, where the program itself gives it none.

Note [Gradients of gradients]
A backward graph has no derivative of its own, and the joint graph has not the right one: a graph of what ran cannot say
which operators ran without being recorded, or what was detached. Where one is asked for, or gradients are of other
classes than those that backward was traced with, the function runs again, so that autograd records it: with the inputs,
the autocast and the random numbers that forward had, on copies of what it writes.

Source: PyTorch's torch._functorch.aot_autograd. Read next: partitioners.py, ../fx/experimental/proxy_tensor.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from functools import wraps
from itertools import count
from typing import Any

from redispatch._names import late
from redispatch.autograd import Function, SavedTensor, enable_grad, grad, is_grad_enabled, no_grad
from redispatch.dispatch import STATE, OpOverload, Tag
from redispatch.dispatch.pytree import tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor, get_default_dtype
from redispatch.func import functional_call
from redispatch.fx import GraphModule
from redispatch.fx.experimental.proxy_tensor import current_proxy_mode, make_fx
from redispatch.fx.experimental.symbolic_shapes import ShapeEnv, expect_true, free_unbacked_symbols, sym_eq
from redispatch.fx.traceback import lines_of_forward
from redispatch.kernels.ops.creation import empty_like
from redispatch.modes.fake_tensor import FakeTensor, FakeTensorMode
from redispatch.modes.functional_tensor import FunctionalTensor, FunctionalTensorMode
from redispatch.nn import Module
from redispatch.utils._python_dispatch import is_traceable_wrapper_subclass
from redispatch.utils.checkpoint import Surroundings

from .effects import Effects, Layout, apart, first_of, is_plain, memory, plain_of
from .partitioners import check_parts, checkpoints_noted
from .partitioners import default_partition as default_partition
from .partitioners import min_cut_rematerialization_partition as min_cut_rematerialization_partition
from .sizes import Numbers, Sizes, Variants, sizes_of

__all__ = [
    "aot_function",
    "aot_module",
    "aot_module_simplified",
    "compiled_function",
    "compiled_module",
    "default_partition",
    "get_aot_compilation_context",
    "get_aot_graph_name",
    "get_graph_being_compiled",
    "make_boxed_compiler",
    "make_boxed_func",
    "min_cut_rematerialization_partition",
    "nop",
]


__path__: list[str] = []  # PyTorch's package `_aot_autograd`: _moved.py
_PLACES, __getattr__, __dir__ = late(globals(), {".export": "GraphSignature aot_export_joint_simple aot_export_module"})


def nop(fx_g: Any, inputs: Any) -> Any:
    """A compiler that changes nothing."""
    return fx_g


def make_boxed_func(f: Callable[..., Any]) -> Any:
    """A function that takes its arguments as one list."""

    def boxed(args: Any) -> Any:
        return f(*args)

    boxed._boxed_call = True  # type: ignore[attr-defined]  # by which `run` knows it
    return boxed


def make_boxed_compiler(compiler: Callable[..., Any]) -> Callable[..., Any]:
    """A compiler whose functions take their arguments as one list."""
    return wraps(compiler)(lambda graph_module, inputs: make_boxed_func(compiler(graph_module, inputs)))


def run(compiled: Any, inputs: list[Any]) -> Any:
    found = compiled(inputs) if getattr(compiled, "_boxed_call", False) else compiled(*inputs)
    return list(found) if isinstance(found, list | tuple) else [found]


MODEL = "model"  # what names of graphs begin with
BEING_COMPILED: ContextVar[tuple[str, int]] = ContextVar("the kind and number of the graph at hand", default=("", 0))
NUMBERS = count()


def get_aot_compilation_context() -> tuple[list[str], str, int]:
    """Returns ([which graph is at hand in a compiler: "forward", "backward", "inference"], "model", its number)."""
    kind, number = BEING_COMPILED.get()
    return [kind] if kind else [], MODEL, number


def get_graph_being_compiled() -> str:
    """Returns which graph is at hand in a compiler: "forward", "backward" or "inference"; "" outside of any."""
    return BEING_COMPILED.get()[0]


def get_aot_graph_name() -> str:
    """Returns a name for the graph that is at hand in a compiler: `model__0_forward`."""
    kind, number = BEING_COMPILED.get()
    return f"{MODEL}__{number}_{kind}"


def by(compiler: Callable[..., Any], kind: str, number: int, module: GraphModule) -> Any:
    """Returns what a compiler makes of a graph."""
    token = BEING_COMPILED.set((kind, number))
    try:
        return compiler(module, examples_of(module))
    finally:
        BEING_COMPILED.reset(token)


def aot_function(
    fn: Callable[..., Any],
    fw_compiler: Callable[..., Any],
    bw_compiler: Callable[..., Any] | None = None,
    partition_fn: Callable[..., Any] = default_partition,
    decompositions: Any = None,
    num_params_buffers: int = 0,
    keep_inference_input_mutations: bool = False,
    inference_compiler: Callable[..., Any] | None = None,
    *,
    dynamic: bool | None | Sequence[Collection[int]] = False,
    disable_functionalization: bool = False,
    **options: Any,
) -> Callable[..., Any]:
    """Returns a function that does what `fn` does by compiled graphs, made at the first call with such arguments.

    fn: takes and returns trees of tensors and other values; tensors that it finds elsewhere may not be written.
    fw_compiler, bw_compiler: get (graph module, example inputs without data), and return a callable that takes such
    inputs and returns the outputs of the graph. bw_compiler: fw_compiler's, by default. inference_compiler: the same,
    where no gradient is wanted. partition_fn: parts the joint graph. decompositions: by operator, a function to trace.
    num_params_buffers: so many tensors, the first, have the same sizes at each call. dynamic: whether the sizes of the
    others are symbols, so that one graph is for many; by None, those that are seen to change (sizes.py); by a sequence,
    these dimensions of each tensor.
    disable_functionalization: leaves writes in the graphs as they are.
    Errors: those of `fn`; RuntimeError where its operators depend on values of tensors.
    """
    made: dict[Any, Variants] = {}

    @wraps(fn)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = tree_flatten((args, kwargs))
        tensors = [one for one in leaves if isinstance(one, Tensor)]
        key = (
            str(structure),
            *map(metadata, leaves),
            first_of(map(memory, plain_of(tensors))),
            first_of(map(id, tensors)),
            *surroundings(),
        )
        variants = made.setdefault(key, Variants(dynamic))
        distinct = list({id(one): one for one in tensors}.values())
        plain = plain_of(distinct)
        sizes = sizes_of(plain)
        found, numbers = variants.find(sizes)
        if found is None:
            changing = variants.changing(plain, sizes, len(plain_of(distinct[:num_params_buffers])))
            found = Compiled(fn, leaves, structure, decompositions, not disable_functionalization, changing)
            found.compile(fw_compiler, bw_compiler or fw_compiler, inference_compiler or fw_compiler, partition_fn)
            found, numbers = variants.add(found, sizes)
        return found(leaves, numbers)

    return compiled


compiled_function = aot_function


def aot_module(mod: Any, *args: Any, **kwargs: Any) -> Any:
    """Returns a module that runs as `aot_function` has it, with the parameters and buffers of `mod`."""
    kwargs.setdefault("num_params_buffers", len(list(mod.parameters())) + len(list(mod.buffers())))

    def functional(state: dict[str, Any], args: Any, kwargs: Any) -> Any:
        return functional_call(mod, state, args, kwargs)

    compiled = aot_function(functional, *args, **kwargs)

    class AOTModule(Module):
        def __init__(self) -> None:
            super().__init__()
            self.orig_module = mod

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            return compiled({**dict(mod.named_parameters()), **dict(mod.named_buffers())}, args, kwargs)

    return AOTModule()


compiled_module = aot_module


def aot_module_simplified(mod: Any, args: Any, fw_compiler: Any, *more: Any, **options: Any) -> Callable[..., Any]:
    """Returns the forward of `aot_module`: a function of the module's arguments. args: examples, not looked at."""
    return aot_module(mod, fw_compiler, *more, **options).forward


# What a graph depends on ----------------------------------------------------------------------------------------------


def metadata(leaf: Any, inside: bool = False) -> Any:
    """Returns what graphs depend on of an argument: its metadata, but for the sizes of a plain tensor, or the value."""
    if not isinstance(leaf, Tensor):
        plain = isinstance(leaf, int | float | complex | str | None)
        return type(leaf), repr(leaf) if plain else id(leaf)  # by repr, 0.0 is not -0.0; the graphs keep what has an id
    inner = tuple(metadata(one, True) for one in apart(leaf)[0]) if is_traceable_wrapper_subclass(leaf) else ()
    sizes = sizes_of([leaf]) if inside or inner else leaf.dim()
    facts = sizes, leaf.dtype, str(leaf.device)
    return type(leaf), facts, leaf.requires_grad, leaf.is_leaf, leaf.is_inference(), inner


def surroundings() -> tuple[Any, ...]:
    """Returns the state of the dispatcher that programs depend on."""
    state = STATE.get()
    casts = tuple(sorted((kind, str(dtype)) for kind, dtype in state.autocast_dtypes.items()))
    return state.grad_enabled, state.inference, state.included, state.excluded, casts, get_default_dtype()


# The graphs of one function -------------------------------------------------------------------------------------------


class Compiled:
    """The graphs of a function for arguments of the same metadata."""

    def __init__(
        self, fn: Any, leaves: list[Any], structure: Any, decompositions: Any, functional: bool, changing: Any
    ) -> None:
        self.fn, self.structure, self.decompositions, self.functional = fn, structure, decompositions, functional
        self.leaves = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        inputs, self.places = self.distinct(leaves)
        self.asked = [is_grad_enabled() and one.requires_grad for one in inputs]
        self.parts = [apart(one)[1] for one in inputs]
        plain = real = plain_of(inputs)
        self.sizes: Sizes | None = None
        if any(changing) and not any(isinstance(one, FakeTensor) for one in plain):
            whole = [is_plain(one) for one in inputs for _ in apart(one)[0]]
            self.sizes = Sizes(plain, [dims if one else () for dims, one in zip(changing, whole, strict=True)])
            plain = self.sizes.fakes
        # What is no leaf may be written, and its casts are not kept: a copy stands for it, or a view if that will do.
        inner = [want and not one.is_leaf for one, want in zip(inputs, self.asked, strict=True)]
        self.stand_ins: list[Any] = [copied if one else None for one in inner]
        # Note [What a graph takes and returns]: the number of the input that each plain tensor is, or is a view of
        self.owners, self.layouts = list(range(len(plain))), [Layout.of(one) for one in plain]
        self.effects = self.observed(plain)
        written = {memory(one) for w in self.effects.written for one in apart(inputs[w.number])[0]}
        owners = first_of(map(memory, real))
        grouped = {owner for i, owner in enumerate(owners) if i != owner and memory(real[i]) in written}
        self.as_it_is = False
        if grouped:  # then sizes are numbers: an input that is their memory has the size of that
            plain, self.sizes, self.layouts = real, None, [Layout.of(one) for one in real]
            wanting = {
                memory(one) for value, want in zip(inputs, self.asked, strict=True) if want for one in apart(value)[0]
            }
            members = [one for one, owner in zip(plain, owners, strict=True) if owner in grouped]
            self.as_it_is = any(memory(one) in wanting or one.dtype != members[0].dtype for one in members)
            self.owners = [owner if owner in grouped else i for i, owner in enumerate(owners)]
            self.effects = self.observed(plain)
        self.as_it_is |= self.effects.own_history
        written_ones = {w.number for w in self.effects.written}
        self.stand_ins = [(copied if i in written_ones else aliased) if one else None for i, one in enumerate(inner)]
        self.examples = self.entering(plain)

    def distinct(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[int, int]]:
        """Returns (the tensors among the leaves, each once; for each of their places, which one stands there)."""
        numbers: dict[int, int] = {}
        places = {
            i: numbers.setdefault(id(one), len(numbers)) for i, one in enumerate(leaves) if isinstance(one, Tensor)
        }
        return list({id(leaves[i]): leaves[i] for i in places}.values()), places

    def entering(self, plain: Sequence[Any]) -> list[Any]:
        """Returns the inputs of a graph for plain tensors: themselves, or the memory that several have."""
        shared = {owner for i, owner in enumerate(self.owners) if owner != i}
        return [
            one.as_strided((one.untyped_storage().nbytes() // one.element_size(),), (1,), 0) if i in shared else one
            for i, (one, owner) in enumerate(zip(map(detached, plain), self.owners, strict=True))
            if owner == i
        ]

    def entered(self, inputs: Iterable[Any]) -> Iterator[Any]:
        """Yields the plain tensors of the inputs of a graph."""
        shared, following = {owner for i, owner in enumerate(self.owners) if owner != i}, iter(inputs)
        at = {owner: next(following) for i, owner in enumerate(self.owners) if owner == i}
        for owner, layout in zip(self.owners, self.layouts, strict=True):
            yield at[owner].as_strided(*layout) if owner in shared else at[owner]

    def observed(self, plain: Sequence[Any]) -> Effects:
        """Runs the function on tensors without data."""
        mode, inputs = mode_of(plain), self.entering(plain)
        inputs = list(map(mode.from_tensor, inputs))
        with mode, self.region():
            _, *found = self.called(inputs)
            return Effects(*found)

    def region(self) -> Any:
        return FunctionalTensorMode() if self.functional else nullcontext()

    def called(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any], list[Any], Any]:
        """Calls the function on inputs of a graph.

        Returns (the leaves of autograd's graph, the tensors that the function was given, the nodes that these had, the
        leaves of its results, their structure).
        """
        inner = self.entered(FunctionalTensor.to_functional(one) if self.functional else one.alias() for one in inputs)
        with enable_grad() if any(self.asked) else nullcontext():  # else views of one memory could not be written
            roots = [make(inner).requires_grad_(want) for make, want in zip(self.parts, self.asked, strict=True)]
            given = [
                one if stand_in is None else stand_in(one) for one, stand_in in zip(roots, self.stand_ins, strict=True)
            ]
            before = [one.grad_fn for one in given]
            results, structure = self.results_of(given)
        return roots, given, before, results, structure

    def results_of(self, given: Sequence[Any]) -> tuple[list[Any], Any]:
        """Returns (the leaves of the function's results for these tensors, their structure)."""
        leaves = list(self.leaves)
        for i, number in self.places.items():
            leaves[i] = given[number]
        args, kwargs = tree_unflatten(leaves, self.structure)
        return tree_flatten(self.fn(*args, **kwargs))

    def again(self, inputs: Sequence[Any], tangents: Sequence[Any], recorded: bool) -> list[Any]:
        """Returns the gradients of all inputs. recorded: for gradients of them. Note [Gradients of gradients]."""
        roots = list(map(aliased, inputs))  # else the gradient of one input would count what others were made of it
        written = {one.number for one in self.effects.written}
        inner = self.entered(one.clone() for one in self.entering(plain_of(inputs)))
        apart_from_these = [make(inner) for make in self.parts]
        given = [
            (root.clone() if i in written else root) if self.asked[i] else apart_from_these[i]
            for i, root in enumerate(roots)
        ]
        leaves, _ = self.results_of(given)
        values = [given[one.number] for one in self.effects.written] + self.effects.values_of(leaves)
        outputs = [one for one, want in zip(values, self.effects.wanted, strict=True) if want]
        asked = [root for root, want in zip(roots, self.asked, strict=True) if want]
        found = iter(grad(outputs, asked, tangents, create_graph=recorded, allow_unused=True))
        return [next(found) if want else None for want in self.asked]

    def joint(self, primals: list[Any], tangents: list[Any]) -> list[Any]:
        """The values of the forward, then the gradients of the inputs that are asked for: what is traced."""
        with self.region():
            with checkpoints_noted():
                roots, *found = self.called(primals)
            effects = Effects(*found)
            inner = iter([FunctionalTensor.to_functional(one) if self.functional else one for one in tangents])
            pairs = [
                (one, make(inner))
                for one, make, want in zip(effects.values, self.effects.makers, self.effects.wanted, strict=True)
                if want
            ]
            asked = [one for one, want in zip(roots, self.asked, strict=True) if want]
            gradients: list[Any] = [None] * len(asked)
            if pairs and asked:
                outputs, given = zip(*pairs, strict=True)
                for one, tangent in pairs:  # sizes that depend on elements have other symbols in this run
                    expect_true(sym_eq(tuple(one.shape), tuple(tangent.shape)))
                mode = current_proxy_mode()
                marks = [] if mode is None else list(mode.tracer.marks)
                try:
                    with lines_of_forward(marks, outputs):
                        gradients = list(grad(outputs, asked, given, allow_unused=True))
                except RuntimeError as problem:
                    raise NoBackward from problem
            self.gradients = [None if one is None else apart(one) for one in gradients]
            values = plain_of([*effects.values, *(one for one in gradients if one is not None)])
        return [shown(one) for one in values]

    def compile(self, forward: Any, backward: Any, inference: Any, partition: Any) -> None:
        """Traces, parts and compiles."""
        effects = self.effects
        self.count = len(plain_of(effects.values))
        self.backward: Any = None
        with no_grad():
            if not any(self.asked) or not any(effects.wanted):
                flat = lambda *primals: self.joint(list(primals), [])[: self.count]  # noqa: E731  # a name for make_fx
                module = make_fx(flat, self.decompositions, self.tracing_mode)(*self.examples)
                tidy(module)
                self.forward = by(inference, "inference", next(NUMBERS), module)
                self.close()
                return
            wanted = [value for value, want in zip(effects.values, effects.wanted, strict=True) if want]
            tangents = [empty_like(shown(one)) for one in plain_of(wanted)]
            self.tangents = [None if free_unbacked_symbols(one) else Layout.of(one) for one in tangents]
            self.kinds = list(map(kind_of, wanted))
            try:
                joint = make_fx(self.joint, self.decompositions, self.tracing_mode)(self.examples, tangents)
            except NoBackward:
                self.as_it_is = True
                self.close()
                return
            tidy(joint)
            first, second = partition(joint, (self.examples, tangents), num_fwd_outputs=self.count)
            if first is not joint:
                check_parts(joint, (first, second), self.count, getattr(partition, "__name__", str(partition)))
            number = next(NUMBERS)
            self.forward = by(forward, "forward", number, first)
            self.backward = by(backward, "backward", number, second)
        self.draws = any(
            isinstance(node.target, OpOverload) and Tag.nondeterministic_seeded in node.target.tags
            for node in joint.graph.nodes
        )
        self.close()

    @property
    def tracing_mode(self) -> str:
        return "fake" if self.sizes is None else "symbolic"

    def close(self) -> None:
        """Lets go of what was only for tracing."""
        self.effects.values = []  # what follows needs their makers alone
        if self.sizes is not None:
            self.sizes.close()

    def __call__(self, leaves: list[Any], numbers: Numbers) -> Any:
        """Does what the function does, for leaves of such metadata. numbers: the values of the symbols in sizes."""
        if self.as_it_is:
            args, kwargs = tree_unflatten(leaves, self.structure)
            return self.fn(*args, **kwargs)
        inputs, _ = self.distinct(leaves)
        if self.backward is not None:
            changing = {memory(one) for w in self.effects.written for one in apart(inputs[w.number])[0]}
            before = [one.clone() if any(memory(part) in changing for part in apart(one)[0]) else one for one in inputs]
            values = Ahead.apply(self, numbers, changing, before, *inputs)
            values = list(values) if isinstance(values, tuple) else [values]
        else:
            with no_grad():
                values = self.dressed(run(self.forward, self.entering(plain_of(inputs))))
        return self.effects.after(inputs, values, numbers)

    def dressed(self, plain: Sequence[Any]) -> list[Any]:
        """The values of the forward, put together of plain tensors: different objects, as each has its own flags."""
        inner = iter(one.detach() if any(one is other for other in plain[:i]) else one for i, one in enumerate(plain))
        return [make(inner) for make in self.effects.makers]


class NoBackward(Exception):
    """Backward raises an error. That is the program's affair, which may never call it, so it runs as it is."""


class Ahead(Function):
    """Runs the forward graph, and in backward the other."""

    @staticmethod
    def forward(
        ctx: Any, compiled: Compiled, numbers: Numbers, changing: set[int], before: list[Any], *inputs: Any
    ) -> Any:
        """changing: the memory that is about to be written. before: the inputs, in memory that is not."""
        ctx.numbers = numbers
        ctx.surroundings = Surroundings(compiled.draws)
        found = run(compiled.forward, compiled.entering(plain_of(inputs)))
        values, saved = compiled.dressed(found[: compiled.count]), found[compiled.count :]
        ctx.compiled = compiled
        ctx.inputs = [SavedTensor(one) for one in before]  # apart: few ask for them
        # What is about to be written is saved as it is now.
        tensors = [one for one in saved if isinstance(one, Tensor)]
        ctx.save_for_backward(*(one.clone() if memory(one) in changing else one for one in tensors))
        ctx.others = [None if isinstance(one, Tensor) else one for one in saved]  # sizes
        ctx.mark_non_differentiable(
            *(one for one, want in zip(values, compiled.effects.wanted, strict=True) if not want)
        )
        return tuple(values)

    @staticmethod
    def backward(ctx: Any, *tangents: Any) -> Any:
        compiled: Compiled = ctx.compiled
        wanted = [one for one, want in zip(tangents, compiled.effects.wanted, strict=True) if want]
        # Where a loss is of a subclass, so are the gradients of plain tensors, for which backward was not traced.
        expected = all(kind_of(one) is kind for one, kind in zip(wanted, compiled.kinds, strict=True))
        recorded = is_grad_enabled()
        if recorded or not expected:
            with ctx.surroundings.again():
                found = compiled.again([one.unpack(None) for one in ctx.inputs], wanted, recorded)
            return None, None, None, None, *found
        plain = plain_of(wanted)
        plain = [laid_out(one, layout, ctx.numbers) for one, layout in zip(plain, compiled.tangents, strict=True)]
        tensors = iter(ctx.saved_tensors)
        saved = (next(tensors).detach() if one is None else one for one in ctx.others)
        inner = iter(run(compiled.backward, [*saved, *plain]))
        gradients = iter([None if pair is None else pair[1](inner) for pair in compiled.gradients])
        return None, None, None, None, *(next(gradients) if want else None for want in compiled.asked)


def laid_out(tangent: Any, layout: Layout | None, numbers: Numbers) -> Any:
    """A gradient with the strides that the graph was traced with; without gaps where sizes depend on elements."""
    if layout is None:
        return tangent.contiguous()
    layout = layout.at(numbers)
    if tangent.stride() == layout.stride:
        return tangent
    return tangent.new_empty_strided(layout.size, layout.stride).copy_(tangent)


def shown(tensor: Any) -> Any:
    return tensor.from_functional() if isinstance(tensor, FunctionalTensor) else tensor.detach()


def kind_of(value: Any) -> type | None:
    """The class of a subclass that is taken apart; None for a tensor that is plain in a graph."""
    return type(value) if is_traceable_wrapper_subclass(value) else None


def detached(tensor: Any) -> Any:
    return tensor.detach()


def copied(tensor: Any) -> Any:
    return tensor.clone()


def aliased(tensor: Any) -> Any:
    return tensor.view_as(tensor)


def mode_of(tensors: Sequence[Any]) -> FakeTensorMode:
    """The mode of these, where they are fakes; else a new one, in which what depends on elements is a symbol."""
    found = next((one.fake_mode for one in tensors if isinstance(one, FakeTensor)), None)
    return found or FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)


def examples_of(module: GraphModule) -> list[Any]:
    """The inputs of a graph, without data."""
    return [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]


def tidy(module: GraphModule) -> None:
    """Takes out what nobody reads, and the traces of autograd: nodes that give their argument."""
    for node in module.graph.nodes:
        if node.op == "call_function" and str(node.target) in ("aten.detach.default", "aten.alias.default"):
            node.replace_all_uses_with(node.args[0])
    module.graph.eliminate_dead_code()
    module.recompile()
