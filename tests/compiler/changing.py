"""Programs that read the world around them, changes of that world, and a run of both: is a compiled call ever wrong?

    python -m tests.compiler.changing 7 2000 native       # seed, calls, backend

Each call runs twice from the same state, as it stands and compiled: results, their layout and identity, gradients, what
was written, exceptions and the random numbers behind it must be equal.
"""

from __future__ import annotations

import contextlib
import functools
import io
import random
import sys
import types
import warnings

import redispatch as rd
from redispatch import compiler, nn
from redispatch._dynamo import capture
from redispatch.nn import functional as F
from redispatch.utils._pytree import tree_leaves

SCALE, FLAG, LIST, WRITTEN = 1.5, False, [0.5, 0.25], []
SPACE = types.SimpleNamespace(scale=2.0, flag=True, items=[1, 2, 3], fn=rd.relu, table={"a": 1.0, "b": 2.0})
HELPER = rd.neg
RELU = rd.relu


def helper(x):
    return x + SCALE


class Config:
    kind = 3

    def __init__(self):
        self.depth, self.names = 2, ("a", "b")

    @property
    def width(self):
        return self.depth * 2

    def twice(self, x):
        return x * 2 + self.depth


class OtherConfig(Config):
    def twice(self, x):
        return super().twice(x) * 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.act, self.extra, self.count, self.config = F.gelu, None, 0, {"k": 2, "n": [1, 2]}
        self.p = nn.Parameter(rd.ones(4))
        self.register_buffer("b", rd.zeros(4))
        self.drop, self.norm = nn.Dropout(0.3), nn.BatchNorm1d(4)

    def times(self, x):
        return x * self.config["k"]

    def forward(self, x, flag=None):
        for i, layer in enumerate(self.layers):
            x = self.act(layer(x))
            if i in self.config["n"]:
                x = x + self.p
        if flag is not None and flag:
            x = -x
        x = self.drop(self.times(x)) + self.b
        if self.extra is not None:
            x = x * self.extra
        return self.norm(x)


CONFIG, NET, HOOKS = Config(), Net(), []


# Programs -------------------------------------------------------------------------------------------------------------


def of_globals(x):
    return helper(x) * SCALE if FLAG else HELPER(x) - SCALE


def of_a_list(x):
    for value in LIST:
        x = x * value
    return [x, len(LIST)]


def of_a_dict(x):
    return {key: x * value for key, value in SPACE.table.items()}


def of_attributes(x):
    return SPACE.fn(x) * SPACE.scale + sum(SPACE.items) if SPACE.flag else x


def of_a_class(x):
    return CONFIG.twice(x) + CONFIG.kind + CONFIG.width + len(CONFIG.names)


def of_a_module(x, flag=None):
    return NET(x, flag)


def of_sizes(x):
    return x.reshape(-1)[: x.shape[0]] if x.dim() > 1 and x.shape[0] > 2 else x.sum()


def writes_its_input(x):
    x.add_(1)
    return x * 2


def gives_views(x):
    return x[0], x.t() if x.dim() == 2 else x


def asks_for_a_value(x):
    return x * 2 if x.sum() > 0 else x - 1


def by_keyword(x, *, a=1, b="m"):
    return x * a if b == "m" else x + a


def of_the_rest(x, *rest):
    return [x + one for one in rest]


def without_grad(x):
    with rd.no_grad():
        y = x * 2
    return x * y, rd.is_grad_enabled()


def catches(x):
    try:
        return x @ x
    except RuntimeError:
        return x * 3


def takes_an_item(x):
    return x * float(x.flatten()[0].item())


def of_two(x, y):
    x.mul_(2)
    return x + y


def of_the_same(x, y):
    return x * 2 if x is y else x - y


def drops(x):
    return F.dropout(x, 0.5, training=SPACE.flag)


def draws(x):
    return x + rd.rand(x.shape)


def writes_a_list(x):
    WRITTEN.append("p")
    return x


def gives_its_input(x):
    return x


def gives_constants(x):
    return 3, None, "a", x.dtype


def of_a_closure():
    cell = [2.0]

    def program(x):
        return x * cell[0]

    program.cell = cell
    return program


CLOSURE = of_a_closure()


def of_a_generator(x):
    return sum(i * x for i in range(3) if i != 1)


def of_a_lambda(x):
    return (lambda a, b=SCALE: a + b)(x)


def of_sorted(x):
    return [x * value for value in sorted(SPACE.items, key=lambda i: -i)]


