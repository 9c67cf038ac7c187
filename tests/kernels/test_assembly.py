"""Finding the loop that does the work, in made-up assembly and in what this machine's compiler writes."""

import platform

import pytest

from redispatch.kernels import Elementwise, busiest_loop
from redispatch.kernels.engine.assembly import is_vector, loops

X86 = """
	.text
kernel:
	xorl	%eax, %eax
.LBB0_1:
	vmovups	(%rdi,%rax,4), %ymm0
.LBB0_2:
	vaddps	%ymm0, %ymm1, %ymm1
	decq	%rcx
	jne	.LBB0_2
	addq	$8, %rax
	jb	.LBB0_1
.LBB0_3:
	vaddss	(%rdi,%rax,4), %xmm0, %xmm0
	incq	%rax
	cmpq	%rax, %rdx
	jne	.LBB0_3
	jmp	.LBB0_4
.LBB0_4:
	retq
"""

ARM = """
kernel:
.LBB0_1:
	ldp	q0, q1, [x8, #-16]
	fadd	v0.4s, v0.4s, v2.4s
	subs	x9, x9, #8
	b.ne	.LBB0_1
.LBB0_2:
	fadd	s0, s0, s1
	cbnz	x9, .LBB0_2
	ret
"""


def double(x):
    return x + x


def test_the_innermost_loops_are_found():
    assert [lines[0] for lines in loops(X86)] == [".LBB0_2:", ".LBB0_3:"]
    assert busiest_loop(X86).splitlines()[1] == "	vaddps	%ymm0, %ymm1, %ymm1"
    assert busiest_loop(ARM).splitlines()[-1] == "	b.ne	.LBB0_1"
    assert busiest_loop("kernel:\n	ret\n") == ""


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64", "arm64", "aarch64"), reason="an unknown processor")
def test_a_flat_loop_works_on_several_elements_at_once():
    loop = busiest_loop(Elementwise("double", double).assembly("flat", "a", ("float32",), ("float32",)))
    assert any(map(is_vector, loop.splitlines())), loop
