"""Modules that follow from functions, functions that follow from operators, and modules of one to three dimensions.

    elu = with_inplace(activations.elu, "Computes ...", alpha=1.0)      with `inplace=False` behind
    ELU = module_of("ELU", elu)                                 with the options of `elu`: alpha=1.0, inplace=False
    MaxPool1d, MaxPool2d, MaxPool3d = by_dims(_MaxPool, ...)    subclasses that differ in `dims`

A signature is written once, at the function. `__init__`, `forward` and `extra_repr` follow from it. They are emitted as
a person would have written them: so they cost no more, fail in Python's own words, and `inspect.getsource` shows them.
Type checkers read the result in __init__.pyi, which `python -m redispatch.stubs` writes. Read next: activation.py.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Sequence
from inspect import Parameter
from types import ModuleType
from typing import Any

from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.overridable import overridable_function

from .module import Module

# `nn.functional`, which is being imported: it names the functions of the files that import this one. Modules look their
# functions up in it at each call, since programs put their own there.
functional: Any = sys.modules[f"{__package__}.functional"]

IMAGES = {1: "a length", 2: "an image", 3: "a volume"}
SIZES = {1: "length", 2: "height, width", 3: "depth, height, width"}
HELPERS = ("LazyModuleMixin", "NonDynamicallyQuantizableLinear")  # which have no name in PyTorch's `nn`
LEGACY = ("size_average", "reduce")  # switches of losses, which a module turns into its `reduction`


def module_of(
    name: str,
    function: Callable[..., Any],
    *,
    base: type = Module,
    dims: bool = False,
    inputs: str = "",
    without: str = "",
    shown: str | None = None,
    by_keyword: bool = False,
    keyword_only: bool = False,
    check: Callable[[Any], None] | None = None,
    doc: str | None = None,
    **options: Any,
) -> Any:
    """Returns a Module whose `forward` is `function`, and whose attributes are the function's options.

    Options are the parameters that are no tensors, or have a default; `training` and names that begin with an
    underscore are none. An option that may be a tensor becomes a buffer; those that `base` takes are given to it.

    dims: whether `self.dims` takes the place of the 2 in the function's name.
    inputs: the parameters of `forward`, where they are others than the tensors, or have other names.
    without: options that the module has not.
    shown: the options that `extra_repr` names, or the text of an f-string over `self`; by default all, and `inplace`
        only where it is set.
    by_keyword: whether `forward` passes all options by keyword. keyword_only: whether `__init__` takes them so.
    check: called with the module at the end of `__init__`.
    options: other defaults; of a function without signature all options, a type for one that must be given.
    """
    given, kept, passed = read(function, options, inputs.split(), without.split(), by_keyword)
    called = f"functional.{function.__name__}"
    if dims:
        called = f'getattr(functional, f"{function.__name__.replace("2d", "{self.dims}d")}")'
    call = f"{called}({', '.join([*given, *passed])})"
    parts = [
        initializer(kept, base, keyword_only, check is not None),
        f"    def forward({', '.join(['self', *(f'{name}: Any' for name in given)])}) -> Any:\n        return {call}\n",
        representation(list(kept), shown),
    ]
    text = f"class {name}({base.__name__}):\n" + "\n".join(part for part in parts if part)
    scope = {base.__name__: base, "functional": functional, "check": check}
    made = emitted(name, text, sys._getframe(1).f_globals["__name__"], scope)
    made.__doc__ = doc or function.__doc__
    return made


def with_inplace(operator: Any, doc: str, **options: Any) -> Any:
    """Returns the function of an operator that has an in-place form: `elu(input, alpha=1.0, inplace=False)`.

    options: the parameters between these two and their defaults, a type for one that must be given.
    """
    name, given = operator.__name__, ", ".join(["input", *options])
    parameters = [option(*each) for each in {"input": Tensor, **options, "inplace": False}.items()]
    text = (
        f"def {name}({signature([], parameters)}) -> Tensor:\n"
        f"    return operator.inplace({given}) if inplace else operator({given})\n"
    )
    made = emitted(name, text, sys._getframe(1).f_globals["__name__"], {"operator": operator})
    made.__doc__ = f"{doc} Shapes: any -> the same."
    return overridable_function(made)


def by_dims(base: Any, doc: str, name: str | None = None, **attributes: Sequence[Any]) -> Any:
    """Returns the subclasses of `base` for one, two and three dimensions: of `_MaxPool`, MaxPool1d and its kin.

    doc: their docstring, with {image} for "a length", "an image", "a volume", {size} for the names of its sides.
    name: theirs without the number, where it is not the base's.
    attributes: their values by dimension, the last ones where there are fewer than three; by default `dims`.
    """
    attributes = attributes or {"dims": (1, 2, 3)}
    made: list[Any] = []
    for row in zip(*attributes.values(), strict=True):
        dims = 4 - len(next(iter(attributes.values()))) + len(made)
        text = doc.format(image=IMAGES[dims], size=SIZES[dims], dims=dims)
        own = {**dict(zip(attributes, row, strict=True)), "__doc__": text, "__module__": base.__module__}
        made.append(type(f"{name or base.__name__.lstrip('_')}{dims}d", (base,), own))
    return made


def layers_of(family: ModuleType) -> str:
    """Returns the names of the layers that a family's file defines."""
    own = (value for value in vars(family).values() if getattr(value, "__module__", None) == family.__name__)
    classes = (value.__name__ for value in own if isinstance(value, type) and issubclass(value, Module))
    return " ".join(name for name in classes if not name.startswith("_") and name not in HELPERS)


