"""A tour of redispatch: its one idea, built from nothing in one file that needs numpy alone.

Before an operator computes anything, several parties have a turn: autograd records the call, a layer counts what is
overwritten, a mode of yours looks on. The *dispatcher* gives each its turn; it is an int, a table and three functions.
At the end a partial evaluator makes of these the code that a person would have written. Read from the top.
"""

import ast
import inspect
import timeit
from collections import namedtuple
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

# 1. Keys and keysets (in the library: dispatch/core/key.py, keyset.py) ------------------------------------------------
# A dispatch key names a backend, which computes, or a functionality, which has its turn before that. A call carries a
# set of keys: an int with one bit for each. The order of the bits is the order of the turns: the highest goes first.
KEYS = ("CPU", "Python", "ADInplaceOrView", "Autograd")  # from the lowest, which runs last
CPU, PYTHON, ADINPLACEORVIEW, AUTOGRAD = (1 << bit for bit in range(len(KEYS)))

def highest(keyset):
    return 1 << keyset.bit_length() >> 1

def below(key):
    return key - 1  # the mask of all lower keys: what is left of a call once `key` has had its turn

def describe(keyset):
    return " | ".join(key for bit, key in enumerate(KEYS) if keyset >> bit & 1)

assert describe(highest(CPU | AUTOGRAD)) == "Autograd" and describe((CPU | AUTOGRAD) & below(AUTOGRAD)) == "CPU"

# 2. Operators, and who answers (in the library: dispatch/schema/, dispatch/core/operator.py, table.py) ----------------
# An operator is a schema, which tells tensors and what is written `(a!)`, and a table of who answers at a key. That
# follows from few registrations: a kernel at this key; one at an *alias key*, which stands for several; a *fallback*
# for all operators; a *fallthrough*, where a key has nothing to do. A kernel takes the arguments; a *boxed* one takes
# (op, keyset, stack), so that one body serves every operator.
ALIASES = {"CompositeImplicitAutograd": CPU | AUTOGRAD}
OPERATORS, FALLBACKS = [], {}
class Entry(namedtuple("Entry", ["key", "function", "convention", "rule"])):
    def __str__(self):
        return f"[{describe(self.key)}] {self.function.__name__} ({self.rule})"

def resolve(op, key):
    if key in op.registrations:  # Who answers at one key? 1. a kernel for this key
        return Entry(key, *op.registrations[key], "kernel")
    for alias, members in ALIASES.items():  # 2. one for several keys; not over a kernel of the backend
        if alias in op.registrations and key & members and CPU not in op.registrations:
            return Entry(key, *op.registrations[alias], "math kernel")
    if key in FALLBACKS:  # 3. the kernel that every operator has there
        return Entry(key, *FALLBACKS[key], "backend fallback")
    raise NotImplementedError(f"{op.__name__} has no kernel for {describe(key) or 'an empty keyset'}; register one")

class Operator:
    def __init__(self, schema, kernels):
        self.__name__, arguments = schema.split(") ->")[0].split("(", 1)
        types, self.names = zip(*(argument.split() for argument in arguments.split(", ")), strict=True)
        self.tensor_positions = [i for i, kind in enumerate(types) if kind.startswith("Tensor")]
        self.mutable_positions = [i for i, kind in enumerate(types) if kind == "Tensor(a!)"]
        self.registrations, self.entries, self.code = {}, {}, {}
        for key, kernel in kernels.items():
            self.register(key, kernel)
        OPERATORS.append(self)
    def __call__(self, *arguments):
        return call(self, list(arguments))
    def entry(self, keyset):
        if keyset not in self.entries:
            found = resolve(self, highest(keyset))
            skip = found.convention == "fallthrough"
            self.entries[keyset] = self.entry(keyset & below(found.key)) if skip else found
        return self.entries[keyset]
    def register(self, key, function, convention="unboxed"):
        function.__name__ = function.__name__.replace("<lambda>", f"{self.__name__}_kernel")
        self.registrations[key] = function, convention
        self.entries, self.code = {}, {}  # they followed from the registrations

