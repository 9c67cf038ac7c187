"""What the loops cost: a million float32 elements, or matrices of about that size, on one thread."""

from rows import Group

GROUP = Group()
row = GROUP.row
N = 1_000_000
ROWS, COLUMNS = 1000, 1000


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


@row("add")
def add(t):
    x, y = vector(t), vector(t)
    return lambda: t.add(x, y)


@row("where")
def where(t):
    x, y = vector(t), t.zeros(N)
    mask = x > 0
    return lambda: t.where(mask, x, y)


@row("add, broadcast (1000, 1000) + (1000,)")
def add_broadcast(t):
    x, y = matrix(t), t.ones(COLUMNS)
    return lambda: t.add(x, y)


@row("add, one side transposed")
def add_transposed(t):
    x, y = matrix(t), matrix(t).t()
    return lambda: t.add(x, y)


@row("copy of a transposed matrix")
def copy_transposed(t):
    x = matrix(t).t()
    return lambda: x.contiguous()


@row("to bfloat16")
def to_bfloat16(t):
    x = vector(t)
    return lambda: x.to(t.bfloat16)


# --- reductions ---


@row("sum")
def total(t):
    x = vector(t)
    return lambda: t.sum(x)


@row("amax")
def amax(t):
    x = vector(t)
    return lambda: t.amax(x)


@row("sum of each row")
def sum_rows(t):
    x = matrix(t)
    return lambda: t.sum(x, 1)


@row("sum of each column")
def sum_columns(t):
    x = matrix(t)
    return lambda: t.sum(x, 0)


@row("softmax of each row")
def softmax(t):
    x = matrix(t)
    return lambda: t.softmax(x, -1)


# --- indexing ---


def scattered(t, limit):
    """N indices below `limit`, far from sorted: 7919 is prime, and shares no factor with the limits used here."""
    return (t.arange(N) * 7919) % limit


@row("gather along rows")
def gather(t):
    x = matrix(t)
    index = scattered(t, COLUMNS).view(ROWS, COLUMNS)
    return lambda: t.gather(x, 1, index)


@row("index_select of rows")
def index_select(t):
    x = matrix(t)
    index = scattered(t, ROWS)[:ROWS]
    return lambda: t.index_select(x, 0, index)


# --- matrix products ---


@row("matmul 1024")
def matmul(t):
    x, y = t.ones(1024, 1024), t.ones(1024, 1024)
    return lambda: t.matmul(x, y)


@row("bmm 64 of 64 x 64")
def bmm(t):
    x, y = t.ones(64, 64, 64), t.ones(64, 64, 64)
    return lambda: t.bmm(x, y)


# --- random numbers ---


@row("randn")
def randn(t):
    return lambda: t.randn(N)


@row("dropout")
def dropout(t):
    x = vector(t)
    return lambda: t.nn.functional.dropout(x, 0.5, True)