def read(
    function: Any, options: dict[str, Any], inputs: list[str], without: list[str], by_keyword: bool
) -> tuple[list[str], dict[str, Parameter], list[str]]:
    """Returns the names of a function's inputs, the options of its module, and how `forward` passes them."""
    parameters = dict(inspect.signature(function).parameters)
    if any(p.kind is Parameter.VAR_POSITIONAL for p in parameters.values()):  # an operator's, which reads its schema
        inputs = inputs or ["input"]
        parameters = {name: option(name, value) for name, value in {**dict.fromkeys(inputs, Tensor), **options}.items()}
        options = {}
    given, kept, passed = [], {}, []
    for place, (name, parameter) in enumerate(parameters.items()):
        tensor = parameter.default is Parameter.empty and parameter.annotation in ("Tensor", "Any")
        if place < len(inputs) if inputs else tensor:
            given.append(inputs[place] if inputs else name)
            continue
        if name in without or name.startswith("_"):
            by_keyword = True  # from here on
            continue
        if name != "training":
            kept[name] = parameter.replace(default=options.get(name, parameter.default))
        if name in LEGACY:
            by_keyword = True
        else:
            passed.append(
                f"{name}=self.{name}" if by_keyword or parameter.kind is parameter.KEYWORD_ONLY else f"self.{name}"
            )
    return given, kept, passed


def option(name: str, value: Any) -> Parameter:
    """Returns the parameter of this default, or of this type where there is none."""
    if isinstance(value, type):
        return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=value.__name__)
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=value, annotation=type(value).__name__)


def initializer(kept: dict[str, Parameter], base: Any, keyword_only: bool, checked: bool) -> str:
    """Returns the text of `__init__`; nothing where the base's serves."""
    of_base = [name for name in kept if name in inspect.signature(base.__init__).parameters]
    if len(of_base) == len(kept) == len(inspect.signature(base).parameters) and not checked:
        return ""
    if not kept and base is Module:
        return ""
    lines = [f"super().__init__({', '.join(f'{name}={name}' for name in of_base)})"]
    for name, parameter in kept.items():
        if name not in of_base:
            buffer = parameter.annotation == "Tensor | None"
            lines.append(f"self.register_buffer({name!r}, {name})" if buffer else f"self.{name} = {name}")
    lines += ["check(self)"] * checked
    text = "".join(f"        {line}\n" for line in lines)
    return f"    def __init__({signature(['self', '*'][: 1 + keyword_only], kept.values())}) -> None:\n{text}"


def representation(kept: list[str], shown: str | None) -> str:
    """Returns the text of `extra_repr`; nothing where there is nothing to show."""
    if shown is None or shown in kept:
        kept = [shown] if shown else kept
        shown = ", ".join(f"{name}={{self.{name}!r}}" for name in kept if name != "inplace")
        if "inplace" in kept:
            written = ", inplace=True" if shown else "inplace=True"
            shown += f"{{{written!r} if self.inplace else ''}}"
    return f'    def extra_repr(self) -> str:\n        return f"{shown}"\n' if shown else ""


def shows(names: str, unnamed: str = "") -> Callable[[Any], str]:
    """Returns the `extra_repr` that shows these attributes; first those of which it shows the value alone.

    Of a bias it shows whether there is one.
    """

    def extra_repr(self: Any) -> str:
        values = {name: getattr(self, name) for name in names.split()}
        if "bias" in values:
            values["bias"] = values["bias"] is not None
        first = [str(getattr(self, name)) for name in unnamed.split()]
        return ", ".join([*first, *(f"{name}={value!r}" for name, value in values.items())])

    return extra_repr


def unusual(module: Any, **usual: Any) -> str:
    """Returns the text of those attributes that have other values than these, each behind a comma."""
    values = {name: getattr(module, name, value) for name, value in usual.items()}
    return "".join(f", {name}={value}" for name, value in values.items() if value != usual[name])


def signature(first: list[str], parameters: Any) -> str:
    """Returns the text between the parentheses of a definition."""
    parts, star, before = list(first), False, None
    for parameter in parameters:
        if before is Parameter.POSITIONAL_ONLY is not parameter.kind:
            parts.append("/")
        if parameter.kind is Parameter.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        before = parameter.kind
        default = "" if parameter.default is Parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {parameter.annotation}{default}")
    return ", ".join([*parts, "/"] if before is Parameter.POSITIONAL_ONLY else parts)


def emitted(name: str, text: str, module: str, scope: dict[str, Any]) -> Any:
    """Returns what `text` defines under a name, as if it stood in this module; linecache shows the text."""
    filename = f"<redispatch {module}.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope |= {"__name__": module, "Tensor": Tensor, "Any": Any}
    exec(compile(text, filename, "exec"), scope)
    return scope[name]
