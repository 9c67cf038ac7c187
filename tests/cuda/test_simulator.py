"""The simulator: what instructions compute, what kernels compute, and what wrong kernels are told."""

import re
import struct

import numpy as np
import pytest

from redispatch.kernels.cuda.elementwise import as_argument, magic
from redispatch.kernels.cuda.simulator import Device, KernelFault, PTXError, parse

from .texts import FOLDER, text

INF, NAN = np.inf, np.nan


@pytest.fixture
def device():
    return Device(1 << 20)


def given(device, array, name=""):
    address = device.allocate(array.nbytes, name)
    device.write(address, array)
    return address


def taken(device, address, kind, count):
    return device.read(address, np.dtype(kind).itemsize * count).view(kind)


# --- instructions -----------------------------------------------------------------------------------------------------

# opcode, sources (type and number each), result (type and number); numbers of pred are 0 and 1
TABLE = [
    ("add.s32", [("s32", 2**31 - 1), ("s32", 1)], ("s32", -(2**31))),
    ("sub.u64", [("u64", 0), ("u64", 1)], ("u64", 2**64 - 1)),
    ("mul.lo.s32", [("s32", -3), ("s32", 5)], ("s32", -15)),
    ("mul.hi.u32", [("u32", 2**31), ("u32", 6)], ("u32", 3)),
    ("mul.hi.s64", [("s64", -(2**62)), ("s64", 8)], ("s64", -2)),
    ("mul.hi.u64", [("u64", 2**64 - 1), ("u64", 2**64 - 1)], ("u64", 2**64 - 2)),
    ("mul.wide.s32", [("s32", -(2**31)), ("s32", 2)], ("s64", -(2**32))),
    ("mul.wide.u16", [("u16", 65535), ("u16", 65535)], ("u32", 65535**2)),
    ("mad.lo.s64", [("s64", 3), ("s64", 4), ("s64", 5)], ("s64", 17)),
    ("div.s32", [("s32", -7), ("s32", 2)], ("s32", -3)),
    ("rem.s32", [("s32", -7), ("s32", 2)], ("s32", -1)),
    ("div.u32", [("u32", 7), ("u32", 0)], ("u32", 2**32 - 1)),
    ("min.s32", [("s32", -1), ("s32", 1)], ("s32", -1)),
    ("max.u32", [("u32", 2**32 - 1), ("u32", 1)], ("u32", 2**32 - 1)),
    ("abs.s32", [("s32", -5)], ("s32", 5)),
    ("neg.s64", [("s64", 5)], ("s64", -5)),
    ("and.b32", [("b32", 12), ("b32", 10)], ("b32", 8)),
    ("xor.b64", [("b64", 12), ("b64", 10)], ("b64", 6)),
    ("not.b32", [("b32", 0)], ("b32", 2**32 - 1)),
    ("shl.b32", [("b32", 1), ("u32", 31)], ("b32", 2**31)),
    ("shl.b32", [("b32", 1), ("u32", 32)], ("b32", 0)),
    ("shr.s32", [("s32", -8), ("u32", 1)], ("s32", -4)),
    ("shr.s32", [("s32", -8), ("u32", 40)], ("s32", -1)),
    ("shr.u64", [("u64", 2**63), ("u32", 63)], ("u64", 1)),
    ("shf.l.wrap.b32", [("b32", 2**31), ("b32", 1), ("u32", 1)], ("b32", 3)),
    ("shf.r.clamp.b32", [("b32", 0), ("b32", 5), ("u32", 32)], ("b32", 5)),
    ("popc.b32", [("b32", 0xF0F0)], ("u32", 8)),
    ("clz.b32", [("b32", 1)], ("u32", 31)),
    ("clz.b64", [("b64", 0)], ("u32", 64)),
    ("brev.b32", [("b32", 1)], ("b32", 2**31)),
    ("bfind.u32", [("u32", 0x500)], ("u32", 10)),
    ("bfind.s32", [("s32", -1)], ("u32", 2**32 - 1)),
    ("bfe.u32", [("u32", 0xABCD), ("u32", 4), ("u32", 8)], ("u32", 0xBC)),
    ("bfe.s32", [("s32", 0xF0), ("u32", 4), ("u32", 4)], ("s32", -1)),
    ("bfi.b32", [("b32", 0xF), ("b32", 0), ("u32", 8), ("u32", 4)], ("b32", 0xF00)),
    ("prmt.b32", [("b32", 0x33221100), ("b32", 0x77665544), ("u32", 0x7531)], ("b32", 0x77553311)),
    ("lop3.b32", [("b32", 12), ("b32", 10), ("b32", 9), ("u32", 0x80)], ("b32", 8)),
    ("selp.f32", [("f32", 1.0), ("f32", 2.0), ("pred", 0)], ("f32", 2.0)),
    ("add.f32", [("f32", 0.1), ("f32", 0.2)], ("f32", np.float32(0.1) + np.float32(0.2))),
    ("fma.rn.f32", [("f32", 1 + 2**-23), ("f32", 1 - 2**-23), ("f32", -1.0)], ("f32", -(2.0**-46))),
    ("fma.rn.f64", [("f64", 1 + 2**-52), ("f64", 1 - 2**-52), ("f64", -1.0)], ("f64", -(2.0**-104))),
    ("div.rn.f32", [("f32", 1.0), ("f32", 3.0)], ("f32", np.float32(1) / np.float32(3))),
    ("sqrt.rn.f64", [("f64", 2.0)], ("f64", np.sqrt(2.0))),
    ("rcp.approx.ftz.f32", [("f32", 4.0)], ("f32", 0.25)),
    ("ex2.approx.f32", [("f32", 3.0)], ("f32", 8.0)),
    ("lg2.approx.f32", [("f32", 8.0)], ("f32", 3.0)),
    ("min.f32", [("f32", NAN), ("f32", 1.0)], ("f32", 1.0)),
    ("max.NaN.f32", [("f32", NAN), ("f32", 1.0)], ("f32", NAN)),
    ("copysign.f32", [("f32", -1.0), ("f32", 5.0)], ("f32", -5.0)),
    ("add.ftz.f32", [("f32", 1e-40), ("f32", 0.0)], ("f32", 0.0)),
    ("add.f32", [("f32", 1e-40), ("f32", 0.0)], ("f32", 1e-40)),
    ("add.sat.f32", [("f32", 0.75), ("f32", 0.75)], ("f32", 1.0)),
    ("cvt.rzi.s32.f32", [("f32", -2.7)], ("s32", -2)),
    ("cvt.rni.s32.f32", [("f32", 2.5)], ("s32", 2)),
    ("cvt.rzi.s32.f32", [("f32", 1e20)], ("s32", 2**31 - 1)),
    ("cvt.rzi.u32.f32", [("f32", -1.0)], ("u32", 0)),
    ("cvt.rzi.s64.f64", [("f64", NAN)], ("s64", 0)),
    ("cvt.rmi.f32.f32", [("f32", -0.5)], ("f32", -1.0)),
    ("cvt.sat.f32.f32", [("f32", INF)], ("f32", 1.0)),
    ("cvt.sat.f32.f32", [("f32", NAN)], ("f32", 0.0)),
    ("cvt.rn.f32.s64", [("s64", 2**53 + 1)], ("f32", 2.0**53)),
    ("cvt.rn.f16.f32", [("f32", 1e6)], ("b16", 0x7C00)),
    ("cvt.f32.f16", [("b16", 0x7BFF)], ("f32", 65504.0)),
    ("cvt.rn.bf16.f32", [("f32", 1.00390625)], ("b16", 0x3F80)),
    ("cvt.s64.s32", [("s32", -1)], ("s64", -1)),
    ("cvt.u64.u32", [("u32", 2**32 - 1)], ("u64", 2**32 - 1)),
    ("cvt.s16.s8", [("s16", 0x80)], ("s16", -128)),
    ("cvt.sat.u8.s32", [("s32", 300)], ("u16", 255)),
]


