"""Structured operators: `meta` gives the metadata of the result, `body` fills it; every form follows from the two.

    functional   allocate what meta says, fill it
    in-place     the first argument must look like what meta says; fill it
    out=         `out` is resized to what meta says, unless it is an input, too; fill it
    meta device  allocate nothing, fill nothing

`meta` gets the operator's arguments and returns a `Meta`; it checks everything that can be wrong with them and touches
no data. `body` gets the output tensor, then the arguments.

Note [Inputs that share memory with the output]
An input that is the output itself is fine for element-by-element bodies, which read an element before they write it.
An overlap that PyTorch notices (both dense, shifted against each other) is its error here, too. Where PyTorch would
compute nonsense unnoticed, the input is copied first, so that the result is right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch import impl, shared
from redispatch.dispatch.specialiser.annotations import frozen, leaf
from redispatch.dispatch.tensor import (
    META,
    Size,
    Tensor,
    can_cast,
    device,
    dtype,
    empty,
    lay_out,
    metadata_of,
    resize_storage_of,
    result_type,
)
from redispatch.kernels import (
    Operand,
    broadcast_shapes,
    copy,
    has_internal_overlap,
    is_dense,
    output_strides,
    overlap,
)

from .declare import Function, Operator
from .relies import relying


class Meta(NamedTuple):
    """The metadata of a result. `strides` None means dense, row by row."""

    shape: tuple[int, ...]
    dtype: dtype
    device: device
    strides: tuple[int, ...] | None = None

    def allocate(self, on: Any = None) -> Tensor:
        """Returns a new tensor of this metadata."""
        return empty(self.shape, self.dtype, on or self.device, self.strides)


def broadcast(*tensors: Tensor, dtype: dtype | None = None) -> Meta:
    """The metadata of what is computed of these tensors element by element."""
    shape = broadcast_shapes(*(x._shape for x in tensors))
    strides = output_strides(shape, tuple((x._shape, x._stride) for x in tensors))
    return Meta(shape, dtype or result_type(*tensors), common_device(*tensors), strides)


class Forms:
    """The three forms of an operator with one result, on one backend: of a meta function, and of a body that fills.

    dtype_of_target: whether, in place and with `out=`, `dtype=None` means the dtype of what is written to.
    elementwise: the body reads an element before it writes it, and so may write over an input.
    out_dtype: raises for an `out=` of a dtype that does not do, by these two and the schema's name for the result. By
        default the result's category must go into it.
    """

    names: list[str]
    meta_function: Callable[..., Meta]
    body_function: Function
    dtype_of_target = False
    elementwise = False
    out_dtype: OutDtype | None = None

    def metas_function(self, *args: Any) -> tuple[Meta | None, ...]:
        """The metadata of all results: here of one."""
        return (self.meta_function(*args),)

    @leaf
    def run_functional(self, *args: Any) -> Any:
        result = self.meta_function(*args).allocate()
        self.body_function(result, *args)
        return result

    @leaf
    def run_inplace(self, *args: Any) -> Tensor:
        target, args = args[0], self.with_dtype(args, args[0])
        check_writable(target, self.meta_function(*args))
        self.fill(target, args)
        return target

    @leaf
    def run_out(self, *args: Any) -> Any:
        *inputs, out = self.with_dtype(args, args[-1])
        meta = self.meta_function(*inputs)
        if is_among(out, inputs):
            self.check_own(out, meta)
        resize_out(out, meta, self.out_dtype)
        self.fill(out, inputs)
        return out

    def check_own(self, out: Tensor, meta: Meta) -> None:
        """Raises RuntimeError for an input as `out=` that the result would give another shape: the input's, too."""
        check_writable(out, meta)

    def fill(self, target: Tensor, args: Sequence[Any]) -> None:
        """Writes the result into a tensor that may share memory with arguments."""
        check_no_internal_overlap(target)
        self.body_function(target, *[self.unaliased(value, target) for value in args])

    def unaliased(self, value: Any, target: Tensor) -> Any:
        """`value`, or a copy of it where it shares memory with `target`."""
        return apart(value, target, self.elementwise)

    def with_dtype(self, args: tuple[Any, ...], target: Tensor) -> tuple[Any, ...]:
        """The arguments, with the target's dtype in the place of `dtype=None` where it counts."""
        if not self.dtype_of_target:
            return args
        at = self.names.index("dtype")
        return args if args[at] is not None else (*args[:at], target._dtype, *args[at + 1 :])