def add_fallback(key, function, convention="boxed"):
    FALLBACKS[key] = function, convention
    for op in OPERATORS:
        op.entries, op.code = {}, {}

square = Operator("square(Tensor x) -> Tensor", {"CompositeImplicitAutograd": lambda x: mul(x, x)})
assert square.entry(CPU | AUTOGRAD).rule == "math kernel"  # though Autograd is to have a fallback

# 3. State (in the library: dispatch/core/state.py) --------------------------------------------------------------------
# A call depends on its arguments and on the state: keys included in every call, keys excluded, modes, whether a trace
# is printed. It is one immutable value in one ContextVar, so each thread and task has its own.
State = namedtuple("State", ["included", "excluded", "modes", "traced"])
STATE = ContextVar("state", default=State(ADINPLACEORVIEW, 0, (), ""))  # noqa: B039  (a State never changes)

@contextmanager
def within(**changes):
    token = STATE.set(STATE.get()._replace(**changes))
    try:
        yield
    finally:
        STATE.reset(token)

def exclude(keys):  # `no_grad` is exclude(AUTOGRAD)
    return within(excluded=STATE.get().excluded | keys)

# 4. The interpreter (in the library: dispatch/core/interpreter.py, boxing.py, dispatch/inspection/trace.py) -----------
# `call` starts with the keys of arguments and state; `run` goes on with those it is given. `hop` is one step: it asks
# who answers, and hands over the *stack*, the arguments in the schema's order. A layer does its work and lets the call
# `run` on with the keys below its own: *redispatch*. No operator and no layer is named here.
def call(op, stack):
    state = STATE.get()
    keyset = state.included | (PYTHON if state.modes else 0)
    for position in op.tensor_positions:
        keyset |= stack[position]._keyset
    return run(op, keyset & ~state.excluded, stack)

def run(op, keyset, stack):
    if not (indent := STATE.get().traced):
        return run.step(op, keyset, stack)
    print(f"{indent}{op.__name__} {op.entry(keyset)}")
    with within(traced=indent + "  "):
        return hop(op, keyset, stack)

def hop(op, keyset, stack):
    entry = op.entry(keyset)
    if entry.convention == "boxed":
        return entry.function(op, keyset, stack)
    return entry.function(*stack)

run.step = hop  # section 8 puts a faster one here

# 5. Tensors and kernels (in the library: dispatch/tensor/tensor.py, kernels/ops/) -------------------------------------
# A tensor brings its keys along. The kernels at the backend see arrays, and know of nothing that happens above them.
class Tensor:
    def __init__(self, array, requires_grad=False):
        self.array, self._keyset, self._counter = np.array(array, float), CPU | AUTOGRAD, [0]
        self.requires_grad, self.grad_fn = requires_grad, None
    def bump_version(self):
        self._counter[0] += 1

def add_in_place(x, y):
    x.array += y.array
    return x

mul = Operator("mul(Tensor x, Tensor y) -> Tensor", {CPU: lambda x, y: Tensor(x.array * y.array)})
add = Operator("add(Tensor x, Tensor y) -> Tensor", {CPU: lambda x, y: Tensor(x.array + y.array)})
add_ = Operator("add_(Tensor(a!) x, Tensor y) -> Tensor(a!)", {CPU: add_in_place})
assert run(mul, CPU, [Tensor([3, 4]), Tensor([5, 6])]).array.tolist() == [15, 24]

# 6. Two layers (in the library: dispatch/layers/autograd.py, ad_inplace_or_view.py, dispatch/autograd/engine.py) ------
# Autograd makes a node before the call, which may overwrite what the derivative needs; runs the call below, unrecorded;
# and ties the result to the node. ADInplaceOrView counts writes.
def autograd(op, keyset, stack):
    wanted = any(stack[position].requires_grad for position in op.tensor_positions)
    if wanted:
        node = Node(op, stack)
    with exclude(AUTOGRAD):
        result = run(op, keyset & below(AUTOGRAD), stack)
    if wanted:
        node.finish(result)
    return result