def bits_of(kind, number):
    if kind[0] == "f":
        return int.from_bytes(struct.pack("<f" if kind == "f32" else "<d", number), "little")
    return int(number) & (2 ** (8 * width_of(kind)) - 1)


def width_of(kind):
    return 1 if kind == "pred" else int(kind[1:]) // 8


def one_instruction(opcode, sources, result):
    """A kernel whose one lane runs the instruction on its parameters, and stores what comes out."""
    size = width_of(result[0])
    lines = [".version 8.0", ".target sm_80", ".address_size 64", ".visible .entry k(.param .u64 k_param_0)", "{"]
    operands, moves = [], []
    for k, (kind, number) in enumerate(sources):
        if kind == "pred":
            lines += [f".reg .pred %s{k};"]
            moves += [f"setp.ne.s32 %s{k}, {number}, 0;"]
        else:
            lines += [f".reg .b{8 * width_of(kind)} %s{k};"]
            moves += [f"mov.b{8 * width_of(kind)} %s{k}, 0x{bits_of(kind, number):x};"]
        operands.append(f"%s{k}")
    lines += [f".reg .b{8 * size} %d;", ".reg .b64 %rd1;", *moves, "ld.param.u64 %rd1, [k_param_0];"]
    lines += [f"{opcode} %d, {', '.join(operands)};", f"st.global.b{8 * size} [%rd1], %d;", "ret;", "}"]
    return "\n".join(lines)


