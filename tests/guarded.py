"""Memory that ends, or begins, at a page that nobody may touch: who reads or writes beside an array is killed there.

    with guarded():              every array that numpy makes lies so, results and scratch memory of kernels included
        placed(x)                a copy of a tensor, with its strides, and with no byte that does not belong to it

    for number, fate in isolated(calls, seconds=5): ...     each call in a process that may die of it

numpy asks the functions of its "memory handler" (NEP 49) for memory; here they are ours, over mmap and mprotect.
"""

import contextlib
import ctypes
import faulthandler
import functools
import json
import os
import resource
import signal
import traceback

import llvmlite.binding as llvm
import numpy as np

import redispatch as rd
from redispatch.kernels.engine import compile as compiling

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PR_SET_DUMPABLE = 4  # without it, the kernel writes no core
BYTES_MORE = 1 << 30  # that a process may take while it is watched

# numpy's functions for memory, in LLVM's words: Python's cannot stand here, since arrays are given back, too, while an
# error is on its way. In front of the first page without access lies how long an array is.
FUNCTIONS = """
declare i8* @mmap(i8*, i64, i32, i32, i32, i64)
declare i32 @mprotect(i8*, i64, i32)
declare i32 @munmap(i8*, i64)
declare i8* @memcpy(i8*, i8*, i64)

@at_end = global i64 1

define i8* @guarded_malloc(i8* %context, i64 %size) {
  %more = add i64 %size, 4095
  %room = and i64 %more, -4096
  %total = add i64 %room, 8192
  %base = call i8* @mmap(i8* null, i64 %total, i32 3, i32 34, i32 -1, i64 0)
  %number = ptrtoint i8* %base to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %none, label %there
none:
  ret i8* null
there:
  %header = bitcast i8* %base to i64*
  store i64 %size, i64* %header
  %first = call i32 @mprotect(i8* %base, i64 4096, i32 0)
  %after = add i64 %room, 4096
  %edge = getelementptr i8, i8* %base, i64 %after
  %last = call i32 @mprotect(i8* %edge, i64 4096, i32 0)
  %flag = load i64, i64* @at_end
  %left = sub i64 %room, %size
  %shift = mul i64 %left, %flag
  %offset = add i64 %shift, 4096
  %result = getelementptr i8, i8* %base, i64 %offset
  ret i8* %result
}

define i8* @guarded_calloc(i8* %context, i64 %count, i64 %size) {
  %bytes = mul i64 %count, %size
  %result = call i8* @guarded_malloc(i8* %context, i64 %bytes)
  ret i8* %result
}

define i64 @open(i8* %address) {
  %number = ptrtoint i8* %address to i64
  %page = and i64 %number, -4096
  %front = sub i64 %page, 4096
  %base = inttoptr i64 %front to i8*
  %opened = call i32 @mprotect(i8* %base, i64 4096, i32 1)
  ret i64 %front
}

define void @guarded_free(i8* %context, i8* %address, i64 %unreliable) {
  %nothing = icmp eq i8* %address, null
  br i1 %nothing, label %done, label %there
done:
  ret void
there:
  %front = call i64 @open(i8* %address)
  %base = inttoptr i64 %front to i8*
  %header = bitcast i8* %base to i64*
  %size = load i64, i64* %header
  %more = add i64 %size, 12287
  %total = and i64 %more, -4096
  %result = call i32 @munmap(i8* %base, i64 %total)
  ret void
}

define i8* @guarded_realloc(i8* %context, i8* %old, i64 %size) {
  %new = call i8* @guarded_malloc(i8* %context, i64 %size)
  %nothing = icmp eq i8* %old, null
  br i1 %nothing, label %done, label %move
done:
  ret i8* %new
move:
  %front = call i64 @open(i8* %old)
  %header = inttoptr i64 %front to i64*
  %former = load i64, i64* %header
  %smaller = icmp ult i64 %former, %size
  %kept = select i1 %smaller, i64 %former, i64 %size
  %copied = call i8* @memcpy(i8* %new, i8* %old, i64 %kept)
  call void @guarded_free(i8* %context, i8* %old, i64 0)
  ret i8* %new
}
"""


