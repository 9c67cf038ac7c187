"""Higher-order operators: what takes functions as arguments, and still goes down the stack of dispatch keys.

    class Twice(HigherOrderOperator):
        def __init__(self): super().__init__("twice")
        def __call__(self, f, x): return super().__call__(f, x)

    twice = Twice()

    @twice.py_impl(DispatchKey.CompositeExplicitAutograd)
    def twice_dense(f, x): return f(f(x))

Such an operator has neither schema nor stack: every kernel is called with the user's own arguments. The keyset comes
from the tensors among them, in whatever containers, and a key finds its kernel by the rule of all operators (table.py).
Modes, subclasses and transforms, which know what to do with operators on tensors, know nothing of a function; each
needs a rule of its own (`py_impl(ModeClass)`), or it is an error that says so.

An operator that only spells out a control flow can be *transparent*: whoever has no rule for it runs its body, and
meets the operators that the body calls. A mode with `supports_higher_order_operators` is handed the operator itself.

Source: PyTorch's torch._ops.HigherOrderOperator. Read next: frontend/_higher_order_ops/.
"""

from __future__ import annotations

import abc
import inspect
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any, NoReturn

from redispatch.dispatch.pytree import tree_leaves, tree_map_only

from .core.base import TensorBase, wants_gradient
from .core.key import DispatchKey, key_named
from .core.keyset import keyset, runtime_keys
from .core.state import ABOVE_PYTHON, STATE, with_modes, within
from .core.table import Kernel, resolve
from .layers.autograd import AUTOGRAD
from .layers.python import has_handler, in_order
from .namespaces import ops
from .protocols.mode_stack import TorchDispatchMode
from .protocols.override import handle_torch_function, overridden, overriding
from .rules import Slot, place_of

Function = Callable[..., Any]

# Layers that have nothing to say about functions: passed over, until somebody registers a kernel there.
FALLTHROUGH_KEYS = (
    "PythonDispatcher",
    "PythonTLSSnapshot",
    "ADInplaceOrView",
    "BackendSelect",
    "AutocastCPU",
    "AutocastCUDA",
    "AutocastXPU",
)
BELOW_AUTOGRAD = AUTOGRAD | keyset("ADInplaceOrView")  # what a kernel of autograd excludes to call the operator again
PYTHON = keyset("Python")

# (level or None) -> what a functionalization rule gets as its first argument; filled by the room that functionalizes.
FUNCTIONALIZE_API: Slot[Function] = Slot("how a higher-order operator is functionalized")


class TransformType(StrEnum):
    """The function transforms, as `py_impl` names them."""

    Vmap = "VmapLevel"
    Grad = "GradLevel"
    Jvp = "JvpLevel"
    Functionalize = "FunctionalizeLevel"


