"""Of which dtype a result is: for all pairs of dtypes, as PyTorch 2.13 has it on the CPU.

How to read the tables, and what prints them: promotion.py. Here they are compared on the meta device, where nothing is
compiled, and in the long run on the CPU. Where PyTorch comes to complex numbers of two float16 ("?"), a dtype that is
not there and that few of its own operators know, nothing is compared; ours is complex64.
"""

import pytest

import redispatch as rd

from .promotion import BINARY, RANKS, UNARY, binary_table, unary_row

EXPECTED_OF_TWO = {
    ("add", "dim dim"): (
        "bucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("add", "dim 0-d"): (
        "bucsilhgfdFD uuuuuuhgfdFD cccccchgfdFD sssssshgfdFD iiiiiihgfdFD llllllhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add", "0-d 0-d"): (
        "bucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("add", "dim number"): ("blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD"),
    ("add", "0-d number"): ("blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD"),
    ("lt", "dim dim"): (
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. "
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. ............ ............"
    ),
    ("lt", "dim 0-d"): (
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. "
        "bbbbbbbbbb?? bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. ............ ............"
    ),
    ("lt", "0-d 0-d"): (
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. "
        "bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. bbbbbbbbbb.. ............ ............"
    ),
    ("lt", "dim number"): ("bbb. bbb. bbb. bbb. bbb. bbb. bbb? bbb. bbb. bbb. .... ...."),
    ("lt", "0-d number"): ("bbb. bbb. bbb. bbb. bbb. bbb. bbb? bbb. bbb. bbb. .... ...."),
    ("div", "dim dim"): (
        "ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("div", "dim 0-d"): (
        "ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("div", "0-d 0-d"): (
        "ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD ffffffhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("div", "dim number"): ("fffF fffF fffF fffF fffF fffF hhh? gggF fffF dddD FFFF DDDD"),
    ("div", "0-d number"): ("fffF fffF fffF fffF fffF fffF hhh? gggF fffF dddD FFFF DDDD"),
    ("floor_divide", "dim dim"): (
        ".ucsilhgfd.. uussilhgfd.. cscsilhgfd.. ssssilhgfd.. iiiiilhgfd.. llllllhgfd.. "
        "hhhhhhhffd.. ggggggfgfd.. fffffffffd.. dddddddddd.. ............ ............"
    ),
    ("floor_divide", "dim 0-d"): (
        ".ucsilhgfd.. uuuuuuhgfd.. cccccchgfd.. sssssshgfd.. iiiiiihgfd.. llllllhgfd.. "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. ............ ............"
    ),
    ("floor_divide", "0-d 0-d"): (
        ".ucsilhgfd.. uussilhgfd.. cscsilhgfd.. ssssilhgfd.. iiiiilhgfd.. llllllhgfd.. "
        "hhhhhhhffd.. ggggggfgfd.. fffffffffd.. dddddddddd.. ............ ............"
    ),
    ("floor_divide", "dim number"): (".lf. uuf. ccf. ssf. iif. llf. hhh? ggg. fff. ddd. .... ...."),
    ("floor_divide", "0-d number"): (".lf. uuf. ccf. ssf. iif. llf. hhh? ggg. fff. ddd. .... ...."),
    ("pow", "dim dim"): (
        ".ucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("pow", "dim 0-d"): (
        ".ucsilhgfdFD uuuuuuhgfdFD cccccchgfdFD sssssshgfdFD iiiiiihgfdFD llllllhgfdFD "
        "hhhhhhhhhh?? ggggggggggFF ffffffffffFF ddddddddddDD FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("pow", "0-d 0-d"): (
        ".ucsilhgfdFD uussilhgfdFD cscsilhgfdFD ssssilhgfdFD iiiiilhgfdFD llllllhgfdFD "
        "hhhhhhhffdFD ggggggfgfdFD fffffffffdFD ddddddddddDD FFFFFFFFFDFD DDDDDDDDDDDD"
    ),
    ("pow", "dim number"): ("blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD"),
    ("pow", "0-d number"): ("blfF uufF ccfF ssfF iifF llfF hhh? gggF fffF dddD FFFF DDDD"),
    ("bitwise_and", "dim dim"): (
        "bucsil...... uussil...... cscsil...... ssssil...... iiiiil...... llllll...... "
        "............ ............ ............ ............ ............ ............"
    ),
    ("bitwise_and", "dim 0-d"): (
        "bucsil...... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "..........?? ............ ............ ............ ............ ............"
    ),
    ("bitwise_and", "0-d 0-d"): (
        "bucsil...... uussil...... cscsil...... ssssil...... iiiiil...... llllll...... "
        "............ ............ ............ ............ ............ ............"
    ),
    ("bitwise_and", "dim number"): ("bl.. uu.. cc.. ss.. ii.. ll.. ...? .... .... .... .... ...."),
    ("bitwise_and", "0-d number"): ("bl.. uu.. cc.. ss.. ii.. ll.. ...? .... .... .... .... ...."),
    ("add_", "dim dim"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add_", "dim 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add_", "0-d 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("add_", "dim number"): ("b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD"),
    ("add_", "0-d number"): ("b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD"),
    ("mul_", "dim dim"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("mul_", "dim 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh?? gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("mul_", "0-d 0-d"): (
        "b........... uuuuuu...... cccccc...... ssssss...... iiiiii...... llllll...... "
        "hhhhhhhhhh.. gggggggggg.. ffffffffff.. dddddddddd.. FFFFFFFFFFFF DDDDDDDDDDDD"
    ),
    ("mul_", "dim number"): ("b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD"),
    ("mul_", "0-d number"): ("b... uu.. cc.. ss.. ii.. ll.. hhh? ggg. fff. ddd. FFFF DDDD"),
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
    assert EXPECTED_OF_TWO.keys() == {(name, ranks) for name in BINARY for ranks in RANKS}
    assert EXPECTED_OF_ONE.keys() == UNARY.keys()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, ranks", EXPECTED_OF_TWO)
def test_two_operands_meet_in_the_dtype_that_pytorch_gives(name, ranks, device):
    ours, pytorchs = binary_table(rd, name, ranks, device), EXPECTED_OF_TWO[name, ranks].strip()
    assert "".join("?" if b == "?" else a for a, b in zip(ours, pytorchs, strict=True)) == pytorchs


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", EXPECTED_OF_ONE)
def test_one_operand_gives_the_dtype_that_pytorch_gives(name, device):
    assert unary_row(rd, name, device) == EXPECTED_OF_ONE[name]
