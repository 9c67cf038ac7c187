"""Schemas: what their text means, and the text that is made of functions."""

import pickle
import subprocess
import sys
import time

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

import redispatch as rd
from redispatch import _C
from redispatch.dispatch import OPERATORS
from redispatch.dispatch.errors import SchemaError
from redispatch.dispatch.schema.parser import MAX_LENGTH, parse_schema
from redispatch.dispatch.schema.schema import NO_DEFAULT, AliasInfo, ListType, OptionalType
from redispatch.dispatch.schema.text import SchemaText

# Schemas come back as they were written, bad ones are pointed at, and the facts drawn from them are right -------------

# Each line has something that the lines before it have not.
REAL = r"""
aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)
aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]
aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1], SymInt[2] padding=[0, 0], SymInt[2] dilation=[1, 1], SymInt groups=1) -> Tensor
aten::max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor
aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
aten::empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) max_values) -> (Tensor(a!) values, Tensor(b!) indices)
aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
aten::index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)
aten::_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()
aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor
aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor
aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor
aten::gelu_(Tensor(a!) self, *, str approximate="none") -> Tensor(a!)
aten::_test_string_default(Tensor dummy, str a="\"\'\\", str b="\"\'\\") -> Tensor
aten::strip(str self, str chars=" \n\t\f\v") -> str
aten::fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
aten::backward.TensorList(Tensor[] tensors, Tensor?[]? grad_tensors=None, bool? retain_graph=None, bool create_graph=False) -> ()
aten::setdefault.str(Dict(str, t)(a!) self, str(b -> *) key, t(c -> *) default_value) -> t(*)
aten::keys.str(Dict(str, t) self) -> str[](*)
aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)
aten::popitem.Tensor(Dict(Tensor, t)(a!) self) -> ((Tensor, t))
aten::dict.complex((complex, tVal)[] inputs) -> Dict(complex, tVal)
aten::_unwrap_optional(t(a)? optional) -> t(a)
aten::list.t(t[] l) -> t[]
aten::wait(Future(t) self) -> t
aten::to_here(RRef(t) self, float timeout=60.) -> t(*)
prim::awaitable_nowait(t self) -> Await(t)
prim::rpc_async(...) -> ...
prim::IgnoredPythonOp(...) -> NoneType
prim::BailOut(...) -> Tensor(a)
aten::has_torch_function(...) -> bool
prim::IfThenElse(bool cond, Any(a) x, Any(b) y) -> Any(b|a)
prim::EnumName(AnyEnumType enum) -> str
prim::id(AnyClassType? x) -> int
aten::record_stream(Tensor(a!) self, Stream s) -> ()
aten::qscheme(Tensor self) -> QScheme
aten::set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!)
rnn::cell(__torch__.torch.classes.rnn.CellParamsBase[] cell_params) -> __torch__.torch.classes.rnn.CellParamsBase
c10d::allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, __torch__.torch.classes.c10d.ProcessGroup process_group, bool async_op=True, int timeout=-1) -> (Tensor[][], __torch__.torch.classes.c10d.Work)
_test::get_first(str[][] _0) -> str _0
aten::convolution_backward(Tensor grad_output, bool[3] output_mask=[True, True, True]) -> (Tensor, Tensor, Tensor)
aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
aten::__iadd__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
aten::stft(Tensor self, int n_fft, int? hop_length=None, bool? onesided=None) -> Tensor
aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor
aten::smooth_l1(Tensor self, float? beta=1) -> Tensor
aten::complex_default(complex z=0.+2.j, Scalar big=1e+100, float whole=10000000000., float[] weights=[1., 0.5]) -> ()
aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> ()
ns::nested((int, (Tensor, str?))[]? x, Union(int, str) y, Dict(str, Tensor[])? z) -> (int, ...)
ns::both(Tensor(a!)[](b!) x, Device where="cuda:0") -> ()
f(Tensor x, ...) -> Tensor
f() -> ()
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("text", REAL, ids=lambda text: text.partition("(")[0])
def test_a_schema_prints_as_it_was_written(text):
    schema = parse_schema(text)
    assert str(schema) == text
    assert parse_schema(str(schema)) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema and hash(schema) == hash(parse_schema(text))


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("f( Tensor(a|b)x,*,int[2]k = [1,1] )->Tensor", "f(Tensor(b|a) x, *, int[2] k=1) -> Tensor"),
        ("f(bool[2] m=True, float[2] q=.5) -> ()", "f(bool[2] m=[True, True], float[2] q=[0.5, 0.5]) -> ()"),
        ("f(ScalarType d=long, int r=Mean, Layout l=strided) -> ()", "f(ScalarType d=4, int r=1, Layout l=0) -> ()"),
        ("f(int?? x=-1, complex z=2j) -> (int)", "f(int? x=-1, complex z=0.+2.j) -> int"),
        ("f(int[3] x=[0, 0]) -> None  # too short", "f(int[3] x=[0, 0]) -> NoneType"),
        ("f(Tensor x, *) -> (...)", "f(Tensor x) -> ..."),
    ],
)  # fmt: skip
def test_what_may_be_written_in_several_ways_is_printed_in_one(written, printed):
    assert str(parse_schema(written)) == printed
    assert parse_schema(printed) == parse_schema(written)


def test_the_records_have_pytorchs_names():
    s = parse_schema("ns::f.ov(Tensor(a!) self, int[2] k=1, *, Tensor? w=None, Tensor(b!) out) -> (Tensor(a!), Tensor)")
    self, k, w, out = s.arguments
    assert (s.name, s.overload_name, s.is_mutable, len(s.returns)) == ("ns::f", "ov", True, 2)
    assert (s.namespace, s.base_name, s.overload, s.qualified_name) == ("ns", "f", "ov", "ns::f.ov")
    assert self.alias_info == AliasInfo(frozenset("a"), frozenset("a"), True) and self.alias_info.is_write
    assert (k.default_value, k.has_default_value(), k.N) == ([1, 1], True, 2)
    assert (self.default, self.default_value, self.has_default_value()) == (NO_DEFAULT, None, False)
    assert (w.default, w.kwarg_only, w.is_out) == (None, True, False) and out.is_out
    assert isinstance(w.type, OptionalType) and isinstance(k.type, ListType) and w.type.getElementType() == self.type
    assert [str(a.type) for a in s.arguments] == ["Tensor", "List[int]", "Optional[Tensor]", "Tensor"]
    assert [a.type.kind() for a in s.arguments] == ["TensorType", "ListType", "OptionalType", "TensorType"]


def test_positions_are_worked_out_once_over_all_arguments():
    s = parse_schema(
        "f(int n, Tensor? a, Tensor?[] b, Tensor(x!)[]? c, *, str s, Tensor(z!) out) -> (Tensor(z!), Tensor(x))"
    )
    assert (s.tensor_positions, s.tensor_list_positions, s.kwarg_only_start) == ((1, 5), (2, 3), 4)
    assert (s.mutable_positions, s.out_positions, s.return_aliases) == ((3, 5), (5,), ((5,), (3,)))


@pytest.mark.parametrize(
    ("name", "kind", "is_view"),
    [
        ("aten::add.Tensor", "functional", False),
        ("aten::add_.Tensor", "inplace", False),
        ("aten::__iadd__.Tensor", "inplace", False),
        ("aten::add.out", "out", False),
        ("aten::record_stream", "mutable", False),
        ("aten::_foreach_add_.Scalar", "inplace", False),
        ("aten::view", "functional", True),
        ("aten::split.Tensor", "functional", True),
    ],
)
def test_the_kind_of_an_operator_follows_from_its_schema(name, kind, is_view):
    schema = parse_schema(next(text for text in REAL if text.startswith(f"{name}(")))
    assert (schema.kind, schema.is_view) == (kind, is_view)


# True is (new, old) where PyTorch calls the new one backward compatible.
COMPATIBLE = [
    (True, "f(Tensor x, int k=0) -> Tensor", "f(Tensor x) -> Tensor"),
    (False, "f(Tensor x, int k) -> Tensor", "f(Tensor x) -> Tensor"),
    (True, "f(Tensor x, *, int k=0) -> Tensor", "f(Tensor x) -> Tensor"),
    (False, "f(Tensor x, int k=1) -> Tensor", "f(Tensor x, int k=0) -> Tensor"),
    (True, "f(Tensor x, int k=1) -> Tensor", "f(Tensor x, int k) -> Tensor"),
    (False, "f(Tensor x, int k) -> Tensor", "f(Tensor x, int k=1) -> Tensor"),
    (True, "f(Tensor? x) -> Tensor", "f(Tensor x) -> Tensor"),
    (False, "f(Tensor x) -> Tensor", "f(Tensor? x) -> Tensor"),
    (True, "f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor?"),
    (False, "f(Tensor x) -> Tensor?", "f(Tensor x) -> Tensor"),
    (False, "f(Tensor y) -> Tensor", "f(Tensor x) -> Tensor"),
    (False, "f(Tensor x) -> (Tensor, Tensor)", "f(Tensor x) -> Tensor"),
    (True, "f(Tensor x, int a) -> Tensor", "f(Tensor x, *, int a) -> Tensor"),
    (False, "f(Tensor x, *, int a) -> Tensor", "f(Tensor x, int a) -> Tensor"),
    (False, "f(Tensor(a!) x) -> Tensor", "f(Tensor x) -> Tensor"),
    (True, "f(Scalar x) -> Tensor", "f(int x) -> Tensor"),
    (True, "f(SymInt x) -> Tensor", "f(int x) -> Tensor"),
    (False, "f(float x) -> Tensor", "f(int x) -> Tensor"),
    (True, "f(Any x) -> Tensor", "f(int x) -> Tensor"),
    (False, "f(int[] x) -> Tensor", "f(int[2] x) -> Tensor"),
    (False, "f(Tensor?[] x) -> Tensor", "f(Tensor[] x) -> Tensor"),
    (True, "f(Tensor x, int k=0, *, Tensor(a!) out) -> Tensor", "f(Tensor x, *, Tensor(a!) out) -> Tensor"),
    (False, "f.a(Tensor x) -> Tensor", "f(Tensor x) -> Tensor"),
    (True, "f(*, Tensor(a!) out, Tensor(b!) more) -> Tensor", "f(*, Tensor(a!) out) -> Tensor"),
    (False, "f(*, Tensor(a!) out) -> Tensor", "f(*, Tensor(a!) out, Tensor(b!) more) -> Tensor"),
]


@pytest.mark.parametrize(("expected", "new", "old"), COMPATIBLE)
def test_a_schema_knows_which_older_calls_still_suit_it(expected, new, old):
    assert parse_schema(new).is_backward_compatible_with(parse_schema(old)) is expected


# What PyTorch says of loading what was saved with the new schema where the old one holds: None, or why not
CHANGED = "'{}' is not forward compatible with the older version of the schema"
NEW = "Function schema is not forward compatible since the new argument '{}' of type {} "
GIVEN, CONTAINER = NEW + "did not provide a default value.", NEW + "has a container type as its default value."
FORWARD = [
    ("f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, int k=0) -> Tensor", "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, int k) -> Tensor", "f(Tensor x) -> Tensor", GIVEN.format("k", "int")),
    ("f(Tensor x) -> Tensor", "f(Tensor x, int k=0) -> Tensor", None),
    ("f(Tensor x, int[]? k=None) -> Tensor", "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, int[] k=[]) -> Tensor", "f(Tensor x) -> Tensor", CONTAINER.format("k", "int[]")),
    ("f(Tensor x, *, int k=0) -> Tensor", "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, int a=0, int b=0) -> Tensor", "f(Tensor x, int b=0) -> Tensor", CHANGED.format("a")),
    ("f(Tensor x, int b=0, int a=0) -> Tensor", "f(Tensor x, int b=0) -> Tensor", None),
    ("f(Tensor y) -> Tensor", "f(Tensor x) -> Tensor", CHANGED.format("y")),
    ("g(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", ""),
    ("f.a(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", ""),
    ("f(Tensor x) -> (Tensor, Tensor)", "f(Tensor x) -> Tensor", ""),
    ("f(Tensor x) -> int", "f(Tensor x) -> Tensor", None),
    ("f(Tensor? x) -> Tensor", "f(Tensor x) -> Tensor", CHANGED.format("x")),
    ("f(Tensor x) -> Tensor", "f(Tensor? x) -> Tensor", None),
    ("f(Tensor x) -> Tensor?", "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", None),
    ("f(Tensor x, int k=0, *, Tensor(a!) out) -> Tensor(a!)", "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", None),
    ("f(Tensor x, *, int k=0, Tensor(a!) out) -> Tensor(a!)", "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", None),
    (
        "f(Tensor x, *, Tensor(a!) out, Tensor(b!) out2) -> (Tensor(a!), Tensor(b!))",
        "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "",
    ),
    (
        "f(Tensor x, *, Tensor(a!) out2, Tensor(b!) out) -> Tensor(a!)",
        "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "Function schema should have the same number of out arguments",
    ),
    (
        "f(Tensor x, *, Tensor(a!) other) -> Tensor(a!)",
        "f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)",
        "Out argument ''other is not FC with the older version of the schema",
    ),
    ("f(Tensor(a!) x) -> Tensor(a!)", "f(Tensor x) -> Tensor", CHANGED.format("x")),
    ("f(Tensor x, int k=1) -> Tensor", "f(Tensor x, int k=0) -> Tensor", CHANGED.format("k")),
    ("f(Tensor x, int k) -> Tensor", "f(Tensor x, int k=0) -> Tensor", CHANGED.format("k")),
    ("f(Tensor x, int k=0) -> Tensor", "f(Tensor x, int k) -> Tensor", CHANGED.format("k")),
    (
        "f(Tensor x, str k='a', Device? d=None, int[2] n=1) -> Tensor",
        "f(Tensor x) -> Tensor",
        CONTAINER.format("n", "int[]"),
    ),
    ("f(Tensor x, float[] n=[1.]) -> Tensor", "f(Tensor x) -> Tensor", CONTAINER.format("n", "float[]")),
    ('f(Tensor x, str s="a") -> Tensor', "f(Tensor x) -> Tensor", None),
    ("f(Tensor x, int k=0) -> Tensor", "f(Tensor x, *, int k=0) -> Tensor", None),
    (
        "f(Tensor x, *, int k=0) -> Tensor",
        "f(Tensor x, int k=0) -> Tensor",
        "'k' is not forward compatible with the older version of the schema",
    ),
    ("f(Tensor x, Tensor[] n) -> Tensor", "f(Tensor x, Tensor[] n) -> Tensor", None),
    ("f(Tensor x, *, bool b=False, int k=0) -> Tensor", "f(Tensor x, *, int k=0) -> Tensor", CHANGED.format("b")),
    ("f(Tensor x, *, int k=0, bool b) -> Tensor", "f(Tensor x, *, int k=0) -> Tensor", GIVEN.format("b", "bool")),
    ("f(Tensor x, ...) -> Tensor", "f(Tensor x) -> Tensor", ""),
]


@pytest.mark.parametrize(("new", "old", "why"), FORWARD)
def test_a_schema_knows_where_older_programs_could_load_it(new, old, why):
    assert parse_schema(new).check_forward_compatible_with(parse_schema(old)) == (why is None, why or "")


def test_what_is_no_schema_is_compatible_with_none():
    for ask in ("check_forward_compatible_with", "is_backward_compatible_with"):
        with pytest.raises(TypeError, match="expected a FunctionSchema to compare f.* with, got 'f'"):
            getattr(parse_schema("f(Tensor x) -> Tensor"), ask)("f")


def message(text):
    with pytest.raises(SchemaError) as caught:
        parse_schema(text)
    assert caught.value.text == text and isinstance(caught.value, RuntimeError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return str(caught.value)


def test_an_unknown_type_is_pointed_at():
    assert_expected_inline(
        message("ns::f(Tensor x, Foo y) -> Tensor"),
        """\
