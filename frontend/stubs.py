"""Stubs for type checkers: the functions and methods that operators have, whose signatures are in the schemas.

    python -m redispatch.stubs            writes frontend/_C/_VariableFunctions.pyi, __init__.pyi and their like
    python -m redispatch.stubs --check    says which of them is out of date

A public function takes tensors of any kind and returns a `Tensor` whose methods the checker knows. What is written in
Python by hand is not repeated here; __init__.pyi imports it as __init__.py does. So do the stubs of modules that only
forward names: in rows of a table, or as another path of a module. tests/test_docs.py holds the files
current, and has mypy read a program against them.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import redispatch
from redispatch.dispatch import LATE, ListType, OpOverload, OptionalType, entry_point_of
from redispatch.dispatch.entry.signature import Signature
from redispatch.dispatch.schema.convert import NUMBER_FOR_TENSOR
from redispatch.dispatch.schema.schema import NO_DEFAULT, Argument, Type
from redispatch.nn import derived

from ._moved import ALIASES
from ._names import TAKEN

ROOT = Path(__file__).parent
FUNCTIONS, FACE = "_C/_VariableFunctions.pyi", "__init__.pyi"
ROWS = """
    _higher_order_ops _subclasses array_api autograd distributions functional fx modes nn nn.functional optim
    optim.lr_scheduler storage subclasses testing utils.data
""".split()
MADE = '"""Made by `python -m redispatch.stubs`."""'


HEAD = '''"""Made by `python -m redispatch.stubs` from the operators' schemas."""

# mypy: disable-error-code="overload-overlap,overload-cannot-match,override,misc,assignment"

from builtins import bool as _bool, complex as _complex, float as _float, int as _int
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