@pytest.mark.parametrize("opcode, sources, result", TABLE, ids=[f"{k}-{row[0]}" for k, row in enumerate(TABLE)])
def test_an_instruction_computes_what_the_isa_says(device, opcode, sources, result):
    kind, number = result
    out = device.allocate(8)
    device.launch(device.load(one_instruction(opcode, sources, result)), "k", (1, 1, 1), (1, 1, 1), [out])
    found = int.from_bytes(device.read(out, width_of(kind)).tobytes(), "little")
    if kind[0] == "f" and number != number:
        value = struct.unpack("<f" if kind == "f32" else "<d", found.to_bytes(width_of(kind), "little"))[0]
        assert value != value
    else:
        assert found == bits_of(kind, number)


@pytest.mark.parametrize(
    "compare, kind, a, b, holds",
    [
        ("lt", "s32", -1, 1, True),
        ("lt", "u32", 2**32 - 1, 1, False),
        ("eq", "f32", NAN, NAN, False),
        ("ne", "f32", NAN, 1.0, False),
        ("neu", "f32", NAN, 1.0, True),
        ("ltu", "f32", NAN, 1.0, True),
        ("nan", "f64", NAN, 1.0, True),
        ("num", "f64", NAN, 1.0, False),
        ("gt", "f64", INF, 1.0, True),
    ],
)
def test_comparisons_know_what_nan_does(device, compare, kind, a, b, holds):
    bits = 8 * width_of(kind)
    text = f""".version 8.0
    .target sm_80
    .visible .entry k(.param .u64 p) {{
        .reg .pred %p; .reg .b{bits} %a, %b; .reg .b64 %rd; .reg .b32 %r;
        mov.b{bits} %a, 0x{bits_of(kind, a):x}; mov.b{bits} %b, 0x{bits_of(kind, b):x};
        ld.param.u64 %rd, [p];
        setp.{compare}.{kind} %p, %a, %b;
        selp.b32 %r, 1, 0, %p;
        st.global.u32 [%rd], %r;
        ret;
    }}"""
    out = device.allocate(4)
    device.launch(device.load(text), "k", (1, 1, 1), (1, 1, 1), [out])
    assert bool(taken(device, out, np.uint32, 1)[0]) is holds


CARRY = """.version 8.0
.target sm_80
.visible .entry k(.param .u64 p, .param .u64 a, .param .u64 b) {
    .reg .b64 %rd<3>; .reg .b32 %r<8>;
    ld.param.u64 %rd0, [p]; ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];
    mov.b64 {%r0, %r1}, %rd1; mov.b64 {%r2, %r3}, %rd2;
    OPLOW.cc.u32 %r4, %r0, %r2;
    OPHIGH.u32 %r5, %r1, %r3;
    mov.b64 %rd1, {%r4, %r5};
    st.global.u64 [%rd0], %rd1;
    ret;
}"""


@pytest.mark.parametrize("a, b", [(2**32 - 1, 1), (2**33, 2**32 + 5), (0, 1), (2**64 - 1, 2**64 - 1)])
def test_carries_join_words_to_longer_numbers(device, a, b):
    out = device.allocate(8)
    for low, high, wanted in (("add", "addc", a + b), ("sub", "subc", a - b)):
        module = device.load(CARRY.replace("OPLOW", low).replace("OPHIGH", high))
        device.launch(module, "k", (1, 1, 1), (1, 1, 1), [out, a, b])
        assert taken(device, out, np.uint64, 1)[0] == wanted % 2**64


