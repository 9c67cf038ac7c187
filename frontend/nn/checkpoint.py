"""Saving and loading: `state_dict()`, one flat dictionary of dotted names, and its inverse.

Every module writes what is its own under its prefix (`_save_to_state_dict`) and reads it back
(`_load_from_state_dict`): the two methods that a class with an unusual layout overrides. Reading never stops at the
first problem: all that is missing, unexpected or of another shape is collected, and reported at once.

Read next: module.py.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from redispatch.autograd import RemovableHandle, no_grad
from redispatch.dispatch.tensor import Tensor

from .. import _future
from .parameter import Parameter, swap_in
from .tree import ModuleTree

EXTRA_STATE = "_extra_state"
Hooks = OrderedDict[int, Callable[..., Any]]


class IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict` could not match. Hooks may change the two lists."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


class WithoutModule(NamedTuple):
    """A hook that is not told whose it is."""

    hook: Callable[..., None]

    def __call__(self, module: Any, *given: Any) -> None:
        self.hook(*given)


class Checkpointable(ModuleTree):
    """A tree that can write its tensors into a dictionary and read them back."""

    _version: int = 1  # of the layout; a class that changes its layout counts up, and reads old ones
    _state_dict_hooks: Hooks
    _state_dict_pre_hooks: Hooks
    _load_state_dict_pre_hooks: Hooks
    _load_state_dict_post_hooks: Hooks

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
        )

    # Saving ---------------------------------------------------------------------------------------------------

    def state_dict(self, *, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters and persistent buffers by dotted name; detached, over the same memory, unless `keep_vars`.

        The dictionary's attribute `_metadata` says in which version each module wrote its part.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            other = hook(self, destination, prefix, metadata)
            if other is not None and getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = destination if other is None else other
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Writes this module's own tensors, without its children's."""
        for name, tensor in self._own_tensors().items():
            destination[prefix + name] = tensor if keep_vars else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _own_tensors(self) -> dict[str, Any]:
        """Yields the tensors of a state dict: parameters, and the buffers that persist."""
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {k: v for k, v in {**self._parameters, **persistent}.items() if v is not None}

    def get_extra_state(self) -> Any:
        """Returns the state to save besides tensors. For a class that has such; it overrides `set_extra_state`, too."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override get_extra_state() to give it one")

    def set_extra_state(self, state: Any) -> None:
        """Takes back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override set_extra_state() to accept one")

    # Loading --------------------------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copies the values into this tree's tensors; with `assign`, puts the given tensors in their place.

        Returns the keys that did not match. Errors: TypeError for what is no mapping; RuntimeError, which lists
        everything that went wrong, for another shape and, if `strict`, for a missing or unexpected key.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", {})
        entries: Any = OrderedDict(state_dict)  # a copy, since modules may rename what an older version wrote
        entries._metadata = metadata

        def load(module: Any, entries: Any, prefix: str) -> None:
            local = metadata.get(prefix[:-1], {}) | ({"assign_to_params_buffers": True} if assign else {})
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, OrderedDict((k, v) for k, v in entries.items() if k.startswith(below)), below)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, IncompatibleKeys(missing, unexpected)) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, entries, "")
        if strict:
            problems = (("Missing", missing), ("Unexpected", unexpected))
            errors[:0] = [f"{what} key(s) in state_dict: {_quoted(keys)}. " for what, keys in problems if keys]
        if errors:
            listed = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Reads this module's own tensors, without its children's, and adds to the three lists what went wrong."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_tensors()
        missing = [prefix + name for name in own if prefix + name not in state_dict]
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            if prefix + name in state_dict:
                problem = self._load_tensor(name, tensor, prefix + name, state_dict[prefix + name], assign)
                if problem is not None:
                    error_msgs.append(problem)
        extra = prefix + EXTRA_STATE
        unexpected = [key for key in state_dict if key.startswith(prefix) and not self._knows(key[len(prefix) :], own)]
        if _overrides(self, "set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
                unexpected.remove(extra)
            else:
                missing.append(extra)
        if strict:
            missing_keys += missing
            unexpected_keys += unexpected

    def _knows(self, key: str, own: dict[str, Any]) -> bool:
        """Returns whether a key names one of our own tensors, or something below a child of ours."""
        name, _, below = key.partition(".")
        return name in (self._modules if below else own)

    def _load_tensor(self, name: str, tensor: Any, key: str, given: Any, assign: bool) -> str | None:
        """Gives one tensor the value from the checkpoint. Returns what was wrong, if anything."""
        if not (isinstance(given, Tensor) or hasattr(type(given), "__torch_function__")):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(given)}"
            )
        if given.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in "
                f"current model is {tensor.shape}."
            )
        if tensor.is_meta and not given.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        try:
            with no_grad():
                if _future.get_swap_module_params_on_conversion():
                    swap_in(tensor, given, assign)
                elif not assign:
                    tensor.copy_(given)
                elif not isinstance(tensor, Parameter):
                    setattr(self, name, given)
                elif isinstance(given, Parameter):
                    setattr(self, name, given.requires_grad_(tensor.requires_grad))
                else:
                    setattr(self, name, Parameter(given, tensor.requires_grad))
        except Exception as error:  # any: it is reported with the others
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and '
                f"whose dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )
        return None

    # Hooks ----------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, prefix, keep_vars)` before the module is saved."""
        return registered(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata)` after the module was saved, to change the dict."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # a mark, by which a hook of the older kind is told
        return registered(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older `register_state_dict_post_hook`: what `hook` returns for the outermost module replaces the dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return registered(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before the module is loaded; it may change the dict and the lists."""
        return registered(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., None], with_module: bool = False
    ) -> RemovableHandle:
        """The older `register_load_state_dict_pre_hook`: `hook` is not given the module, unless it says so."""
        return registered(self._load_state_dict_pre_hooks, hook if with_module else WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(module, incompatible_keys)` after the module was loaded; it may change the two lists of keys."""
        return registered(self._load_state_dict_post_hooks, hook)


def registered(
    hooks: OrderedDict[int, Any], hook: Any, prepend: bool = False, options: Sequence[OrderedDict[int, bool]] = ()
) -> RemovableHandle:
    """The handle of `hook`, which now stands last, or first, among `hooks`, and has these options."""
    handle = RemovableHandle(hooks, extra_dict=options)
    hooks[handle.id] = hook
    for option in options:
        option[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _overrides(module: Checkpointable, name: str) -> bool:
    return getattr(type(module), name) is not getattr(Checkpointable, name)


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