from redispatch.dispatch.tensor import Tensor as _Tensor, UntypedStorage, device, dtype, layout, memory_format
'''

NAMES = {
    "Tensor": "_Tensor", "Scalar": "_complex", "int": "_int", "SymInt": "_int", "float": "_float", "bool": "_bool",
    "SymBool": "_bool", "str": "str", "ScalarType": "dtype", "Layout": "layout", "Device": "device | str",
    "MemoryFormat": "memory_format", "Storage": "UntypedStorage", "Generator": "Any", "Dimname": "str",
}  # fmt: skip


def stubs() -> dict[str, str]:
    """File name -> text."""
    modules = {f"{name}.pyi": module_stub(getattr(redispatch, name)) for name in ("fft", "linalg", "special")}
    rows = {file_of(name): rows_stub(import_module(name)) for name in (f"redispatch.{row}" for row in ROWS)}
    aliases = {file_of(name): alias_stub(present) for name, present in ALIASES.items()}
    return {FUNCTIONS: functions_stub(), FACE: face_stub(), **modules, **rows, **aliases, "at.pyi": at_stub()}


def file_of(module: str) -> str:
    """The stub of a module, from here."""
    path = module.partition(".")[2].replace(".", "/")
    path = f"../{path}" if path in ("modes", "subclasses") else path
    return f"{path}/__init__.pyi" if (ROOT / path).is_dir() else f"{path}.pyi"


def rows_stub(module: ModuleType) -> str:
    """The names of a module that takes them in rows. What `module_of` and its like made is written out."""
    taken = {name: getattr(module, name) for name, place in TAKEN[module.__name__].items() if place != "redispatch"}
    all_tensors = module.__name__ == "redispatch.nn.functional"
    written = {name: text for name, value in taken.items() if (text := written_out(name, value, all_tensors))}
    lines = import_lines(imports(module), written)
    lines += without_shared(written)
    used = " ".join(written.values())
    head = [line for name, line in USED.items() if re.search(rf"\b{name}\b", used) and name not in taken]
    return "\n".join([MADE, "", *head, *lines, *constants(module), "", *with_bases(written), ""])


def with_bases(written: dict[str, str]) -> list[str]:
    """Returns the definitions in order; classes of one signature get a base that has it."""
    alike: dict[str, list[str]] = {}
    for name, text in sorted(written.items()):
        alike.setdefault(text.removeprefix(f"class {name}(") if text.startswith("class ") else text, []).append(name)
    made = []
    for text, names in alike.items():
        if len(names) == 1:
            made.append(written[names[0]])
        else:
            made += [f"class _{names[0]}({text}", *(f"class {name}(_{names[0]}): ..." for name in names)]
    return made


def constants(module: ModuleType) -> list[str]:
    """The names that a module gives to constants of Python."""
    nodes = ast.parse(Path(str(module.__file__)).read_text()).body
    assigned = [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)]
    kinds = {ast.unparse(node.targets[0]): type(ast.literal_eval(node.value)).__name__ for node in assigned}
    return [f"{name}: {kind.removesuffix('Type')}" for name, kind in kinds.items()]


# What signatures name -> the line of a stub that brings it
USED = {
    "Any": "from typing import Any",
    "Sequence": "from collections.abc import Sequence",
    "Callable": "from collections.abc import Callable",
    "_Tensor": "from redispatch.dispatch.tensor import Tensor as _Tensor, dtype, memory_format",
    "Tensor": "from redispatch._C._VariableFunctions import Tensor",
    "_int": "from builtins import bool as _bool, complex as _complex, float as _float, int as _int",
    "overload": "from typing import overload",
}


def written_out(name: str, value: Any, all_tensors: bool) -> str:
    """The definition of an operator's function, of what no file defines, and of all functions that return tensors."""
    if is_face(value):
        return definition(name, value)
    is_function = inspect.isfunction(value)
    if not (is_function or inspect.isclass(value)):
        return ""
    returns_tensor = is_function and value.__annotations__.get("return") == "Tensor"
    if name in defined(inspect.unwrap(value).__module__) and not (all_tensors and returns_tensor):
        return ""
    if is_function:
        return f"def {name}{arguments(value)}: ..."
    methods = [f"    def {one}{arguments(getattr(value, one), 'self')}: ..." for one in ("__init__", "forward")]
    return "\n".join([f"class {name}(Module):", *methods])


def arguments(function: Any, *first: str) -> str:
    """The arguments and the result of a function that Python wrote; `first` are the names that have no type."""
    shown = inspect.signature(function)
    kept = [parameter for name, parameter in shown.parameters.items() if name not in first]
    taken = re.sub(r"\bTensor\b", "_Tensor", derived.signature([*first], kept))  # of any kind
    return f"({taken}) -> {shown.return_annotation}"


def defined(module: str) -> set[str]:
    """The functions and classes that stand in a module's file, but those whose type a decorator takes."""
    nodes = ast.parse(Path(str(import_module(module).__file__)).read_text()).body
    return {
        node.name
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not any("reducing" in ast.unparse(decorator) for decorator in node.decorator_list)
    }


def alias_stub(present: str) -> str:
    """The names of a module that stands elsewhere; PyTorch's private ones by themselves."""
    private = [name for name, value in vars(import_module(present)).items() if is_private(name, value, present)]
    more = import_lines({present: dict(zip(private, private, strict=True))})
    return "\n".join([MADE, "", f"from {present} import *", *more, ""])


def is_private(name: str, value: Any, module: str) -> bool:
    return bool(re.match("_[^_]", name)) and getattr(value, "__module__", None) == module


def at_stub() -> str:
    """The functions of `redispatch.at`: of each operator there is, by its schema; factories also take options."""
    for place in LATE.values():
        import_module(place)
    at: Any = import_module("redispatch.at")  # whose own stub has the functions of operators alone
    names = [
        name for name in dir(at) if name.isidentifier() and not keyword.iskeyword(name) and name != "TensorOptions"
    ]
    written = [written_overloads(name, at_forms(at.overloads_of(name))) for name in names]
    tuples = {line for name in names for op in at.overloads_of(name) for line in named_tuple(Signature(op))}
    brings = [
        "from redispatch._C._VariableFunctions import Tensor",
        "from redispatch.dispatch.tensor.options import TensorOptions as TensorOptions",
    ]
    return "\n".join([HEAD.rstrip("\n"), *brings, "", *sorted(tuples), *written, ""])


OPTIONS = ("dtype", "layout", "device", "pin_memory")


def at_forms(overloads: list[OpOverload]) -> Iterable[list[str]]:
    """The result and the parameters of operators under their schemas' names, `out` where one that is alike writes into
    it; and with options, if it is a factory."""
    forms: dict[tuple[str, ...], list[str]] = {}
    for op in overloads:
        schema, made = op.schema, returned(Signature(op))
        parts = {argument.name: at_parameter(argument) for argument in schema.arguments}
        written = parts.pop("out", "")
        kinds = [*parts.values()]
        before = kinds[: schema.kwarg_only_start]
        if written and (made, *kinds) in forms:
            alike = forms[made, *kinds]
            alike += [*(["*"] if "*" not in alike else []), f"{written} | None = ..."]
        else:
            keywords = [*kinds[len(before) :], *([written] if written else [])]
            forms[made, *kinds] = [made, *before, *(["*", *keywords] if keywords else [])]
        if parts.keys() >= {*OPTIONS}:
            rest = [part for name, part in parts.items() if name not in OPTIONS]
            needed = [part for part in rest if not part.endswith(" = ...")]
            later = ["*", *rest[len(needed) :]] if len(rest) > len(needed) else []
            forms[made, *kinds, "options"] = [made, *needed, "options: TensorOptions", *later]
    return forms.values()


def at_parameter(argument: Argument) -> str:
    name = f"{argument.name}_" if keyword.iskeyword(argument.name) else argument.name
    return f"{name}: {annotation(argument.type)}{' = ...' if argument.has_default_value() else ''}"


def module_stub(module: ModuleType) -> str:
    """The functions of a module that is made of operators, and its other names."""
    functions = {name: getattr(module, name) for name in module.__all__}
    others = [
        f"{name} = redispatch.kernels.ops.matrices.{name}" for name, face in functions.items() if not is_face(face)
    ]
    written = {name: definition(name, face) for name, face in functions.items() if is_face(face)}
    shared = without_shared(written)
    tuples = {line for name in written for line in named_tuple_of(functions[name])}
    head = HEAD.replace("UntypedStorage, ", "") + "from redispatch._C._VariableFunctions import Tensor"
    brings = [*(["import redispatch.kernels.ops.matrices"] if others else []), *shared]
    return "\n".join([head, *brings, "", *others, *sorted(tuples), *written.values(), ""])


def without_shared(written: dict[str, str]) -> list[str]:
    """Takes out the definitions that are those of the root, and returns the lines that import these."""
    operators = {*operator_names()}
    alike = [
        name for name in written if name in operators and written[name] == definition(name, getattr(redispatch, name))
    ]
    for name in alike:
        del written[name]
    return import_lines({"redispatch._C._VariableFunctions": {name: name for name in alike}})


def functions_stub() -> str:
    """The class Tensor with the methods of operators, and the functions, each overload of each name."""
    methods = [
        definition(name, getattr(redispatch.Tensor, name), "    ")
        for name in sorted(dir(redispatch.Tensor))
        if is_face(getattr(redispatch.Tensor, name)) and name.isidentifier() and not keyword.iskeyword(name)
    ]
    functions = [definition(name, getattr(redispatch, name)) for name in operator_names()]
    tuples = sorted({line for face in faces() for line in named_tuple_of(face)})
    return "\n".join([HEAD, *tuples, "class Tensor(_Tensor):", *methods, "", *functions, ""])


def faces() -> list[Any]:
    """The methods and functions that are operators."""
    return [
        getattr(place, name)
        for place in (redispatch.Tensor, redispatch)
        for name in dir(place)
        if is_face(getattr(place, name, None))
    ]


def named_tuple_of(face: Any) -> Iterable[str]:
    """The classes of a function's results."""
    return (line for signature in signatures(face) for line in named_tuple(signature))


def named_tuple(signature: Signature) -> list[str]:
    """The class of an operator's results, where they have names."""
    returns = signature.op.schema.returns
    if len(returns) < 2 or not returns[0].name:
        return []
    fields = "; ".join(f"{item.name}: {result(item.type)}" for item in returns)
    return [f"class {tuple_name(signature)}(NamedTuple): {fields}"]


def tuple_name(signature: Signature) -> str:
    return "_".join(["_return", signature.op._opname, *(item.name for item in signature.op.schema.returns)])


def face_stub() -> str:
    """Writes the imports of __init__.py, each name marked as public; operators' functions come from their stub."""
    operators = {*operator_names(), "Tensor"}
    private = {name: name for name in sorted(operators) if name.startswith("_")}  # which `*` leaves out
    plain = [f"def {name}(*args: Any, **kwargs: Any) -> {kind}: ..." for name, kind in sorted(PLAIN.items())]
    return "\n".join(
        [
            '"""Made by `python -m redispatch.stubs`: the public names, with the types of operators\' functions."""',
            "",
            "from typing import Any",
            "",
            *import_lines(imports(redispatch), operators | PLAIN.keys()),
            "from ._C._VariableFunctions import *",
            *import_lines({"._C._VariableFunctions": private}),
            "",
            "__version__: str",
            *plain,
            "",
        ]
    )


# Functions written in Python whose results are tensors.
PLAIN = dict.fromkeys(
    "tensor as_tensor asarray from_numpy from_dlpack frombuffer einsum tensordot norm".split(), "Tensor"
)
PLAIN |= dict.fromkeys(["meshgrid", "broadcast_tensors"], "tuple[Tensor, ...]")


def imports(module: ModuleType) -> dict[str, dict[str, str]]:
    """Returns the imports of a module for others, by import or in rows: place -> its name here -> its name there."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(Path(str(module.__file__)).read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.level or str(node.module).startswith("redispatch")):
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            shown = {name: there for name, there in names.items() if name == there or not re.match("_[^_]", name)}
            for helper in ("_moved", "_names", "_selection", "layers_of"):
                shown.pop(helper, None)
            found.setdefault("." * node.level + (node.module or ""), {}).update(shown)
    for name, place in TAKEN.get(module.__name__, {}).items():
        found.setdefault(place, {})[name] = name
    return found


def import_lines(rows: dict[str, dict[str, str]], without: Iterable[str] = ()) -> list[str]:
    """The imports of a stub, which mark what they import as public, without these names."""
    kept = {place: {name: names[name] for name in names if name not in without} for place, names in rows.items()}
    return [
        f"from {place} import {', '.join(f'{there} as {name}' for name, there in names.items())}"
        for place, names in kept.items()
        if names
    ]


def operator_names() -> list[str]:
    """The public functions that are operators."""
    return sorted(name for name in dir(redispatch) if is_face(getattr(redispatch, name, None)))


def is_face(value: Any) -> bool:
    return bool(getattr(value, "operators", None)) and inspect.isfunction(value)


def signatures(function: Any) -> list[Signature]:
    return cast(list[Signature], entry_point_of(function).forms())


def definition(name: str, function: Any, indent: str = "") -> str:
    """Writes the overloads of a function."""
    forms = [
        [returned(signature), *(["self"] if signature.method else []), *parameters]
        for signature in signatures(function)
        for parameters in ways(signature)
    ]
    return written_overloads(name, forms, indent)


def written_overloads(name: str, forms: Iterable[list[str]], indent: str = "") -> str:
    """Writes overloads, each its result and its parameters; those that differ in the type of one parameter are one."""
    found: list[list[str]] = []
    for overload in forms:
        place = len(found)
        while both := [(place, made) for place, other in enumerate(found) if (made := united(other, overload))]:
            place, overload = both[0]
            del found[place]
        found.insert(place, overload)
    mark = f"{indent}@overload\n" if len(found) > 1 else ""
    return "\n".join(f"{mark}{indent}def {name}({', '.join(taken)}) -> {made}: ..." for made, *taken in found)


PARAMETER = re.compile(r"(\w+): (.*?)((?: = \.\.\.)?)")


def united(one: list[str], other: list[str]) -> list[str] | None:
    """Returns the overload that takes what either takes; None where they differ by more than the type of a parameter,
    or by more at the end that may be left out."""
    short, long = sorted((one, other), key=len)
    places = [place for place, (first, second) in enumerate(zip(one, other, strict=False)) if first != second]
    if not places:
        return long if all(part == "*" or part.endswith(" = ...") for part in long[len(short) :]) else None
    if len(one) != len(other) or len(places) > 1 or 0 in places:  # the first is the result
        return None
    first, second = (PARAMETER.fullmatch(overload[places[0]]) for overload in (one, other))
    if first is None or second is None or first[1] != second[1]:
        return None
    kinds = first[2] if second[2] in first[2].split(" | ") else f"{first[2]} | {second[2]}"
    return [*one[: places[0]], f"{first[1]}: {kinds}{first[3] or second[3]}", *one[places[0] + 1 :]]


def ways(signature: Signature) -> Iterable[list[str]]:
    """The parameters; and once more, where a list of ints may be spread over the positions."""
    yield parameters_of(signature)
    if signature.spreads:
        rest = parameters_of(signature)[1:]
        first = signature.parameters[0]
        yield [f"*{first.name}: _int", *(part for part in rest if part != "*")]


def parameters_of(signature: Signature) -> list[str]:
    parts = []
    for parameter, argument in zip(
        signature.parameters, signature.op.schema.arguments[signature.method :], strict=True
    ):
        default = "" if parameter.default is NO_DEFAULT else " = ..."
        numbers = signature.op.schema.name in NUMBER_FOR_TENSOR and str(argument.type) == "Tensor"
        kind = annotation(argument.type) + (" | _complex" if numbers else "")
        if default and parameter.default is None and "None" not in kind:
            kind += " | None"
        name = f"{parameter.name}_" if keyword.iskeyword(parameter.name) else parameter.name
        parts.append(f"{name}: {kind}{default}")
    keywords = parts[signature.positional :]
    if signature.out is not None:
        several = len(signature.out.schema.out_positions) > 1
        keywords.append(f"out: {'Sequence[_Tensor]' if several else '_Tensor'} | None = ...")
    if signature.is_factory:
        keywords.append("requires_grad: _bool = ...")
    return parts[: signature.positional] + (["*", *keywords] if keywords else [])


def annotation(kind: Type) -> str:
    """Returns the annotation of an argument of this type."""
    if isinstance(kind, OptionalType):
        return f"{annotation(kind.elem)} | None"
    if isinstance(kind, ListType):
        one = annotation(kind.elem)
        return f"{one} | Sequence[{one}]" if kind.size else f"Sequence[{one}]"
    return NAMES.get(kind.schema_str(), "Any")


def returned(signature: Signature) -> str:
    """Returns the annotation of the result."""
    if named_tuple(signature):
        return tuple_name(signature)
    kinds = [result(item.type) for item in signature.op.schema.returns]
    return "None" if not kinds else kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(kinds)}]"


def result(kind: Type) -> str:
    if isinstance(kind, ListType):
        return f"tuple[{result(kind.elem)}, ...]"
    name = annotation(kind)
    return {"_Tensor": "Tensor", "_complex": "_int | _float | _complex"}.get(name, name)


def stale() -> list[str]:
    """The files that are not what would be written now."""
    return [name for name, text in stubs().items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        for name in (found := stale()):
            print(f"{name} is out of date: python -m redispatch.stubs", file=sys.stderr)
        return bool(found)
    for name, text in stubs().items():
        (ROOT / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