@frozen
class Structured(Forms, Operator):
    """An operator with one tensor result, made from a meta function and a body."""

    kind = "structured"

    def meta(self, function: Callable[..., Meta]) -> Callable[..., Meta]:
        """Registers the result's metadata, and with it the kernels of the meta device. It calls no operator."""
        self.meta_function = relying(self, function)
        self._register("Meta", "meta", self._meta_functional, self._meta_inplace, self._meta_out)
        return function

    def body(self, function: Function | None = None, *, dispatches: bool = False) -> Any:
        """Registers what fills the result, and with it the CPU kernels of all forms.

        It calls no operator (declare.py, Note [Kernels are leaves]), unless it `dispatches`.
        """
        if function is None:
            return lambda function: self.body(function, dispatches=dispatches)
        self.body_function, self.doc = function, self.doc or function.__doc__ or ""
        self._register("CPU", self.kind, self.run_functional, self.run_inplace, self.run_out, dispatches=dispatches)
        return function

    def _register(self, key: str, kind: str, *kernels: Function, dispatches: bool = False) -> None:
        """Registers the kernels of the functional, in-place and out= forms, as far as there are such forms."""
        name = f"{kind} {self.base_name}"
        for op, kernel in zip((self.functional, self.inplace, self.out), kernels, strict=True):
            if op is not None:
                kernel = unmarked(kernel) if dispatches else kernel
                impl(op, key, kernel, convention="positional", place=self.place, name=name)

    @leaf
    def _meta_functional(self, *args: Any) -> Any:
        return self.meta_function(*args).allocate(META)

    @leaf
    def _meta_inplace(self, *args: Any) -> Tensor:
        check_writable(args[0], self.meta_function(*self.with_dtype(args, args[0])))
        return args[0]

    @leaf
    def _meta_out(self, *args: Any) -> Any:
        resize_out(args[-1], self.meta_function(*self.with_dtype(args, args[-1])[:-1]), self.out_dtype)
        return args[-1]


@frozen
class PerElement(Structured):
    """Declares an operator each element of whose result depends on one of each tensor, read before it is written."""

    elementwise = True

    def __init__(self, schema: str, **facts: Any) -> None:
        super().__init__(schema, tags=("pointwise",), **facts)


@frozen
class Several(Structured):
    """Declares an operator with several results, such as those of `linalg_svd`: `meta` gives the metadata of each, and
    `body` gets a tuple of outputs. There is no in-place form."""

    metas_function: Callable[..., tuple[Meta, ...]]

    def meta(self, function: Callable[..., Any]) -> Callable[..., Any]:
        self.metas_function = relying(self, function)
        return super().meta(function)

    @leaf
    def run_functional(self, *args: Any) -> tuple[Tensor, ...]:
        results = tuple(meta.allocate() for meta in self.metas_function(*args))
        self.body_function(results, *args)
        return results

    @leaf
    def run_out(self, *args: Any) -> tuple[Tensor, ...]:
        inputs, outs = self._resized(args)
        for out in outs:
            check_no_internal_overlap(out)
            inputs = tuple(self.unaliased(value, out) for value in inputs)
        self.body_function(outs, *inputs)
        return outs

    @leaf
    def _meta_functional(self, *args: Any) -> tuple[Tensor, ...]:
        return tuple(meta.allocate(META) for meta in self.metas_function(*args))

    @leaf
    def _meta_out(self, *args: Any) -> tuple[Tensor, ...]:
        return self._resized(args)[1]

    def _resized(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Tensor, ...]]:
        """The inputs, and the tensors to write, which have the results' shapes then."""
        count = len(self.functional.schema.returns)
        inputs, outs = args[:-count], args[-count:]
        names = [one.name for one in self.functional.schema.returns]
        for out, meta, name in zip(outs, self.metas_function(*inputs), names, strict=True):
            resize_out(out, meta, self.out_dtype or check_out_dtype, name)
        return inputs, outs


