"""The code that is made for some operators, to read: snapshots/."""

import difflib
import os
import re
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

import redispatch as rd
from redispatch.dispatch import (
    STATE,
    Library,
    below,
    bind,
    define_key,
    dispatch_keyset,
    fallthrough_kernel,
    include,
    keyset,
    operator_named,
    run,
    within,
)
from redispatch.dispatch.core.state import FLAGS
from redispatch.dispatch.layers.layer import boxed_kernel, layer
from redispatch.dispatch.specialiser.residual import wrapped
from redispatch.dispatch.specialiser.specialise import facts_of
from redispatch.library import custom_op
from redispatch.subclasses.two_tensor import TwoTensor
from redispatch.utils._python_dispatch import TorchDispatchMode

from .twice import specialize

# Folds generated code -------------------------------------------------------------------------------------------------

# A run of lines that stands in much of it shows as a call of the fragment that it is. snapshots/fragments.py holds
# the fragments. Each reads as a function, though none is ever called: its parameters and what it returns are what
# differs from place to place. A parameter stands for a name, one with `: any` for anything on a line, `then` for a
# statement. Other names that the body assigns are local: they may be any, as long as no line that follows reads
# them, or else the run is not folded. What stands below a layer's comment, and has stood below the same one under
# other names, shows as three dots. So the short text says all that the long one does, but for the names of locals.

FILE = Path(__file__).parent / "snapshots" / "fragments.py"
DEFINITION = re.compile(r"^def (\w+)\((.*?)\):.*\n((?:    .*\n)+?)(?:    return (.*)\n)?(?=\n|\Z)", re.MULTILINE)
NAME = re.compile(r"(?<!\.)\b[A-Za-z_]\w*")
ASSIGNED = re.compile(r"^ *((?:\w+, )*\w+) = ", re.MULTILINE)


@dataclass
class Fragment:
    name: str
    parameters: list[str]
    results: list[str]
    local: set[str]
    pattern: re.Pattern

    def call(self, match):
        rest = [word for word in self.parameters if word != "then"]
        results, arguments = (", ".join(match[word] for word in words) for words in (self.results, rest))
        call = f"{results + ' = ' if results else ''}{self.name}({arguments})"
        return f"{match['margin']}" + (f"with {call}: {match['then']}\n" if rest != self.parameters else f"{call}\n")


def fragments():
    return [fragment(*match.groups()) for match in DEFINITION.finditer(FILE.read_text())]


def fragment(name, parameters, body, returned):
    holes = dict(part.partition(":")[::2] for part in parameters.replace(" ", "").split(",") if part)
    results = returned.split(", ") if returned else []
    lines = [line[4:] for line in body.splitlines()]
    assigned = {word for words in ASSIGNED.findall("\n".join(lines)) for word in words.split(", ")}
    seen = set()

    def hole(match):
        word = match.group()
        if word not in holes and word not in assigned:
            return word
        if word in seen:
            return f"(?P={word})"
        seen.add(word)
        return f"(?P<{word}>.*?)" if holes.get(word) else rf"(?P<{word}>[A-Za-z_]\w*)"

    pattern = r"^(?P<margin> *)" + "(?P=margin)".join(NAME.sub(hole, re.escape(line)) + "\n" for line in lines)
    return Fragment(name, list(holes), results, assigned - {*results, *holes}, re.compile(pattern, re.MULTILINE))


def is_read(name, rest):
    """Whether the lines that follow use a name before they assign it anew."""
    first = re.search(rf"(?<!\.)\b{name}\b((?:, \w+)* = )?", rest)
    return bool(first) and not first[1]


def joined(source):
    """The source with each statement on one line, whatever its length."""
    lines = iter(source.splitlines())
    return "".join(f"{whole(line, lines, statement=True)}\n" for line in lines)


def whole(line, lines, statement=False):
    """A line with what stands on those below it, up to the bracket that closes what it opened."""
    if not line.endswith(("(", "[", "{")) or line.lstrip().startswith("#"):
        return line
    margin, parts = len(line) - len(line.lstrip()), []
    for later in lines:
        if len(later) - len(later.lstrip()) == margin:
            break
        parts.append(whole(later, lines).lstrip())
    if statement and re.fullmatch(r" *(if|return|[\w., ]+ =) \(", line) and parts[1].startswith(("or ", "and ", "if ")):
        return line[:-1] + " ".join(parts) + later.lstrip()[1:]  # brackets that only the break needs
    return line + " ".join(parts).removesuffix(",") + later.lstrip()


def broken(source):
    """The source with long statements on several lines, as the specialiser breaks them."""
    lines = [(line.lstrip(), line[: len(line) - len(line.lstrip())]) for line in source.splitlines()]
    return "".join(f"{part}\n" for line, margin in lines for part in wrapped(line, margin))