unknown type specifier. Usual ones are Tensor, SymInt, int, float, bool, Scalar; dispatch/schema/parser.py lists them all:
ns::f(Tensor x, Foo y) -> Tensor
                ^""",  # noqa: E501
    )


def test_a_missing_name_is_pointed_at():
    assert_expected_inline(
        message("f(Tensor) -> Tensor"),
        """\
expected ident but found ')' here:
f(Tensor) -> Tensor
        ^""",
    )


def test_a_long_schema_is_cut_around_the_mistake():
    assert_expected_inline(
        message(
            f"f({', '.join(f'Tensor x{i}' for i in range(40))}, int k=1.5) -> Tensor[{'], Tensor['.join('1' * 40)}]"
        ),
        """\
invalid numeric default value for int:
... , Tensor x34, Tensor x35, Tensor x36, Tensor x37, Tensor x38, Tensor x39, int k=1.5) -> Tensor[1], Tensor[1], Tensor[1], Tensor[1], Tensor[1], Tensor[1], Tensor ...
                                                                                    ^""",  # noqa: E501
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected ident but found 'eof'"),
        ("f", "only the operator name was given"),
        ("f(Tensor x)", "expected arrow but found 'eof'"),
        ("f(Tensor x) -> Tensor junk more", "expected eof but found 'ident'"),
        ("f(Tensor x,) -> Tensor", r"expected ident but found '\)'"),
        ("f(Tensor x, ..., int y) -> ()", "... must be the last element of the argument list"),
        ("f() -> (..., int)", "... must be the last element of the return list"),
        ("f(int x=1, int y) -> ()", "Non-default positional argument y follows default argument"),
        ("f(*, int x, *, int y) -> ()", "second"),
        ("a::b.default() -> ()", "default is not a legal overload name"),
        ("f(int if) -> ()", "expected ident but found 'if'"),
        ("f(Tensor() x) -> ()", r"expected ident but found '\)'"),
        ("f(Tensor! x) -> ()", "expected ident but found '!'"),
        ("f((Tensor(a!), int) x) -> ()", "no meaning inside a tuple"),
        ("f(Dict(t, int) x) -> ()", "Cannot create dict for key type 't'"),
        ("f(Future(int, int) x) -> ()", "Future has exactly one type inside"),
        ("f(__torch__.foo.Bar x) -> ()", "Expected torch namespace but got foo"),
        ("f(Tensor[] t=[]) -> ()", "lists are only supported for"),
        ("f(int x=9223372036854775808) -> ()", "must fit into 64 bits"),
        (f"f(int x={'9' * 5000}) -> ()", "must fit into 64 bits"),
        ("f(float x=1e400) -> ()", "must be finite"),
        ("f(float x=inf) -> ()", "expected number but found 'ident'"),
        ("f(int x=2j) -> ()", "invalid numeric default value"),
        ("f(int[99999999999] k=1) -> ()", "the size of a list is an int of at most"),
        ("f(str s=abc) -> ()", "expected string_literal but found 'ident'"),
        (r'f(str s="\q") -> ()', "unknown escape in a string"),
        ('f(str s="abc) -> ()', "expected a valid token"),
        ("f(Any x=1) -> ()", "a Any cannot have this default"),
        (f"f({'(' * 1000}) -> ()", "nested more than 64 deep"),
        (f"f(int{'[]' * 1000} x) -> ()", "nested more than 64 deep"),
        (f"f(int {'x' * MAX_LENGTH}) -> ()", "a schema has at most 65536 characters"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_not_a_schema_is_refused_in_plain_words(text, words):
    with pytest.raises(SchemaError, match=words):
        parse_schema(text)


PIECES = st.sampled_from(
    ["Tensor", "int[2]", "(a!)", "(", ")", "[", "]", "?", "!", "*", "=", "=1", "...", "->", '"', ", "]
)


@st.composite
def mutants(draw):
    """A schema with up to four accidents: a slice is removed, doubled, or replaced by a piece or by any text."""
    text = draw(st.sampled_from(REAL))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        stop = draw(st.integers(start, min(len(text), start + 9)))
        text = text[:start] + draw(PIECES | st.text(max_size=5) | st.just(text[start:stop] * 2)) + text[stop:]
    return text


@given(mutants() | st.text(max_size=200))
def test_a_damaged_schema_parses_or_raises_schema_error_within_10_ms(text):
    best = float("inf")
    for _ in range(3):  # the best of three: another process may have the processor
        start = time.perf_counter()
        try:
            printed = str(parse_schema(text))
        except SchemaError:
            printed = None
        best = min(best, time.perf_counter() - start)
    assert best < 0.01
    if printed is not None:
        assert str(parse_schema(printed)) == printed


# What the text of a schema tells at a glance is what the parser makes of it, for every operator of the library --------

DECLARED = {name: op for name, op in OPERATORS.items() if isinstance(op._declared, SchemaText)}


def at_a_glance(op):
    """Reads what the text tells, as far as it does."""
    text = op._declared
    return {
        "names": (text.name, text.overload_name),
        "arguments": text.names,
        "tensors": text.tensor_positions,
        "shares memory": text.shares_memory,
        "factory": text.is_factory,
        "kind": text.kind,
        "of the operator": (op.packet_name, op.namespace, op._opname, op._overloadname, op.qualified_name),
    }


def parsed(op):
    """The same, of the schema that the parser makes."""
    schema = op.schema
    device = any(argument.name == "device" for argument in schema.arguments)
    tensors = schema.tensor_positions or schema.tensor_list_positions
    return {
        "names": (schema.name, schema.overload_name),
        "arguments": [argument.name for argument in schema.arguments],
        "tensors": schema.tensor_positions,
        "shares memory": schema.is_mutable or schema.is_view,
        "factory": device and not tensors,
        "kind": schema.kind,
        "of the operator": (schema.name, schema.namespace, schema.base_name, schema.overload, schema.qualified_name),
    }


def test_a_glance_says_what_the_parser_says():
    pairs = {name: (at_a_glance(op), parsed(op)) for name, op in DECLARED.items()}
    different = {name: (glance, read) for name, (glance, read) in pairs.items() if glance != read}
    assert not different


def test_there_are_declared_operators():
    assert len(DECLARED) > 500


@pytest.mark.parametrize(
    "functional, inplace, out",
    [
        (
            "a::f(Tensor self) -> Tensor",
            "a::f_(Tensor(a!) self) -> Tensor(a!)",
            "a::f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)",
        ),
        (
            "a::f.Tensor(Tensor self, int[2] k=[1, 1], *, str? how=None) -> Tensor",
            "a::f_.Tensor(Tensor(a!) self, int[2] k=[1, 1], *, str? how=None) -> Tensor(a!)",
            "a::f.out(Tensor self, int[2] k=[1, 1], *, str? how=None, Tensor(a!) out) -> Tensor(a!)",
        ),
        (
            "a::f(int n) -> Tensor",
            None,
            "a::f.out(int n, *, Tensor(a!) out) -> Tensor(a!)",
        ),
    ],
)
def test_the_forms_of_a_schema(functional, inplace, out):
    text = SchemaText(functional)
    assert text.out("out").text == out and parse_schema(out).kind == "out"
    if inplace is not None:
        assert text.inplace().text == inplace and parse_schema(inplace).kind == "inplace"


def test_the_overload_of_the_inplace_form_may_have_a_name_of_its_own():
    assert SchemaText("a::f.x(Tensor self) -> Tensor").inplace("y").text.startswith("a::f_.y(Tensor(a!) self)")


def test_importing_parses_next_to_no_schema_of_the_library():
    program = (
        "import redispatch as rd; from redispatch.dispatch import OPERATORS; "
        "print(*(name for name, op in OPERATORS.items() if 'schema' in vars(op)))"
    )
    parsed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert len(parsed) <= 10, parsed


def test_a_derivative_is_read_when_it_is_needed():
    x = rd.ones(2, requires_grad=True)
    assert type((x * 2).grad_fn).__name__ == "MulBackward0"


def test_types_are_of_the_classes_that_pytorch_has():
    schema = _C.parse_schema("f(Tensor a, SymInt b, Tensor?[] c, str? d, (int, float) e, Dict(str, int) f) -> Device")
    a, b, c, d, e, f = (argument.type for argument in schema.arguments)
    assert a == _C.TensorType.get() and isinstance(a, rd.TensorType) and not isinstance(b, rd.TensorType)
    assert isinstance(b, _C.IntType) and isinstance(schema.returns[0].type, _C.DeviceObjType)
    assert isinstance(c, _C.ListType) and c == _C.ListType(_C.OptionalType.ofTensor())
    assert isinstance(c.getElementType().getElementType(), _C.TensorType) and d == _C.OptionalType(_C.StringType.get())
    assert e == _C.TupleType([_C.IntType.get(), _C.FloatType.get()]) and isinstance(e, _C.TupleType)
    assert f == _C.DictType(_C.StringType.get(), _C.IntType.get()) and isinstance(f, _C.DictType)
    assert _C.ListType.ofInts() == _C.ListType(_C.IntType.get()) != _C.ListType.ofTensors()
    assert all(isinstance(one, _C.Type) for one in (a, b, c, d, e, f)) and not isinstance("Tensor", _C.Type)


def test_a_schema_is_found_by_name_and_overload():
    assert _C._get_schema("aten::add", "Tensor") is rd.ops.aten.add.Tensor._schema
    assert _C._get_schema("aten::sin", "").name == "aten::sin" and rd.ops.aten.__name__ == "torch.ops.aten"
    for name, overload in (("aten::add", "nope"), ("aten::nope", "")):
        with pytest.raises(RuntimeError, match="Found no matching schema"):
            _C._get_schema(name, overload)
