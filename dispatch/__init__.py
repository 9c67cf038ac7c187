"""The dispatcher: how an operator call finds its way down a stack of dispatch keys.

Read in this order: key, keyset, schema, state, table, interpreter, boxing, operator, library; then layers/, one file
per key; then explain and trace, which show what happens.
"""

from . import layers
from .core.base import ARGUMENT_TYPES, BACKEND_OF_DEVICE, VALUE_CLASSES, TensorBase, wants_gradient
from .core.boxing import bind, unbind
from .core.interpreter import call, dispatch_keyset, run, tensors_keyset
from .core.key import DispatchKey, backends, functionalities, key_named
from .core.keyset import above, below, describe, has, highest, keyset, runtime_keys, shared, without
from .core.operator import OpOverload
from .core.registry import FALLBACKS, LATE, LISTENERS, OPERATORS
from .core.state import (
    AUTOCAST_KEYS,
    DEFAULT,
    LAZY_BITS,
    STATE,
    LevelKind,
    State,
    with_modes,
    with_pre_dispatch_modes,
    within,
)
from .core.table import Kernel, backends_of_autograd, members, runtime_table_keys
from .entry.entries import EntryPoint, FixedEntryPoint, HasEntryPoint, entry_point_of
from .entry.signature import Overload, Parser, Signature
from .errors import (
    AcceleratorError,
    MissingKernelError,
    ModeOrderError,
    OutOfMemoryError,
    RegistrationError,
    SchemaError,
)
from .inspection.breakpoint import Breakpoint, breakpoint
from .inspection.explain import dump_registrations, dump_table, explain
from .inspection.missing import describe_value
from .inspection.trace import Hop, trace
from .keys import DispatchKeySet, as_keyset, define_backend, define_key, undefine
from .layers.backend_select import WITHOUT_MODULE, key_of_device
from .library import (
    Library,
    _scoped_library,
    define,
    fallthrough_kernel,
    impl,
    operators,
    own_namespace,
)
from .namespaces import OpOverloadPacket, operator_named, ops
from .protocols.mode_stack import (
    TorchDispatchMode,
    TorchDispatchModeKey,
    TorchFunctionMode,
    mode_in_slot,
    pop_mode,
    push_mode,
    stack_of,
    unset_mode,
    with_function_modes,
)
from .protocols.override import (
    HANDLER_CHANGED,
    OfPython,
    TensorMeta,
    _disabled_torch_function_impl,
    ask,
    ask_function_mode,
    ask_mode_of_builtin_method,
    asked_once,
    asks,
    call_overridden,
    given_tensor_likes,
    handle_torch_function,
    not_handled,
    of_builtin_method,
    one_per_type,
    overridden,
    overrides,
    overriding,
    who_overrides,
    without_overrides,
    without_subclasses,
)
from .records import dataclass
from .regions import Region, Setting, exclude, force, include
from .rules import RuleTable, Slot, caller, place_of
from .schema.convert import NUMBER_FOR_TENSOR
from .schema.parser import parse_schema
from .schema.schema import NO_DEFAULT, Argument, FunctionSchema, ListType, OptionalType, Tag
from .specialiser.site import Memo
from .specialiser.specialise import call_each

__all__ = [
    "AcceleratorError",
    "OutOfMemoryError",
    "ask_mode_of_builtin_method",
    "asked_once",
    "ARGUMENT_TYPES",
    "AUTOCAST_KEYS",
    "Argument",
    "BACKEND_OF_DEVICE",
    "Breakpoint",
    "DEFAULT",
    "DispatchKey",
    "DispatchKeySet",
    "EntryPoint",
    "FALLBACKS",
    "FixedEntryPoint",
    "FunctionSchema",
    "HasEntryPoint",
    "HANDLER_CHANGED",
    "Hop",
    "Kernel",
    "LAZY_BITS",
    "LATE",
    "LISTENERS",
    "LevelKind",
    "Library",
    "ListType",
    "Memo",
    "MissingKernelError",
    "ModeOrderError",
    "NO_DEFAULT",
    "NUMBER_FOR_TENSOR",
    "OPERATORS",
    "OpOverload",
    "OpOverloadPacket",
    "OptionalType",
    "Overload",
    "Parser",
    "Region",
    "RegistrationError",
    "RuleTable",
    "STATE",
    "SchemaError",
    "Setting",
    "Signature",
    "Slot",
    "State",
    "Tag",
    "TensorBase",
    "TensorMeta",
    "TorchDispatchMode",
    "TorchDispatchModeKey",
    "TorchFunctionMode",
    "VALUE_CLASSES",
    "WITHOUT_MODULE",
    "_disabled_torch_function_impl",
    "_scoped_library",
    "above",
    "as_keyset",
    "ask_function_mode",
    "asks",
    "backends",
    "backends_of_autograd",
    "below",
    "bind",
    "breakpoint",
    "call",
    "call_each",
    "dataclass",
    "ask",
    "call_overridden",
    "caller",
    "define",
    "define_backend",
    "define_key",
    "describe",
    "describe_value",
    "dispatch_keyset",
    "dump_registrations",
    "dump_table",
    "entry_point_of",
    "exclude",
    "explain",
    "fallthrough_kernel",
    "force",
    "functionalities",
    "given_tensor_likes",
    "handle_torch_function",
    "not_handled",
    "has",
    "highest",
    "impl",
    "include",
    "key_named",
    "key_of_device",
    "keyset",
    "layers",
    "members",
    "mode_in_slot",
    "one_per_type",
    "of_builtin_method",
    "OfPython",
    "operator_named",
    "operators",
    "ops",
    "overridden",
    "who_overrides",
    "overrides",
    "overriding",
    "own_namespace",
    "parse_schema",
    "place_of",
    "pop_mode",
    "push_mode",
    "run",
    "shared",
    "stack_of",
    "runtime_keys",
    "runtime_table_keys",
    "tensors_keyset",
    "trace",
    "unbind",
    "undefine",
    "unset_mode",
    "wants_gradient",
    "with_function_modes",
    "with_modes",
    "with_pre_dispatch_modes",
    "within",
    "without",
    "without_overrides",
    "without_subclasses",
]
