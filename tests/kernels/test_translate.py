"""What the translator makes of a program is what numba makes of it, to the bit."""

import ast
import itertools
import math
import operator
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redispatch.kernels.engine import lower, native, translate
from redispatch.kernels.engine.compile import Kernel
from redispatch.kernels.engine.program import Program
from redispatch.kernels.engine.translate import promote

numba = pytest.importorskip("numba")

OPERATORS = {
    **{node: getattr(operator, name) for node, name in (
        (ast.Add, "add"), (ast.Sub, "sub"), (ast.Mult, "mul"), (ast.FloorDiv, "floordiv"), (ast.Mod, "mod"),
        (ast.Div, "truediv"), (ast.Pow, "pow"), (ast.LShift, "lshift"), (ast.RShift, "rshift"), (ast.BitAnd, "and_"),
        (ast.BitOr, "or_"), (ast.BitXor, "xor"), (ast.Lt, "lt"), (ast.LtE, "le"), (ast.Gt, "gt"), (ast.GtE, "ge"),
        (ast.Eq, "eq"), (ast.NotEq, "ne"),
    )},
}  # fmt: skip


@pytest.fixture(scope="module")
def typing():
    from numba.core.registry import cpu_target

    context = cpu_target.typing_context
    context.refresh()
    return context


def numba_type(name):
    return numba.types.boolean if name == "bool" else getattr(numba.types, name)


def test_types_are_unified_and_converted_as_numba_does(typing):
    for a, b in itertools.product(promote.NUMBERS, repeat=2):
        first, second = numba_type(a), numba_type(b)
        assert promote.unified(a, b) == str(typing.unify_pairs(first, second)), (a, b)
        theirs = typing.can_convert(first, second)
        assert promote.conversions().get((a, b)) == (None if theirs is None else theirs - 1), (a, b)


@pytest.mark.parametrize("node", OPERATORS, ids=lambda node: node.__name__)
def test_an_operator_takes_and_gives_the_types_that_numba_says(typing, node):
    cases = {**promote.BINARY, **promote.COMPARE}[node]
    for pair in itertools.product(promote.NUMBERS, repeat=2):
        try:
            found = typing.resolve_function_type(OPERATORS[node], tuple(map(numba_type, pair)), {})
            theirs = tuple(map(str, (found.return_type, *found.args)))
        except numba.TypingError:
            theirs = None
        assert promote.chosen(cases, pair, node not in promote.WITHOUT_LOSS) == theirs, pair


# Programs, run both ways ----------------------------------------------------------------------------------------------


def loop_over(text, count, outs):
    """A program whose loop stores what the function `f` of a text returns, element by element."""
    program = Program(None)
    scope = {"np": np, "math": math, **{name: getattr(np, name) for name in ("float32", "int32", "uint8", "uint64")}}
    for function in ast.parse(text).body:
        source = ast.unparse(function)
        program.add_text(function.name, source + "\n", {word: scope[word] for word in scope if word in source})
    inside, outside = [f"x{k}" for k in range(count)], [f"out{k}" for k in range(outs)]
    program.add_text(
        "loop",
        f"def loop(n, {', '.join([*inside, *outside])}):\n    for i in range(n):\n"
        f"        {', '.join(f'r{k}' for k in range(outs))} = f({', '.join(f'{x}[i]' for x in inside)})\n"
        + "".join(f"        {out}[i] = r{k}\n" for k, out in enumerate(outside)),
        {},
    )
    return program


def specials(type, rng, extremes, count=600):
    """Numbers of a type, the strange ones among them."""
    if type == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if type.startswith("complex"):
        half = "float32" if type == "complex64" else "float64"
        return np.stack([specials(half, rng, extremes, count) for _ in range(2)], 1).reshape(-1).view(type)
    if "int" in type:
        info = np.iinfo(type)
        some = [0, 1, 2, 3, 7, 63, *([-1, -2, -7] if info.min else [])]
        some += [info.max, info.max - 1, info.min, info.min + 1] if extremes else []
        some += rng.integers(-100 if info.min else 0, 100, 20).tolist()
    else:
        info = np.finfo(type)
        some = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e5, np.inf, -np.inf, np.nan, info.max, info.tiny]
        some += (rng.standard_normal(20) * 10).tolist()
    return rng.choice(np.array(some, type), count)