CALL = """.version 8.0
.target sm_80
.func (.param .b32 twice_result) twice(.param .b32 twice_param) {
    .reg .b32 %r<3>; .reg .pred %p;
    ld.param.b32 %r1, [twice_param];
    setp.eq.s32 %p, %r1, 3;
    @%p bra $DONE;
    add.s32 %r1, %r1, %r1;
$DONE:
    st.param.b32 [twice_result+0], %r1;
    ret;
}
.visible .entry k(.param .u64 p) {
    .reg .b32 %r<4>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    { .param .b32 in; .param .b32 back; st.param.b32 [in+0], %r1; call.uni (back), twice, (in); ld.param.b32 %r2, [back+0]; }
    { .param .b32 in; .param .b32 back; st.param.b32 [in+0], %r2; call.uni (back), twice, (in); ld.param.b32 %r2, [back+0]; }
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r2;
    ret;
}"""  # noqa: E501  # as compilers write it


def test_functions_are_called(device):
    out = device.allocate(4 * 8)
    device.launch(device.load(CALL), "k", (1, 1, 1), (8, 1, 1), [out])
    assert taken(device, out, np.int32, 8).tolist() == [0, 4, 8, 3, 16, 20, 24, 28]


def test_atomics_add_up(device):
    text = """.version 8.0
    .target sm_80
    .visible .entry k(.param .u64 p) {
        .reg .b32 %r<3>; .reg .b64 %rd; .reg .f32 %f;
        ld.param.u64 %rd, [p];
        mov.u32 %r1, %tid.x;
        atom.global.add.u32 %r2, [%rd], %r1;
        red.global.max.s32 [%rd+4], %r1;
        mov.f32 %f, 0f3F000000;
        red.global.add.f32 [%rd+8], %f;
        ret;
    }"""
    out = given(device, np.zeros(3, np.uint32))
    device.launch(device.load(text), "k", (2, 1, 1), (40, 1, 1), [out])
    assert taken(device, out, np.uint32, 2).tolist() == [2 * 780, 39]
    assert taken(device, out + 8, np.float32, 1)[0] == 40


def test_votes_ask_the_whole_warp(device):
    text = """.version 8.0
    .target sm_80
    .visible .entry k(.param .u64 p) {
        .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p;
        ld.param.u64 %rd1, [p];
        mov.u32 %r1, %tid.x;
        setp.lt.u32 %p, %r1, 3;
        vote.sync.ballot.b32 %r2, %p, -1;
        mul.wide.u32 %rd2, %r1, 4;
        add.s64 %rd1, %rd1, %rd2;
        st.global.u32 [%rd1], %r2;
        ret;
    }"""
    out = device.allocate(4 * 64)
    device.launch(device.load(text), "k", (1, 1, 1), (64, 1, 1), [out])
    assert taken(device, out, np.uint32, 64).tolist() == [7] * 32 + [0] * 32


# --- the library's kernels: test_mutants.py runs more ----------------------------------------------------------------


def test_halves_are_converted_in_registers(device):
    x = np.array([1, -2, 65504, 6e-8, INF, NAN, 0.1, 3, 7], np.float16)
    out, a = device.allocate(18), given(device, x)
    device.launch(device.load(text("half")), "half_contiguous", (1, 1, 1), (32, 1, 1), [9, out, a])
    assert np.array_equal(taken(device, out, np.float16, 9), x * np.float16(0.5), equal_nan=True)


def test_large_angles_need_memory_of_the_lanes_own(device):
    x = np.array([0, 1, -2.5, 1e6, -3e7, INF], np.float32)
    out, a = device.allocate(24), given(device, x)
    module = device.load(text("sine"))
    assert module.kernel("sine_contiguous").local > 0
    device.launch(module, "sine_contiguous", (1, 1, 1), (32, 1, 1), [6, out, a])
    wanted = np.sin(x[:5].astype(np.float64))
    found = taken(device, out, np.float32, 6)
    assert np.abs(found[:5] - wanted).max() < 2e-7 and np.isnan(found[5])