def writes_text(x):
    return f"{SCALE:.1f}-{len(SPACE.items)}", x


def by_default(x, values=LIST):
    return x * len(values)


def counts(x):
    NET.count += 1
    return x * NET.count


def of_a_dtype(x):
    return x.float() if x.dtype == rd.float64 else x * 2


def unpacks(x):
    first, *rest = SPACE.items
    return x * first + len(rest)


def names_within(x):
    return y if (y := x * 2) is not None else x


def loops(x):
    i = 0
    while i < SPACE.items[0]:
        x = x + 1
        i += 1
    return x


def repeats(x):
    return rd.cat([x] * len(LIST))


def fills(x):
    out = rd.empty_like(x)
    out.copy_(x)
    out[0] = 0
    return out


def walks_rows(x):
    return rd.stack([row.sum() for row in x])


def of_a_partial(x):
    return functools.partial(rd.add, other=SCALE)(x)


def asks_for_attributes(x):
    return x * CONFIG.depth * getattr(CONFIG, "none", 2) * (2 if hasattr(CONFIG, "extra") else 1)


# Programs with breaks and effects -------------------------------------------------------------------------------------


def draws_before_a_branch(x):
    y = x + rd.rand(x.shape)
    z = y * 2
    if y.sum() > SCALE:
        return z + rd.rand(x.shape)
    return y - z


def writes_before_a_branch(x):
    view = x.view(-1)
    x.add_(1)
    if view[0] > 1:
        view.mul_(2)
        return x * SCALE
    x.sub_(3)
    return view, x


def branches_without_grad(x):
    y = x * 2
    with rd.no_grad():
        if (y.abs().sum() * SPACE.scale) > 3:
            y = y + 1
        z = y * 3
    return x * y + z, rd.is_grad_enabled()


def halves_until_small(x):
    count = 0
    while x.abs().max() > 0.5 and count < 4:
        x, count = x / 2, count + 1
    return x, count


def prints_between(x):
    y = x.sum()
    print("sum", SCALE)
    y = y * SCALE
    print(f"{y.item():.1f}", y.dtype)
    return y


def gives_numbers(x):
    return x.sum().item(), x.flatten()[:2].tolist(), int(x.numel())


def of_sizes_of_values(x):
    flat = x[x > 0]
    return flat * flat.shape[0], len(LIST) * flat.numel()


def counts_and_branches(x):
    NET.count += 1
    if x.sum() > 0:
        WRITTEN.append("positive")
        NET.count += 2
        return x * SCALE
    SPACE.table["b"] = SCALE
    return x - NET.count % 2


def keeps_tensors(x):
    SPACE.last = x * 2
    y = SPACE.last + 1
    SPACE.items[0] = len(SPACE.items)
    return y * SPACE.items[0], SPACE.last if x.sum() > 0 else None


def writes_a_global(x):
    global TOTAL
    TOTAL += 1
    if x.sum() < 0:
        TOTAL = 0
    return x + TOTAL


def calls_what_is_not_shown(x):
    y = x.tanh() * SCALE
    z = rd.tensor(y.detach().numpy().copy()) + 1
    return z * y + SCALE


def catches_inside(x):
    y = catches(x * 2)
    return y.relu() + SCALE


def module_and_branch(x, flag=None):
    y = NET(x * 2, flag)
    if y.sum() > 0:
        return NET.drop(y) + SCALE, NET.b
    NET.b.mul_(0.5)
    return y.relu()


def splits_by_a_value(x):
    first = x.flatten()[0].item() > 0
    return [x * 2, x + SCALE][first], {"first": first}


def raises_behind_a_write(x):
    NET.count += 1
    x.add_(1)
    y = x.sum()
    if y > 0:
        WRITTEN.append("before")
        return x @ rd.ones(3, 3).to(x.dtype)
    return y


class Scaled(Config):
    def __init__(self, x, by):
        super().__init__()
        self.x = self.twice(x) * by

    def __enter__(self):
        WRITTEN.append("in")
        return self

    def __exit__(self, *error):
        NET.count += 1


def makes_objects(x):
    first, second = Scaled(x, 2), Scaled(x * SCALE, 3)
    second.x = second.x + first.x * first.kind
    with second as region:
        y = region.x * region.width
    return y + len(first.names) if x.sum() > 0 else y - first.depth


# Programs that compute with sizes -------------------------------------------------------------------------------------


