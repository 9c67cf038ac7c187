"""What the loops cost: a million float32 elements, or matrices of about that size, on one thread; then on two."""

from contextlib import contextmanager
from functools import cache

from rows import Group, Under

GROUP = Group()
row, call = GROUP.row, GROUP.call
N = 1_000_000
ROWS, COLUMNS = 1000, 1000
BYTES = 4 * N  # bytes of a million float32 elements


def vector(t):
    """N numbers from -4 to 4, the same on both sides."""
    return t.linspace(-4, 4, N)


def matrix(t):
    """The same numbers as a matrix."""
    return t.linspace(-4, 4, N).view(ROWS, COLUMNS)


# --- pointwise ---

call("exp", "x = vector(t)", "t.exp(x)")
call("log", "x = t.linspace(0.1, 10, N)", "t.log(x)")
call("tanh", "x = vector(t)", "t.tanh(x)")
call("sin", "x = vector(t)", "t.sin(x)")
call("erf", "x = vector(t)", "t.erf(x)")
call("pow", "x, y = t.linspace(0.1, 10, N), vector(t)", "t.pow(x, y)")
call("sigmoid", "x = vector(t)", "t.sigmoid(x)")
call("gelu", "x = vector(t)", "t.nn.functional.gelu(x)")


call("gelu, tanh form", "x = vector(t)", "t.nn.functional.gelu(x, approximate='tanh')")

