"""The CPU's own kernels of operators for a device: carried out there, or by the CPU with what is fetched from there.

An operator's kernel checks its arguments, decides on shapes and walks, and calls functions of the room `kernels`. None
of that knows where the numbers are. `on_device(kernel)` is that kernel with a device as the target of those functions
(dispatch/tensor/operand.py): loops become launches, arrays blocks of memory, and an index out of bounds a late error.

`by_host(op)` fetches the arguments, has the CPU's kernel run, and sends the results. It is for algorithms of many steps
that depend on one another's numbers (iterations until an eigenvalue has converged, a rank that is found on the way), on
which a GPU is seldom faster than the host for matrices of a common size; PyTorch, too, has the host do `eig`. All forms
of an operator are meant: what is written to is sent back as well, and a result has the strides that it has on the CPU.
The program waits for the device, so that such a call cannot be recorded. Nobody computes on the null device, where
results are memory that looks as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache as once
from typing import Any

import numpy as np

from redispatch.dispatch import OpOverload, keyset, run
from redispatch.dispatch import pytree as pytree
from redispatch.dispatch.tensor import CPU, META, Tensor, dtypes, empty
from redispatch.dispatch.tensor.operand import TARGET, Place
from redispatch.kernels import DTYPES, Operand, Target, contiguous_strides, copy, is_dense, numel, on_target
from redispatch.kernels.cuda import CUDAReduction, Launch, current_stream
from redispatch.kernels.cuda.indexing import Indexing
from redispatch.kernels.cuda.loops import DeviceLoop
from redispatch.kernels.declare.declare import DECLARED
from redispatch.kernels.declare.planned import without_plan
from redispatch.kernels.declare.structured import common_device, resize

from .async_errors import late_errors
from .copies import fetch, on_cuda, send, sent, table_on, uploaded
from .launch_recorder import constant, refuse
from .operands import address_of, allocator, not_here, operand

INDEXING = Indexing()
reduction_on_cuda = once(CUDAReduction)
# Operators whose tensors may be on the CPU beside others on a device; elsewhere those without dimensions may.
FROM_ANYWHERE = frozenset("index index_put_ _ctc_loss _ctc_loss_backward".split())


def uploaded_bytes(array: np.ndarray, device: Any) -> Any:
    """A block of a device's memory in which an array's bytes lie."""
    source = allocator()
    block = source.allocate(max(array.nbytes, 1), device)
    if array.nbytes:
        source.write(block, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
    return block


class OnDevice(Target):
    """One call of an operator on a device."""

    def __init__(self, device: Any, operator: str) -> None:
        self.device, self.operator = device, operator
        self.held: list[Any] = []  # what was sent, until the call has launched all

    def do_not_cache(self) -> None:
        refuse()

    def entry(self, kernel: Any, signature: tuple[str, ...]) -> Callable[..., Any]:
        key = ("device", *signature)
        found = kernel.entries.get(key)
        if found is None:
            found = kernel.entries[key] = DeviceLoop(kernel, signature, TARGET.get)
        return found

    def memory(self, count: int, dtype: Any) -> Any:
        return allocator().allocate(max(count * np.dtype(dtype).itemsize, 1), self.device)

    def table(self, array: np.ndarray) -> int:
        found = table_on(self.device, (array.tobytes(), array.dtype.char), lambda: array)
        self.held.append(found)
        return address_of(found)

    def numbers(self, x: Operand) -> np.ndarray:
        dense = Operand(
            self.memory(max(numel(x.shape), 1), DTYPES[x.dtype].storage), x.dtype, x.shape, contiguous_strides(x.shape)
        )
        copy(dense, x)
        block: Any = dense.array
        nbytes = numel(x.shape) * DTYPES[x.dtype].storage.itemsize
        return allocator().read(block, nbytes).view(DTYPES[x.dtype].storage).reshape(x.shape)

    def launch(self, where: Launch, arguments: Sequence[Any]) -> None:
        driver = allocator().driver
        stream = current_stream(self.device.index)
        driver.launch(where.kernel.on(driver), where.grid, where.block, arguments, stream)

    def elementwise(self, op: Any, outs: Sequence[Operand], inputs: Sequence[Any], dtype: str | None) -> None:
        wide = dtype is not None and dtype.startswith("complex")
        inputs = [self.here(x) if isinstance(x, Operand) or not wide else self.number(x, dtype) for x in inputs]
        on_cuda(op).launch(outs, inputs, dtype)

    def number(self, value: complex, dtype: str | None) -> Operand:
        one = uploaded(value, self.device, getattr(dtypes, dtype or "complex128"))
        self.held.append(one)
        return operand(one)

    def here(self, x: Any) -> Any:
        """An operand on the device, where it is an array of the CPU's."""
        if not isinstance(x, Operand) or not isinstance(x.array, np.ndarray):
            return x
        array = constant(lambda: uploaded_bytes(x.array, self.device))
        self.held.append(array)
        return x._replace(array=array)

    def reduce(self, reduction: Any, out: Operand, x: Operand, dims: Sequence[int]) -> None:
        reduction_on_cuda(reduction).launch(out, x, dims, self.piece)

    def piece(self, nbytes: int) -> Any:
        block = self.memory(nbytes, np.uint8)
        self.held.append(block)
        return block

    def take(self, out: Operand, x: Operand, places: Sequence[Place]) -> None:
        self.at_places(x, out, places, None, None)

    def put(self, x: Operand, source: Operand, places: Sequence[Place], how: str, skip: int | None = None) -> None:
        if how == "replace" or DTYPES[x.dtype].storage.itemsize >= 4:
            self.at_places(x, source, places, how, skip)
            return
        # No GPU swaps less than a word: all of the memory is widened for the while, which rounds sums once.
        memory: Any = x.array
        narrow = Operand(memory, x.dtype, (memory.nbytes // DTYPES[x.dtype].storage.itemsize,), (1,))
        wide, added = self.widened(narrow), self.widened(source)
        self.at_places(x._replace(array=wide.array, dtype=wide.dtype), added, places, how, skip)
        copy(narrow, wide)

    def widened(self, x: Operand) -> Operand:
        """A dense copy in a type of four bytes."""
        dtype = "float32" if DTYPES[x.dtype].kind == "float" else "int32"
        made = Operand(self.memory(max(numel(x.shape), 1), dtype), dtype, x.shape, contiguous_strides(x.shape))
        copy(made, x)
        return made

    def at_places(self, x: Operand, other: Operand, places: Any, how: str | None, skip: int | None) -> None:
        given = [place._replace(positions=self.here(place.positions)) for place in places]
        prepared = INDEXING.prepared(x, self.here(other), given, how, skip)
        if prepared is not None:
            where, count, arguments = prepared
            errors = late_errors(allocator().driver)
            words = errors.address(self.device.index), errors.number(self.operator)
            self.launch(where, [count, *words, *arguments])


def device_among(args: Any) -> Any:
    """The device of the first tensor that is on one."""
    for value in args:
        if isinstance(value, Tensor) and value._device.type == "cuda":
            return value._device
        if isinstance(value, list | tuple):
            found = device_among(value)
            if found is not None:
                return found
    return None


def on_device(kernel: Callable[..., Any], operator: str) -> Callable[..., Any]:
    """The kernel of the CPU, on the device of its arguments. What may be on the CPU among them goes there before."""

    def run(*args: Any) -> Any:
        device = device_among(args)

        def moved(value: Any) -> Any:
            if isinstance(value, Tensor) and value._device.type == "cpu":
                if value._shape and operator not in FROM_ANYWHERE:
                    raise not_here(value)
                return sent(value, device)
            return [moved(item) for item in value] if isinstance(value, list | tuple) else value

        given = [moved(value) for value in args]
        with on_target(OnDevice(device, operator)):
            return kernel(*given)

    return run


# --- which operators they are -----------------------------------------------------------------------------------------

# They leave all work on elements to functions of the room `kernels`, and read no number that is on the device. So does
# each kernel of the CPU for which the device has no other one, but those that are for the CPU by their name.


def served() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Yields each declared operator with a kernel of the CPU's and none of a device's, and the kernel for devices."""
    for op in DECLARED:
        keys = {key.name: found for key, found in op.registrations.items()}
        if "CPU" in keys and "CUDA" not in keys and "_for_cpu" not in op._opname:
            yield op, without_plan(keys["CPU"][-1].function)


# --- by the host ------------------------------------------------------------------------------------------------------


ON_CPU, ON_META = keyset("CPU"), keyset("Meta")


def through_host() -> Iterator[tuple[OpOverload, Callable[..., Any]]]:
    """Each overload of the operators whose declarations say why the host computes them, and what is to run."""
    for op, declared in DECLARED.items():
        if declared.by_host and "CPU" in {key.name for key in op.registrations}:
            yield op, by_host(op)


def by_host(op: OpOverload) -> Callable[..., Any]:
    """The kernel of an overload that the CPU carries out."""

    def kernel(*args: Any) -> Any:
        here = common_device(*[x for x in args if isinstance(x, Tensor)])
        driver = allocator().driver
        if driver.captured(current_stream(here.index or 0)):
            raise RuntimeError(
                f"{op.name()} is computed by the CPU, which a graph cannot record: call it before, and record what "
                "comes behind"
            )
        copies: dict[int, Tensor] = {}  # by the tensors' ids: what is passed twice is one tensor there, too
        given = pytree.tree_map_only(Tensor, lambda x: fetched(x, copies, driver.computes), args)
        found = run(op, ON_CPU if driver.computes else ON_META, [*given])
        for i in op.schema.mutable_positions:
            put_back(args[i], given[i], driver.computes)
        written = {id(given[i]): args[i] for i in op.schema.mutable_positions}
        return pytree.tree_map_only(
            Tensor, lambda x: written[id(x)] if id(x) in written else sent_as_it_lies(x, here, driver.computes), found
        )

    return kernel


def fetched(x: Tensor, copies: dict[int, Tensor], computes: bool) -> Tensor:
    """The tensor on the CPU, lying as it does; without numbers, where there are none."""
    found = copies.get(id(x))
    if found is None:
        strides = tuple(x._stride) if is_dense(x._shape, x._stride) else None
        found = copies[id(x)] = empty(x._shape, x._dtype, CPU if computes else META, strides)
        if computes and x._shape.numel():
            fetch(found, x)
    return found


def sent_as_it_lies(x: Tensor, here: Any, computes: bool) -> Tensor:
    """The CPU's tensor on a device, with its strides."""
    made = empty(x._shape, x._dtype, here, tuple(x._stride))
    if computes and x._shape.numel():
        send(made, x)
    return made


def put_back(target: Tensor, result: Tensor, computes: bool) -> None:
    """Writes what the CPU has written where it is to be written; an `out=` that it has resized is resized."""
    if target._shape != result._shape:
        resize(target, result._shape, tuple(result._stride))
    if computes and result._shape.numel():
        send(target, result)