def fold(source, known):
    """The source with all that is a fragment as calls."""
    source = joined(source)
    for one in known:
        place = 0
        while match := one.pattern.search(source, place):
            if any(is_read(match[word], source[match.end() :]) for word in one.local):
                place = match.end()
                continue
            call = one.call(match)
            source = source[: match.start()] + call + source[match.end() :]
            place = match.start() + len(call)
    return source


def like(line, former, names):
    """Whether a line is a former one but for the numbers behind its names, which stand for the same throughout."""
    new, old = NAME.findall(line), NAME.findall(former)
    if NAME.sub("", line) != NAME.sub("", former) or len(new) != len(old):
        return False
    pairs = dict(zip(new, old, strict=True))
    if any(re.sub(r"_\d+$", "", a) != re.sub(r"_\d+$", "", b) or names.get(a, b) != b for a, b in pairs.items()):
        return False
    names.update(pairs)
    return True


def as_above(source):
    """The source with three dots for what has stood below the same layer's comment, and the new names."""
    lines, start = source.splitlines(keepends=True), 3
    while (start := start + 1) < len(lines):
        text = lines[start].lstrip()
        margin = " " * (len(lines[start]) - len(text))
        for former in [i for i in range(3, start) if text.startswith("# ") and lines[i].lstrip() == text]:
            names, end = {}, start + 1
            while end < len(lines) and lines[end].startswith(margin) and former + end - start < start:
                deeper = len(lines[former]) - len(lines[start])
                if not like(" " * deeper + lines[end], lines[former + end - start], names):
                    break
                end += 1
            while lines[end:] and lines[end].startswith((margin + " ", margin + "else:", margin + "finally:")):
                end -= 1  # up to the beginning of the statement
            if end - start > 2:
                rest = "".join(lines[end:])
                read = [f"{new} for {old}" for new, old in names.items() if new != old and is_read(new, rest)]
                lines[start + 1 : end] = [f"{margin}...  # {', '.join(['as above', *read])}\n"]
                break
    return "".join(lines)


# The code that is made for some operators, to read --------------------------------------------------------------------

# Snapshots/. Each snapshot shows what becomes of a layer. add.py has one operator layer by layer, operators.py
# operators of all kinds, users.py those of users. What stands in much of the code is in fragments.py, and shows
# elsewhere as one line. A change of the specialiser shows here as a diff. `EXPECTTEST_ACCEPT=1 pytest
# tests/specialiser/test_snapshots.py` writes the files anew; read the diff before you commit it. A fragment is
# written by hand. They hold no line numbers.

FOLDER = Path(__file__).parent / "snapshots"
FRAGMENTS = fragments()
CASES = {"add": {}, "operators": {}, "users": {}}  # by file
aten = rd.ops.aten


def snapshot(name, file="users"):
    """A case: a function that gives the operator and the arguments of a call, and the region in which it is made."""

    def add(case):
        CASES[file][name] = case
        return case

    return add


def calling(name, op, arguments, region=nullcontext, **keywords):
    """A case of a call whose arguments `arguments()` makes."""
    file = "add" if name.startswith("add") else "operators"
    snapshot(name, file)(lambda: (op(), arguments(), keywords, region()))


def source_of(op, arguments, keywords, region):
    """The code that runs for a call."""
    with region, specialize(True):
        stack = bind(op.schema, arguments, keywords)
        facts, _ = facts_of(op, stack)
        keys = dispatch_keyset(op.schema, stack) | STATE.get().keys.added & FLAGS
        return re.sub(r"(\.py):\d+", r"\1", op.table(facts).made(keys).source)


def x():
    return rd.ones(2, 3)


def two():
    return x(), x()


def conjugate():
    return rd.ones(2, 3, dtype=rd.complex64).conj()


def meta():
    return rd.ones(2, 3, device="meta")


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def autocast():
    return rd.autocast("cpu", dtype=rd.bfloat16)


# Layer by layer, on one operator --------------------------------------------------------------------------------------

calling("add", lambda: aten.add.Tensor, two)
calling("add_no_grad", lambda: aten.add.Tensor, two, rd.no_grad)
calling("add_inference", lambda: aten.add.Tensor, two, rd.inference_mode)
calling("add_mode", lambda: aten.add.Tensor, two, Mode)
calling("add_subclass", lambda: aten.add.Tensor, lambda: (TwoTensor(x(), x()), x()))
calling("add_meta", lambda: aten.add.Tensor, lambda: (meta(), meta()))
calling("add_number", lambda: aten.add.Tensor, lambda: (x(), 2))
calling("add_alpha", lambda: aten.add.Tensor, two, alpha=2)
calling("add_in_place", lambda: aten.add_.Tensor, two)
calling("add_conjugate", lambda: aten.add.Tensor, lambda: (conjugate(), conjugate()), rd.no_grad)
calling("add_conjugate_in_place", lambda: aten.add_.Tensor, lambda: (conjugate(), conjugate()), rd.no_grad)
calling("add_in_place_inference", lambda: aten.add_.Tensor, two, rd.inference_mode)
calling("add_out", lambda: aten.add.out, two, out=rd.ones(2, 3))


