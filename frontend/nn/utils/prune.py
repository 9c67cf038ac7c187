"""Pruning: parameters some elements of which are 0, and stay so while the others are trained.

    prune.l1_unstructured(layer, "weight", amount=0.3)      the 30 % of smallest size
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    prune.remove(layer, "weight")                           as it is now, for good

A pruned parameter `weight` becomes a parameter `weight_orig` and a buffer `weight_mask` of ones and zeros; before each
forward, a hook makes the attribute `weight` their product. That hook is the pruning method itself. What is pruned
again gets the hook `PruningContainer`, the history of its methods: each looks only at what those before it left.

A method of your own is a `BasePruningMethod` with a `compute_mask`. Source of the criteria: LeCun, Denker and Solla,
"Optimal brain damage" (1990), for removing parameters by how little they matter; Han et al., "Learning both weights and
connections" (2015), for size as the measure of that; Li et al., "Pruning filters" (2017), for whole channels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any

from redispatch.dispatch.tensor import contiguous_format
from redispatch.kernels.ops import creation, random, shape

# --- methods ---------------------------------------------------------------------------------------------------------


class BasePruningMethod(ABC):
    """One way to choose what is pruned of a parameter; on a module, the hook that applies the mask before forward.

    PRUNING_TYPE says what it is shown of a parameter that was pruned before: "unstructured", the elements that were
    left, as a vector; "structured", the channels along `self.dim` of which anything was left; "global", all of it.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """A mask of the shape of `t`, which is the parameter or its scores: 0 where `default_mask` is, and where more
        is pruned."""

    def apply_mask(self, module: Any) -> Any:
        """The product of mask and parameter, in the dtype of the latter. AssertionError where nothing was pruned."""
        if getattr(self, "_tensor_name", None) is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prunes `module.<name>` by the method of these arguments, on top of what was pruned before. Returns the hook.

        importance_scores: of the parameter's shape, what to choose by instead of the parameter. The module is as it
        was where the method raises.
        Errors: AttributeError for a name that is no attribute; AssertionError for scores of another shape; RuntimeError
        for a mask of another shape.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        number, former = installed(module, name)
        if former is not None:
            method = PruningContainer(*(former if isinstance(former, PruningContainer) else [former]), method)
        current = getattr(module, name)
        scores = current if importance_scores is None else importance_scores
        if scores.shape != current.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape} vs "
                f"{current.shape}"
            )
        if former is None:
            before = creation.ones_like(current, memory_format=contiguous_format)
        else:
            before = getattr(module, f"{name}_mask").detach()
        mask = method.compute_mask(scores, before)
        if mask.shape != current.shape:
            raise RuntimeError(f"{cls.__name__} made a mask of shape {mask.shape} for {name} of shape {current.shape}")
        if former is None:
            module.register_parameter(f"{name}_orig", current)
            del module._parameters[name]
        else:
            del module._forward_pre_hooks[number]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """`t` with zeros where the method puts them: pruning of a tensor that belongs to no module.

        Errors: AssertionError for scores of another shape.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {scores.shape} vs {t.shape}"
            )
        mask = creation.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Any) -> None:
        """Makes the pruned tensor the parameter: it can be trained in all elements again. The hook is not taken off."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = pruned.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """The methods by which one parameter was pruned, in their order: `len`, iteration and indices give them.

    Errors: TypeError for what is no method; ValueError for methods of different parameters.
    """

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if methods and isinstance(methods[0], BasePruningMethod):
            self._tensor_name = methods[0]._tensor_name
        for method in methods:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """`default_mask` with what the last method prunes of the part that is left.

        Errors: ValueError for an unknown PRUNING_TYPE; AttributeError and IndexError for a structured method without a
        `dim`, or with one that `t` has not.
        """
        method = self._pruning_methods[-1]
        left = part_left(method, default_mask)
        mask = default_mask.clone()
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def part_left(method: Any, mask: Any) -> Any:
    """The index of what a method is shown, by its PRUNING_TYPE."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.dim()
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            "Pruning methods of PRUNING_TYPE 'structured' need to have the attribute `dim` defined, but found none on "
            f"{method}"
        )
    check_dim(mask, method.dim)
    others = [d for d in range(mask.dim()) if d != method.dim % mask.dim()]
    # Without other dimensions, `sum` would take them all.
    return channels(mask, method.dim, (mask.sum(dim=others) if others else mask) != 0)