class HigherOrderOperator(abc.ABC):
    """An operator whose arguments may be functions. Subclass it, with a `__call__` that ends in `super().__call__`.

    transparent: whether modes, subclasses and transforms without a rule for it run its body in the place of an error.
    """

    def __init__(
        self,
        name: str,
        *,
        cacheable: bool = False,
        supports_training_input_mutation: bool = False,
        transparent: bool = False,
    ) -> None:
        if type(self) is HigherOrderOperator:
            raise RuntimeError(
                "Direct instantiation of HigherOrderOperator is not allowed. Please subclass it."
            )  # not reached while `__call__` is abstract, which says so first
        self._name = self.__name__ = name
        self._ns = "higher_order"
        self.__module__ = "torch.ops.higher_order"
        self.transparent = transparent
        self._cacheable = cacheable
        self.supports_training_input_mutation = supports_training_input_mutation
        self.registrations: dict[DispatchKey, list[Kernel]] = {}
        self.python_key_table: dict[type, Function] = {}  # by class of mode or subclass
        self.functorch_table: dict[str, Function] = {}  # by TransformType
        self.functionalization: Function | None = None  # what `py_functionalize_impl` registered
        self.passed_over = {key_named(key) for key in FALLTHROUGH_KEYS}
        HIGHER_ORDER[name] = self

    def name(self) -> str:
        return self._name

    @property
    def namespace(self) -> str:
        return self._ns

    def cacheable(self) -> bool:
        return self._cacheable

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<HigherOrderOperator {self._name}>"

    def gen_schema(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Returns the schema of a call. NotImplementedError: it has none unless a subclass says so."""
        raise NotImplementedError(
            f"HigherOrderOperator {self._name} does not implement a gen_schema. This is OK as long as the hop is "
            "functional. e.g. it should not mutate its inputs and there are no input, output aliasing via views or "
            "direct referencing."
        )

    # Registering --------------------------------------------------------------------------------------------------

    @property
    def py_kernels(self) -> dict[DispatchKey, Function]:
        """The kernels, by key."""
        return {key: kernels[-1].function for key, kernels in self.registrations.items()}

    def has_kernel_for_dispatch_key(self, key: DispatchKey | str) -> bool:
        return key_named(key) in self.registrations

    def py_impl(self, key: Any) -> Callable[[Function], Function]:
        """A decorator that registers what answers at a dispatch key, for a mode, a subclass or a TransformType.

        A kernel gets the call's arguments; a mode's rule the mode first, a transform's rule the level first.
        Errors: RuntimeError, with both places, for a second kernel; AssertionError for a key that it cannot be.
        """

        def register(function: Function) -> Function:
            if inspect.isclass(key) and issubclass(key, TorchDispatchMode | TensorBase):
                if key in self.python_key_table:
                    raise AssertionError(f"{key} already registered in python_key_table")
                self.python_key_table[key] = function
            elif isinstance(key, TransformType):
                if key in self.functorch_table:
                    raise AssertionError(f"{key!r} already registered in functorch_table")
                self.functorch_table[key] = function
            else:
                self._register_kernel(key, function)
            return function

        return register

    def _register_kernel(self, key: Any, function: Function) -> None:
        if not isinstance(key, DispatchKey):
            raise AssertionError(f"expected DispatchKey, got {type(key)}")
        if key is DispatchKey.Python:
            raise AssertionError("Please register a mode for the DispatchKey.Python key instead.")
        place = place_of(function)
        if key in self.registrations:
            raise RuntimeError(
                f"Trying to override a python impl for {key} on operator {self._name}: the former one is at "
                f"{self.registrations[key][-1].place}, the new one at {place}"
            )
        self.registrations[key] = [Kernel(function, function, "python", place)]
        self.passed_over.discard(key)

    def py_autograd_impl(self, function: Function) -> Function:
        """Registers what records: `function(*args)`, called where a gradient is wanted. Otherwise the call goes on."""

        def maybe_record(*args: Any, **kwargs: Any) -> Any:
            if STATE.get().grad_enabled and any(map(wants_gradient, tree_leaves((args, kwargs)))):
                return function(*args, **kwargs)
            with within(STATE.get().excluding(BELOW_AUTOGRAD)):
                return self(*args, **kwargs)

        self.py_impl(DispatchKey.Autograd)(maybe_record)
        return function

    def py_functionalize_impl(self, function: Function) -> Function:
        """Registers `function(ctx, *args)`, which says what the operator is where writes are taken out of programs: at
        the key Functionalize, under the transform, and under a mode that functionalizes.

        `ctx` unwraps and wraps tensors, and makes a functional program of a function
        (dispatch/transforms/functionalize.py). For NotImplemented a transparent operator runs its body.
        """

        def functionalized(*args: Any, **kwargs: Any) -> Any:
            result = function(FUNCTIONALIZE_API()(None), *args, **kwargs)
            return self._body(args, kwargs) if result is NotImplemented and self.transparent else result

        def under_transform(level: Any, *args: Any, **kwargs: Any) -> Any:
            return function(FUNCTIONALIZE_API()(level), *args, **kwargs)

        self.py_impl(DispatchKey.Functionalize)(functionalized)
        self.py_impl(TransformType.Functionalize)(under_transform)
        self.functionalization = function
        return function

    def fallthrough(self, key: DispatchKey | str) -> None:
        """Has calls pass over a key."""
        self.passed_over.add(key_named(key))

    # Calling ------------------------------------------------------------------------------------------------------

    @abc.abstractmethod
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Asks overriding functions and modes, then runs what answers at the highest key."""
        leaves = tuple(tree_leaves((args, kwargs)))
        if overridden(leaves, {}):
            return handle_torch_function(self, overriding(leaves, {}), *args, **kwargs)
        if self.transparent and (mode := self._interested_mode()) is not None:
            result = self._ask_mode(mode, args, kwargs)
            if result is not NotImplemented:
                return result
        return self.dispatch(self._highest_key(leaves), *args, **kwargs)

    def _highest_key(self, leaves: tuple[Any, ...]) -> DispatchKey:
        state = STATE.get()
        keys = state.included
        for leaf in leaves:
            if isinstance(leaf, TensorBase):
                keys |= leaf._keyset
        found = (key for key in runtime_keys(keys & ~state.excluded) if key not in self.passed_over)
        return next(found, DispatchKey.Undefined)

    def dispatch(self, key: DispatchKey, /, *args: Any, **kwargs: Any) -> Any:
        """Runs what answers at `key`. NotImplementedError where nothing does."""
        if key is DispatchKey.FuncTorchDynamicLayerFrontMode:
            return self._transformed(args, kwargs)
        if key is DispatchKey.FuncTorchDynamicLayerBackMode:
            return self._outside(args, kwargs)
        if key is DispatchKey.Python:
            return self._by_modes_and_subclasses(args, kwargs)
        entry = resolve(self.registrations, {}, key)
        if entry is None:
            known = [f"{known.name} ({kernels[-1].place})" for known, kernels in self.registrations.items()]
            raise NotImplementedError(
                f"could not find kernel for HigherOrderOperator {self._name} at dispatch key {key} (resolved from "
                f"{key})"
                f"\n  registered   {', '.join(known) or 'nothing'}"
                f"\n  to fix       @{self._name}.py_impl(DispatchKey.CompositeExplicitAutograd), and py_autograd_impl"
            )
        tracer = STATE.get().tracer
        if tracer is not None:
            return tracer.called(self, entry, args, kwargs)
        return entry.kernel.function(*args, **kwargs)

    def _body(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a transparent operator in operators, where a handler has no rule for it and sees those instead."""
        return self.dispatch(DispatchKey.CPU, *args, **kwargs)

    def _transformed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the call's result under the innermost transform. KeyError where it has no rule."""
        level = STATE.get().innermost
        rule = self.functorch_table.get(type(level).__name__)
        if rule is not None:
            result = rule(level, *args, **kwargs)
            if result is not NotImplemented:
                return result
        if self.transparent:
            return self._body(args, kwargs)
        raise KeyError(
            f"HigherOrderOperator {self._name} has no rule for {level}; register one with "
            f"py_impl(TransformType.{type(level).__name__.removesuffix('Level')})"
        )

    def _outside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call made outside of the innermost transform, on the values in its wrappers; wraps what comes back."""
        state = STATE.get()
        level = state.innermost
        args, kwargs = tree_map_only(TensorBase, level.unwrap, (args, kwargs))
        with within(state.outside):  # type: ignore[arg-type]  # the key is included in such states alone
            result = self(*args, **kwargs)
        return tree_map_only(TensorBase, level.wrap, result)

    # Modes and subclasses -----------------------------------------------------------------------------------------

    def _interested_mode(self) -> Any:
        """The innermost mode, if it has something to say about this operator itself, and no transform comes before."""
        state = STATE.get()
        if state.levels or not state.modes or not state.included & ~state.excluded & PYTHON:
            return None
        mode = state.modes[-1]
        return mode if type(mode) in self.python_key_table or supports(mode) else None

    def _ask_mode(self, mode: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the innermost mode's answer, with itself popped."""
        rule = self.python_key_table.get(type(mode))
        state = STATE.get()
        with within(with_modes(state, state.modes[:-1])):
            if rule is not None:
                return rule(mode, *args, **kwargs)
            return mode.__torch_dispatch__(self, [], args, kwargs)

    def _by_modes_and_subclasses(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.transparent:
            return self._body(args, kwargs)
        state = STATE.get()
        mode = state.modes[-1] if state.modes else None
        if mode is not None:
            if type(mode) not in self.python_key_table and not supports(mode):
                raise self._no_rule(mode)
            result = self._ask_mode(mode, args, kwargs)
            if result is not NotImplemented:
                return result
        kinds = in_order(tuple(type(leaf) for leaf in tree_leaves((args, kwargs)) if has_handler(type(leaf))))
        with within(state.excluding(ABOVE_PYTHON)):
            for rule in self._subclass_rules(kinds):
                result = rule(*args, **kwargs)
                if result is not NotImplemented:
                    return result
        raise TypeError(
            f"HigherOrderOperator '{self._name}' is not supported for the given input types. This typically happens "
            "when using custom tensor types or dispatch modes that don't have implementations for this operation.\n\n"
            f"Current mode: {mode}\nInput types: {[kind.__name__ for kind in kinds]}\n\n"
            f"To fix this, can add support for '{self._name}' in {mode}'s __torch_dispatch__\n"
        )

    def _subclass_rules(self, kinds: tuple[type, ...]) -> Iterator[Function]:
        for kind in kinds:
            if kind not in self.python_key_table:
                raise NotImplementedError(
                    f"There was no rule registered for HOP {self._name} and subclass {kind}. Register one with "
                    f"@{self._name}.py_impl({kind.__name__})"
                )
            yield self.python_key_table[kind]

    def _no_rule(self, mode: Any) -> NotImplementedError:
        return NotImplementedError(
            f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}.Hint: set {mode}'s "
            "supports_higher_order_operators to True. This causes all higher order operators to pass through "
            f"{mode}'s __torch_dispatch__, so handle them accordingly by adding support for HigerOrderOperators (in "
            f"this case, {self._name}) in {mode}.__torch_dispatch__ or returning NotImplemented when not supported. "
            f"Or make {self._name} transparent: then the mode sees the operators that its body calls."
        )


def supports(mode: Any) -> bool:
    """Whether a mode takes higher-order operators."""
    return bool(getattr(mode, "supports_higher_order_operators", False))


class _HigherOrderNamespace:
    """`redispatch.ops.higher_order`: the higher-order operators by name."""

    def __getattr__(self, name: str) -> HigherOrderOperator:
        if name in HIGHER_ORDER:
            return HIGHER_ORDER[name]
        raise AttributeError(f"'_HigherOrderNamespace' 'torch.ops.higher_order' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return sorted(HIGHER_ORDER)


HIGHER_ORDER: dict[str, HigherOrderOperator] = {}
vars(ops)["higher_order"] = _HigherOrderNamespace()
