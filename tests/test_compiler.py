"""`redispatch.compiler`: what asks and marks for `torch.compile`; tests/compiler/ has the rest."""

import pytest

import redispatch as rd
from redispatch import compiler


def double(x):
    return x * 2


def test_what_asks_answers_no():
    assert not (compiler.is_compiling() or compiler.is_dynamo_compiling() or compiler.is_exporting())


def test_what_marks_a_function_hands_it_back():
    assert compiler.disable(double) is double and compiler.disable(recursive=False)(double) is double
    assert compiler.allow_in_graph(double) is double and compiler.allow_in_graph([double]) == [double]
    assert compiler.assume_constant_result(double) is double
    for region in (compiler.nested_compile_region(double), compiler.nested_compile_region(is_pure=True)(double)):
        assert region(4) == 8 and region.__marked_compile_region_fn__ is double
    assert compiler.substitute_in_graph(len)(double) is double
    assert compiler.reset() is None and compiler.cudagraph_mark_step_begin() is None
    with pytest.raises(TypeError, match=r"allow_in_graph\(fn\): expected a function, got int"):
        compiler.allow_in_graph(3)


def test_a_stance_holds_for_a_region_a_function_or_for_good():
    compiled = compiler.compile(double, backend="eager")
    programs = compiled.dynamo_ctx.programs

    @compiler.set_stance("force_eager")
    def inside():
        return compiled(rd.ones(2))

    with compiler.set_stance("force_eager"):
        compiled(rd.ones(2))
    assert inside().tolist() == [2, 2] and programs == []
    compiler.set_stance("force_eager")
    compiled(rd.ones(2))
    compiler.set_stance("default")
    assert programs == [] and compiled(rd.ones(2)).tolist() == [2, 2] and len(programs) == 1
    with compiler.set_stance("eager_on_recompile"):
        compiled(rd.ones(2, 2))
    assert len(programs) == 1
    with compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="which the stance refuses"):
        compiled(rd.ones(2, 2))
    with pytest.raises(RuntimeError, match="invalid set_stance stance 'fast': expected one of default, "):
        compiler.set_stance("fast")


def test_a_function_of_arrays_takes_tensors():
    negative = compiler.wrap_numpy(lambda array, times=1: (-array, array.shape * times))
    result, shape = negative(rd.ones(2), times=2)
    assert isinstance(result, rd.Tensor) and result.tolist() == [-1, -1] and shape == (2, 2)
    with pytest.raises(RuntimeError, match="numpy"):
        negative(rd.ones(2, requires_grad=True))