class _Handler(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p)) + tuple(
        (name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")
    )


@functools.cache
def _engine():
    """The compiled functions."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(FUNCTIONS), machine)
    engine.finalize_object()
    return engine


@functools.cache
def _handler():
    functions = [_engine().get_function_address(f"guarded_{name}") for name in ("malloc", "calloc", "realloc", "free")]
    return _Handler(b"guarded", 1, None, *functions)


def lie_at(side):
    """Has arrays that are made from now on lie at the "end" of their pages, or at the "start"."""
    ctypes.c_int64.from_address(_engine().get_global_value_address("at_end")).value = side == "end"


SET_HANDLER = 304  # the place of PyDataMem_SetHandler in the table of numpy's C API


def _set_handler(capsule):
    """Puts numpy's memory handler in place; returns the one before."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = ctypes.cast(pointer(np._core.multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])(capsule)


@contextlib.contextmanager
def guarded():
    """Has numpy make its arrays beside pages without access."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    before = _set_handler(new(ctypes.addressof(_handler()), b"mem_handler", None))
    try:
        yield
    finally:
        _set_handler(before)


def placed(x):
    """A copy of a tensor with its strides, in memory that has no room for anything else."""
    if x.numel() == 0:
        nothing = (ctypes.c_char * 0).from_address(NOWHERE)
        array = np.ndarray((0,), x.dtype.numpy, buffer=nothing)
        flat = rd.from_numpy(array.view()) if x.dtype in NUMPYS else rd.empty(0, dtype=x.dtype)
    else:
        extent = 1 + sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True))
        flat = x.detach().as_strided((extent,), (1,), x.storage_offset()).clone()
    return rd.empty(0, dtype=x.dtype).set_(flat.untyped_storage(), 0, x.shape, x.stride())


NUMPYS = {
    getattr(rd, name)
    for name in "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()
}


NOWHERE = 4096  # an address at which no memory is


# --- processes that may die -------------------------------------------------------------------------------------------


def isolated(work, count, seconds):
    """Calls `work(number)` for each number below `count` in a child process, beside guard pages.

    Yields (number, fate) where the fate is bad: what `work` returned, if that is not None; or the signal that ended the
    process; or "timeout" where a call takes so many seconds of CPU. The next call is in a new process then.
    """
    begin = 0
    while begin < count:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _child(work, range(begin, count), seconds, writer)
        os.close(writer)
        number, done = begin - 1, False
        with os.fdopen(reader) as lines:
            for line in lines:
                said = json.loads(line)
                if isinstance(said, int):
                    number = said
                elif said == "done":
                    done = True
                else:
                    yield number, said
        status = os.waitpid(child, 0)[1]
        if done:
            return
        if os.WIFSIGNALED(status):
            ended = os.WTERMSIG(status)
            yield number, "timeout" if ended == signal.SIGPROF else signal.Signals(ended).name
        else:
            yield number, f"exit {os.waitstatus_to_exitcode(status)}"
        begin = max(number, begin) + 1


def _child(work, numbers, seconds, writer):
    def say(what):
        os.write(writer, (json.dumps(what) + "\n").encode())

    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        faulthandler.disable()
        rd.set_num_threads(1)
        with open("/proc/self/statm") as sizes:
            now = int(sizes.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + BYTES_MORE, resource.RLIM_INFINITY))
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)
        rd.config.full_tracebacks = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # faulthandler and numpy would write of what is expected here
        with guarded():
            for number in numbers:
                say(number)
                signal.setitimer(signal.ITIMER_PROF, seconds)
                fate = work(number)
                signal.setitimer(signal.ITIMER_PROF, 0)
                if fate is not None:
                    say(fate)
            say("done")
            os._exit(0)
    except BaseException:
        say(traceback.format_exc())
    finally:
        os._exit(3)


# --- kernels that are not compiled ------------------------------------------------------------------------------------


class OutsideError(Exception):
    """A kernel reads or writes outside its memory, or takes it for memory of another dtype."""


class Fenced(np.ndarray):
    """The flat memory that a kernel is given: an index that compiled code would not check is checked here."""

    def __getitem__(self, index):
        return super().__getitem__(self.within(index))

    def __setitem__(self, index, value):
        super().__setitem__(self.within(index), value)

    def within(self, index):
        if isinstance(index, int | np.integer) and not 0 <= index < len(self):
            raise OutsideError(f"index {index} of {len(self)} elements")
        return index


def fence_kernels():
    """Has kernels run as Python, with fences around their arrays; in a process with NUMBA_DISABLE_JIT=1.

    Compiled code takes an array for what its signature says, and reads beside it unnoticed, until a page ends.
    """
    build = compiling._build

    def built(kernel, signature):
        run = build(kernel, signature)

        def fenced(*args):
            given = []
            for value, kind in zip(args, signature, strict=True):
                if isinstance(value, np.ndarray):
                    if value.dtype.name + "[]" != kind:
                        raise OutsideError(f"{kernel.name}: {value.dtype} memory for {kind}")
                    value = value.view(Fenced)
                given.append(value)
            return run(*given)

        return fenced

    compiling._build = built