def unmarked(kernel: Function) -> Function:
    """The kernel without the marks that its method has for all operators."""
    return lambda *args: kernel(*args)


def check_writable(target: Tensor, meta: Meta) -> None:
    """Raises RuntimeError where a result that looks like `meta` cannot be stored in `target`."""
    if tuple(meta.shape) != tuple(target._shape):
        raise RuntimeError(
            f"output with shape {list(target._shape)} doesn't match the broadcast shape {list(meta.shape)}"
        )
    check_can_cast(meta.dtype, target._dtype)


OutDtype = Callable[..., None]  # (out, wanted dtype, name of the result)


def check_can_cast(result: dtype, target: dtype) -> None:
    """Raises RuntimeError where storing would lose the category: floating in an integer, complex in a float."""
    if not can_cast(result, target):
        raise RuntimeError(
            f"result type {result.tensor_name} can't be cast to the desired output type {target.tensor_name}"
        )


def same_dtype(said: str) -> OutDtype:
    """A check that `out=` has the very dtype of the result; `said` has a place for `wanted` and `found`, in words of
    Python or of C."""

    def check(out: Tensor, wanted: dtype, name: str = "result") -> None:
        if out._dtype is not wanted:
            words = {"wanted": wanted.tensor_name, "found": out._dtype.tensor_name}
            raise RuntimeError(said.format(**words, c_wanted=c_name(wanted), c_found=c_name(out._dtype)))

    return check


check_out_dtype = same_dtype("Expected out tensor to have dtype {c_wanted}, but got {c_found} instead")


def castable(function: str, named: str = "") -> OutDtype:
    """A check that the result's category goes into `out=`, as older functions of matrices say it."""

    def check(out: Tensor, wanted: dtype, name: str = "result") -> None:
        if not can_cast(wanted, out._dtype):
            said = named or name
            raise RuntimeError(
                f"{function}: Expected {said} to be safely castable from {wanted.tensor_name} dtype, but got {said} "
                f"with dtype {out._dtype.tensor_name}"
            )

    return check


def c_name(dtype: dtype) -> str:
    """A dtype as C++ calls it, which is how some messages do."""
    return _C_NAMES.get(dtype.name, dtype.name)


