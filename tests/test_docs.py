"""Pages, docstrings, the tour, the reference and the stubs: what they show runs, and is as it would be written now."""

import doctest
import importlib
import importlib.util
import io
import linecache
import pkgutil
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch import reference, stubs
from redispatch.dispatch import operator_named
from redispatch.dispatch.config import config
from redispatch.dispatch.core.key import KEYS
from redispatch.dispatch.core.registry import OPERATORS, remove_operator
from redispatch.dispatch.keys import undefine

from .registries import Snapshot

# Every Python snippet in the README and in the Markdown pages runs, top to bottom, page by page -----------------------

# A ```text block shows what the snippet before it prints, and must be exactly that. The cells of executed chapters
# (`{code-cell}`) run, too; it is Sphinx that shows their output, in `make docs`.

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("*/*.md"))]
PAGES = [page for page in PAGES if not {"_build", "reference"} & set(page.parts)]  # what is built
BLOCK = re.compile(r"^```(python|text|\{code-cell\})\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def torch_is_given_back():
    """A page may call `install()`; the tests after it find `import torch` as it was."""
    finders, modules = sys.meta_path.copy(), sys.modules.copy()
    yield
    rd.uninstall()
    sys.meta_path[:] = finders
    for name in sys.modules.keys() - modules.keys():
        if name.split(".")[0] == "torch":
            del sys.modules[name]


@pytest.fixture(autouse=True)
def keys_and_operators_are_taken_back():
    """Two pages may define a key or an operator of the same name."""
    keys, operators = set(KEYS), set(OPERATORS)
    yield
    for name in [name for name in KEYS if name not in keys]:
        if name in KEYS:  # some go with another one
            undefine(KEYS[name])
    for op in [op for name, op in OPERATORS.items() if name not in operators and ".md:" in op.place]:
        remove_operator(op)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets(page, monkeypatch):
    monkeypatch.chdir(page.parent)  # as Sphinx does
    text = page.read_text()
    scope = {"__name__": page.stem}
    printed = ""
    for block in BLOCK.finditer(text):
        kind, content = block.groups()
        if kind == "text":
            assert printed.strip() == content.strip()
            continue
        # Compiled as lines of the page itself: a traceback points into it, and kernels read their source from it.
        linecache.cache[page.name] = (len(text), None, text.splitlines(True), page.name)
        lines_before = text.count("\n", 0, block.start(2))
        with redirect_stdout(io.StringIO()) as output:
            content = re.sub(r"^:tags:", "# tags:", content)
            exec(compile("\n" * lines_before + content, page.name, "exec"), scope)
        printed = output.getvalue()


# Every excerpt of the code that a page shows is found in it, so that a mark that is gone fails before the docs do ----

EXCERPT = re.compile(r"^```{literalinclude} (\S+)\n((?::.*\n)*)```", re.M)


def test_excerpts_of_the_code_are_found_in_it():
    excerpts = [(page, *found) for page in PAGES for found in EXCERPT.findall(page.read_text())]
    assert len(excerpts) > 10
    for page, file, options in excerpts:
        code = (page.parent / file).read_text()
        for option, value in re.findall(r"^:([\w-]+): (.*)$", options, re.M):
            value = value.strip("'\"")
            if option in ("start-at", "start-after", "end-at", "end-before"):
                assert value in code, f"{page.name} shows {file} from or to {value!r}, which is not there"
            elif option == "pyobject":
                defined = rf"^\s*(def|class) {value.split('.')[-1]}\b"
                assert re.search(defined, code, re.M), f"{page.name} shows {value} of {file}, which is not there"


# Every example in a docstring of the library runs, and gives what it says ---------------------------------------------

# Not by pytest's `--doctest-modules`, which would import files under other names than users do
# (docs/decisions/0001).

AT_LEAST = 40  # docstrings with examples; raise it when there are more

ROOMS = ["redispatch", *(f"redispatch.{room}" for room in ("dispatch", "kernels", "modes", "subclasses"))]


def modules():
    """All there are: the rooms, which lie beside the package's own folder, and what is in them."""
    for name in ROOMS:
        room = importlib.import_module(name)
        yield room
        for module in pkgutil.walk_packages(room.__path__, f"{name}."):
            yield importlib.import_module(module.name)


def test_the_examples_in_docstrings_give_what_they_say():
    every = [*modules()]
    wrong, shown, former, before = [], set(), config.specialize, Snapshot()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for module in every:
        for example in doctest.DocTestFinder().find(module):
            if not example.examples:
                continue
            try:
                runner.run(example, out=wrong.append, clear_globs=False)
            finally:
                if config.specialize != former:
                    config.specialize = former
                before.restore()  # here: the fixture undoes nothing where modules were imported
            shown.add(example.name)
    assert not wrong, "".join(wrong)
    assert runner.summarize(verbose=False).attempted > 2 * AT_LEAST
    assert len(shown) >= AT_LEAST, f"there are {len(shown)} docstrings with examples: {', '.join(sorted(shown))}"


# The tour: one file that builds the dispatcher from nothing, runs, and says what it printed ---------------------------

TOUR = Path(__file__).resolve().parents[1] / "docs" / "tour.py"


@pytest.fixture
def tour():
    """A tour of its own, whose registrations nobody else sees."""
    spec = importlib.util.spec_from_file_location("tour", TOUR)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tour"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tour"]


