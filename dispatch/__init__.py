"""The dispatcher: how an operator call finds its way down a stack of dispatch keys.

Read in this order: key, keyset, schema, state, table, interpreter, boxing, operator, library; then layers/, one file
per key; then explain and trace, which show what happens.
"""

from . import layers
from .base import ARGUMENT_TYPES, BACKEND_OF_DEVICE, VALUE_CLASSES, TensorBase, wants_gradient
from .boxing import NUMBER_FOR_TENSOR, bind, unbind
from .entries import EntryPoint, FixedEntryPoint, HasEntryPoint, entry_point_of
from .errors import MissingKernelError, ModeOrderError, RegistrationError, SchemaError
from .explain import dump_registrations, dump_table, explain
from .interpreter import call, dispatch_keyset, run, tensors_keyset
from .key import DispatchKey, backends, define_backend, define_key, functionalities, key_named, undefine
from .keyset import DispatchKeySet, above, below, describe, has, highest, keyset, runtime_keys, shared, without
from .library import (
    Library,
    _scoped_library,
    define,
    fallthrough_kernel,
    impl,
    operators,
    own_namespace,
)
from .memo import Memo
from .mode_stack import TorchDispatchMode, TorchFunctionMode, pop_mode, push_mode, with_function_modes, with_modes
from .operator import OpOverload, OpOverloadPacket, as_keyset, describe_value, operator_named, ops
from .override import (
    HANDLER_CHANGED,
    NotHandledError,
    TensorMeta,
    _disabled_torch_function_impl,
    ask_function_mode,
    call_overridden,
    handle_torch_function,
    one_per_type,
    overridden,
    overrides,
    overriding,
    without_overrides,
    without_subclasses,
)
from .registry import FALLBACKS, LATE, LISTENERS, OPERATORS, caller, place_of
from .rules import RuleTable, Slot
from .schema import NO_DEFAULT, Argument, FunctionSchema, ListType, OptionalType
from .schema_parser import parse_schema
from .signature import Overload, Parser, Signature
from .state import AUTOCAST_KEYS, DEFAULT, LAZY_BITS, STATE, Region, Setting, State, exclude, force, include, within
from .table import Kernel, backends_of_autograd, members, runtime_table_keys
from .tags import Tag
from .trace import Hop, trace

__all__ = [
    "ARGUMENT_TYPES",
    "AUTOCAST_KEYS",
    "Argument",
    "BACKEND_OF_DEVICE",
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
    "Library",
    "ListType",
    "Memo",
    "MissingKernelError",
    "ModeOrderError",
    "NO_DEFAULT",
    "NUMBER_FOR_TENSOR",
    "NotHandledError",
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
    "TorchFunctionMode",
    "VALUE_CLASSES",
    "_disabled_torch_function_impl",
    "_scoped_library",
    "above",
    "as_keyset",
    "ask_function_mode",
    "backends",
    "backends_of_autograd",
    "below",
    "bind",
    "call",
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
    "handle_torch_function",
    "has",
    "highest",
    "impl",
    "include",
    "key_named",
    "keyset",
    "layers",
    "members",
    "one_per_type",
    "operator_named",
    "operators",
    "ops",
    "overridden",
    "overrides",
    "overriding",
    "own_namespace",
    "parse_schema",
    "place_of",
    "pop_mode",
    "push_mode",
    "run",
    "shared",
    "runtime_keys",
    "runtime_table_keys",
    "tensors_keyset",
    "trace",
    "unbind",
    "undefine",
    "wants_gradient",
    "with_function_modes",
    "with_modes",
    "within",
    "without",
    "without_overrides",
    "without_subclasses",
]
