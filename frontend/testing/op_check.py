"""opcheck: whether an operator was registered rightly, tried with arguments of the user's.

    opcheck(op, (x, 3))    {"test_schema": "SUCCESS", ...}, or OpCheckError, which says what is wrong

That its derivative is right mathematically is another question: `gradcheck` answers it.

Read next: schema_check.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch import OpOverload, OpOverloadPacket, wants_gradient
from redispatch.dispatch.layers.autograd import AUTOGRAD_KEYS, DERIVATIVES, NO_DERIVATIVE
from redispatch.dispatch.tensor import Tensor, device
from redispatch.kernels.declare.custom_op import CustomOpDef
from redispatch.kernels.declare.from_scalar import FromScalar
from redispatch.utils._pytree import tree_leaves, tree_map, tree_map_only

from .comparison import assert_close
from .schema_check import observed, overlap

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class OpCheckError(Exception):
    """An operator is registered wrongly; the text begins with the name of the test that found it."""


def opcheck(
    op: OpOverload | OpOverloadPacket | CustomOpDef | FromScalar,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] | None = None,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Returns the outcome of each test of an operator called with these arguments: "SUCCESS", or the exception.

    test_schema: the kernel writes and aliases what the schema says. test_autograd_registration: there is a derivative
    where an argument requires grad. test_faketensor: the fake gives what the kernel gives, but for the data, and shares
    what memory it shares. test_aot_dispatch_static: gradients can be computed, without data, too.
    test_aot_dispatch_dynamic: and the fake is right for other sizes.
    test_utils: which tests to run; all but the static one by default. rtol, atol: for gradients.
    Errors: OpCheckError at the first test that fails, unless `raise_exception` is False; ValueError for something that
    is no operator or no test.
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    names = (
        BY_DEFAULT if test_utils in (None, "ALL") else ((test_utils,) if isinstance(test_utils, str) else test_utils)
    )
    if not isinstance(names, tuple | list) or not set(names) <= TESTS.keys():
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {tuple(TESTS)} but it was not"
        )
    call = Call(op, args, kwargs or {}, {} if rtol is None else {"rtol": rtol, "atol": atol})
    found: dict[str, Any] = {}
    for name in names:
        try:
            TESTS[name](call)
            found[name] = "SUCCESS"
        except Exception as problem:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {problem} (scroll up for stack trace)"
                ) from problem
            found[name] = problem
    return found


class Call:
    """An operator and the arguments to try it with, which stay as they are: each test works on copies."""

    def __init__(self, op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tolerance: dict[str, Any]) -> None:
        if isinstance(op, CustomOpDef) and op._trees is not None:
            args, kwargs = (), op._trees.spread(args, kwargs)
        self.op, self.args, self.kwargs, self.tolerance = overload_of(op), args, kwargs, tolerance

    def arguments(self, change: Callable[[Tensor], Tensor]) -> Arguments:
        """The arguments with each tensor changed."""
        return tree_map_only(Tensor, change, (self.args, self.kwargs))

    def on_meta(self, change: Callable[[Tensor], Tensor]) -> Arguments:
        """Runs the call on the meta device, devices among the arguments included."""
        moved = self.arguments(lambda x: without_data(change(x)))
        return tree_map(lambda leaf: device("meta") if isinstance(leaf, device) else leaf, moved)

    def wants_gradients(self) -> bool:
        return any(wants_gradient(leaf) for leaf in tree_leaves((self.args, self.kwargs)))


def overload_of(op: Any) -> OpOverload:
    """The operator meant. ValueError for something else, RuntimeError for a packet with several overloads."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, FromScalar):
        return op.op
    if isinstance(op, OpOverloadPacket):
        if len(op.overloads()) != 1:
            raise RuntimeError(
                "opcheck can only test operators without overloads. Got the following overloads for "
                f"{op._qualified_op_name}: {op.overloads()}"
            )
        return getattr(op, op.overloads()[0])
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got "
            f"{type(op)}"
        )
    return op


# Copies of arguments -------------------------------------------------------------------------------------------------


def detached(x: Tensor) -> Tensor:
    return x.detach().clone()


def as_leaf(x: Tensor) -> Tensor:
    """A copy that requires grad if `x` does."""
    return detached(x).requires_grad_(x.requires_grad)


def doubled(x: Tensor) -> Tensor:
    """The elements repeated along each dimension whose size is not 1: sizes that were equal still are."""
    return x.detach().repeat([1 if size == 1 else 2 for size in x.shape]) if x.dim() else detached(x)


def without_data(x: Tensor) -> Tensor:
    return x.detach().to("meta").requires_grad_(x.requires_grad)


# The tests -----------------------------------------------------------------------------------------------------------


def check_schema(call: Call) -> None:
    """RuntimeError where the kernel does what the schema does not say; a warning where the schema says too much."""
    args, kwargs = call.arguments(detached)
    seen = observed(call.op, args, kwargs)
    if seen.unmutated:
        warnings.warn(
            f"opcheck: {call.op} declares argument {', '.join(seen.unmutated)} as written, and with these arguments "
            "nothing was; if nothing ever is, leave the exclamation mark out of the schema",
            UserWarning,
            stacklevel=3,
        )