def halves_rows(x):
    half = x.shape[0] // 2
    return x[:half].sum(0) * half, x[half:] - x.shape[0]


def of_rows_and_columns(x):
    if x.dim() < 2:
        return x, len(x)
    rows, columns = x.shape
    y = x.reshape(columns, rows) if rows > columns else x.t()
    return rd.cat([y.reshape(-1), rd.zeros(rows * 2, dtype=x.dtype)]), rows * columns, x.shape


def pads_to_even(x):
    n = x.size(0)
    if n % 2:
        x = rd.cat([x, x[:1]])
    return x.view(2, -1).mean(1) / max(n, 3)


def keeps_sizes(x):
    sizes = [*x.shape]
    sizes.append(x.numel())
    found = {"rows": sizes[0], "all": sizes[-1]}
    return rd.ones(sizes[0]) * found["all"], found, isinstance(sizes[0], int), str(sizes[0])


def walks_windows(x):
    out = []
    for start in range(0, x.shape[0], 2):
        out.append(x[start : start + 2].sum() * start)
    return rd.stack(out)


def attends(x):
    y = x.reshape(-1, 4)
    length = y.shape[0]
    mask = rd.ones(length, length).tril() == 0
    scores = (y @ y.t()).float() * (length**-0.5)
    return scores.masked_fill(mask, float("-inf")).softmax(-1) @ y.float()


SIZED = [halves_rows, of_rows_and_columns, pads_to_even, keeps_sizes, walks_windows, attends]
TOTAL = 0
BREAKING = [
    draws_before_a_branch, writes_before_a_branch, branches_without_grad, halves_until_small, prints_between,
    gives_numbers, of_sizes_of_values, counts_and_branches, keeps_tensors, writes_a_global, calls_what_is_not_shown,
    catches_inside, module_and_branch, splits_by_a_value, raises_behind_a_write, makes_objects,
]  # fmt: skip
PROGRAMS = [
    of_globals, of_a_list, of_a_dict, of_attributes, of_a_class, of_a_module, of_sizes, writes_its_input, gives_views,
    asks_for_a_value, by_keyword, of_the_rest, without_grad, catches, takes_an_item, of_two, of_the_same, drops, draws,
    writes_a_list, gives_its_input, gives_constants, CLOSURE, of_a_generator, of_a_lambda, of_sorted, writes_text,
    by_default, counts, of_a_dtype, unpacks, names_within, loops, repeats, fills, walks_rows, of_a_partial,
    asks_for_attributes, *BREAKING, *SIZED,
]  # fmt: skip

# Changes between two calls --------------------------------------------------------------------------------------------

WORLD = globals()


def toggled(owner, name, value):
    """Gives an object an attribute of its own, or takes it away."""
    if name in vars(owner):
        delattr(owner, name)
    else:
        setattr(owner, name, value)


def hook(r):
    if HOOKS:
        HOOKS.pop().remove()
    else:
        HOOKS.append(NET.layers[0].register_forward_hook(lambda module, args, result: result * 2))


def longer(values, most, value):
    if len(values) < most:
        values.append(value)
    else:
        del values[2:]


def relu_and_more(x):
    return RELU(x) + 1