def test_it_prints_its_trace_and_the_code_that_it_makes():
    ran = subprocess.run([sys.executable, TOUR], capture_output=True, text=True, check=True)
    assert_expected_inline(
        re.sub(r"[0-9.]+ us", "... us", ran.stdout),
        """\
A call, hop by hop:
  square [Autograd] square_kernel (math kernel)
    mul [Autograd] autograd (backend fallback)
      mul [CPU] mul_kernel (kernel)
  add_ [Autograd] autograd (backend fallback)
    add_ [ADInplaceOrView] ad_inplace_or_view (kernel)
      add_ [CPU] add_in_place (kernel)
What mul becomes where Autograd may record:
def mul_code(x, y):
    # [Autograd] autograd (backend fallback)
    wanted = x.requires_grad or y.requires_grad
    if wanted:
        node = Node(mul, [x, y])
        # [CPU] mul_kernel (kernel)
        result = mul_kernel(x, y)
        node.finish(result)
        return result
    # [CPU] mul_kernel (kernel)
    result_2 = mul_kernel(x, y)
    return result_2
hop ... us
run_specialised ... us
""",
    )


def test_it_needs_numpy_alone_and_300_lines():
    program = f"import runpy, sys; runpy.run_path({str(TOUR)!r}); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in loaded and not {"redispatch", "numba", "torch"} & set(loaded)
    assert len(TOUR.read_text().splitlines()) <= 300


def test_boxed_and_specialised_do_the_same(tour):
    seen = []
    for step in (tour.hop, tour.run_specialised):
        tour.run.step = step
        x, y = tour.Tensor([1.0, 2.0], requires_grad=True), tour.Tensor([3.0, 4.0])
        z = tour.add(tour.mul(x, y), tour.square(x))
        tour.add_(y, y)
        gradient = tour.run_backward(z, tour.Tensor([1.0, 1.0]))[x]
        seen.append((z.array.tolist(), gradient.array.tolist(), y._counter, [node is None for node in z.grad_fn.edges]))
    assert seen[0] == seen[1]
    assert seen[0] == ([4.0, 12.0], [8.0, 12.0], [1], [False, False])


def test_a_new_layer_is_in_the_code_that_is_made_next(tour):
    x, calls = tour.Tensor([2.0]), []
    tour.mul(x, x)
    made = dict(tour.mul.code)

    def counting(op, keyset, stack):
        calls.append(op.__name__)
        return tour.run(op, keyset & tour.below(tour.AUTOGRAD), stack)

    tour.add_fallback(tour.AUTOGRAD, counting)
    assert made and not tour.mul.code
    assert tour.mul(x, x).array.tolist() == [4.0] and calls == ["mul"]


def test_an_operator_without_a_kernel_says_so(tour):
    bump = tour.Operator("bump(Tensor x) -> Tensor", {})
    with pytest.raises(NotImplementedError, match="bump has no kernel for CPU; register one"):
        tour.run(bump, tour.CPU, [tour.Tensor([1.0])])


# ----------------------------------------------------------------------------------------------------------------------

# The operator reference says of every operator what the registry knows, and sorts each into one shape class.


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


def test_every_operator_is_on_exactly_one_page(pages):
    text = "\n".join(text for name, text in pages.items() if name not in ("index.md", "shapes.md"))
    schemas = [line for block in re.findall(r"```text\n(.*?)\n```", text, re.DOTALL) for line in block.splitlines()]
    wanted = [str(op.schema).removeprefix("aten::") for op in reference.operators()]
    assert sorted(schemas) == sorted(wanted)


def test_an_operator_is_described_by_what_the_registry_knows():
    assert_expected_inline(
        reference.section("exp", [operator_named("aten::exp"), operator_named("aten::exp_")]),
        """\
## `exp`

```text
exp(Tensor self) -> Tensor
exp_(Tensor(a!) self) -> Tensor(a!)
```

| operator | kernels | derivative | dtypes | tags | shapes |
|---|---|---|---|---|---|
| `exp.default` | AutocastCUDA: autocast<br>CPU: pointwise exp<br>Meta: meta exp | `ExpBackward0(self)` | all | pointwise, core | [pointwise](shapes.md#pointwise) |
| `exp_.default` | ADInplaceOrView: ad\\_inplace\\_or\\_view<br>CPU: pointwise exp<br>Meta: meta exp | `ExpBackward0(self)` | all | pointwise, inplace | [pointwise](shapes.md#pointwise) |
""",  # noqa: E501  # the lines of a table
    )