_C_NAMES = {
    "float32": "float", "float64": "double", "int64": "long int", "int32": "int", "int16": "short int",
    "int8": "signed char", "uint8": "unsigned char", "float16": "c10::Half", "bfloat16": "c10::BFloat16",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def resize_out(out: Tensor, meta: Meta, check: OutDtype | None = None, name: str = "result") -> None:
    """Gives `out=` the result's shape, with PyTorch's warning where it has another one and is not empty."""
    if out._device != meta.device and out._device.type != "meta":
        raise RuntimeError(f"Expected out tensor to be on {meta.device}, but it is on {out._device}")
    if check is not None:
        check(out, meta.dtype, name)
    check_can_cast(meta.dtype, out._dtype)
    if tuple(out._shape) == tuple(meta.shape):
        return
    if out._shape.numel():
        warn_of_resizing(out._shape, meta.shape)
    resize(out, Size(meta.shape), meta.strides)


def warn_of_resizing(shape: Sequence[int], needed: Sequence[int]) -> None:
    """PyTorch's warning that a tensor with elements is resized, because a result goes there."""
    warnings.warn(
        f"An output with one or more elements was resized since it had shape {list(shape)}, which does not match the "
        f"required output shape {list(needed)}. This behavior is deprecated, and in a future PyTorch release outputs "
        "will not be resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, "
        "inplace, to zero elements with t.resize_(0).",
        UserWarning,
        stacklevel=3,
    )


def resize(tensor: Tensor, shape: Size, strides: tuple[int, ...] | None = None) -> None:
    """Gives a tensor another shape in place; its storage grows where that is needed and never shrinks."""
    fresh = empty(shape, tensor._dtype, META, strides)
    needed = (tensor._offset + fresh._storage.nbytes() // tensor._dtype.itemsize) * tensor._dtype.itemsize
    if needed > tensor._storage.nbytes():
        resize_storage_of(tensor, needed)
    lay_out(tensor, fresh._shape, fresh._stride, tensor._offset)
    tensor._array = tensor._storage.typed(tensor._dtype)  # it has one again, if its storage had become too small


def not_implemented(kernel_name: str, kind: dtype) -> NotImplementedError:
    """Returns the error of a kernel for a dtype that it was not written for, under PyTorch's name for that kernel."""
    return NotImplementedError(f"\"{kernel_name}\" not implemented for '{kind.tensor_name}'")


def check_has_kernel(kernel_name: str, x: Tensor, refused: str | Sequence[str]) -> None:
    """Raises NotImplementedError, under PyTorch's name for a kernel, for the dtypes that it was not written for."""
    if x._dtype.name in ((refused,) if isinstance(refused, str) else refused):
        raise not_implemented(kernel_name, x._dtype)


def check_no_internal_overlap(target: Tensor) -> None:
    """Raises RuntimeError where two elements of a tensor to be written share one place in memory."""
    if has_internal_overlap(target._shape, target._stride):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )


def apart(value: Any, target: Tensor, elementwise: bool) -> Any:
    """`value`, or a copy of it where it shares memory with `target`. Note [Inputs that share memory with the
    output]."""
    if isinstance(value, list | tuple):
        return [apart(item, target, elementwise) for item in value]
    if not isinstance(value, Tensor) or value._storage is not target._storage:
        return value
    a, b = value._operand, target._operand
    if value is target or same_place(a, b):
        return value if elementwise else copy_of(value)
    if overlap(a, b) == "no":
        return value
    if is_dense(a.shape, a.strides) and is_dense(b.shape, b.strides):
        raise overlapping()
    return copy_of(value)


def overlapping() -> RuntimeError:
    """Returns the error for an input that shows memory which is to be written, at other places."""
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def is_among(out: Tensor, inputs: Iterable[Any]) -> bool:
    """Whether the very tensor `out` is one of the inputs, or in a list among them."""
    return any(value is out or isinstance(value, list | tuple) and is_among(out, value) for value in inputs)


def same_place(a: Operand, b: Operand) -> bool:
    return (a.offset, a.shape, a.strides, a.dtype) == (b.offset, b.shape, b.strides, b.dtype)


def copy_of(value: Tensor) -> Tensor:
    """A dense copy with memory of its own, in which the same lies: lazy bits stay."""
    fresh = empty(value._shape, value._dtype, value._device)
    copy(fresh._operand, value._operand)
    bits = metadata_of(value).bits
    if bits:
        fresh._keyset, fresh._interned = shared(fresh._keyset | bits), None
    return fresh


def common_device(*tensors: Any) -> device:
    """The device of the tensors; a tensor without dimensions on the CPU goes with any. RuntimeError where they
    differ."""
    found: device | None = None
    for tensor in tensors:
        if tensor is None or not isinstance(tensor, Tensor) or (not tensor._shape and tensor._device.type == "cpu"):
            continue
        if found is None:
            found = tensor._device
        elif tensor._device != found:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and "
                f"{tensor._device}!"
            )
    return found or next(tensor._device for tensor in tensors if isinstance(tensor, Tensor))