CHANGES = {
    "nothing": lambda r: None,
    "a global": lambda r: WORLD.update(SCALE=r.choice([1.5, 2.0, -0.0, 0.0, 3])),
    "a flag": lambda r: WORLD.update(FLAG=not FLAG),
    "a function": lambda r: WORLD.update(helper=r.choice([lambda x: x - 1, lambda x: x + SCALE])),
    "another function": lambda r: WORLD.update(HELPER=r.choice([rd.sin, lambda x: x * 2])),
    "a builtin": lambda r: toggled(sys.modules[__name__], "len", lambda x: 9),
    "a list's length": lambda r: longer(LIST, 4, 2.0),
    "a list's item": lambda r: LIST.__setitem__(0, r.random()),
    "a dict's item": lambda r: SPACE.table.update({r.choice("abc"): r.random()}),
    "a dict's key": lambda r: SPACE.table.pop("c", None),
    "an attribute": lambda r: setattr(SPACE, "fn", r.choice([rd.relu, rd.sin, relu_and_more])),
    "another attribute": lambda r: setattr(SPACE, "flag", not SPACE.flag),
    "items": lambda r: longer(SPACE.items, 5, r.randint(0, 3)),
    "one item": lambda r: SPACE.items.__setitem__(0, r.randint(0, 2)),
    "a number's type": lambda r: setattr(CONFIG, "depth", r.choice([2, 3, 2.0])),
    "a class attribute": lambda r: setattr(Config, "kind", r.randint(1, 4)),
    "an attribute over a class's": lambda r: toggled(CONFIG, "kind", 5),
    "a property": lambda r: setattr(Config, "width", property(r.choice([lambda s: s.depth * 2, lambda s: 7]))),
    "a method": lambda r: setattr(Config, "twice", r.choice([lambda s, x: x * 2 + s.depth, lambda s, x: x - s.depth])),
    "a class": lambda r: setattr(CONFIG, "__class__", r.choice([Config, OtherConfig])),
    "a tuple": lambda r: setattr(CONFIG, "names", ("a",) * r.randint(0, 3)),
    "an optional attribute": lambda r: toggled(CONFIG, "extra", 1),
    "a closure": lambda r: CLOSURE.cell.__setitem__(0, r.random()),
    "a default": lambda r: setattr(by_default, "__defaults__", ([1] * r.randint(1, 3),)),
    "training": lambda r: NET.train(not NET.training),
    "an activation": lambda r: setattr(NET, "act", r.choice([F.gelu, F.relu, rd.tanh])),
    "a module's dict": lambda r: NET.config.update(k=r.randint(1, 3)),
    "a list in it": lambda r: NET.config.update(n=r.choice([[1, 2], [0], []])),
    "a parameter": lambda r: setattr(NET, "p", nn.Parameter(rd.randn(4))),
    "a buffer": lambda r: NET.b.add_(1),
    "layers": lambda r: (
        NET.layers.append(nn.Linear(4, 4)) if len(NET.layers) < 4 else NET.layers.__delitem__(slice(2, None))
    ),
    "a layer": lambda r: NET.layers.__setitem__(
        0, r.choice([nn.Linear(4, 4), nn.Identity(), nn.Sequential(nn.Tanh())])
    ),
    "a module's method": lambda r: setattr(
        Net, "times", r.choice([lambda s, x: x + 1, lambda s, x: x * s.config["k"]])
    ),
    "a module's own forward": lambda r: toggled(NET.norm, "forward", lambda x: x * 3),
    "a hook": hook,
    "a rate": lambda r: setattr(NET.drop, "p", r.choice([0.3, 0.5, 0.0])),
    "an optional tensor": lambda r: setattr(NET, "extra", r.choice([None, 2.0, rd.ones(4)])),
    "requires_grad": lambda r: [p.requires_grad_(not p.requires_grad) for p in NET.layers.parameters()],
    "momentum": lambda r: setattr(NET.norm, "momentum", r.choice([0.1, 0.2, None])),
    "the library": lambda r: setattr(rd, "relu", RELU if rd.relu is not RELU else relu_and_more),
}

# Inputs ---------------------------------------------------------------------------------------------------------------


def inputs(r, program):
    """Arguments, and keywords, of a program."""
    dtype = r.choice([rd.float32] * 3 + [rd.float64])
    shape = r.choice([(4, 4), (4, 4), (3, 4), (5, 4), (2, 4), (4,)])
    if program in SIZED:
        shape = r.choice([(r.randint(1, 9), 4), (r.randint(1, 9), r.randint(1, 5)), (4 * r.randint(1, 3),)])
    if program in (of_a_module, module_and_branch):
        return (rd.randn(r.choice([(4, 4), (3, 4)])), r.choice([None, True, False])), {}
    x = rd.randn(shape, dtype=dtype)
    if len(shape) == 2:
        x = r.choice([x, x, x, x.t().contiguous().t(), rd.randn((4, 8), dtype=dtype)[:, ::2]])
    if r.random() < 0.3 and program not in (writes_its_input, of_two, writes_before_a_branch, raises_behind_a_write):
        x.requires_grad_()
    if program in (of_two, of_the_same):
        return (x, r.choice([x, x.view(x.shape), rd.randn(x.shape)])), {}
    if program is of_the_rest:
        return (x, *(r.choice([1, 2.0, rd.ones(1)]) for _ in range(r.randint(0, 2)))), {}
    if program is by_keyword:
        given = {"a": r.choice([1, 2, 1.0, True]), "b": r.choice(["m", "z"])}
        return (x,), {key: value for key, value in given.items() if r.random() < 0.6}
    return (x,), {}


