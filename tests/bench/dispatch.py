"""What a call costs: tensors so small that the time is the dispatcher's, not the loop's."""

from contextlib import ExitStack

from rows import Group, Under, part

GROUP = Group()
row, call = GROUP.row, GROUP.call
N = 16


# --- plain calls ---

call("add(a, b)", "a, b = t.ones(N), t.ones(N)", "t.add(a, b)", target=0.65)
call("a + b", "a, b = t.ones(N), t.ones(N)", "a + b", target=0.65)
call("relu(a)", "a = t.ones(N)", "t.relu(a)", target=0.65)
call("a.add_(b)", "a, b = t.ones(N), t.zeros(N)", "a.add_(b)", target=0.65)


@row("add(a, b) in inference_mode", target=0.65)
def add_inference(t):
    with t.inference_mode():
        a, b = t.ones(N), t.ones(N)
    return Under(t.inference_mode, lambda: t.add(a, b))


call("a + 1", "a = t.ones(N)", "a + 1", target=0.8)
call("(4, 1) + (1, 4)", "a, b = t.ones(4, 1), t.ones(1, 4)", "a + b", target=0.8)
call("a.sum()", "a = t.ones(N)", "a.sum()", target=0.8)
call("matmul (8, 8) @ (8, 8)", "a, b = t.ones(8, 8), t.ones(8, 8)", "a @ b", target=0.8)
call("softmax (4, 4)", "a = t.ones(4, 4)", "t.softmax(a, -1)", target=0.8)
call("cat of 3", "parts = [t.ones(N), t.ones(N), t.ones(N)]", "t.cat(parts)", target=0.8)
call("a.view(4, 4)", "a = t.ones(N)", "a.view(4, 4)", target=1.0)
call("a.t()", "a = t.ones(4, 4)", "a.t()", target=1.0)
call("a[1:3]", "a = t.ones(N)", "a[1:3]", target=1.0)


# --- recorded by autograd ---

call("a * b, recorded", "a, b = t.ones(N, requires_grad=True), t.ones(N)", "a * b", target=0.65)
call(
    "(x * w).sum().backward()",
    "x, w = t.ones(N), t.ones(N, requires_grad=True)",
    "(x * w).sum().backward()",
    target=0.45,
)


@row("chain of 30, forward and backward", target=0.5)
def chain(t):
    x = t.ones(N, requires_grad=True)

    def run():
        y = x
        for _ in range(15):
            y = (y + x) * 0.5
        y.sum().backward()

    return run


@row("backward over 100 000 nodes", target=0.7)
def long_backward(t):
    x, w = t.ones(N, requires_grad=True), t.ones(N)
    y = x
    for _ in range(50_000):
        y = (y * w) + w
    total = y.sum()
    return lambda: total.backward(retain_graph=True)


# --- users' extension points ---


def quiet_mode(t):
    """A dispatch mode that passes every call on."""

    class Quiet(part(t, "utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    return Quiet


@row("add under 1 dispatch mode", target=0.4)
def one_mode(t):
    a, b = t.ones(N), t.ones(N)
    return Under(quiet_mode(t), lambda: t.add(a, b))


@row("add under 4 dispatch modes", target=0.4)
def four_modes(t):
    a, b = t.ones(N), t.ones(N)
    mode = quiet_mode(t)

    def nested():
        stack = ExitStack()
        for _ in range(4):
            stack.enter_context(mode())
        return stack

    return Under(nested, lambda: t.add(a, b))


@row("add under 1 function mode", target=0.4)
def function_mode(t):
    class Quiet(part(t, "overrides").TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    a, b = t.ones(N), t.ones(N)
    return Under(Quiet, lambda: t.add(a, b))


def wrapper(t, handler):
    """A subclass that holds its tensor in `inner` and answers with `handler`."""

    class Wrapper(t.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return t.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

        def __init__(self, inner):
            self.inner = inner

        __torch_function__ = t._C._disabled_torch_function_impl
        __torch_dispatch__ = classmethod(handler)

    return Wrapper


@row("add through a wrapper subclass", target=0.35)
def subclass(t):
    def handler(cls, func, types, args=(), kwargs=None):
        inner = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})))

    wrap = wrapper(t, handler)
    a, b = wrap(t.ones(N)), wrap(t.ones(N))
    return lambda: t.add(a, b)