call("add", "x, y = vector(t), vector(t)", "t.add(x, y)", moves=3 * BYTES)
call("where", "x, y = vector(t), t.zeros(N); mask = x > 0", "t.where(mask, x, y)", moves=3 * BYTES + N)
call("add, broadcast (1000, 1000) + (1000,)", "x, y = matrix(t), t.ones(COLUMNS)", "t.add(x, y)", moves=2 * BYTES)
call("add, one side transposed", "x, y = matrix(t), matrix(t).t()", "t.add(x, y)", moves=3 * BYTES)
call("copy of a transposed matrix", "x = matrix(t).t()", "x.contiguous()", moves=2 * BYTES)
call("to bfloat16", "x = vector(t)", "x.to(t.bfloat16)", moves=BYTES + BYTES // 2)


# --- reductions ---

call("sum", "x = vector(t)", "t.sum(x)", moves=BYTES)
call("amax", "x = vector(t)", "t.amax(x)", moves=BYTES)
call("sum of each row", "x = matrix(t)", "t.sum(x, 1)", moves=BYTES)
call("sum of each column", "x = matrix(t)", "t.sum(x, 0)", moves=BYTES)
call("softmax of each row", "x = matrix(t)", "t.softmax(x, -1)")
call("softmax of each column", "x = matrix(t)", "t.softmax(x, 0)")
call("largest of each row, and where", "x = matrix(t)", "t.max(x, 1)")
call("cumsum", "x = vector(t)", "t.cumsum(x, 0)", moves=2 * BYTES)
call("cumsum along columns", "x = matrix(t)", "t.cumsum(x, 0)", moves=2 * BYTES)


# --- indexing ---


def scattered(t, limit):
    """N indices below `limit`, far from sorted: 7919 is prime, and shares no factor with the limits used here."""
    return (t.arange(N) * 7919) % limit


call(
    "gather along rows",
    "x = matrix(t); index = scattered(t, COLUMNS).view(ROWS, COLUMNS)",
    "t.gather(x, 1, index)",
    moves=4 * BYTES,
)
call(
    "index_select of rows",
    "x = matrix(t); index = scattered(t, ROWS)[:ROWS]",
    "t.index_select(x, 0, index)",
    moves=2 * BYTES,
)


# --- matrix products ---

call("matmul 1024", "x, y = t.ones(1024, 1024), t.ones(1024, 1024)", "t.matmul(x, y)")
call("matmul 1024, one side transposed", "x, y = t.ones(1024, 1024), t.ones(1024, 1024).t()", "t.matmul(x, y)")
call("bmm 64 of 64 x 64", "x, y = t.ones(64, 64, 64), t.ones(64, 64, 64)", "t.bmm(x, y)")


# --- the layers of networks ---

call("sort of 1M", "x = t.randn(N)", "t.sort(x)", target=0.8)
call("topk of each row, 10 of 1000", "x = matrix(t)", "t.topk(x, 10)")
call("max_pool2d 8 x 32 x 64 x 64, 2", "x = t.randn(8, 32, 64, 64)", "t.nn.functional.max_pool2d(x, 2)", target=0.8)
call(
    "conv2d 8 x 32 x 32 x 32, 3",
    "x, w = t.randn(8, 32, 32, 32), t.randn(32, 32, 3, 3)",
    "t.nn.functional.conv2d(x, w)",
    target=2.0,
)
call(
    "layer_norm of 1024 x 1024",
    "x, w, b = t.randn(1024, 1024), t.ones(1024), t.zeros(1024)",
    "t.nn.functional.layer_norm(x, (1024,), w, b)",
    target=0.9,
)
call(
    "cross_entropy of 1024 x 1024",
    "x, y = t.randn(1024, 1024), t.arange(1024)",
    "t.nn.functional.cross_entropy(x, y)",
    target=0.9,
)
call(
    "attention 4 x 8 x 256 x 64, causal",
    "q, k, v = (t.randn(4, 8, 256, 64) for _ in range(3))",
    "t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
    target=1.2,
)
call(
    "embedding of 64 x 512, rows of 64",
    "table, indices = t.randn(10_000, 64), t.randint(0, 10_000, (64, 512))",
    "t.nn.functional.embedding(indices, table)",
    target=1.2,
)


# --- random numbers ---

call("rand", "", "t.rand(N)", target=1.2)
call("rand, float64", "", "t.rand(N, dtype=t.float64)", target=1.2)
call("randn", "", "t.randn(N)", target=1.2)
call("randn, float64", "", "t.randn(N, dtype=t.float64)", target=1.2)
call("randint", "", "t.randint(0, 1000, (N,))", target=1.2)
call("randperm of 100,000", "", "t.randperm(100_000)", target=1.2)
call("exponential_", "x = t.zeros(N)", "x.exponential_()", target=1.2)
call("dropout", "x = vector(t)", "t.nn.functional.dropout(x, 0.5, True)", target=1.2)
call("rand of 4", "", "t.rand(4)", target=1.2)
call("randn of 64", "", "t.randn(64)", target=1.2)
call("randint of 4", "", "t.randint(0, 10, (4,))", target=1.2)
call("randperm of 8", "", "t.randperm(8)", target=1.2)
call("uniform_ of 4", "x = t.zeros(4)", "x.uniform_()", target=1.2)
call("normal_ of 64", "x = t.zeros(64)", "x.normal_()", target=1.2)
call("bernoulli_ of 4", "x = t.zeros(4)", "x.bernoulli_(0.3)", target=1.2)
call("exponential_ of 4", "x = t.zeros(4)", "x.exponential_()", target=1.2)
call("bernoulli_ of 4, by a tensor", "x, p = t.zeros(4), t.full((4,), 0.3)", "x.bernoulli_(p)", target=1.2)
call("rand_like of 4", "x = t.zeros(4)", "t.rand_like(x)", target=1.2)
call("manual_seed of a generator", "g = t.Generator()", "g.manual_seed(7)", target=1.2)
call("a generator's state", "g = t.Generator()", "g.get_state()")
call("a generator's state, put back", "g = t.Generator(); s = g.get_state()", "g.set_state(s)")
call("nn.Linear(4, 4)", "", "t.nn.Linear(4, 4)")
call("arange of 4", "", "t.arange(4)", target=1.2)
call("dropout of 64", "x = t.zeros(64)", "t.nn.functional.dropout(x, 0.5, True)", target=1.2)
call("multinomial of 8, with replacement", "x = t.ones(8)", "t.multinomial(x, 2, True)", target=1.2)


# --- threads: each call on one thread, and on two ---


@contextmanager
def threads(t, count):
    """So many threads for the time of a round."""
    t.set_num_threads(count)
    try:
        yield
    finally:
        t.set_num_threads(1)


@cache
def many(t):
    """16 million numbers, the same ones for all rows."""
    return t.linspace(0.1, 4, 16 * N)


def threaded(name, work):
    """A row for each number of threads, on 16 million elements."""
    for count in (1, 2):

        def build(t, count=count):
            x = many(t)
            return Under(lambda: threads(t, count), lambda: work(t, x))

        row(f"{name} of 16M, {count} thread{'s' * (count > 1)}")(build)


threaded("exp", lambda t, x: t.exp(x))
threaded("tanh", lambda t, x: t.tanh(x))
threaded("pow", lambda t, x: t.pow(x, 2.5))
threaded("sum", lambda t, x: t.sum(x))
threaded("add", lambda t, x: t.add(x, x))