def ad_inplace_or_view(op, keyset, stack):
    with exclude(ADINPLACEORVIEW):
        result = run(op, keyset & below(ADINPLACEORVIEW), stack)
    for position in op.mutable_positions:
        Tensor.bump_version(stack[position])
    return result

class Node:
    def __init__(self, op, stack):
        self.op, self.saved, self.sequence = op, stack, next(SEQUENCE)
        self.edges = [(x.grad_fn or x) if x.requires_grad else None for x in stack]
    def finish(self, result):
        result.requires_grad, result.grad_fn = True, self

def run_backward(root, grad_output):
    """Returns the gradient of each leaf. The node made last goes first: all of its gradient has come by then."""
    gradients = {root.grad_fn: grad_output}
    while nodes := [node for node in gradients if isinstance(node, Node)]:
        node = max(nodes, key=lambda node: node.sequence)
        for edge, gradient in zip(node.edges, DERIVATIVES[node.op](gradients.pop(node), *node.saved), strict=True):
            if edge is not None:
                gradients[edge] = add(gradients[edge], gradient) if edge in gradients else gradient
    return gradients

add_fallback(AUTOGRAD, autograd)
add_fallback(ADINPLACEORVIEW, None, "fallthrough")  # an operator that writes nothing pays nothing
add_.register(ADINPLACEORVIEW, ad_inplace_or_view, "boxed")
SEQUENCE = iter(range(10**9))
DERIVATIVES = {mul: lambda grad_output, x, y: (mul(grad_output, y), mul(grad_output, x))}
DERIVATIVES[add] = DERIVATIVES[add_] = lambda grad_output, x, y: (grad_output, grad_output)
x = Tensor([1, 2], requires_grad=True)
gradient = run_backward(mul(x, square(x)), Tensor([1, 1]))[x]  # of x³: 3x², recorded in turn
assert gradient.array.tolist() == [3, 12] and run_backward(gradient, Tensor([1, 1]))[x].array.tolist() == [6, 12]

# 7. A mode (in the library: dispatch/layers/python.py, dispatch/protocols/mode_stack.py) ------------------------------
# A mode is the user's handler at the key Python, below autograd: it sees every operator that really runs. While it
# answers it is taken off the stack of modes, and the keys above have had their turn.
def python(op, keyset, stack):
    *outer, handler = STATE.get().modes
    with within(modes=tuple(outer), excluded=ADINPLACEORVIEW | AUTOGRAD):
        return handler(op, stack)

add_fallback(PYTHON, python)
seen = []
with within(modes=(lambda op, stack: seen.append(op.__name__) or op(*stack),)):
    run_backward(square(x), Tensor([1, 1]))
assert seen == ["mul", "mul", "mul", "add"]  # forward; a gradient for each of the two; their sum

# 8. The specialiser (in the library: dispatch/specialiser/) -----------------------------------------------------------
# For one operator and keyset most of this is known before the call. So the functions above are worked out on a stack of
# unknown values: known branches are decided, loops unrolled, layers inlined, and what remains is written down. Of an
# unknown condition both branches go on to the end. A region is left only around a call that asks the state.
class Code(str):
    __repr__ = str.__str__  # an expression whose value only running it tells
    def __getattr__(self, name):
        return Code(f"{self}.{name}")

def any_of(values):
    return Code(" or ".join(values))

INLINE, PURE = {run, autograd, ad_inplace_or_view}, {any_of, Operator.entry}  # worked out in place; asked at once
LEAF = {*(op.registrations[CPU][0] for op in (mul, add, add_)), any_of, Node, Tensor.bump_version}  # asks no state

