"""From a loop in LLVM's language to a function that Python calls: optimised, made into an object file, linked.

The function is C code of the same module: it takes the arguments out of Python's objects, gives up the GIL where it is
told to, and calls the loop. An array's pointer is read where numpy keeps it. That is 60 to 75 ns for a call with eleven
arguments (numba's own way: 95; ctypes: 640), and the object file is all that a later process needs: it is linked
without numba, which takes 0.4 s to import.
"""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache as once
from typing import Any

import numpy as np

CALL = "redispatch_call"  # the C function's name in every object file
ARRAY_TYPE = "redispatch_ndarray"  # the address of numpy's class of arrays, for object files

HEAD = object.__basicsize__  # bytes before the fields of an object: its reference count and its class
CLASS = HEAD - ctypes.sizeof(ctypes.c_void_p)
DATA, SIZES = HEAD, HEAD + 16  # of an array: the pointer to its elements; behind it the count of dimensions, their sizes

# A number's type in a signature -> how the C function takes it out of an object: LLVM's type, and whose function
INTEGER = ("i64", "PyLong_AsLongLong")
REAL = ("double", "PyFloat_AsDouble")
TAKEN = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), INTEGER),
    "uint64": ("i64", "PyLong_AsUnsignedLongLongMask"),
    "bool": ("i32", "PyObject_IsTrue"),
    "float32": REAL,
    "float64": REAL,
}
# A result's type -> LLVM's, the wider one that Python takes, the instruction that widens, and Python's function
GIVEN = {
    "bool": ("i8", "i64", "zext", "PyBool_FromLong"),
    "int64": ("i64", "i64", "", "PyLong_FromLongLong"),
    "float32": ("float", "double", "fpext", "PyFloat_FromDouble"),
    "float64": ("double", "double", "", "PyFloat_FromDouble"),
}


def calling(loop: str, types: list[str], signature: tuple[str, ...], result: str, nogil: bool) -> str:
    """Writes the C function that Python calls, in LLVM's language: METH_FASTCALL, for a loop as numba lowers it.

    `types` are LLVM's, of all the parameters of the loop. Each array is seven of them: two objects that are not used,
    the number of elements, the bytes of one, the pointer, and size and stride of the one dimension. The first two of
    all are the place of the result and that of an exception; the loop returns 0 when all went well.
    """
    taken = iter(types[2:])
    lines: list[str] = []
    passed: list[str] = []
    suspect: list[str] = []
    for at, kind in enumerate(signature):
        lines += [f"  %slot{at} = getelementptr ptr, ptr %args, i64 {at}", f"  %o{at} = load ptr, ptr %slot{at}"]
        if kind.endswith("[]"):
            lines += _array(at)
            size = np.dtype(kind[:-2]).itemsize
            passed += ["ptr null", "ptr null", f"i64 %n{at}", f"i64 {size}", f"ptr %d{at}", f"i64 %n{at}", f"i64 {size}"]
            for _ in range(7):
                next(taken)
            continue
        parts = ("Real", "Imag") if kind.startswith("complex") else ("",)
        for part in parts:
            llvm, function = ("double", f"PyComplex_{part}AsDouble") if part else TAKEN[kind]
            value, wanted = f"%v{at}{part}", next(taken)
            lines.append(f"  {value} = call {llvm} @{function}(ptr %o{at})")
            failed = "fcmp oeq double" if llvm == "double" else f"icmp eq {llvm}"
            lines.append(f"  {value}e = {failed} {value}, {'-1.0' if llvm == 'double' else '-1'}")
            suspect.append(f"{value}e")
            if wanted != llvm:
                narrow = "fptrunc" if llvm == "double" else "trunc"
                lines.append(f"  {value}n = {narrow} {llvm} {value} to {wanted}")
                value += "n"
            passed.append(f"{wanted} {value}")
    given = GIVEN.get(result)
    place = given[0] if given else "ptr"
    called = f"call i32 @{loop}(ptr %result, ptr %exception{''.join(', ' + one for one in passed)})"
    doubt = "false"
    for number, one in enumerate(suspect):
        lines.append(f"  %doubt{number} = or i1 {one}, {doubt}")
        doubt = f"%doubt{number}"
    if given:
        stored, wide, widened, function = given
        value = f"  %value = load {stored}, ptr %result\n"
        value += f"  %wide = {widened} {stored} %value to {wide}\n" if widened else ""
        value += f"  %object = call ptr @{function}({wide} %{'wide' if widened else 'value'})\n  ret ptr %object"
    else:
        value = "  call void @Py_IncRef(ptr @_Py_NoneStruct)\n  ret ptr @_Py_NoneStruct"
    functions = {f"declare {llvm} @{name}(ptr)" for llvm, name in TAKEN.values()}
    functions |= {f"declare ptr @{name}({wide})" for _, wide, _, name in GIVEN.values()}
    return f"""
@{ARRAY_TYPE} = external global i8
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@PyExc_SystemError = external global ptr
@wrong_count = private constant [{len(WRONG_COUNT) + 1} x i8] c"{WRONG_COUNT}\\00"
@wrong_array = private constant [{len(WRONG_ARRAY) + 1} x i8] c"{WRONG_ARRAY}\\00"
@wrong_end = private constant [{len(WRONG_END) + 1} x i8] c"{WRONG_END}\\00"
{chr(10).join(sorted(functions))}
declare double @PyComplex_RealAsDouble(ptr)
declare double @PyComplex_ImagAsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyErr_Format(ptr, ptr, ...)
declare i32 @PyType_IsSubtype(ptr, ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i32 @{loop}({", ".join(types)})

define ptr @{CALL}(ptr %self, ptr %args, i64 %count) {{
  %result = alloca {place}
  %exception = alloca ptr
  %right = icmp eq i64 %count, {len(signature)}
  br i1 %right, label %counted, label %miscounted, !prof !0
counted:
{chr(10).join(lines)}
  br i1 {doubt}, label %doubtful, label %good, !prof !1
doubtful:
  %error = call ptr @PyErr_Occurred()
  %none = icmp eq ptr %error, null
  br i1 %none, label %good, label %failed
good:
  {"%thread = call ptr @PyEval_SaveThread()" if nogil else ""}
  %status = {called}
  {"call void @PyEval_RestoreThread(ptr %thread)" if nogil else ""}
  %well = icmp eq i32 %status, 0
  br i1 %well, label %done, label %ended, !prof !0
done:
{value}
miscounted:
  %kind1 = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind1, ptr @wrong_count, i64 {len(signature)}, i64 %count)
  br label %failed
{_misfit(signature)}
ended:
  %kind3 = load ptr, ptr @PyExc_SystemError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind3, ptr @wrong_end, i32 %status)
  br label %failed
failed:
  ret ptr null
}}
!0 = !{{!"branch_weights", i32 1000, i32 1}}
!1 = !{{!"branch_weights", i32 1, i32 1000}}
"""


