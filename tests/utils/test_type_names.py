"""The names for annotations, which are found by both kinds of import."""

import typing

import redispatch as rd


def test_the_module_of_type_names_is_found_by_both_kinds_of_import():
    from redispatch.types import Device, Number, _size

    assert rd.types.Device is Device and set(typing.get_args(Number)) == {int, float, bool}
    assert rd.Size in typing.get_args(_size)


def test_annotations_of_custom_operators_may_use_them():
    def f(x: rd.Tensor, n: rd.types.Number, d: rd.dtype = rd.float32) -> rd.Tensor:
        return x.to(d) * n

    assert rd.library.infer_schema(f, mutates_args=()) == "(Tensor x, Scalar n, ScalarType d=float32) -> Tensor"
    op = rd.library.custom_op("test_type_names::f", f, mutates_args=())
    assert op(rd.ones(1, dtype=rd.int64), 2).dtype == rd.float32