@contextmanager
def audited():
    """With a user's key whose layer the specialiser works out."""
    key = define_key("Audit", above="ADInplaceOrView")
    mine, lower = keyset("Audit"), below("Audit")

    @layer("Audit")
    def audit(op, keyset, stack):
        noticed(op)
        with within(STATE.get().excluding(mine)):
            return run(op, keyset & lower, stack)

    with include(key.bits):
        yield


def noticed(op):
    """Stands for a layer."""


calling("add_over_a_users_layer", lambda: aten.add.Tensor, two, audited)


@contextmanager
def fallen_back():
    """With a user's key that has a fallback, an ordinary function."""
    key = define_key("Fallback", above="AutogradFunctionality")
    lib = Library("_", "IMPL")

    def fallback(keyset, op, *args, **kwargs):
        return op.redispatch(keyset & below("Fallback"), *args, **kwargs)

    lib.fallback(fallback, key, with_keyset=True)
    with include(key.bits):
        yield


calling("add_under_a_users_fallback", lambda: aten.add.Tensor, two, fallen_back)


@contextmanager
def unhandled():
    """With a layer that the evaluator does not handle, which runs boxed."""
    key = define_key("Unhandled", above="ADInplaceOrView")
    lower = below("Unhandled")

    @layer("Unhandled")
    def careful(op, keyset, stack):
        try:
            return run(op, keyset & lower, stack)
        except RuntimeError as error:
            raise ValueError("careful") from error

    with include(key.bits):
        yield


calling("add_over_a_layer_that_runs_boxed", lambda: aten.add.Tensor, two, unhandled)

# Operators of all kinds -----------------------------------------------------------------------------------------------

calling("exp", lambda: aten.exp.default, lambda: (x(),))
calling("mm", lambda: aten.mm.default, lambda: (x(), x().t()))
calling("mm_autocast", lambda: aten.mm.default, lambda: (x(), x().t()), autocast)
calling("cat_autocast", lambda: aten.cat.default, lambda: ([x(), x()],), autocast)
calling("prod_autocast", lambda: aten.prod.default, lambda: (x(),), autocast)
calling("cat_of_two", lambda: aten.cat.default, lambda: ([x(), x()],))
calling("sum_dim", lambda: aten.sum.dim_IntList, lambda: (x(), [0]))
calling("max_dim", lambda: aten.max.dim, lambda: (x(), 1))
calling("layer_norm", lambda: aten.native_layer_norm.default, lambda: (x(), [3], None, None, 1e-5))
calling("view", lambda: aten.view.default, lambda: (x(), [6]))
calling("view_no_grad", lambda: aten.view.default, lambda: (x(), [6]), rd.no_grad)
calling("transpose_in_place", lambda: aten.transpose_.default, lambda: (x(), 0, 1))
calling("split", lambda: aten.split.Tensor, lambda: (x(), 1))
calling("detach", lambda: aten.detach.default, lambda: (x(),))
calling("copy_in_place", lambda: aten.copy_.default, two)
calling("index", lambda: aten.index.Tensor, lambda: (x(), [None, rd.tensor([0, 1])]))
calling("ones", lambda: aten.ones.default, lambda: ([2, 3],))
calling("ones_mode", lambda: aten.ones.default, lambda: ([2, 3],), Mode)
calling("implicit", lambda: aten.square.default, lambda: (x(),))
calling("implicit_mode", lambda: aten.square.default, lambda: (x(),), Mode)
calling("implicit_inference", lambda: aten.square.default, lambda: (x(),), rd.inference_mode)
calling("implicit_of_others", lambda: aten.layer_norm.default, lambda: (x(), [3]))

# Operators of users ---------------------------------------------------------------------------------------------------


def defined(schema, **kernels):
    """A new operator; `CPU=function` registers a kernel."""
    lib = Library("lesson", "FRAGMENT")
    name = lib.define(schema)
    for key, function in kernels.items():
        lib.impl(name, function, key)
    LIBRARIES.append(lib)
    return lib, operator_named(f"lesson::{name}")


LIBRARIES: list[Library] = []


@snapshot("users_kernel_without_derivative")
def without_derivative():
    _, op = defined(
        "double(Tensor x, float by=2.0, *, int? times=None) -> Tensor", CPU=lambda x, by=2.0, *, times=None: x.mul(by)
    )
    return op, (x(),), {"times": 1}, nullcontext()