def test_every_operator_is_in_one_shape_class():
    members = reference.taxonomy()
    names = [name for names in members.values() for name in names]
    assert len(names) == len(set(names)) == sum(not op.schema.is_out for op in reference.operators())
    for name, word in [
        ("add.Tensor", "pointwise"), ("sum", "full"), ("sum.dim_IntList", "dims"), ("tril", "leading"),
        ("mm", "matrices"), ("index.Tensor", "indices"), ("mse_loss", "losses"), ("uniform_", "random"),
        ("nonzero", "dynamic"), ("matmul", "composite"), ("cat", "dims"), ("upsample_nearest2d", "images"),
        ("resize_", "view"),
    ]:  # fmt: skip
        assert name in members[word], f"{name} is of the class {word}"


def test_links_lead_to_pages_and_classes_that_exist(pages):
    assert set(re.findall(r"^## (\w+)$", pages["shapes.md"], re.MULTILINE)) == set(reference.CLASSES)
    listed = pages["index.md"].partition("shapes\n")[2].partition("```")[0].split()
    assert {f"{name}.md" for name in listed} | {"index.md", "shapes.md", "torch.md"} == set(pages)


def test_pages_that_have_not_changed_are_left_alone(tmp_path, pages):
    (tmp_path / "gone.md").write_text("a family that is no more")
    reference.write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert {path.name for path in before} == set(pages)


# ----------------------------------------------------------------------------------------------------------------------

# The stubs are what the schemas say, and a type checker accepts a program that is right, and no other.

PACKAGE = Path(rd.__file__).parent

RIGHT = """
import redispatch as rd

x = rd.randn(2, 3, requires_grad=True)
y: rd.Tensor = rd.add(x, 2.5, alpha=2).view(3, 2).transpose(0, 1).exp_()
values, indices = rd.sort(y, dim=-1, descending=True)
best: rd.Tensor = y.max(1).values
parts: tuple[rd.Tensor, ...] = rd.split(y, [1, 1])
same: bool = rd.equal(x, y)
zeros = rd.zeros((2, 3), dtype=rd.float64, device="cpu")
loss = rd.nn.functional.mse_loss(x, zeros.float()) + rd.tensor([1.0]).sum()
loss.backward()
layer: rd.nn.ReLU = rd.nn.ReLU(inplace=True)
pooled: rd.Tensor = rd.nn.functional.relu(rd.nn.MaxPool2d(2, stride=1)(x))
"""
WRONG = {
    "rd.add(x)": "No overload variant|Missing positional argument|Too few arguments",
    "rd.add(x, 'two')": "incompatible type",
    "x.transpose(0, 'one')": "incompatible type|No overload variant",
    "rd.exp(x, base=2)": "Unexpected keyword argument",
    "rd.nn.MaxPool2d(2, base=2)": "Unexpected keyword argument",
    "x.sum().nothing_of_the_kind(1) + rd.no_such_function(x)": "has no attribute",
    "n: int = rd.exp(x)": "Incompatible types in assignment",
}


def mypy(tmp_path, program):
    pytest.importorskip("mypy", reason="mypy comes with the extra `lint`")
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", path]
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def test_the_stubs_are_current():
    """In a process of its own: here other tests have declared operators."""
    command = [sys.executable, "-m", "redispatch.stubs", "--check"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, f"run `make stubs`: {done.stdout}"


def test_the_stub_of_an_operator_has_all_its_overloads_and_forms():
    lines = (PACKAGE / stubs.FUNCTIONS).read_text().splitlines()
    assert [line for line in lines if line.startswith("def where(")] == [
        line for line in stubs.definition("where", rd.where).splitlines() if line.startswith("def")
    ]
    assert stubs.definition("exp", rd.exp) == "def exp(input: _Tensor, *, out: _Tensor | None = ...) -> Tensor: ..."
    assert stubs.definition("view", rd.Tensor.view).count("@overload") == 3  # a dtype, a size, a size spread out


@pytest.mark.long
def test_a_type_checker_accepts_a_right_program_and_refuses_wrong_lines(tmp_path):
    wrong = "\n".join(WRONG)
    found = mypy(tmp_path, RIGHT + wrong)
    first = len(RIGHT.splitlines()) + 1
    errors = {}
    for line in found.splitlines():
        place = re.match(r".*program\.py:(\d+): error: (.*)", line)
        if place:
            errors.setdefault(int(place[1]), []).append(place[2])
    assert set(errors) == set(range(first, first + len(WRONG))), found
    for number, text in enumerate(WRONG.values(), first):
        assert any(re.search(text, error) for error in errors[number]), found
