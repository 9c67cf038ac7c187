"""The CPU fallback: runs an operator on copies of its arguments in the CPU's memory, and brings the results back.

    library.Library("_", "IMPL").fallback(cpu_fallback, "PrivateUse1")

gives it to every operator that has no kernel on a backend; `Backend.run_on_cpu("sort")` to some of them.

What an operator writes is copied back into the tensors that it was given, so in-place and out= forms work. A view
cannot be had this way, since its memory would be another: that is an error, and the backend has to give views itself.
"""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import STATE, MissingKernelError, OpOverload, bind, call, keyset, within
from redispatch.dispatch.core.key import AUTOCAST_MASK
from redispatch.dispatch.layers.autograd import AUTOGRAD
from redispatch.dispatch.tensor import CPU, KINDS, Tensor, device, indexed
from redispatch.kernels.ops.generators import LentGenerator

# By these the fallback itself makes tensors and moves them: there has to be something else that does.
MEMORY = frozenset(f"aten::{name}" for name in ("empty.memory_format", "empty_strided", "_copy_from"))
ABOVE = AUTOCAST_MASK | AUTOGRAD | keyset("ADInplaceOrView")


def cpu_fallback(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """The results of `op` on the device of its arguments, computed on the CPU.

    Errors: NotImplementedError for an operator that returns a view of an argument, or makes the memory of tensors.
    """
    schema = op.schema
    stack = bind(schema, args, kwargs)
    if schema.is_view:
        raise MissingKernelError(
            f"{op.name()} returns a view of its argument, which the CPU cannot make of another device's memory. Give "
            f"the backend a kernel for it: Library('aten', 'IMPL').impl('{op.name()}', kernel, key)",
            op,
        )
    if op.qualified_name in MEMORY:
        raise MissingKernelError(
            f"{op.name()} makes or moves memory of {device_of(stack)}, which the CPU cannot do for another device. "
            "Register the backend with an allocator, or give it a kernel for this operator",
            op,
        )
    home = device_of(stack)
    copies: dict[int, Tensor] = {}  # by identity, so that an argument given twice is one tensor on the CPU, too
    there = [fetched(value, copies) for value in stack]
    for position, argument in enumerate(schema.arguments):
        if argument.name == "generator":
            there[position] = on_the_cpu(there[position] or default_generator_of(home))
    # Layers above have had their turn, for the device: autocast for the CPU, say, is not to cast what runs for another.
    with within(STATE.get().excluding(ABOVE)):
        result = call(op, there)
        for position in schema.mutable_positions:
            bring_back(stack[position], there[position])
    originals = {id(copy): original for original, copy in pairs(stack, there)}
    return returned(result, originals, home)


def device_of(stack: list[Any]) -> device:
    """Returns the device of the results: that of the first tensor off the CPU, or the device that was asked for."""
    tensors = [x for value in stack for x in (value if isinstance(value, list | tuple) else (value,))]
    for x in tensors:
        if isinstance(x, Tensor) and x.device.type != "cpu":
            return x.device
    return next((indexed(value) for value in stack if isinstance(value, device)), CPU)


def fetched(value: Any, copies: dict[int, Tensor]) -> Any:
    """An argument as the CPU can use it."""
    if isinstance(value, Tensor):
        if value.device.type in ("cpu", "meta"):
            return value
        if id(value) not in copies:
            copies[id(value)] = value.cpu()
        return copies[id(value)]
    if isinstance(value, list | tuple):
        return [fetched(item, copies) for item in value]
    return CPU if isinstance(value, device) else value


def pairs(given: Any, used: Any) -> list[tuple[Tensor, Tensor]]:
    """The tensors among the arguments, each with what stood for it."""
    if isinstance(given, Tensor):
        return [(given, used)]
    if isinstance(given, list | tuple):
        return [pair for one, other in zip(given, used, strict=True) for pair in pairs(one, other)]
    return []


def bring_back(given: Any, used: Any) -> None:
    """Puts what an operator wrote where it belongs; an `out` may have got another shape."""
    for original, copy in pairs(given, used):
        if original is not copy:
            if original.shape != copy.shape:
                original.resize_(copy.shape)
            original.copy_(copy)  # which is no second write: versions are counted above


def returned(result: Any, originals: dict[int, Tensor], home: device) -> Any:
    """The results on their device; an argument that was returned is the argument itself."""
    if isinstance(result, Tensor):
        return originals[id(result)] if id(result) in originals else result.to(home)
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*(returned(item, originals, home) for item in result))
    if isinstance(result, list | tuple):
        return type(result)(returned(item, originals, home) for item in result)
    return result


def on_the_cpu(generator: Any) -> Any:
    """A generator as kernels of the CPU take it: lent, where it is another device's."""
    return generator if generator is None or generator.device.type == "cpu" else LentGenerator(generator)


def default_generator_of(home: device) -> Any:
    """The generator that a device draws from where none is given; None for that of the CPU."""
    kind = KINDS.get(home.type)
    return None if kind is None else kind.generators.get(home.index or 0)