def run(text, types, flags=frozenset(), seed=0, extremes=True):
    """Compares what both make of a function `f` of numbers; returns the types of its results."""
    unit = translate.Unit()
    outs = unit.function(loop_over(text, len(types), 1), "f", types, flags).result
    outs = outs if isinstance(outs, tuple) else (outs,)
    program = loop_over(text, len(types), len(outs))
    signature = ("int64", *(f"{name}[]" for name in (*types, *outs)))
    unit = translate.Unit()
    symbol, result = unit.function(program, "loop", signature, flags)
    ours = native.optimised(
        unit.text() + native.plain(symbol, signature, result) + native.calling(signature, result, True)
    )
    adapter, module, result = lower.lowered(program, signature, flags)
    theirs = native.optimised(adapter + native.calling(signature, result, True), module)
    rng = np.random.default_rng(seed)
    arguments = [specials(name, rng, extremes) for name in types]
    found = [[np.zeros(len(arguments[0]), name) for name in outs] for _ in range(2)]
    for module, results in zip((ours, theirs), found, strict=True):
        native.linked(native.packed(module), "both")(len(arguments[0]), *arguments, *results)
    for name, mine, other in zip(outs, *found, strict=True):
        same = mine.tobytes() == other.tobytes()
        if not same and ("float" in name or "complex" in name):  # a NaN may have any bits
            mine, other = (one.view(one.real.dtype) for one in (mine, other))
            whole = f"uint{8 * mine.itemsize}"
            same = bool(((mine.view(whole) == other.view(whole)) | (np.isnan(mine) & np.isnan(other))).all())
        assert same, f"{text}\n{types}: {arguments} {mine} {other}"
    return outs


ARITHMETIC = (
    "def f(x, y):\n    return x + y, x - y, x * y, x / y, x < y, x <= y, x == y, x != y, min(x, y), max(x, y), -x"
)
WHOLE = "\ndef f(x, y):\n    return x // y, x % y, x & y, x | y, x ^ y, x << (y & 7), x >> (y & 7), ~x, abs(x), x ** 3"


@pytest.mark.parametrize(
    "types, outs",
    [
        (("int32", "int32"), ("int64", "int64", "int64", "float64", *["bool"] * 4, "int32", "int32", "int64")),
        (("int64", "uint64"), ("int64", "int64", "int64", "float64", *["bool"] * 4, "float64", "float64", "int64")),
        (("uint8", "uint16"), ("uint64", "uint64", "uint64", "float64", *["bool"] * 4, "uint16", "uint16", "uint64")),
        (("float32", "int64"), (*["float64"] * 4, *["bool"] * 4, "float64", "float64", "float32")),
        (("int16", "float32"), (*["float32"] * 4, *["bool"] * 4, "float32", "float32", "int64")),
        (("bool", "bool"), ("int64", "int64", "int64", "float64", *["bool"] * 6, "int64")),
        (("float64", "float32"), (*["float64"] * 4, *["bool"] * 4, *["float64"] * 3)),
    ],
)
def test_arithmetic_and_its_types(types, outs):
    assert run(ARITHMETIC, types) == outs


@pytest.mark.parametrize("types", [("int64", "int64"), ("int8", "int32"), ("uint64", "uint8"), ("int64", "uint64")])
def test_integers_are_divided_as_python_does_and_by_0(types):
    run(WHOLE, types)


@pytest.mark.parametrize("real", ["float32", "float64"])
@pytest.mark.parametrize("flags", [frozenset(), frozenset({"contract"})], ids=str)
def test_floats(real, flags):
    text = (
        "def f(x, y):\n    w = x if abs(x) > 0.01 else 1\n    return (x // y, x % y, abs(x), x ** 3, w ** -2, "
        "np.floor(x), np.rint(x), np.sqrt(x), np.fmod(x, y), math.copysign(x, y), math.isnan(x), math.isinf(x), "
        "math.isfinite(y), x * y + x, bool(x), not y, x.real, x.imag, math.fabs(x), math.hypot(x, y), float(x))"
    )
    run(text, (real, real), flags)
    run(
        "def f(x):\n    return math.exp(x), math.log1p(x), np.sin(x), math.sqrt(x), np.trunc(x), np.ceil(x)",
        (real,),
        flags,
    )


def test_integers_become_what_math_takes():
    assert run("def f(n):\n    return math.sqrt(n), math.floor(n), float(n), n ** 0.5", ("int32",)) == (
        "float64", "int64", "float64", "float64",
    )  # fmt: skip


@pytest.mark.parametrize("type", ["complex64", "complex128"])
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="numba's products recover infinities there")
def test_complex_numbers(type):
    text = (
        "def f(z, w):\n    return z + w, z - w, z * w, z == w, z != w, abs(z), z.real, -z, z.conjugate(), z * 2, "
        "complex(z.real, w.imag), bool(z), z / w if w != 0 else z"
    )
    run(text, (type, type))


