"""The tour: one file that builds the dispatcher from nothing, runs, and says what it printed."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

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
