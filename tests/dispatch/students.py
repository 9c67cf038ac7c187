"""Parts of the library as students write them, each by the name of its point, for test_swap.py.

They are right for the programs there, and no more: `pytest --swap keyset=tests/dispatch/students.py` says what is left.
"""

import re
from itertools import count

import numpy as np

import redispatch as rd
from redispatch._functorch.partitioners import Joint
from redispatch.dispatch import STATE, FunctionSchema, TensorBase, call, key_named, run, runtime_keys, unbind, within
from redispatch.dispatch import below as keys_below
from redispatch.dispatch import keyset as keys
from redispatch.dispatch.autograd.node import evaluate
from redispatch.dispatch.core.table import Entry, backends_of_autograd, members
from redispatch.dispatch.layers.ad_inplace_or_view import AS_VIEW
from redispatch.dispatch.layers.autocast import POLICIES, fp32
from redispatch.dispatch.layers.autograd import AUTOGRAD, AUTOGRAD_FALLBACK, BELOW_AUTOGRAD, DERIVATIVES, NO_DERIVATIVE
from redispatch.dispatch.layers.functionalize import WRITE, functional_form, value_of, wrapped
from redispatch.dispatch.schema.convert import default_of
from redispatch.dispatch.schema.schema import BaseType, ListType, OptionalType
from redispatch.dispatch.transforms.vmap_level import two_returns  # noqa: F401  (what a rule returns)
from redispatch.modes.fake_tensor import FakeTensor
from redispatch.utils import _pytree as pytree


def tensors(value):
    """The tensors in an argument or a result."""
    return [one for one in (value if isinstance(value, list | tuple) else [value]) if isinstance(one, TensorBase)]


# One call -------------------------------------------------------------------------------------------------------------


def keyset(schema, stack):
    state, union = STATE.get(), 0
    for value in stack:
        for tensor in tensors(value):
            union |= tensor._keyset
    return (union | state.included) & ~state.excluded


def precedence(registered, fallbacks, key):
    def newest(table, at):
        return table[at][-1] if table.get(at) else None

    def alias(name):
        return newest(registered, key_named(name)) if key in members(key_named(name)) else None

    if newest(registered, key):
        return Entry(key, newest(registered, key), "kernel")
    for name in ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd"):
        if alias(name):
            return Entry(key, alias(name), "default backend kernel")
    own = any(newest(registered, backend) for backend in backends_of_autograd(key))
    if alias("CompositeImplicitAutograd") and not own:
        if not newest(registered, key_named("CompositeExplicitAutograd")):
            return Entry(key, alias("CompositeImplicitAutograd"), "math kernel")
    if alias("Autograd"):
        return Entry(key, alias("Autograd"), "autograd kernel")
    return Entry(key, newest(fallbacks, key), "backend fallback") if newest(fallbacks, key) else None


def interpreter(op, keyset, stack):
    for key in [*runtime_keys(keyset), key_named("Undefined")]:
        entry = op.entry_at(key)
        if not entry.kernel.is_fallthrough:
            return entry.kernel.boxed(op, keyset, stack)
    raise NotImplementedError(f"{op} has no kernel")


def binding(schema, args, kwargs):
    stack, left = [], dict(kwargs)
    if len(args) > schema.kwarg_only_start:
        raise RuntimeError(f"{schema.name}() takes {schema.kwarg_only_start} positional argument(s)")
    for position, argument in enumerate(schema.arguments):
        if position < len(args):
            value = args[position]
        elif argument.name in left:
            value = left.pop(argument.name)
        else:
            value = default_of(argument)
        wants_floats = isinstance(argument.type, BaseType) and argument.type.name == "float"
        stack.append(float(value) if wants_floats else list(value) if isinstance(value, tuple) else value)
    if left:
        raise RuntimeError(f"Unknown keyword argument '{[*left][0]}' for operator '{schema.name}'.")
    return stack


