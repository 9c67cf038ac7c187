"""compile: sizes that change become symbols, also where Python computes with them."""

import pytest

import redispatch as rd
from redispatch import compiler, nn
from redispatch._dynamo import mark_dynamic, mark_static
from redispatch._inductor import by_size
from tests import drawing

from .changing import SIZED, run


def counted(made, backend="aot_eager"):
    """A backend that counts the graphs that it is given."""
    from redispatch._dynamo.backends import BACKENDS

    def count(module, examples):
        made.append(module)
        return BACKENDS[backend](module, examples)

    return count


def halves(x, w):
    n = x.shape[0]
    y = rd.nn.functional.gelu(x @ w)
    if n > 1:
        y = y * (n - 1)
    return y.reshape(n * 2, -1).softmax(-1), n // 2, x.shape


def test_no_call_of_another_size_is_wrong():
    for backend, calls in (("eager", 60), ("aot_eager", 10)):
        wrong, recorded = run(
            drawing.number("sizes", backend), calls * (20 if drawing.everything else 1), backend, SIZED
        )
        assert wrong == [] and recorded > 0


def attends(x, w):
    return rd.softmax(x @ w, -1)


@pytest.mark.parametrize("program", [halves, attends])
def test_a_sweep_of_lengths_makes_two_programs_at_most(program):
    made = []
    f, w = rd.compile(program, backend=counted(made)), rd.randn(4, 4, requires_grad=True)
    for length in (*range(1, 65), 1, 7):
        x = rd.randn(length, 4)
        found, expected = f(x, w), program(x, w)
        if program is halves:
            assert found[1:] == expected[1:] and type(found[1]) is int and type(found[2]) is rd.Size
            found, expected = found[0], expected[0]
        rd.testing.assert_close(found, expected)
    assert len(f.dynamo_ctx.programs) == len(made) == (2 if program is halves else 1)
    rd.testing.assert_close(*(rd.autograd.grad(one.square().sum(), w)[0] for one in (found, expected)))


class Attention(nn.Module):
    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.norm = heads, nn.Linear(width, 3 * width), nn.LayerNorm(width)
        self.position = nn.Parameter(rd.randn(64, width))

    def forward(self, x):
        batch, length, width = x.shape
        assert length <= 64, f"too long: {length}"
        x = x + self.position[:length]
        parts = self.qkv(self.norm(x)).split(width, dim=2)
        q, k, v = (one.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for one in parts)
        scores = (q @ k.transpose(-2, -1)) * k.size(-1) ** -0.5
        mask = rd.tril(rd.ones(length, length)).view(1, 1, length, length)
        scores = scores.masked_fill(mask[:, :, :length, :length] == 0, float("-inf"))
        return (scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(batch, length, width)


def test_attention_that_reads_its_shape_has_one_program_for_all_lengths():
    module = Attention()
    f = rd.compile(module, backend="aot_eager")
    for batch, length in [(2, 5), (2, 6), (2, 7), (3, 8), (4, 20), (5, 31)]:
        x = rd.randn(batch, length, 8)
        rd.testing.assert_close(f(x), module(x))
    assert len(f.dynamo_ctx.programs) == 3  # the second for lengths, the third for batches, too
    with pytest.raises(AssertionError, match="too long: 65"):
        f(rd.randn(2, 65, 8))


def test_what_python_asks_about_a_size_is_a_guard():
    def program(x):
        return x * 2 if x.shape[0] < 8 else x - x.shape[0]

    f = rd.compile(program, backend="eager")
    for length in (3, 5, 7, 9, 30, 4, 8):
        x = rd.randn(length)
        assert rd.equal(f(x), program(x))
    assert len(f.dynamo_ctx.programs) == 3


def test_marks_and_dynamic_make_symbols_at_the_first_call():
    def program(x, y):
        return x * x.shape[0] + y.shape[1]

    f, x = rd.compile(program, backend="eager"), rd.randn(4, 3)
    mark_dynamic(x, 0)
    for rows in (4, 5, 6):
        y = rd.randn(2, 3)
        given = x if rows == 4 else rd.randn(rows, 3)
        assert rd.equal(f(given, y), program(given, y))
    assert len(f.dynamo_ctx.programs) == 1
    f = rd.compile(program, backend="eager", dynamic=True)
    for rows, columns in ((4, 3), (5, 3), (6, 7)):
        x, y = rd.randn(rows, columns), rd.randn(2, columns)
        assert rd.equal(f(x, y), program(x, y))
    assert len(f.dynamo_ctx.programs) == 1
    f = rd.compile(program, backend="eager", dynamic=False)
    for rows in (4, 5, 6):
        f(rd.randn(rows, 3), y)
    assert len(f.dynamo_ctx.programs) == 3
    f = rd.compile(program, backend="eager")
    for rows in (4, 5, 6):
        x = rd.randn(rows, 3)
        mark_static(x, 0)
        f(x, y)
    assert len(f.dynamo_ctx.programs) == 3


def test_sizes_that_become_text_or_keys_or_loops_are_numbers():
    def program(x, names):
        n = x.shape[0]
        return {n: x}, f"{n}", "%d rows" % n, names.get(n, "many"), [i for i in range(n)], isinstance(n, int), type(n)  # noqa: UP031

    f, names = rd.compile(program, backend="eager"), {2: "two", 3: "three"}
    for length in (2, 3, 4, 3, 2):
        x = rd.ones(length)
        assert str(f(x, names)) == str(program(x, names))


def test_a_size_that_comes_often_has_loops_of_its_own(monkeypatch):
    made, compiled = [], by_size.BySize.__call__
    monkeypatch.setattr(by_size.BySize, "__call__", lambda self, *args: made.append(self) or compiled(self, *args))
    f = rd.compile(lambda x: (x * 2).relu() + 1, backend="native")
    for length in (*range(2, 12), *[7] * 10):
        x = rd.randn(length)
        rd.testing.assert_close(f(x), (x * 2).relu() + 1)
    assert [len(one.made) for one in {id(one): one for one in made}.values()] == [1]


def test_an_account_shows_what_is_worked_out():
    f = rd.compile(lambda x: x.reshape(x.shape[0] * 2, -1), backend="eager")
    for rows in (2, 3, 4):
        f(rd.ones(rows, 4))
    assert "2*s0" in str(compiler.explain(f)(rd.ones(5, 4)))