@pytest.mark.parametrize("to", ["bool", "int8", "uint8", "int32", "uint64", "float32", "float64", "complex64"])
def test_casts(to):
    for have in ("bool", "int8", "uint16", "int64", "uint64"):
        run(f"def f(x):\n    return np.{'bool_' if to == 'bool' else to}(x)", (have,))


STATEMENTS = {
    "a variable that becomes wider in a loop": (
        "def f(x, n):\n    total = 0\n    for k in range(n & 7):\n        total = total + x\n        if total > 5:\n"
        "            total -= 1\n    return total",
        ("float32", "int64"),
    ),
    "breaks and continues": (
        "def f(n, m):\n    s, k = 0, 0\n    while True:\n        k += 1\n        if k > (n & 31):\n            break\n"
        "        if k % 3 == 0 or k == m:\n            continue\n        for j in range(k, 0, -2):\n"
        "            if j == 5:\n                break\n            s += j * k\n    return s, k",
        ("int64", "int64"),
    ),
    "returns of several types": (
        "def f(x, n):\n    if n < 0:\n        return n\n    elif n == 0:\n        return True\n    return x",
        ("float32", "int32"),
    ),
    "conditions that are numbers": (
        "def f(x, n):\n    a = x and n\n    b = x or n\n"
        "    c = 1 if 0 < n < 50 else x\n    return a, b, c, not (x and n)",
        ("float64", "int64"),
    ),
    "tuples": (
        "def two(x):\n    return x + 1, (x, x > 0)\ndef f(x):\n    a, (b, c) = two(x)\n    a, b = b, a\n"
        "    t = (a, b)\n    if c:\n        t = (b, 2)\n    return t[0], t[-1], c, len(t)",
        ("float32",),
    ),
    "tables of literals": (
        "def f(x, n):\n    return x * (0.5, 1.5, -2.5)[n % 3] + (1, 2)[-1 - n % 2]",
        ("float32", "int64"),
    ),
    "functions that are passed": (
        "def double(x):\n    return 2 * x\n"
        "def twice(g, x):\n    return g(g(x))\ndef f(x):\n    return twice(double, x)",
        ("float32",),
    ),
    "steps that are not known": (
        "def f(n, m):\n    s = 0\n    for k in range(n & 63, m & 31, (n & 7) - 3 if (n & 7) != 3 else 1):\n"
        "        s = s * 3 + k\n    return s",
        ("int64", "int64"),
    ),
    "a name that only some ways give a value": (
        "def f(x):\n    if x > 0:\n        y = x\n    else:\n        z = x\n        y = z * 2\n    return y",
        ("float32",),
    ),
    "literals that python computes": ("def f(x):\n    return (1 << 62) // 3, x * -(2 + 3), x > 2 ** 31", ("int64",)),
}  # fmt: skip


@pytest.mark.parametrize("what", STATEMENTS)
def test_statements(what):
    run(*STATEMENTS[what])


# Arrays ---------------------------------------------------------------------------------------------------------------


def both(loop, signature, *arguments):
    """Runs a loop as the translator and as numba has it; returns the arguments after each."""
    found = []
    for module in (translated(loop, signature), of_numba(loop, signature)):
        copies = [np.copy(one) if isinstance(one, np.ndarray) else one for one in arguments]
        found.append((native.linked(native.packed(module), "both")(*copies), copies))
    return found


def translated(loop, signature):
    unit, program = translate.Unit(), Kernel(loop).program()
    symbol, result = unit.function(program, program.compiled[-1], signature)
    return native.optimised(
        unit.text() + native.plain(symbol, signature, result) + native.calling(signature, result, True)
    )


def of_numba(loop, signature):
    adapter, module, result = lower.lowered(Kernel(loop).program(), signature, frozenset())
    return native.optimised(adapter + native.calling(signature, result, True), module)


def test_arrays_are_read_and_written():
    def mixed(lo, hi, flags, x, out):
        tail = x[lo + 1 :]
        for i in range(lo, hi):
            if flags[i]:
                out[np.uint64(i)] += x[-1 - i] * len(tail)
            flags[i] = x[i] > 0.5
        return tail[0] + len(x)

    flags, x, out = np.array([True, False] * 4), np.linspace(0, 1, 8), np.zeros(8, np.float32)
    (ours, mine), (theirs, other) = both(
        mixed, ("int64", "int64", "bool[]", "float64[]", "float32[]"), 0, 8, flags, x, out
    )
    assert ours == theirs
    for a, b in zip(mine[2:], other[2:], strict=True):
        assert a.tolist() == b.tolist()
    assert mine[2].tolist() == [False] * 4 + [True] * 4 and mine[4].any()


