"""From a loop in LLVM's language to a function that Python calls: optimised, made into an object file, linked.

The function is C code of the same module: it takes the arguments out of Python's objects, gives up the GIL where it is
told to, and calls the loop. An array's pointer is read where numpy keeps it. That is 60 to 75 ns for a call with eleven
arguments (numba's own way: 95; ctypes: 640), and the object file is all that a later process needs.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from functools import cache as once
from typing import Any

import numpy as np

from .external import EXTERNALS
from .translate.promote import leaves
from .translate.promote import llvm as llvm_type

LOOP = "redispatch_loop"  # the loop's name, whoever translated it
CALL = "redispatch_call"  # the C function's name in every object file
ARRAY_TYPE = "redispatch_ndarray"  # the address of numpy's class of arrays, for object files

HEAD = object.__basicsize__  # bytes before the fields of an object: its reference count and its class
CLASS = HEAD - ctypes.sizeof(ctypes.c_void_p)
DATA, SIZES = (
    HEAD,
    HEAD + 16,
)  # of an array: the pointer to its elements; behind it the count of dimensions, their sizes

# A number's type in a signature -> LLVM's, the function by which Python gives it, and its answer when it cannot
INTEGER = ("i64", "whole.PyLong_AsLongLong", "icmp eq i64", "-1")
REAL = ("double", "PyFloat_AsDouble", "fcmp oeq double", "-1.0")
NUMBERS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), INTEGER),
    "uint64": ("i64", "whole.PyLong_AsUnsignedLongLongMask", "icmp eq i64", "-1"),
    "bool": ("i32", "PyObject_IsTrue", "icmp eq i32", "-1"),
    "float32": REAL,
    "float64": REAL,
}
PARTS = tuple(("double", f"PyComplex_{part}AsDouble", *REAL[2:]) for part in ("Real", "Imag"))  # of a complex number

# A result's type -> where LLVM keeps it, the type that Python takes, the instruction that widens, Python's function
RESULTS = {
    "none": ("ptr", "ptr", "", ""),
    "bool": ("i8", "i64", "zext", "PyBool_FromLong"),
    "int64": ("i64", "i64", "", "PyLong_FromLongLong"),
    "float32": ("float", "double", "fpext", "PyFloat_FromDouble"),
    "float64": ("double", "double", "", "PyFloat_FromDouble"),
}

MESSAGES = {
    "miscounted": "a kernel of %zd arguments was called with %zd",
    "misfit": "argument %zd of a kernel is no array of numpy",
    "ended": "a kernel ended with status %d",
}

# Takes an integer out of an object: also of one that is a number, but no integer, such as 2.5, which is cut off. What
# seldom happens is a function of its own, which stands once: a loop has ten integers.
WHOLE = """
declare i64 @{function}(ptr)
define internal i64 @whole.{function}(ptr %o) alwaysinline {{
  %value = call i64 @{function}(ptr %o)
  %minus = icmp eq i64 %value, -1
  br i1 %minus, label %doubtful, label %done, !prof !1
doubtful:
  %other = call i64 @cut.{function}(ptr %o)
  br label %done
done:
  %result = phi i64 [%value, %0], [%other, %doubtful]
  ret i64 %result
}}
define internal i64 @cut.{function}(ptr %o) noinline cold {{
  %error = call ptr @PyErr_Occurred()
  %well = icmp eq ptr %error, null
  br i1 %well, label %done, label %refused
refused:
  %number = call i32 @PyNumber_Check(ptr %o)
  %none = icmp eq i32 %number, 0
  br i1 %none, label %done, label %fraction
fraction:
  call void @PyErr_Clear()
  %cut = call ptr @PyNumber_Long(ptr %o)
  %nothing = icmp eq ptr %cut, null
  br i1 %nothing, label %done, label %again
again:
  %found = call i64 @{function}(ptr %cut)
  call void @Py_DecRef(ptr %cut)
  br label %done
done:
  %result = phi i64 [-1, %0], [-1, %refused], [-1, %fraction], [%found, %again]
  ret i64 %result
}}
"""

# The loop as the C function calls it: with a place for the result, and a status that is 0 when all went well.
PLAIN = """
define internal i32 @{loop}({parameters}) alwaysinline {{
  {call}{kept}
  ret i32 0
}}
"""

# The C function, in LLVM's language; it is filled in by `calling`. The exit of an error ends in `failed`.
TEMPLATE = """
@{array_type} = external global i8
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@PyExc_SystemError = external global ptr
{declarations}
declare ptr @PyErr_Occurred()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare i32 @PyNumber_Check(ptr)
declare ptr @PyNumber_Long(ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define ptr @{call}(ptr %self, ptr %args, i64 %count) {{
  %result = alloca {place}
  %right = icmp eq i64 %count, {count}
  br i1 %right, label %counted, label %miscounted, !prof !0
counted:
{taking}
  br i1 {doubt}, label %doubtful, label %good, !prof !1
doubtful:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %good, label %failed
good:
  {release}
  %status = call i32 @{loop}({passed})
  {acquire}
  %well = icmp eq i32 %status, 0
  br i1 %well, label %done, label %ended, !prof !0
done:
{giving}
{exits}
failed:
  ret ptr null
}}
!0 = !{{!"branch_weights", i32 1000, i32 1}}
!1 = !{{!"branch_weights", i32 1, i32 1000}}
"""


def plain(function: str, signature: tuple[str, ...], result: str) -> str:
    """The loop under its name, from a function that returns its result."""
    passed = [
        f"{llvm_type(leaf)} %a{at}" for at, leaf in enumerate(leaf for kind in signature for leaf in leaves(kind))
    ]
    call, kept, word = f"call {llvm_type(result)} @{function}({', '.join(passed)})", "", llvm_type(result)
    if result != "none":
        call = f"%found = {call}"
        if result == "bool":
            call, word = f"{call}\n  %wide = zext i1 %found to i8", "i8"
        kept = f"\n  store {word} {'%wide' if result == 'bool' else '%found'}, ptr %result"
    return PLAIN.format(loop=LOOP, parameters=", ".join(["ptr %result", *passed]), call=call, kept=kept)


# The GIL is given up, always or where a range is long, and taken back.
RELEASE, ACQUIRE = "%thread = call ptr @PyEval_SaveThread()", "call void @PyEval_RestoreThread(ptr %thread)"
RELEASE_IF_LONG = """%length = sub i64 %v1_0, %v0_0
  %long = icmp sgt i64 %length, {few}
  br i1 %long, label %leaving, label %working
leaving:
  %left = call ptr @PyEval_SaveThread()
  br label %working
working:
  %thread = phi ptr [null, %good], [%left, %leaving]"""
ACQUIRE_IF_LONG = """br i1 %long, label %returning, label %back
returning:
  call void @PyEval_RestoreThread(ptr %thread)
  br label %back
back:"""


def calling(signature: tuple[str, ...], result: str, nogil: bool | int) -> str:
    """Writes the C function that Python calls (METH_FASTCALL), in LLVM's language.

    nogil: whether it gives up the GIL, or from which length of a range on: more than so many.

    The loop takes the place of its result, and of each argument its number, of a complex one two, or an array's pointer
    and size.
    """
    passed = ["ptr %result"]
    lines: list[str] = []
    doubts: list[str] = []
    for at, kind in enumerate(signature):
        lines += [f"  %slot{at} = getelementptr ptr, ptr %args, i64 {at}", f"  %o{at} = load ptr, ptr %slot{at}"]
        if kind.endswith("[]"):
            lines += _array(at)
            passed += [f"ptr %d{at}", f"i64 %n{at}"]
            continue
        for number, leaf in enumerate(leaves(kind)):
            name, how = f"%v{at}_{number}", PARTS[number] if kind.startswith("complex") else NUMBERS[kind]
            lines += _number(name, f"%o{at}", llvm_type(leaf), how, doubts)
            passed.append(f"{llvm_type(leaf)} {name}")
    place, *_ = RESULTS[result]
    how_taken = {how[:2] for how in (*NUMBERS.values(), *PARTS)}
    declared = {f"declare {word} @{name}(ptr)" for word, name in how_taken if not name.startswith("whole.")}
    whole = [WHOLE.format(function=name.removeprefix("whole.")) for _, name in how_taken if name.startswith("whole.")]
    declared |= {f"declare ptr @{function}({wide})" for _, wide, _, function in RESULTS.values() if function}
    texts = {
        name: f'@{name}.text = private constant [{len(text) + 1} x i8] c"{text}\\00"' for name, text in MESSAGES.items()
    }
    return TEMPLATE.format(
        array_type=ARRAY_TYPE,
        declarations="\n".join([*sorted(declared), *texts.values(), *sorted(whole)]),
        loop=LOOP,
        call=CALL,
        place=place,
        count=len(signature),
        taking="\n".join(lines),
        doubt=doubts[-1] if doubts else "false",
        release=(RELEASE if nogil is True else RELEASE_IF_LONG.format(few=nogil)) if nogil else "",
        passed=", ".join(passed),
        acquire=(ACQUIRE if nogil is True else ACQUIRE_IF_LONG) if nogil else "",
        giving=_given(result),
        exits="\n".join(_exits(signature)),
    )


def _array(at: int) -> list[str]:
    """Takes the pointer and the size out of an array, past a check of its class."""
    return [
        f"  %class_at{at} = getelementptr i8, ptr %o{at}, i64 {CLASS}",
        f"  %class{at} = load ptr, ptr %class_at{at}",
        f"  %exact{at} = icmp eq ptr %class{at}, @{ARRAY_TYPE}",
        f"  br i1 %exact{at}, label %array{at}, label %inexact{at}, !prof !0",
        f"inexact{at}:",
        f"  %below{at} = call i32 @PyType_IsSubtype(ptr %class{at}, ptr @{ARRAY_TYPE})",
        f"  %derived{at} = icmp ne i32 %below{at}, 0",
        f"  br i1 %derived{at}, label %array{at}, label %misfit",
        f"array{at}:",
        f"  %data_at{at} = getelementptr i8, ptr %o{at}, i64 {DATA}",
        f"  %d{at} = load ptr, ptr %data_at{at}",
        f"  %sizes_at{at} = getelementptr i8, ptr %o{at}, i64 {SIZES}",
        f"  %sizes{at} = load ptr, ptr %sizes_at{at}",
        f"  %n{at} = load i64, ptr %sizes{at}",
    ]


def _number(name: str, from_: str, wanted: str, how: tuple[str, ...], doubts: list[str]) -> list[str]:
    """Takes a number out of an object. `doubts` grows by one bit: whether it, or one before, may have failed."""
    llvm, function, compare, failed = how
    narrow = {"double": "fptrunc double", "i64": "trunc i64", "i32": "trunc i32"}[llvm]
    if wanted == llvm:
        narrow = f"bitcast {llvm}"  # which does nothing
    lines = [
        f"  {name}.given = call {llvm} @{function}(ptr {from_})",
        f"  {name} = {narrow} {name}.given to {wanted}",
        f"  {name}.failed = {compare} {name}.given, {failed}",
        f"  {name}.doubt = or i1 {name}.failed, {doubts[-1] if doubts else 'false'}",
    ]
    doubts.append(f"{name}.doubt")
    return lines


def _given(result: str) -> str:
    """Gives Python the result."""
    stored, wide, widened, function = RESULTS[result]
    if not function:
        return "  call void @Py_IncRef(ptr @_Py_NoneStruct)\n  ret ptr @_Py_NoneStruct"
    lines = [f"  %value = load {stored}, ptr %result"]
    if widened:
        lines.append(f"  %wide = {widened} {stored} %value to {wide}")
    lines.append(f"  %object = call ptr @{function}({wide} {'%wide' if widened else '%value'})")
    return "\n".join([*lines, "  ret ptr %object"])


def _exits(signature: tuple[str, ...]) -> list[str]:
    """Raises for a wrong number of arguments, for one that is no array, and for a loop that failed."""
    arrays = ", ".join(f"[ {at}, %inexact{at} ]" for at, kind in enumerate(signature) if kind.endswith("[]"))
    facts = {"miscounted": f"i64 {len(signature)}, i64 %count", "ended": "i32 %status"}
    if arrays:
        facts["misfit"] = "i64 %at"
    lines = []
    for exit, values in facts.items():
        error = "SystemError" if exit == "ended" else "TypeError"
        lines += [
            f"{exit}:",
            *([f"  %at = phi i64 {arrays}"] if exit == "misfit" else []),
            f"  %{exit}.class = load ptr, ptr @PyExc_{error}",
            f"  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %{exit}.class, ptr @{exit}.text, {values})",
            "  br label %failed",
        ]
    return lines


# Machine code ---------------------------------------------------------------------------------------------------------


@once
def _target() -> Any:
    """The kind of machine that this one is."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    for initialize in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
        initialize()
    return llvm.Target.from_default_triple()


def _addressing() -> dict[str, Any]:
    """Options for machine code: how it finds its data. LLVM's linker needs "static" on x86."""
    reloc = "static" if _target().name.startswith("x86") else "default"
    return {"reloc": reloc, "codemodel": "jitdefault", "jit": True}


@once
def _machine(quick: bool = False) -> Any:
    """This machine as LLVM knows it: the CPU with all its instructions."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    cpu, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    return _target().create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        features=features if features is not None else "" if cpu else llvm.get_host_cpu_features().flatten(),
        opt=1 if quick else 3,
        **_addressing(),
    )


# Note [Quick compiling]
# A program's own loops are called a few times per step, and somebody waits for them. LLVM takes a third less for them
# where it leaves the C function as it is written, does not make copies of a loop for what does not change in it, and
# does not look for the best order of instructions: loops over arrays are as fast.
INLINED = re.compile(rf"^(define internal \w+ @(?:whole\.|{LOOP}\().*) alwaysinline ", re.M)


def optimised(text: str, others: Any = None, quick: bool = False) -> Any:
    """A text that has a loop and the C function that calls it, as one module, optimised.

    others: a module with functions that the text calls. quick: Note [Quick compiling]
    """
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    machine = _machine(quick)
    if quick:
        text = INLINED.sub(r"\1 noinline ", text).replace("i64 %count) {", "i64 %count) noinline optnone {")
    layout = f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'
    module = llvm.parse_assembly(layout + text)
    if others is not None:
        module.link_in(others)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != CALL:
            one.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=2 if quick else 3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return module


def assembly(module: Any, quick: bool = False) -> str:
    """The machine code of a module, as this machine's assembler spells it."""
    return _machine(quick).emit_assembly(module)


def packed(module: Any, version: str = "", quick: bool = False) -> bytes:
    """A module as bytes that `linked` takes: a line of JSON, and an object file.

    The line has the names that it wants from others, and the version of numba if that has translated it.
    """
    wanted = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
    names = json.dumps([sorted(name for name in wanted if not name.startswith("llvm.")), version])
    return names.encode() + b"\n" + _machine(quick).emit_object(module)


def outdated(payload: bytes) -> bool:
    """Whether another version of numba than is installed has translated what is in it."""
    _, version = json.loads(payload.partition(b"\n")[0])
    return bool(version) and version != numba_version()


def numba_version() -> str:
    """The installed version, or none, asked of the package's metadata, because importing numba takes 0.4 s."""
    from importlib.metadata import PackageNotFoundError, version  # here: it takes 10 ms, and few kernels are numba's

    try:
        return version("numba")
    except PackageNotFoundError:
        return "none"


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


METH_FASTCALL = 0x80


def linked(payload: bytes, name: str, key: str = "") -> Any:
    """The function of an object file, to be called from Python. Its machine code goes when it does.

    key: under which the file is kept.
    """
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    names, _, code = payload.partition(b"\n")
    _provide(json.loads(names)[0])
    # An engine takes its machine for itself, and this one compiles nothing: any CPU will do, which takes 30 us, not 120
    machine = _target().create_target_machine(opt=0, **_addressing())
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    definition = _Definition(name.encode(), engine.get_function_address(CALL), METH_FASTCALL, None)
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return create(ctypes.byref(definition), (engine, definition, key), None)  # its `self`: all that it points at


def _provide(names: list[str]) -> None:
    """Has LLVM's linker know these names: functions of Python and of C, numpy's class of arrays, numba's helpers."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    for name in names:
        found = getattr(ctypes.pythonapi, name, None)  # whatever this process has, by dlsym
        if name == ARRAY_TYPE:
            llvm.add_symbol(name, id(np.ndarray))
        elif name in EXTERNALS:
            llvm.add_symbol(name, EXTERNALS[name].address)
        elif found is not None:
            llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
        elif llvm.address_of_symbol(name) is None:
            from numba.core.registry import (
                cpu_target,
            )  # here, because importing numba takes 0.4 s: few need its helpers
            from numba.core.runtime import rtsys

            rtsys.initialize(cpu_target.target_context)
            if llvm.address_of_symbol(name) is None:
                raise ImportError(f"a kernel needs {name!r}, which neither this process nor numba has")