def test_magic_divides():
    numbers = np.array([0, 1, 2, 1000, 2**31 - 1, 2**31 - 2, 12345678], object)
    for divisor in [*range(1, 70), 1000, 65537, 2**31 - 1]:
        m, shift = magic(divisor)
        assert m < 2**32 and all((n * m) >> shift == n // divisor for n in numbers)
        multiples = [n for k in (1, 5, 77) for n in (divisor * k - 1, divisor * k) if n < 2**31]
        assert all((n * m) >> shift == n // divisor for n in multiples)


def row_sums(device, code, rows=3, count=1000):
    x = np.arange(rows * count, dtype=np.float32).reshape(rows, count) % 17
    out, a = device.allocate(4 * rows, "the sums"), given(device, x, "the rows")
    arguments = [out, a, rows, count, count, rows, *magic(rows), 1, count, count, *magic(count), 1]
    device.launch(device.load(code), "sum_rows", (rows, 1, 1), (256, 1, 1), arguments)
    return taken(device, out, np.float32, rows), x.sum(1)


# --- what is wrong ----------------------------------------------------------------------------------------------------


def fault(call, match):
    with pytest.raises(KernelFault, match=match) as raised:
        call()
    return raised.value


def axpy_with(device, n=103, out=None, code=None, a=None, **written):
    x = np.ones(103, np.float32)
    out = device.allocate(4 * 103, "the result") if out is None else out
    a = given(device, x, "x") if a is None else a
    b = given(device, x, "y")
    module = device.load(code or text("axpy"))
    device.launch(module, "axpy_contiguous", (1, 1, 1), (64, 1, 1), [n, out, a, b, as_argument(1, "float32")])
    return out


def test_a_bound_that_is_off_by_one_is_caught(device):
    found = fault(lambda: axpy_with(device, n=104), "out of bounds")
    assert found.kernel == "axpy_contiguous" and found.thread == (25, 0, 0) and found.block == (0, 0, 0)
    assert "ld.global.v4.f32" in found.instruction and f"line    {found.line} of its PTX" in str(found)
    assert "byte 400 of x at" in str(found) and "ld.global.v4.f32" in text("axpy").splitlines()[found.line - 1]


def test_an_error_leaves_the_device_usable(device):
    fault(lambda: axpy_with(device, n=104), "out of bounds")
    assert taken(device, axpy_with(device), np.float32, 103).tolist() == [2.0] * 103


def test_a_misaligned_vector_is_caught(device):
    out = device.allocate(4 * 104)
    fault(lambda: axpy_with(device, n=100, out=out + 4), "misaligned write of 16 bytes")


def test_reading_what_was_never_written_is_caught(device):
    fault(lambda: axpy_with(device, a=device.allocate(4 * 103)), "never written")


def test_reading_what_was_freed_is_caught(device):
    a = given(device, np.ones(103, np.float32))
    device.free(a)
    fault(lambda: axpy_with(device, a=a), "after it was freed")


def test_a_null_pointer_is_caught(device):
    fault(lambda: axpy_with(device, a=0), "null pointer")


def test_a_missing_barrier_is_caught(device):
    mutated = re.sub(r"\tbar\.sync.*\n|\tbarrier\.sync.*\n", "", text("sum_rows"))
    assert mutated != text("sum_rows")
    found = fault(lambda: row_sums(device, mutated), "race in shared memory: warp 0 reads what another warp wrote")
    assert "ld.shared" in found.instruction


def test_lanes_that_wait_for_their_warp_do_not_wait_for_others(device):
    summing = re.sub(r"\bbar\.sync.*;|\bbarrier\.sync.*;", "bar.warp.sync -1;", text("sum_rows"))
    fault(lambda: row_sums(device, summing), "race in shared memory: warp 0 reads what another warp wrote")


def test_a_divergent_barrier_is_caught(device):
    code = """.version 8.0
    .target sm_80
    .visible .entry k() {
        .reg .b32 %r; .reg .pred %p;
        mov.u32 %r, %tid.x;
        setp.gt.u32 %p, %r, 39;
        @%p bra $DONE;
        bar.sync 0;
    $DONE:
        ret;
    }"""
    module = device.load(code)
    device.launch(module, "k", (1, 1, 1), (32, 1, 1), [])
    run = lambda: device.launch(module, "k", (1, 1, 1), (64, 1, 1), [])  # so that it is called later
    assert "bar.sync" in fault(run, "divergent barrier: 24 of the block's 64 lanes do not come to it").instruction


def test_a_shuffle_from_a_lane_that_is_not_there_is_caught(device):
    first = text("sum_rows").index("shfl.sync")
    mutated = text("sum_rows")
    leave = "setp.gt.u32 \t%p11, %r1, 250;\n\t@%p11 ret;\n\t"
    mutated = mutated[:first] + leave + mutated[first:]
    found = fault(lambda: row_sums(device, mutated), r"a shuffle from lane \d+ of the warp, which is not active here")
    assert "shfl.sync.down" in found.instruction


def test_a_write_of_two_warps_to_one_place_is_a_race(device):
    code = """.version 8.0
    .target sm_80
    .visible .entry k() {
        .reg .b32 %r; .shared .align 4 .b8 s[4];
        mov.u32 %r, %tid.x;
        st.shared.u32 [s], %r;
        ret;
    }"""
    module = device.load(code)
    device.launch(module, "k", (2, 1, 1), (32, 1, 1), [])  # one warp a block: no race
    fault(lambda: device.launch(module, "k", (1, 1, 1), (64, 1, 1), []), "writes what another warp wrote")


COUNTED = """.version 8.0
.target sm_80
.visible .entry k() {
    .reg .b32 %r; .shared .align 4 .b8 s[4];
    mov.u32 %r, 0;
    st.shared.u32 [s], %r;
    bar.sync 0;
    red.shared.add.u32 [s], 1;
    red.shared.add.u32 [s], 1;
    bar.sync 0;
    ld.shared.u32 %r, [s];
    ret;
}"""


def test_atomic_accesses_race_with_others_and_not_with_each_other(device):
    one_writes = COUNTED.replace("st.shared", "@%p st.shared").replace(
        ".shared .align", ".reg .pred %p; .shared .align"
    )
    one_writes = one_writes.replace("mov.u32 %r, 0;", "mov.u32 %r, %tid.x;\n    setp.eq.u32 %p, %r, 0;")

    def run(code):
        device.launch(device.load(code), "k", (1, 1, 1), (64, 1, 1), [])

    run(one_writes)
    before, between, after = one_writes.split("bar.sync 0;")
    fault(lambda: run(before + between + "bar.sync 0;" + after), "changes what another warp wrote")
    fault(lambda: run(before + "bar.sync 0;" + between + after), "reads what another warp changed")
    fault(
        lambda: run(
            one_writes.replace("ld.shared.u32 %r, [s];", "red.shared.add.u32 [s], 1;\n    st.shared.u32 [s], %r;")
        ),
        "writes what another warp changed",
    )
    read_first = one_writes.replace("red.shared", "ld.shared.u32 %r, [s];\n    red.shared", 1)
    fault(lambda: run(read_first), "changes what another warp read")


def test_shared_memory_has_an_end(device):
    code = """.version 8.0
    .target sm_80
    .visible .entry k() {
        .reg .b32 %r<2>; .reg .b64 %rd<3>; .shared .align 4 .b8 s[64];
        mov.u32 %r1, %tid.x; mov.u64 %rd1, s; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
        st.shared.u32 [%rd1], %r1;
        ret;
    }"""
    module = device.load(code)
    device.launch(module, "k", (1, 1, 1), (16, 1, 1), [])
    fault(
        lambda: device.launch(module, "k", (1, 1, 1), (17, 1, 1), []),
        "out of bounds of shared memory: at byte 64 of 64",
    )


def test_launches_that_no_gpu_takes_are_refused(device):
    module = device.load(text("axpy"))
    with pytest.raises(RuntimeError, match="invalid configuration"):
        device.launch(module, "axpy_contiguous", (1, 1, 1), (2048, 1, 1), [1, 0, 0, 0, 0])
    with pytest.raises(RuntimeError, match="takes 5 arguments, and 1 were given"):
        device.launch(module, "axpy_contiguous", (1, 1, 1), (32, 1, 1), [1])


def test_what_is_not_understood_is_said_with_its_line(device):
    with pytest.raises(PTXError, match=r"does not know warble\.f32 .* \(PTX line 4\)"):
        code = ".version 8.0\n.target sm_80\n.visible .entry k() {\nwarble.f32 %f1, %f2;\nret;\n}"
        device.launch(device.load(code), "k", (1, 1, 1), (1, 1, 1), [])
    with pytest.raises(PTXError, match="unresolved symbol"):
        parse(".version 8.0\n.target sm_80\n.visible .entry k() {\ncall.uni nobody;\nret;\n}")


def test_memory_is_given_back_and_runs_out(device):
    small = Device(4096)
    held = [small.allocate(1024) for _ in range(4)]
    with pytest.raises(MemoryError, match="1 bytes asked for, 0 of 4096 are free"):
        small.allocate(1)
    small.free(held[0])
    with pytest.raises(RuntimeError, match="no live allocation"):
        small.free(held[0])
    again = small.allocate(1024)  # in a new place, so that who still uses the old one is found out
    assert again not in held


def test_every_text_is_read():
    for file in FOLDER.glob("*.ptx"):
        assert parse(file.read_text()).entries