def test_numbers_of_all_types_arrive():
    def sums(a, b, c, d, e, out):
        out[0] = a + b + c.real + c.imag * 2 + d
        return e

    signature = ("int8", "uint64", "complex64", "float32", "bool", "float64[]")
    (ours, mine), (theirs, other) = both(sums, signature, -3, 2**63, 1 + 2j, 0.5, True, np.zeros(1))
    assert ours is theirs is True and mine[5] == other[5]


# Programs nobody thought of -------------------------------------------------------------------------------------------

TYPES = ("bool", "int8", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64")


def expressions():
    leaves = st.sampled_from(["x", "y", "z", "0", "1", "-1", "3", "2.5", "True", "255"])

    def deeper(inner):
        two = st.tuples(inner, inner)
        return st.one_of(
            st.builds(lambda op, ab: f"({ab[0]} {op} {ab[1]})", st.sampled_from("+ - *".split()), two),
            st.builds(lambda op, ab: f"({ab[0]} {op} {ab[1]})", st.sampled_from("< <= == != and or".split()), two),
            st.builds(lambda t, a: f"({a} if {t} else y)", inner, inner),
            st.builds(lambda op, a: f"({op} {a})", st.sampled_from(["-", "not"]), inner),
            st.builds(lambda name, ab: f"{name}({ab[0]}, {ab[1]})", st.sampled_from(["min", "max"]), two),
            st.builds(lambda name, a: f"{name}({a})", st.sampled_from(["float32", "bool", "g"]), inner),
        )

    return st.recursive(leaves, deeper, max_leaves=8)


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(st.lists(expressions(), min_size=4, max_size=4), st.tuples(*[st.sampled_from(TYPES)] * 3), st.integers(0, 99))
def test_any_program_means_the_same(parts, types, seed):
    first, test, second, last = parts
    text = (
        "def g(a):\n    if a > 1:\n        return a\n    return a * 2\n"
        f"def f(x, y, z):\n    v = {first}\n    n = 0\n    while n < 3 and not ({test}):\n        n += 1\n"
        f"        x = {second}\n    if n == 2:\n        v = x\n    return v, n, {last}"
    )
    run(text, types, seed=seed, extremes=False)  # a signed product that does not fit has no meaning


# What is left to numba ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return [x]",
        "def f(x):\n    return {}",
        "def f(x):\n    return f(x)",
        "def f(x):\n    return x.sum()",
        "def f(x):\n    return max([x, x])",
        "def f(x):\n    for k in (x, x):\n        pass",
        "def f(x):\n    return np.round(x)",
        "def f(x):\n    return missing(x)",
        "def f(x):\n    return x @ x",
        "def f(x):\n    return float(x=x)",
        "def f(x):\n    return 'a'",
        "def f(x):\n    while x > 0:\n        x -= 1\n    else:\n        x = 3\n    return x",
        "def f(x):\n    raise ValueError",
        "def f(x):\n    try:\n        return x\n    finally:\n        pass",
        "def f(x):\n    y = (x, x)\n    if x > 0:\n        y = x\n    return y",
    ],
)
def test_what_is_not_translated(text):
    program = Program(None)
    program.add_text("f", text + "\n", {"np": np} if "np" in text else {})
    with pytest.raises(translate.Unknown):
        translate.Unit().function(program, "f", ("float32",))


def test_numba_takes_what_is_not_translated(tmp_path, monkeypatch):
    monkeypatch.setenv("REDISPATCH_CACHE_DIR", str(tmp_path))

    def powers(n, z, out):
        for i in range(n):
            out[i] = z[i] ** z[i]

    z, out = np.array([1 + 2j, -1j]), np.zeros(2, np.complex128)
    Kernel(powers).entry("int64", "complex128[]", "complex128[]")(2, z, out)
    np.testing.assert_allclose(out, z**z)
    (kept,) = tmp_path.glob("*.kernel")
    payload = native.packed(of_numba(powers, ("int64", "complex128[]", "complex128[]")), "0.1")
    assert native.outdated(payload) and not native.outdated(native.packed(translated(len_of, ("int64[]",))))
    assert kept.stat().st_size > 0


def len_of(x):
    return len(x)


def test_the_vectoriser_still_sees_loops():
    from redispatch.kernels.engine.compile import busiest_loop, is_vector

    def added(lo, hi, out, x, y):
        for i in range(lo, hi):
            out[np.uint64(i)] = x[np.uint64(i)] + y[np.uint64(i)]

    code = native.assembly(translated(added, ("int64", "int64", *["float32[]"] * 3)))
    assert any(is_vector(line) for line in busiest_loop(code).splitlines())
