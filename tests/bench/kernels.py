"""What the loops cost: a million float32 elements, or matrices of about that size, on one thread; then on two."""

from contextlib import contextmanager
from functools import cache

from rows import Group, Under

GROUP = Group()
row = GROUP.row
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


@row("exp")
def exp(t):
    x = vector(t)
    return lambda: t.exp(x)


@row("log")
def log(t):
    x = t.linspace(0.1, 10, N)
    return lambda: t.log(x)


@row("tanh")
def tanh(t):
    x = vector(t)
    return lambda: t.tanh(x)


@row("sin")
def sin(t):
    x = vector(t)
    return lambda: t.sin(x)


@row("erf")
def erf(t):
    x = vector(t)
    return lambda: t.erf(x)


@row("pow")
def pow(t):
    x, y = t.linspace(0.1, 10, N), vector(t)
    return lambda: t.pow(x, y)


@row("sigmoid")
def sigmoid(t):
    x = vector(t)
    return lambda: t.sigmoid(x)


@row("gelu")
def gelu(t):
    x = vector(t)
    return lambda: t.nn.functional.gelu(x)


@row("gelu, tanh form")
def gelu_tanh(t):
    x = vector(t)
    return lambda: t.nn.functional.gelu(x, approximate="tanh")


@row("add", moves=3 * BYTES)
def add(t):
    x, y = vector(t), vector(t)
    return lambda: t.add(x, y)


@row("where", moves=3 * BYTES + N)
def where(t):
    x, y = vector(t), t.zeros(N)
    mask = x > 0
    return lambda: t.where(mask, x, y)


@row("add, broadcast (1000, 1000) + (1000,)", moves=2 * BYTES)
def add_broadcast(t):
    x, y = matrix(t), t.ones(COLUMNS)
    return lambda: t.add(x, y)


@row("add, one side transposed", moves=3 * BYTES)
def add_transposed(t):
    x, y = matrix(t), matrix(t).t()
    return lambda: t.add(x, y)


@row("copy of a transposed matrix", moves=2 * BYTES)
def copy_transposed(t):
    x = matrix(t).t()
    return lambda: x.contiguous()


@row("to bfloat16", moves=BYTES + BYTES // 2)
def to_bfloat16(t):
    x = vector(t)
    return lambda: x.to(t.bfloat16)


# --- reductions ---


@row("sum", moves=BYTES)
def total(t):
    x = vector(t)
    return lambda: t.sum(x)


@row("amax", moves=BYTES)
def amax(t):
    x = vector(t)
    return lambda: t.amax(x)


@row("sum of each row", moves=BYTES)
def sum_rows(t):
    x = matrix(t)
    return lambda: t.sum(x, 1)


@row("sum of each column", moves=BYTES)
def sum_columns(t):
    x = matrix(t)
    return lambda: t.sum(x, 0)


@row("softmax of each row")
def softmax(t):
    x = matrix(t)
    return lambda: t.softmax(x, -1)


@row("softmax of each column")
def softmax_columns(t):
    x = matrix(t)
    return lambda: t.softmax(x, 0)


@row("largest of each row, and where")
def max_rows(t):
    x = matrix(t)
    return lambda: t.max(x, 1)


@row("cumsum", moves=2 * BYTES)
def cumsum(t):
    x = vector(t)
    return lambda: t.cumsum(x, 0)


@row("cumsum along columns", moves=2 * BYTES)
def cumsum_columns(t):
    x = matrix(t)
    return lambda: t.cumsum(x, 0)


# --- indexing ---


def scattered(t, limit):
    """N indices below `limit`, far from sorted: 7919 is prime, and shares no factor with the limits used here."""
    return (t.arange(N) * 7919) % limit


@row("gather along rows", moves=4 * BYTES)
def gather(t):
    x = matrix(t)
    index = scattered(t, COLUMNS).view(ROWS, COLUMNS)
    return lambda: t.gather(x, 1, index)


@row("index_select of rows", moves=2 * BYTES)
def index_select(t):
    x = matrix(t)
    index = scattered(t, ROWS)[:ROWS]
    return lambda: t.index_select(x, 0, index)


# --- matrix products ---


@row("matmul 1024")
def matmul(t):
    x, y = t.ones(1024, 1024), t.ones(1024, 1024)
    return lambda: t.matmul(x, y)


@row("matmul 1024, one side transposed")
def matmul_transposed(t):
    x, y = t.ones(1024, 1024), t.ones(1024, 1024).t()
    return lambda: t.matmul(x, y)


@row("bmm 64 of 64 x 64")
def bmm(t):
    x, y = t.ones(64, 64, 64), t.ones(64, 64, 64)
    return lambda: t.bmm(x, y)


# --- the layers of networks ---


@row("sort of 1M", target=0.8)
def sort(t):
    x = t.randn(N)
    return lambda: t.sort(x)


@row("topk of each row, 10 of 1000")
def topk(t):
    x = matrix(t)
    return lambda: t.topk(x, 10)


@row("max_pool2d 8 x 32 x 64 x 64, 2", target=0.8)
def max_pool(t):
    x = t.randn(8, 32, 64, 64)
    return lambda: t.nn.functional.max_pool2d(x, 2)


@row("conv2d 8 x 32 x 32 x 32, 3", target=2.0)
def conv(t):
    x, w = t.randn(8, 32, 32, 32), t.randn(32, 32, 3, 3)
    return lambda: t.nn.functional.conv2d(x, w)


@row("layer_norm of 1024 x 1024", target=0.9)
def layer_norm(t):
    x, w, b = t.randn(1024, 1024), t.ones(1024), t.zeros(1024)
    return lambda: t.nn.functional.layer_norm(x, (1024,), w, b)


@row("cross_entropy of 1024 x 1024", target=0.9)
def cross_entropy(t):
    x, y = t.randn(1024, 1024), t.arange(1024)
    return lambda: t.nn.functional.cross_entropy(x, y)


@row("attention 4 x 8 x 256 x 64, causal", target=1.2)
def attention(t):
    q, k, v = (t.randn(4, 8, 256, 64) for _ in range(3))
    return lambda: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@row("embedding of 64 x 512, rows of 64", target=1.2)
def embedding(t):
    table, indices = t.randn(10_000, 64), t.randint(0, 10_000, (64, 512))
    return lambda: t.nn.functional.embedding(indices, table)


# --- random numbers ---


@row("randn")
def randn(t):
    return lambda: t.randn(N)


@row("dropout")
def dropout(t):
    x = vector(t)
    return lambda: t.nn.functional.dropout(x, 0.5, True)


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