@row("add through a wrapper subclass, pytree and aliasing", target=0.3)
def subclass_with_pytree(t):
    tree_map_only = part(t, "utils._pytree").tree_map_only
    return_and_correct_aliasing = part(t, "utils._python_dispatch").return_and_correct_aliasing

    def handler(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        inner = tree_map_only(cls, lambda x: x.inner, (args, kwargs))
        out = tree_map_only(t.Tensor, cls, func(*inner[0], **inner[1]))
        return return_and_correct_aliasing(func, args, kwargs, out)

    wrap = wrapper(t, handler)
    a, b = wrap(t.ones(N)), wrap(t.ones(N))
    return lambda: t.add(a, b)


@row("add of a subclass that overrides nothing", target=0.4)
def default_subclass(t):
    class Plain(t.Tensor):
        pass

    a, b = t.ones(N).as_subclass(Plain), t.ones(N).as_subclass(Plain)
    return lambda: t.add(a, b)


@row("add through a wrapper in a wrapper, under 1 dispatch mode", target=0.4)
def nested_subclass(t):
    def handler(cls, func, types, args=(), kwargs=None):
        inner = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})))

    outer, inner = wrapper(t, handler), wrapper(t, handler)
    a, b = outer(inner(t.ones(N))), outer(inner(t.ones(N)))
    return Under(quiet_mode(t), lambda: t.add(a, b))


@row("custom_op", target=0.25)
def custom_op(t):
    def twice(x):
        return x + x

    twice.__annotations__ = {"x": t.Tensor, "return": t.Tensor}
    # A name of its own for each call: with --ours torch both sides register in the same library.
    op = part(t, "library").custom_op(f"bench{id(twice)}::twice", twice, mutates_args=())
    a = t.ones(N)
    return lambda: op(a)


@row("autograd.Function, forward and backward", target=0.5)
def function(t):
    class Double(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

    x = t.ones((), requires_grad=True)
    return lambda: Double.apply(x).backward()


@row("matmul (8, 8) @ (8, 8) under autocast to bfloat16", target=0.6)
def autocast(t):
    a, b = t.ones(8, 8), t.ones(8, 8)
    return Under(lambda: t.autocast("cpu", dtype=t.bfloat16), lambda: a @ b)


call(
    "vmap of a dot product, batch 8",
    "a, b = t.ones(8, N), t.ones(8, N); batched = t.func.vmap(lambda x, y: (x * y).sum())",
    "batched(a, b)",
    target=0.4,
)
call("func.grad of sum of sin", "x = t.ones(N); slope = t.func.grad(lambda v: v.sin().sum())", "slope(x)", target=0.4)


@row("gradients of 64 examples of an MLP, vmap of grad", target=0.7)
def per_sample(t):
    model = t.nn.Sequential(t.nn.Linear(16, 32), t.nn.ReLU(), t.nn.Linear(32, 4))
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    x, y = t.ones(64, 16), t.zeros(64, 4)

    def loss(parameters, x, y):
        return ((t.func.functional_call(model, parameters, (x,)) - y) ** 2).mean()

    each = t.func.vmap(t.func.grad(loss), in_dims=(None, 0, 0))
    return lambda: each(parameters, x, y)


@row("add under FakeTensorMode", target=0.2, later=True)
def fake(t):
    mode = part(t, "_subclasses.fake_tensor").FakeTensorMode()
    with mode:
        a, b = t.ones(N), t.ones(N)
    return Under(lambda: mode, lambda: t.add(a, b))
