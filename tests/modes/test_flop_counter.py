"""FlopCounterMode: counts by formula, by tag and by part; the table of formulas; the printed table."""

import pytest
from expecttest import assert_expected_inline

import redispatch as rd
from redispatch.library import custom_op
from redispatch.modes.flop_counter import FlopCounterMode, flop_registry, register_flop_formula

A, B, BIAS = rd.ones(2, 3), rd.ones(3, 4), rd.ones(4)


def flops(function, **options):
    with FlopCounterMode(display=False, **options) as counter:
        function()
    return counter.get_total_flops()


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda: A.mm(B), 2 * 2 * 3 * 4),
        (lambda: rd.addmm(BIAS, A, B), 2 * 2 * 3 * 4),
        (lambda: rd.bmm(A.expand(5, 2, 3), B.expand(5, 3, 4)), 5 * 2 * 2 * 3 * 4),
        (lambda: rd.baddbmm(BIAS, A.expand(5, 2, 3), B.expand(5, 3, 4)), 5 * 2 * 2 * 3 * 4),
        (lambda: A.exp(), 6),
        (lambda: A + rd.empty(5, 1, 1), 30),
        (lambda: A.add_(0), 6),
        (lambda: A.sum(), 6),
        (lambda: A.mean(1), 6),
        (lambda: A.amax(0), 6),
        (lambda: A.softmax(1), 30),
        (lambda: A.log_softmax(1), 30),
        (lambda: rd.empty(0, 3).mm(B), 0),
        (lambda: A.t().clone(), 0),
        (lambda: rd.ones(9), 0),
    ],
)
def test_counts(function, expected):
    assert flops(function) == expected


def test_matrix_products_of_a_step_count_twice_as_much_backward_as_forward():
    a, b = rd.ones(2, 3, requires_grad=True), rd.ones(3, 4, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        a.mm(b).sum().backward()
    assert counter.get_flop_counts()["Global"][rd.ops.aten.mm] == 3 * (2 * 2 * 3 * 4)
    assert counter.calls[rd.ops.aten.mm] == 3


def test_shapes_are_enough():
    assert flops(lambda: rd.empty(200, 300, device="meta") @ rd.empty(300, 400, device="meta")) == 48_000_000


def test_operators_that_arrive_whole_in_inference_mode_are_counted_by_their_parts():
    with rd.inference_mode(), FlopCounterMode(display=False) as counter:
        rd.nn.functional.linear(A, B.t(), BIAS)
    assert counter.get_flop_counts() == {"Global": {rd.ops.aten.addmm: 48}}


def test_a_custom_operator_brings_its_formula():
    @custom_op("flops_test::cube", mutates_args=())
    def cube(x: rd.Tensor) -> rd.Tensor:
        return x * x * x

    packet = rd.ops.flops_test.cube
    assert flops(lambda: cube(A)) == 0  # what its kernel calls is the kernel's business
    assert flops(lambda: cube(A), custom_mapping={packet: lambda shape, out_shape: 2 * shape[0] * out_shape[1]}) == 12

    @register_flop_formula(packet)
    def cube_flops(x_shape, *, out_shape):
        return 2 * x_shape[0] * x_shape[1]

    try:
        assert flops(lambda: cube(A)) == 12
        with pytest.raises(RuntimeError, match=r"duplicate registrations for .*cube.* from .*test_flop_counter.py:\d+"):
            register_flop_formula([packet])(cube_flops)
    finally:
        del flop_registry[packet]
    register_flop_formula(packet, get_raw=True)(lambda x, *, out_val: out_val.numel())
    assert flops(lambda: cube(A)) == 6
    del flop_registry[packet]


def test_each_region_starts_from_nothing():
    counter = FlopCounterMode(display=False)
    for _ in range(2):
        with counter:
            A.exp()
        assert counter.get_total_flops() == 6


def test_the_table_is_printed_at_the_end(capsys):
    with FlopCounterMode():
        (A @ B).relu().t()
    assert_expected_inline(
        capsys.readouterr().out,
        """\
operator   calls  FLOPs   share
-------------------------------
aten.mm        1     48   85.7%
aten.relu      1      8   14.3%
aten.t         1      0    0.0%
-------------------------------
total          3     56  100.0%
""",
    )


def test_the_table_of_an_empty_region():
    with FlopCounterMode(display=False) as counter:
        pass
    assert counter.get_table().splitlines()[-1].split() == ["total", "0", "0", "-"]
