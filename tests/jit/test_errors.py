"""Programs that are refused, and errors of those that run: PyTorch's words, which point at the source."""

import pytest

import redispatch as rd
from redispatch import Tensor

REFUSED = [
    ("def f(x: Tensor):\n    return torch.relu(x, 2, 3)", "Expected at most 1 arguments but found 3 positional"),
    ("def f(x: Tensor):\n    return x + "
     "'a'", "Expected a value of type 'number' for argument 'other' but instead found type 'str'"),
    ("def f(x: Tensor):\n    return y", "undefined value y"),
    ("def f(x: Tensor):\n    if bool(x):\n        y = 1\n    return y", "y is not defined in the false branch"),
    ("def f(x: Tensor):\n    return x.foo()", "'Tensor' object has no attribute or method 'foo'."),
    ("def f(x: int) -> str:\n    return "
     "x", "Return value was annotated as having type str but is actually of type int"),
    ("def f(x: int):\n    if x > 1:\n        z = 1\n    else:\n        z = 'a'\n    return z",
     "Type mismatch: z is set to type int in the true branch and type str in the false branch"),
    ("def f():\n    y = 1\n    for i in range(3):\n        y = 'a'\n    return y",
     "Variable 'y' previously had type int but is now being assigned to a value of type str"),
    ("def f(x: int):\n    if x > 1:\n        return 1\n    else:\n        return 'a'",
     "Previous return statement returned a value of type int but this return statement returns a value of type str"),
    ("def f(x: int):\n    for i in x:\n        print(i)", "'int' object is not iterable"),
    ("def f(x: Tuple[int, int]):\n    a, b, c = x\n    return a", "need 3 values to unpack but found only 2"),
    ("def f(x: Foo):\n    return x", "Unknown type name 'Foo'"),
    ("def f(x: Optional[int]):\n    return x + 1", "for argument 'a' but instead found type 'Optional[int]'"),
    ("def f(x: int):\n    x.y = 2\n    return x", "Tried to set an attribute: y on a non-class: int"),
    ("def f(x: int) -> int:\n    if x > 1:\n        return 1", "does not return along all paths"),
    ("def f(x: int):\n    return torch.nope(x)", "object has no attribute nope"),
    ("def f(x: int):\n    return f(x - 1)", "function 'f' is called recursively. Recursive calls are not supported"),
    ("def f():\n    a: List[int] = ['a']\n    return a",
     "List type annotation `List[int]` did not match the types of the given list elements, which were unified to str"),
    ("def f(x: Tensor):\n    break", "'break' outside loop"),
    ("def f(x: int):\n    return x(1)", "cannot call a value of type 'int'"),
    ("def f(x: Tensor, i: float):\n    return x[i]", "indexing tensor with unsupported index type 'float'"),
    ("def f(x):\n    yield x", "aren't supported"),
    ("def f(x):\n    return lambda y: x", "aren't supported"),
    ("def f(x):\n    try:\n        return x\n    except Exception:\n        return x", "try blocks aren't supported"),
    ("def f(*x):\n    return x", "can't take variable number of arguments"),
    ("def f(x, *, s: int = 2):\n    return x * s", "keyword-only arguments with defaults"),
    ("def f(x):\n    return {1, 2}", "set literals aren't supported"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "text"), REFUSED)
def test_a_bad_program_is_refused_where_it_is_bad(source, text):
    with pytest.raises(RuntimeError) as refused:
        rd.jit.CompilationUnit(source)
    assert text in str(refused.value)
    assert 'File "<string>", line ' in str(refused.value) and "~ <--- HERE" in str(refused.value)


def test_the_caret_is_under_the_expression():
    with pytest.raises(RuntimeError) as refused:
        rd.jit.CompilationUnit("def f(x: Tensor):\n    y = x.cos()\n    return y.foo() + 1\n")
    assert str(refused.value) == (
        "\n'Tensor' object has no attribute or method 'foo'.:\n"
        '  File "<string>", line 3\n'
        "def f(x: Tensor):\n"
        "    y = x.cos()\n"
        "    return y.foo() + 1\n"
        "           ~~~~~ <--- HERE\n"
    )


def inner(x: Tensor):
    return x.frob(2)


def outer(x: Tensor):
    return inner(x)


def test_an_error_in_a_function_says_who_called_it():
    with pytest.raises(RuntimeError) as refused:
        rd.jit.script(outer)
    assert "'inner' is being compiled since it was called from 'outer'" in str(refused.value)


def test_lambdas_and_classes_of_modules_are_refused():
    with pytest.raises((RuntimeError, SyntaxError)):
        rd.jit.script(lambda x: x)
    with pytest.raises(RuntimeError, match="inherits from nn.Module, pass an instance instead"):
        rd.jit.script(rd.nn.Linear)


def checked(x: Tensor):
    if x.dim() > 2:
        raise ValueError("too deep")
    assert x.size(0) > 1, "small"
    return rd.mm(x, x)


def test_errors_while_running_show_the_line():
    script = rd.jit.script(checked)
    with pytest.raises(rd.jit.Error) as raised:
        script(rd.ones(2, 2, 2))
    head = "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript "
    assert str(raised.value).startswith(head) and "builtins.ValueError: too deep" in str(raised.value)
    assert '        raise ValueError("too deep")\n        ~~~~' in str(raised.value)
    with pytest.raises(rd.jit.Error, match="RuntimeError: AssertionError: small"):
        script(rd.ones(1))
    with pytest.raises(
        RuntimeError, match=r"rd\.mm\(x, x\)\n           ~~~~~ <--- HERE\nRuntimeError: self must be a matrix"
    ):
        script(rd.ones(2))


CALLS = [
    ((1,), "f() Expected a value of type 'List[int]' for argument 'a' but instead found type 'int'."),
    (([1], "x"), "f() Expected a value of type 'Optional[float]' for argument 'b' but instead found type 'str'."),
    (([1], None, {"a": "b"}), "for argument 'c' but instead found type 'dict'."),
    (([1], None, {}, (1,)), "for argument 'd' but instead found type 'tuple'."),
    ((), "f() is missing value for argument 'a'. Declaration: f(int[] a"),
    (([1], None, {}, (1, "a"), 5), "f() expected at most 4 argument(s) but received 5 argument(s)."),
]


@pytest.mark.parametrize(("arguments", "text"), CALLS)
def test_a_call_that_does_not_fit_names_the_argument(arguments, text):
    function = rd.jit.CompilationUnit(
        "def f(a: List[int], b: Optional[float] = None, c: Dict[str, int] = {}, d: Tuple[int, str] = (1, "
        "'a')): return a"
    ).f
    assert function([1]) == [1] and function((1, 2)) == [1, 2]
    with pytest.raises(RuntimeError) as refused:
        function(*arguments)
    assert text in str(refused.value)