class Identity(BasePruningMethod):
    """Prunes nothing: a mask of ones, for parameters whose siblings are pruned."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return default_mask


class _OfAmount(BasePruningMethod):
    """Prunes `amount` elements or channels: a number of them, or a part from 0 to 1.

    Errors: TypeError and ValueError for another amount, ValueError for more than there is.
    """

    def __init__(self, amount: Any) -> None:
        if not isinstance(amount, Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count_of(self, size: int) -> int:
        """Returns how many of `size` to prune."""
        if not isinstance(self.amount, Integral):
            return round(float(self.amount) * size)
        if int(self.amount) > size:
            raise ValueError(f"amount={self.amount} should be smaller than the number of parameters to prune={size}")
        return int(self.amount)

    def _without_first(self, scores: Any, default_mask: Any, largest: bool) -> Any:
        """The mask without the elements of the largest or smallest scores."""
        count = self._count_of(scores.nelement())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count:
            mask.view(-1)[scores.reshape(-1).topk(count, largest=largest).indices] = 0
        return mask


class RandomUnstructured(_OfAmount):
    """Prunes elements that are drawn."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self._without_first(random.rand_like(t), default_mask, largest=True)


class L1Unstructured(_OfAmount):
    """Prunes the elements of the smallest size."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        return self._without_first(t.abs(), default_mask, largest=False)


class _OfChannels(_OfAmount):
    """Prunes whole channels, slices at one index of the dimension `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Errors: ValueError for a vector; IndexError for a dimension that `t` has not."""
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        check_dim(t, self.dim)
        count = self._count_of(t.shape[self.dim])
        if not count:
            return default_mask
        mask = creation.zeros_like(t)
        mask[channels(t, self.dim, self._kept(t, count))] = 1
        return mask * default_mask.to(dtype=mask.dtype)

    def _kept(self, t: Any, count: int) -> Any:
        """The channels to keep, as an index along `dim`, where `count` are pruned."""
        raise NotImplementedError


class RandomStructured(_OfChannels):
    """Prunes channels that are drawn."""

    def _kept(self, t: Any, count: int) -> Any:
        drawn = random.rand(t.shape[self.dim])
        return drawn > drawn.kthvalue(count).values


class LnStructured(_OfChannels):
    """Prunes the channels of the smallest `n`-norm: a number, infinity, "fro" or "nuc", as `norm` takes them."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t: Any, count: int) -> Any:
        others = [d for d in range(t.dim()) if d != self.dim % t.dim()]
        return t.norm(p=self.n, dim=others).topk(t.shape[self.dim] - count).indices


class CustomFromMask(BasePruningMethod):
    """Prunes where the given mask is 0. AssertionError for one of another shape."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


# --- functions -------------------------------------------------------------------------------------------------------


def identity(module: Any, name: str) -> Any:
    """Gives `module.<name>` a mask of ones. Returns the module, as all of these do."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prunes elements that are drawn: `amount` of them, or that part of all where it is a float."""
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prunes the elements of the smallest size, or of the smallest size of their `importance_scores`."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prunes channels along `dim` that are drawn."""
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Any:
    """Prunes the channels along `dim` of the smallest `n`-norm."""
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prunes where `mask` is 0."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any) -> None:
    """Prunes several parameters as if they were one vector: some may lose all, and others nothing.

    parameters: pairs (module, name). pruning_method: an unstructured one, and its arguments by name.
    importance_scores: tensors by such pair, where they are not the parameters themselves.
    Errors: TypeError for something else.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if not isinstance(importance_scores, dict | None):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    pairs = list(parameters)
    tensors = [getattr(module, name) for module, name in pairs]
    given = importance_scores or {}
    scores = [given.get(pair, tensor) for pair, tensor in zip(pairs, tensors, strict=True)]
    masks = [
        getattr(module, f"{name}_mask", creation.ones_like(tensor))
        for (module, name), tensor in zip(pairs, tensors, strict=True)
    ]
    method._tensor_name = "all of them"
    final = PruningContainer(method).compute_mask(as_vector(scores), as_vector(masks))
    parts = final.split([tensor.numel() for tensor in tensors])
    for (module, name), tensor, part in zip(pairs, tensors, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(tensor))


def remove(module: Any, name: str) -> Any:
    """Makes the pruned tensor the parameter and takes mask and hook away. ValueError where it was not pruned."""
    number, method = installed(module, name)
    if method is None:
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    method.remove(module)
    del module._forward_pre_hooks[number]
    return module


def is_pruned(module: Any) -> bool:
    """Returns whether anything in the module or below it is pruned."""
    hooks = (hook for _, each in module.named_modules() for hook in each._forward_pre_hooks.values())
    return any(isinstance(hook, BasePruningMethod) for hook in hooks)


# --- what they share -------------------------------------------------------------------------------------------------


def installed(module: Any, name: str) -> tuple[Any, Any]:
    """The number and the hook by which a parameter is pruned; (None, None) where it is not."""
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return number, hook
    return None, None


def as_vector(tensors: list[Any]) -> Any:
    return shape.cat([tensor.reshape(-1) for tensor in tensors])


def channels(t: Any, dim: int, chosen: Any) -> tuple[Any, ...]:
    """The index of the chosen channels along `dim`."""
    index: list[Any] = [slice(None)] * t.dim()
    index[dim] = chosen
    return tuple(index)


def check_dim(t: Any, dim: int) -> None:
    """IndexError for a dimension that `t` has not."""
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")
