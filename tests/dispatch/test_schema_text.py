"""What the text of a schema tells at a glance is what the parser makes of it, for every operator of the library."""

import subprocess
import sys

import pytest

import redispatch as rd
from redispatch.dispatch import OPERATORS, parse_schema
from redispatch.dispatch.schema.text import SchemaText

DECLARED = {name: op for name, op in OPERATORS.items() if isinstance(op._declared, SchemaText)}


def at_a_glance(op):
    """What the text tells, as far as it does."""
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