def check_autograd_registration(call: Call) -> None:
    """AssertionError where a gradient is wanted and nothing above the backends would record one."""
    op = call.op
    keys = (*AUTOGRAD_KEYS, "Autograd", "CompositeImplicitAutograd")
    if (
        not call.wants_gradients()
        or DERIVATIVES.get(op) not in (None, NO_DERIVATIVE())
        or any(map(op.has_kernel_for_dispatch_key, keys))
    ):
        return
    args, kwargs = call.arguments(as_leaf)
    if any(wants_gradient(leaf) for leaf in tree_leaves(op(*args, **kwargs))):
        registered = ", ".join(f"{key.name} ({kernels[-1].place})" for key, kernels in op.registrations.items())
        raise AssertionError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have "
            "an autograd kernel defined at an autograd key (e.g. DispatchKey::Autograd).\n"
            f"  registered   {registered}\n"
            "  to fix       register_autograd(backward); or write it in other operators, and register it as "
            "CompositeImplicitAutograd"
        )


def check_faketensor(call: Call) -> None:
    """AssertionError where the fake's results differ from the kernel's in more than the data."""
    compare_with_fake(call, detached)


def check_aot_dispatch_dynamic(call: Call) -> None:
    """The fake for sizes twice as large, where the kernel takes them; then gradients, with and without data."""
    try:
        args, kwargs = call.arguments(doubled)
        with no_grad():
            call.op(*args, **kwargs)
    except Exception:  # the kernel knows which sizes belong together; it is not it that is on trial
        pass
    else:
        compare_with_fake(call, doubled)
    check_aot_dispatch_static(call)


def check_aot_dispatch_static(call: Call) -> None:
    """Gradients, with and without data."""
    if call.wants_gradients() and not call.op.schema.is_mutable:
        compare_gradients(call)


def compare_with_fake(call: Call, change: Callable[[Tensor], Tensor]) -> None:
    """AssertionError where kernel and fake differ, which shows what each gave."""
    with no_grad():
        args, kwargs = call.arguments(change)
        result = call.op(*args, **kwargs)
        given, shared = list(metadata(result)), sharing(result, (args, kwargs))
        args, kwargs = call.on_meta(change)
        result = call.op(*args, **kwargs)
        faked, shared_by_fake = list(metadata(result)), sharing(result, (args, kwargs))
    for check, (real, fake) in {name: (shared[name], shared_by_fake[name]) for name in shared}.items():
        if real != fake:
            raise AssertionError(
                f"When comparing the output of {call.op} on FakeTensor and concrete Tensors, found mismatch in {check} "
                f"check {fake} != {real}: have the fake make tensors (empty_like, new_empty) where the kernel does"
            )
    if given != faked:
        raise AssertionError(
            f"{call.op.name()}: the fake does not say what the kernel does\n"
            f"  you passed   {', '.join(metadata(call.arguments(change)))}\n"
            f"  the kernel   {', '.join(given) or 'nothing'}\n"
            f"  the fake     {', '.join(faked) or 'nothing'}"
        )


def compare_gradients(call: Call) -> None:
    """AssertionError where two backward passes differ, or a gradient without data looks unlike one with data."""
    once, again = gradients(call.op, *call.arguments(as_leaf)), gradients(call.op, *call.arguments(as_leaf))
    for first, second in zip(once, again, strict=True):
        if first is not None and second is not None:
            assert_close(first, second, equal_nan=True, **call.tolerance)
    faked = gradients(call.op, *call.on_meta(lambda x: x))
    with_data, without = [list(metadata(one)) for one in once], [list(metadata(one)) for one in faked]
    if with_data != without:
        raise AssertionError(
            f"{call.op.name()}: its backward gives {with_data} with data, and {without} on the meta device"
        )


def gradients(op: OpOverload, args: Any, kwargs: Any) -> list[Any]:
    """The gradients of the sum of all results, for the arguments that require grad."""
    leaves = [leaf for leaf in tree_leaves((args, kwargs)) if wants_gradient(leaf)]
    results = [leaf for leaf in tree_leaves(op(*args, **kwargs)) if wants_gradient(leaf)]
    for result in results:
        result.backward(result.detach().clone().fill_(1), retain_graph=True)
    return [leaf.grad for leaf in leaves]


def sharing(result: Any, arguments: Any) -> dict[str, bool]:
    """Whether results share memory with arguments, and with each other."""
    results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
    return {
        "outputs_alias_inputs": overlap(results, arguments),
        "outputs_alias_each_other": any(overlap(a, b) for a, b in combinations(results, 2)),
    }


def metadata(value: Any) -> Iterable[str]:
    """Each tensor in a value as text: `float32[2, 3], strides (3, 1)`; anything else by its type."""
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor):
            yield f"{str(leaf.dtype).rpartition('.')[2]}{list(leaf.shape)} with strides {tuple(leaf.stride())}"
        else:
            yield type(leaf).__name__


TESTS: dict[str, Callable[[Call], None]] = {
    "test_schema": check_schema,
    "test_autograd_registration": check_autograd_registration,
    "test_faketensor": check_faketensor,
    "test_aot_dispatch_static": check_aot_dispatch_static,
    "test_aot_dispatch_dynamic": check_aot_dispatch_dynamic,
}
BY_DEFAULT = tuple(name for name in TESTS if name != "test_aot_dispatch_static")  # the dynamic one has it, too