WRONG_COUNT = "a kernel of %zd arguments was called with %zd"
WRONG_ARRAY = "argument %zd of a kernel is no array of numpy"
WRONG_END = "a kernel ended with status %d"


def _array(at: int) -> list[str]:
    """Takes pointer and size out of an array, past a check of its class."""
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


def _misfit(signature: tuple[str, ...]) -> str:
    """Raises for an argument that is no array: it is known by the block that finds it."""
    places = ", ".join(f"[ {at}, %inexact{at} ]" for at, kind in enumerate(signature) if kind.endswith("[]"))
    if not places:
        return ""
    return f"""misfit:
  %at = phi i64 {places}
  %kind2 = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %kind2, ptr @wrong_array, i64 %at)
  br label %failed"""


# Machine code ---------------------------------------------------------------------------------------------------------


@once
def _machine() -> Any:
    """This machine as LLVM knows it: the CPU with all its instructions."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    for initialize in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
        initialize()
    target = llvm.Target.from_default_triple()
    reloc = "static" if target.name.startswith("x86") else "default"  # LLVM's linker needs that on x86
    cpu, features = os.environ.get("NUMBA_CPU_NAME"), os.environ.get("NUMBA_CPU_FEATURES")
    return target.create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(),
        features=features if features is not None else "" if cpu else llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc=reloc,
        codemodel="jitdefault",
        jit=True,
    )


def optimised(module: Any, calls: str) -> Any:
    """Adds the C function `calls` to a module that has a loop, and optimises both as one."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    addition = llvm.parse_assembly(calls)
    addition.triple, addition.data_layout = module.triple, module.data_layout
    module.link_in(addition)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != CALL:
            one.linkage = "internal"
    module.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization, options.slp_vectorization = True, False
    builder = llvm.create_pass_builder(_machine(), options)
    builder.getModulePassManager().run(module, builder)
    return module


def assembly(module: Any) -> str:
    """The machine code of a module, as this machine's assembler spells it."""
    return _machine().emit_assembly(module)


def packed(module: Any) -> bytes:
    """A module as bytes that `linked` takes: the names that it wants from others, a line; and an object file."""
    wanted = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
    names = json.dumps(sorted(name for name in wanted if not name.startswith("llvm.")))
    return names.encode() + b"\n" + _machine().emit_object(module)


class _Definition(ctypes.Structure):
    """Python's PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


METH_FASTCALL = 0x80
_kept: list[Any] = []  # what functions made here point at, which Python does not know of


def linked(payload: bytes, name: str) -> Any:
    """The function of an object file, to be called from Python."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    names, _, code = payload.partition(b"\n")
    _provide(json.loads(names))
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    definition = _Definition(name.encode(), engine.get_function_address(CALL), METH_FASTCALL, None)
    _kept.append((engine, definition))
    create = ctypes.pythonapi.PyCFunction_NewEx
    create.restype, create.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    return create(ctypes.byref(definition), None, None)


def _provide(names: list[str]) -> None:
    """Has LLVM's linker know these names: functions of Python and of C, numpy's class of arrays, numba's helpers."""
    import llvmlite.binding as llvm  # here, because importing it takes 40 ms, and no kernel may be needed

    for name in names:
        found = getattr(ctypes.pythonapi, name, None)  # whatever this process has, by dlsym
        if name == ARRAY_TYPE:
            llvm.add_symbol(name, id(np.ndarray))
        elif found is not None:
            llvm.add_symbol(name, ctypes.cast(found, ctypes.c_void_p).value)
        elif llvm.address_of_symbol(name) is None:
            from numba.core.registry import cpu_target  # here, because importing numba takes 0.4 s: few need its helpers
            from numba.core.runtime import rtsys

            rtsys.initialize(cpu_target.target_context)
            if llvm.address_of_symbol(name) is None:
                raise ImportError(f"a kernel needs {name!r}, which neither this process nor numba has")