def overloads(parser, args, kwargs):
    for signature in parser.signatures:
        try:
            return signature.bind(parser.name, args, kwargs)
        except TypeError:
            continue
    raise TypeError(f"{parser.name}() received an invalid combination of arguments")


# Modes and subclasses -------------------------------------------------------------------------------------------------


def overrides(public, relevant, args, kwargs):
    state = STATE.get()
    found = []
    for value in relevant if state.overrides == "all" else ():
        if type(value) not in [type(one) for one in found]:
            place = next((i for i, one in enumerate(found) if isinstance(value, type(one))), len(found))
            found.insert(place, value)
    types = tuple(map(type, found))
    if state.function_modes and state.overrides != "none":
        with within(state.answering_function()):
            answer = state.function_modes[-1].__torch_function__(public, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    for value in found:
        answer = value.__torch_function__(public, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise TypeError(f"no implementation found for {public.__name__}")


def python_order(kinds):
    found = []
    for kind in kinds:
        if getattr(kind, "__torch_dispatch__", None) not in (None, rd._C._disabled_torch_dispatch_impl):
            if kind not in found:
                found.insert(next((i for i, one in enumerate(found) if issubclass(kind, one)), len(found)), kind)
    return tuple(found)


def python(op, keyset, stack):
    state = STATE.get()
    args, kwargs = unbind(op.schema, stack)
    types = python_order([type(tensor) for value in stack for tensor in tensors(value)])
    if state.modes:
        with within(state.answering()):
            answer = state.modes[-1].__torch_dispatch__(op, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    for kind in types:
        with within(state.excluding(keys("Python") | ~keys_below("Python"))):
            answer = kind.__torch_dispatch__(op, types, args, kwargs)
        if answer is not NotImplemented:
            return answer
    raise TypeError(f"Multiple dispatch failed for '{op}'")


# Gradients ------------------------------------------------------------------------------------------------------------


def autograd_layer(op, keyset, stack):
    state, node, rule = STATE.get(), None, None
    wanted = any(tensor.requires_grad for value in stack for tensor in tensors(value))
    if state.grad_enabled and wanted:
        rule = DERIVATIVES.get(op)
        if rule is None and op.namespace != "aten" and AUTOGRAD_FALLBACK().applies():
            return AUTOGRAD_FALLBACK().run(op, keyset, stack)
        rule = rule or NO_DERIVATIVE()
        node = rule.begin(op, stack)
    with within(state.excluding(AUTOGRAD)):
        result = run(op, keyset & BELOW_AUTOGRAD, stack)
    return result if node is None else rule.finish(op, node, stack, result)


def autograd_engine(roots, gradients, *, retain_graph=False, create_graph=False, targets=(), accumulate=False):
    """Kahn's order: a node runs when all its gradients have come."""
    waits, seen, pending = {}, set(), [node for node, *_ in roots]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            for edge in node.next_edges:
                if edge is not None:
                    waits[edge[0]] = waits.get(edge[0], 0) + 1
                    pending.append(edge[0])
    for node, *_ in roots:
        waits[node] = waits.get(node, 0) + 1
    come, ready, found = {}, [], [None] * len(targets)

    def arrives(node, number, gradient):
        buffer = come.setdefault(node, [None] * len(node.outputs))
        if gradient is not None:
            buffer[number] = gradient if buffer[number] is None else buffer[number] + gradient
        waits[node] -= 1
        if not waits[node]:
            ready.append(node)

    with within(STATE.get().with_grad(create_graph)):
        for (node, number, *_), gradient in zip(roots, gradients, strict=True):
            arrives(node, number, gradient)
        while ready:
            node = max(ready, key=lambda one: one.sequence)
            ready.remove(node)
            buffer = come.pop(node)
            for place, (target, number, *_) in enumerate(targets):
                if target is node:
                    found[place] = buffer[number]
            leaf = not node.next_edges
            if leaf and targets and not (accumulate and any(target[0] is node for target in targets)):
                continue
            if all(gradient is None for gradient in buffer):
                results = [None] * len(node.next_edges)
            else:
                results = evaluate(node, buffer, None)
                if not retain_graph:
                    node.release()
            for edge, gradient in zip(node.next_edges, results, strict=False):
                if edge is not None:
                    arrives(edge[0], edge[1], gradient)
    return found


def views(op, keyset, stack):
    """Counts writes, ties views."""
    schema = op.schema
    layer = keys("ADInplaceOrView")
    with within(STATE.get().excluding(layer)):
        result = run(op, keyset & keys_below("ADInplaceOrView"), stack)
    for position in schema.mutable_positions:
        for tensor in tensors(stack[position]):
            if tensor._counter is not None:
                tensor._counter[0] += 1
    if schema.is_view:
        base = next(positions[0] for positions in schema.return_aliases if positions)
        for index, view in enumerate(tensors(result)):
            AS_VIEW()(view, stack[base], op, stack, index)
    elif schema.mutable_positions and len(schema.returns) == 1:
        return stack[schema.mutable_positions[0]]
    return result


# Layers ---------------------------------------------------------------------------------------------------------------


def autocast(op, keyset, stack):
    """Two lists: what the region's policy says is float32 stays; everything else is cast to the region's dtype."""
    state = STATE.get()
    dtype = rd.float32 if POLICIES.get((op, "cpu")) is fp32 else state.autocast_dtypes["cpu"]

    def cast(value):
        floating = isinstance(value, TensorBase) and value.dtype in (rd.float32, rd.float16, rd.bfloat16)
        return value.to(dtype) if floating else [cast(one) for one in value] if isinstance(value, list) else value

    with within(state.excluding(keys("AutocastCPU"))):
        return call(op, [cast(value) for value in stack])


def functionalize(op, keyset, stack):
    """Values in, values out; what is written is noted in the wrapper. Views go the library's way."""
    if op.schema.is_view or op.entry_at(key_named("CompositeImplicitAutograd")).rule == "kernel":
        return rd.swap.default("functionalize")(op, keyset, stack)
    bare = [[value_of(one) for one in v] if isinstance(v, list) else v if v is None else value_of(v) for v in stack]
    level = STATE.get().innermost
    outside = STATE.get().excluding(keys("Functionalize"))
    if not op.schema.is_mutable:
        with within(outside):
            result = call(op, bare)
        if not isinstance(result, tuple | list):
            return wrapped(result, level)
        return type(result)(wrapped(one, level) for one in result)
    form = functional_form(op)
    with within(outside):
        (value,) = form.run(bare)
    WRITE()(stack[0], value, op)
    return stack[0]


def conjugate(op, keyset, stack):
    """Works out the conjugates, calls below, and writes back."""
    bit = keys("Conjugate")
    below = keyset & (bit - 1)
    if op.schema.is_view:
        return run(op, below, stack)

    def plain(value):
        if isinstance(value, list):
            return [plain(one) for one in value]
        return value.clone() if isinstance(value, TensorBase) and value._keyset & bit else value

    given = [plain(value) for value in stack]
    result = run(op, below, given)
    for position in op.schema.mutable_positions:
        if given[position] is not stack[position]:
            stack[position].copy_(given[position])
            return stack[position]
    return result


def batching(level, op, stack):
    """A loop over the examples: right, and slow."""

    def example(value, i):
        if isinstance(value, list):
            return [example(one, i) for one in value]
        dim = level.dims_of(value) if isinstance(value, TensorBase) else None
        value = level.unwrap(value) if isinstance(value, TensorBase) else value
        return value if dim is None else value.select(dim, i)

    def batched(results):
        if isinstance(results[0], tuple | list):
            return type(results[0])(batched(part) for part in zip(*results, strict=True))
        return level.wrap(rd.stack(results), 0)

    def is_batched(value):
        return any(map(is_batched, value)) if isinstance(value, list) else level.dims_of(value) is not None

    with within(STATE.get().outer()):
        if not any(is_batched(value) for value in stack if isinstance(value, TensorBase | list)):
            return call(op, [level.unwrap(value) if isinstance(value, TensorBase) else value for value in stack])
        results = [call(op, [example(value, i) for value in stack]) for i in range(level.size)]
    if op.schema.is_mutable:
        return stack[op.schema.mutable_positions[0]]
    with within(STATE.get().outer()):
        return batched(results)


# Below the operators --------------------------------------------------------------------------------------------------


def allocator(elements, numpy_dtype):
    """One pool of bytes per request, aligned."""
    size = int(elements) * np.dtype(numpy_dtype).itemsize
    pool = np.zeros(size + 64, np.uint8)
    start = -pool.ctypes.data % 64
    return pool[start : start + size].view(numpy_dtype)


def fake(mode, func, args, kwargs):
    """Runs the operator on meta tensors."""

    def meta(tensor):
        return tensor.meta if isinstance(tensor, FakeTensor) else tensor.to("meta")

    leaves = [one for one in pytree.tree_leaves((args, kwargs)) if isinstance(one, FakeTensor)]
    device = rd.device(kwargs.get("device") or (leaves[0].device if leaves else "cpu"))
    given, named = pytree.tree_map_only(rd.Tensor, meta, (args, dict(kwargs)))
    if not leaves or "device" in named:
        named["device"] = "meta"
    result = func(*given, **named)
    written = {id(one.meta): one for one in leaves}
    return pytree.tree_map_only(
        rd.Tensor, lambda one: written[id(one)] if id(one) in written else FakeTensor(mode, one, device), result
    )


def specialiser(op, facts, keys):
    """Knows the kernel beforehand, and where each value goes."""
    whole = keys & ((1 << keyset_bits()) - 1)
    entry = op.entry(whole)
    defaults = [default_of(argument) for argument in op.schema.arguments]
    given = count()
    stack = [f"v{next(given)}" if fact not in ("D", "N") else f"d[{i}]" for i, fact in enumerate(facts)]
    names = ", ".join(one for one in stack if one[0] == "v")
    scope = {"d": [None if fact == "N" else one for fact, one in zip(facts, defaults, strict=True)]}
    scope |= {"kernel": entry.kernel.boxed, "op": op}
    exec(f"def code({names}):\n    return kernel(op, {whole}, [{', '.join(stack)}])", scope)
    return scope["code"]


def keyset_bits():
    from redispatch.dispatch.core.key import KEYSET_BITS

    return KEYSET_BITS


def partitioner(joint_module, _joint_inputs, compiler="", recomputable_ops=None, *, num_fwd_outputs, **options):
    """Saves the inputs and recomputes all else."""
    joint = Joint(joint_module, num_fwd_outputs)
    return joint.parted(joint.primals)


def schema(text, allow_typevars=True):
    """Plain schemas: names, types with `?` and `[]`, defaults that are numbers, None and truths."""
    found = re.fullmatch(r"((?:\w+::)?\w+)(?:\.(\w+))?\((.*)\) -> (\w+)", text)
    if not found:
        return rd.swap.default("schema")(text, allow_typevars)
    name, overload, arguments, result = found.groups()
    parsed, keyword = [], False
    for part in filter(None, arguments.split(", ")):
        one = re.fullmatch(r"(\*)|(\w+)(\[\])?(\?)? (\w+)(?:=(-?\d+|None|True|False))?", part)
        if not one:
            return rd.swap.default("schema")(text, allow_typevars)
        star, base, many, optional, label, default = one.groups()
        if star:
            keyword = True
            continue
        kind = ListType(BaseType(base)) if many else BaseType(base)
        extra = {} if default is None else {"default": eval(default)}
        kind = OptionalType(kind) if optional else kind
        parsed.append(rd.dispatch.Argument(label, kind, kwarg_only=keyword, **extra))
    returns = (rd.dispatch.Argument("", BaseType(result)),)
    return FunctionSchema(name, overload or "", tuple(parsed), returns)