@snapshot("users_kernel_with_a_keyset")
def with_a_keyset():
    lib, op = defined("noted(Tensor x) -> Tensor", CPU=lambda x: x.mul(2))
    lower = below("AutogradOther")
    lib.impl(op, lambda keyset, x: op.redispatch(keyset & lower, x), "Autograd", with_keyset=True)
    return op, (x(),), {}, nullcontext()


@snapshot("users_fallthrough")
def with_a_fallthrough():
    lib, op = defined("quiet(Tensor x) -> Tensor", CPU=lambda x: x.mul(2))
    lib.impl(op, fallthrough_kernel, "Autograd")
    return op, (x(),), {}, nullcontext()


@snapshot("missing_kernel")
def without_a_kernel():
    _, op = defined("absent(Tensor x) -> Tensor")
    return op, (x(),), {}, rd.no_grad()


@snapshot("missing_meta_kernel")
def without_a_meta_kernel():
    _, op = defined("shapeless(Tensor x) -> Tensor", CPU=lambda x: x.mul(2))
    return op, (meta(),), {}, rd.no_grad()


@snapshot("users_boxed_kernel")
def with_a_boxed_kernel():
    _, op = defined("counted(Tensor x, Tensor? y=None, int n=1) -> Tensor")

    def counted(op, keyset, stack):
        x, y, n = stack
        if y is None:
            return x.mul(n) if n > 1 else x.clone()
        return y

    op.register("CPU", boxed_kernel(counted))
    return op, (x(), None, 3), {}, rd.no_grad()


@snapshot("users_kernels_of_several_results")
def with_several_results():
    _, op = defined(
        "both(Tensor x, Tensor(a!)? out=None) -> (Tensor, Tensor(a!))", CPU=lambda x, out=None: (x.mul(2), out)
    )
    return op, (x(), x()), {}, nullcontext()


@snapshot("custom_op_with_a_derivative")
def custom():
    @custom_op("lesson::bump", mutates_args=())
    def bump(x: rd.Tensor, by: float = 1.0) -> rd.Tensor:
        return x.mul(by)

    bump.register_autograd(lambda ctx, grad: (grad, None))
    LIBRARIES.append(bump._lib)
    return bump._opoverload, (x(),), {}, nullcontext()


@snapshot("custom_op_that_writes")
def custom_that_writes():
    @custom_op("lesson::fill", mutates_args=("x",))
    def fill(x: rd.Tensor, value: float) -> None:
        x.fill_(value)

    LIBRARIES.append(fill._lib)
    return fill._opoverload, (x(), 2.0), {}, nullcontext()


# Comparing ------------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def libraries_go():
    yield
    while LIBRARIES:
        LIBRARIES.pop()._destroy()


def sections(file):
    """The snapshots of a file by name, as they are written."""
    path = FOLDER / f"{file}.py"
    return dict(re.findall(r"# === (\w+)\n(.*?\n)(?=\n# ===|\Z)", path.read_text() if path.exists() else "", re.DOTALL))


def write(file, known):
    names = [name for name in CASES[file] if name in known]
    (FOLDER / f"{file}.py").write_text("\n".join(f"# === {name}\n{known[name]}" for name in names))


@pytest.mark.parametrize(("file", "name"), [(file, name) for file, cases in CASES.items() for name in cases])
def test_the_code_is_as_it_was(file, name):
    made = broken(as_above(fold(source_of(*CASES[file][name]()), FRAGMENTS)))
    if os.environ.get("EXPECTTEST_ACCEPT"):
        write(file, {**sections(file), name: made})
    known = sections(file).get(name, "")
    diff = difflib.unified_diff(known.splitlines(), made.splitlines(), name, "as it is made now", lineterm="")
    assert made == known, (
        "\n".join(diff) + "\n\nIf that is right: EXPECTTEST_ACCEPT=1 pytest tests/specialiser/test_snapshots.py"
    )


def test_each_snapshot_belongs_to_a_case_and_each_fragment_to_a_snapshot():
    shown = {file: sections(file) for file in CASES}
    assert {file: list(known) for file, known in shown.items()} == {file: list(cases) for file, cases in CASES.items()}
    whole = FILE.read_text() + "".join(text for known in shown.values() for text in known.values())
    assert [one.name for one in FRAGMENTS if len(re.findall(rf"\b{one.name}\b", whole)) < 2] == []


def test_autocast_adds_nothing_to_an_operator_without_a_policy():
    found = [source_of(aten.add.Tensor, two(), {}, region) for region in (nullcontext(), autocast())]
    plain, under_autocast = (re.sub("(?m)^ *# DispatchKeySet.*", "", source) for source in found)
    assert plain == under_autocast and "AutocastCPU" in found[1]


def test_the_source_of_code_for_another_number_of_arguments_is_refused():
    with pytest.raises(ValueError, match="a fact for each of the 3 arguments"):
        rd.ops.aten.add.Tensor.source(rd.ones(2), ("T",))