def copies(args):
    """Copies of arguments that share memory as these do."""
    made = {}
    for x in args:
        if isinstance(x, rd.Tensor) and id(x) not in made:
            other = next((y for y in args if id(y) in made and y.data_ptr() == x.data_ptr()), None)
            if other is not None:
                made[id(x)] = made[id(other)].view(x.shape)
            else:
                copy = rd.empty_strided(x.shape, x.stride(), dtype=x.dtype)
                copy.copy_(x.detach())
                made[id(x)] = copy.requires_grad_(x.requires_grad)
    return tuple(made.get(id(x), x) for x in args)


def shown(value):
    """A value as something to compare: numbers to four digits, as sums may run in another order."""
    if isinstance(value, rd.Tensor):
        numbers = [f"{number:.3g}" for number in value.detach().double().flatten().tolist()]
        facts = value.dtype, tuple(value.shape), value.stride(), value.requires_grad, value.is_leaf
        return facts, numbers
    if isinstance(value, list | tuple):
        return type(value).__name__, [shown(one) for one in value]
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    return type(value).__name__, f"{value:.3g}" if isinstance(value, float) else repr(value)


def state_tensors():
    return [NET.b, NET.norm.running_mean, NET.norm.running_var, NET.norm.num_batches_tracked]


def state():
    numbers = [list(WRITTEN), dict(SPACE.table), list(SPACE.items), TOTAL, vars(SPACE).get("last")]
    return [x.clone() for x in state_tensors()], NET.count, *numbers


def restore(known):
    for x, value in zip(state_tensors(), known[0], strict=True):
        x.copy_(value)
    NET.count, WRITTEN[:], SPACE.items[:], WORLD["TOTAL"] = known[1], known[2], known[4], known[5]
    SPACE.table.clear()
    SPACE.table.update(known[3])
    SPACE.last = known[6]


def gradients(value, args):
    """The gradients of all inputs and parameters."""
    wanted = [x for x in tree_leaves(value) if isinstance(x, rd.Tensor) and x.requires_grad]
    leaves = [x for x in (*args, *NET.parameters()) if isinstance(x, rd.Tensor) and x.is_leaf]
    if not wanted:
        return None
    for x in leaves:
        x.grad = None
    sum((x.double() ** 2).sum() for x in wanted).backward()
    return [shown(x.grad) for x in leaves]


def outcome(function, args, kwargs, seed, mode):
    """All that can be seen of a call."""
    rd.manual_seed(seed)
    args, printed = copies(args), io.StringIO()
    try:
        with mode(), contextlib.redirect_stdout(printed):
            value = function(*args, **kwargs)
            seen = shown(value)
        same = [i for i, x in enumerate(tree_leaves(value)) if any(x is y for y in args if isinstance(y, rd.Tensor))]
        seen = seen, same, gradients(value, args)
    except RuntimeError as error:
        seen = type(error), str(error)[:80]
    return seen, shown(list(args)), shown(state()), rd.rand(1).item(), printed.getvalue()


def run(seed, calls, backend="eager", programs=PROGRAMS):
    """Returns the calls that were wrong, each with what is known of it; and how many ran by a recorded program."""
    r, made, wrong, change, recorded = random.Random(seed), {}, [], None, 0
    worth, capture.WORTH = capture.WORTH, 1  # so that Python is fed wherever it can be
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(calls):
            program = r.choice(programs)
            if program not in made or r.random() < 0.08:
                made[program] = compiler.compile(program, backend=backend)
            args, kwargs = inputs(r, program)
            mode = r.choice([rd.enable_grad] * 4 + [rd.no_grad, rd.inference_mode])
            for _ in range(r.choice([1, 2])):
                before = state()
                expected = outcome(program, args, kwargs, number, mode)
                restore(before)
                known = len(made[program].dynamo_ctx.programs)
                found = outcome(made[program], args, kwargs, number, mode)
                recorded += known == len(made[program].dynamo_ctx.programs) and not made[program].dynamo_ctx.full
                if expected != found:
                    wrong.append((number, program.__name__, mode.__name__, change, expected, found))
            change = r.choice([*CHANGES])
            CHANGES[change](r)
    rd.relu, capture.WORTH = RELU, worth
    vars(sys.modules[__name__]).pop("len", None)
    return wrong, recorded


if __name__ == "__main__":
    found, recorded = run(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4])
    for one in found[:5]:
        print(*one[:4], *one[4:], sep="\n    ")
    print(f"{len(found)} of {sys.argv[2]} calls were wrong; {recorded} ran by a recorded program")
