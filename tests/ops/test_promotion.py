"""Of which dtype a result is: for all pairs of dtypes, as PyTorch 2.13 has it on the CPU.

How to read the tables, and what prints them: promotion.py. Here they are compared on the meta device, where nothing is
compiled, and in the long run on the CPU. Where PyTorch comes to complex numbers of two float16 ("?"), a dtype that is
not there and that few of its own operators know, nothing is compared; ours is complex64.
"""

import pytest

import redispatch as rd

from .promotion import BINARY, RANKS, UNARY, binary_table, unary_row

# Two tensors promote alike with dimensions and without; a number counts the same beside either
KIND = {"dim dim": "one kind", "0-d 0-d": "one kind", "dim number": "number", "0-d number": "number"}
EXPECTED_OF_TWO = {
    ("add", "one kind"): (
        "bucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("add", "dim 0-d"): (
        "bucsilhgfdFD uuuuuuhgfdFD cccccchgfdFD sssssshgfdFD iiiiiihgfdFD llllllhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add", "number"): "blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD",
    ("lt", "one kind"): (
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. "
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. ............ ............"
    ),
    ("lt", "dim 0-d"): (
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. "
        "bbbbbbbbbb?? bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. ............ ............"
    ),
    ("lt", "number"): "bbb. bbb. bbb. bbb. bbb. bbb. bbb? bbb. bbb. bbb. .... ....",
    ("div", "one kind"): (
        "ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("div", "dim 0-d"): (
        "ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("div", "number"): "fffF fffF fffF fffF fffF fffF hhh? gggF fffF dddD FFFF DDDD",
    ("floor_divide", "one kind"): (
        ".ucsilhgfd.. uussilhgfd.. cscsilhgfd.. ssssilhgfd.. iiiiilhgfd.. llllllhgfd.. "
        "hhhhhhhffd.. ggggggfgfd.. fffffffffd.. dddddddddd.. ............ ............"
    ),
    ("floor_divide", "dim 0-d"): (
        ".ucsilhgfd.. uuuuuuhgfd.. cccccchgfd.. sssssshgfd.. iiiiiihgfd.. llllllhgfd.. "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. ............ ............"
    ),
    ("floor_divide", "number"): ".lf. uuf. ccf. ssf. iif. llf. hhh? ggg. fff. ddd. .... ....",
    ("pow", "one kind"): (
        ".ucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("pow", "dim 0-d"): (
        ".ucsilhgfdFD uuuuuuhgfdFD cccccchgfdFD sssssshgfdFD iiiiiihgfdFD llllllhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("pow", "number"): "blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD",
    ("bitwise_and", "one kind"): (
        "bucsil...... uussil...... cscsil...... ssssil...... iiiiil...... llllll...... "
        "............ ............ ............ ............ ............ ............"
    ),
    ("bitwise_and", "dim 0-d"): (
        "bucsil...... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "..........?? ............ ............ ............ ............ ............"
    ),
    ("bitwise_and", "number"): "bl.. uu.. cc.. ss.. ii.. ll.. ...? .... .... .... .... ....",
    ("add_", "one kind"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add_", "dim 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add_", "number"): "b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD",
    ("mul_", "one kind"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("mul_", "dim 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("mul_", "number"): "b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD",
}

EXPECTED_OF_ONE = {
    "sum": "llllllhgfdFD",
    "prod": "llllllhgfdFD",
    "mean": "......hgfdFD",
    "amax": "bucsilhgfd..",
    "argmax": ".lllllllll..",
    "all": "bubbbbbbbbbb",
    "cumsum": "llllllhgfdFD",
    "exp": "ffffffhgfdFD",
    "abs": ".ucsilhgfdfd",
    "neg": ".ucsilhgfdFD",
    "floor": ".ucsilhgfd..",
    "bitwise_not": "bucsil......",
}

DEVICES = ["meta", pytest.param("cpu", marks=pytest.mark.long)]


def test_the_tables_are_complete():
    assert EXPECTED_OF_TWO.keys() == {(name, KIND.get(ranks, ranks)) for name in BINARY for ranks in RANKS}
    assert EXPECTED_OF_ONE.keys() == UNARY.keys()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands_meet_in_the_dtype_that_pytorch_gives(name, ranks, device):
    ours, pytorchs = binary_table(rd, name, ranks, device), EXPECTED_OF_TWO[name, KIND.get(ranks, ranks)]
    assert "".join("?" if b == "?" else a for a, b in zip(ours, pytorchs, strict=True)) == pytorchs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXPECTED_OF_ONE)
def test_one_operand_gives_the_dtype_that_pytorch_gives(name, device):
    assert unary_row(rd, name, device) == EXPECTED_OF_ONE[name]


def test_a_bound_without_dimensions_is_a_tensor_and_no_number():
    x, half = rd.tensor([1, 2, 3]), rd.tensor(2.5, dtype=rd.float64)
    for found in (x.clamp_min(half), x.clamp_max(half), rd.clamp(x, half), rd.clip(x, max=half)):
        assert found.dtype is rd.float64


def test_the_quotient_of_16_bits_is_rounded_before_it_is_cut_off():
    x, y = rd.tensor([255.0], dtype=rd.bfloat16), rd.tensor([1.0078125], dtype=rd.bfloat16)
    assert x.div(y, rounding_mode="trunc").item() == (x / y).trunc().item()
    x, y = x.half() * 8, rd.tensor([1.0009765625], dtype=rd.float16)
    assert x.div(y, rounding_mode="trunc").item() == (x / y).trunc().item()


def test_results_wrap_or_are_rounded_before_they_go_to_an_out_of_another_dtype():
    byte = rd.tensor([200], dtype=rd.uint8)
    out = rd.zeros(1, dtype=rd.int64)
    for _ in range(2):  # the first call decides, the second remembers
        assert rd.add(byte, byte, out=out).tolist() == [144] and rd.pow(byte, 2, out=out).tolist() == [64]
        assert rd.add(byte, 100, out=rd.zeros(1)).tolist() == [44.0]
    truth = rd.tensor([True])
    assert rd.add(truth, truth, out=out).tolist() == [1]
    half = rd.tensor([1.0], dtype=rd.float16)
    assert rd.add(half, half * 0.0001, out=rd.zeros(1, dtype=rd.float64)).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes"):
        rd.heaviside(rd.rand(2), rd.rand(2), out=rd.rand(2).double())
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for complex tensors"):
        rd.heaviside(rd.rand(2), rd.rand(2), out=rd.rand(2) + 0j)


def test_numbers_are_rounded_as_the_16_bit_floats_beside_them():
    x = rd.full((1,), 4.0, dtype=rd.bfloat16)
    near = float(rd.tensor(2.3, dtype=rd.bfloat16))  # 2.296875
    assert (x % 2.3).item() == (x % near).item() == 4.0 - near and rd.equal(x + 2.3, x + near)
    assert (rd.full((1,), near, dtype=rd.bfloat16) == 2.3).item()
    assert (x * 0.3).item() == float(rd.tensor(4.0 * 0.3, dtype=rd.bfloat16))  # a factor is taken as it is
    assert (rd.ones(1, dtype=rd.float16) + 1e6).item() == float("inf")