def specialised(op, keyset):
    constants, count = {}, {}
    def text(value):
        if callable(value):
            constants[value.__name__] = value
        return value.__name__ if callable(value) else repr(value)
    def work(statements, names, then):
        """Returns the lines left of statements and of `then`, which goes on with the result. A dict names values."""
        match statements:
            case [dict() as meaning, *rest]:
                return work(rest, names | meaning, then)
            case [ast.Return(value=node), *_]:
                return given(node, names, "result", then)
            case [ast.Assign() | ast.Expr() as step, *rest]:
                name = step.targets[0].id if isinstance(step, ast.Assign) else ""
                return given(step.value, names, name, lambda value: work(rest, names | {name: value}, then))
            case [ast.For(target=ast.Name(id=name), iter=node, body=body), *rest]:
                return work([s for i in evaluated(node, names) for s in ({name: i}, *body)] + rest, names, then)
            case [ast.With(items=[ast.withitem(context_expr=ast.Call(args=[node]))], body=body), *rest]:
                inside, outside = names["excluded"] | evaluated(node, names), names["excluded"]
                return work([{"excluded": inside}, *body, {"excluded": outside}, *rest], names, then)
            case [ast.If(test=node, body=yes, orelse=no), *rest]:
                if not isinstance(test := evaluated(node, names), Code):
                    return work([*(yes if test else no), *rest], names, then)
                known = ast.unparse(node)  # in each of the two, what the condition told
                taken, other = (work([{known: t}, *(yes if t else no), *rest], names, then) for t in (True, False))
                return [f"if {test}:", *("    " + line for line in taken), *other]
    def given(node, names, hint, then):
        """The same for an expression. A call is worked out in place, asked at once, or left as a line of code."""
        if not isinstance(node, ast.Call):
            return then(evaluated(node, names))
        function, *arguments = evaluated(ast.List([node.func, *node.args], ast.Load()), names)
        if function in INLINE:
            return inlined(function, arguments, names, hint, then)
        pure = getattr(function, "__func__", function) in PURE
        left = function(*arguments) if pure else Code(f"{text(function)}({', '.join(map(text, arguments))})")
        if not isinstance(left, Code):
            return then(left)
        count[hint] = count.get(hint, 0) + 1
        variable = Code(hint if count[hint] == 1 else f"{hint}_{count[hint]}")
        line = f"{variable} = {left}" if hint else left
        if names["excluded"] and function not in LEAF:
            return [f"with exclude({describe(names['excluded']).upper()}):", f"    {line}", *then(variable)]
        return [line, *then(variable)]
    def inlined(function, arguments, names, hint, then):
        comment = [f"# {arguments[0].entry(arguments[1])}"] if function is run else []
        function = hop if function is run else function  # nobody traces: the next step is one hop, and known
        inside = dict(zip(inspect.signature(function).parameters, arguments, strict=True))
        body = ast.parse(inspect.getsource(function)).body[0].body
        return comment + work(body, globals() | inside | {"any": any_of, "excluded": names["excluded"]}, then)
    names = {"run": run, "op": op, "keyset": keyset, "stack": [Code(name) for name in op.names], "excluded": 0}
    lines = given(ast.parse("run(op, keyset, stack)").body[0].value, names, "result", lambda value: [f"return {value}"])
    source = "\n    ".join([f"def {op.__name__}_code({', '.join(op.names)}):", *lines])
    exec(source, scope := globals() | constants)
    return scope[f"{op.__name__}_code"], source

def evaluated(node, names):
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "", "eval"), names)

def run_specialised(op, keyset, stack):
    if keyset not in op.code:
        op.code[keyset] = specialised(op, keyset)
    return op.code[keyset][0](*stack)

run.step = run_specialised
assert run_backward(mul(x, square(x)), Tensor([1, 1]))[x].array.tolist() == [3, 12]  # as before
mul.register(CPU, mul.registrations[CPU][0])
assert not mul.code  # a registration drops the code

# 9. All of it (in the library: docs/) ---------------------------------------------------------------------------------
if __name__ == "__main__":
    print("A call, hop by hop:")
    with within(traced="  "):
        add_(Tensor([1, 2]), square(x))
    print("What mul becomes where Autograd may record:")
    print(specialised(mul, CPU | ADINPLACEORVIEW | AUTOGRAD)[1])
    for run.step in (hop, run_specialised):
        print(run.step.__name__, f"{min(timeit.repeat(lambda: mul(x, x), number=1000, repeat=5)) * 1000:.2f} us")
