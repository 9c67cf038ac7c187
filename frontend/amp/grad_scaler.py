"""GradScaler: has gradients in 16 bits not vanish, by a loss that is multiplied by a scale, which finds itself.

    scaler.scale(loss).backward()      gradients are `scale` times as large
    scaler.step(optimizer)             divides them, and steps unless some are infinite or NaN
    scaler.update()                    a smaller scale if some were; a larger one after many good steps

Source: Micikevicius et al., "Mixed Precision Training", 2018 (dynamic loss scaling).
Read next: kernels/ops/fused_updates.py, the two operators that do the arithmetic.
"""

from __future__ import annotations

import inspect
import warnings
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from typing import Any

from redispatch.autograd import no_grad
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.kernels.ops.creation import full
from redispatch.kernels.ops.fused_updates import _amp_foreach_non_finite_check_and_unscale_, _amp_update_scale_

from .autocast_mode import CUDA


class OptState(Enum):
    """The progress of an optimizer since the last `update()`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class Progress(dict[str, Any]):
    """The progress of one optimizer since the last `update()`: its stage, and on each device whether something was
    infinite."""

    optimizer: Any = None  # kept, so that no other one is at the same place meanwhile

    def __init__(self) -> None:
        super().__init__(stage=OptState.READY, found_inf_per_device={})


_refresh_per_optimizer_state = Progress  # PyTorch's name of what makes one


class GradScaler:
    """Scales losses, and divides gradients by the same number before an optimizer sees them.

    device: the device type of the scale. init_scale: the scale at first. growth_factor: what it is multiplied by after
    `growth_interval` updates in a row with finite gradients. backoff_factor: what it is multiplied by where some were
    not. enabled: False makes all methods do nothing, but that `step` steps.
    Errors: AssertionError for a growth factor that does not grow, or a backoff factor that does not shrink.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and not import_module(CUDA).is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                UserWarning,
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale: Tensor | None = None  # both made with the first loss, on its device
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: dict[int, Progress] = defaultdict(Progress)

    # A step of training, in order ------------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A tensor, or each of an iterable of tensors, times the scale. ValueError for anything else."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._scale_on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, list | tuple) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _scale_on(self, device: Any) -> Tensor:
        if self._scale is None:
            self._lazy_init_scale_growth_tracker(device)
        assert self._scale is not None
        return self._scale.to(device=device)

    def _lazy_init_scale_growth_tracker(self, device: Any) -> None:
        if self._growth_tracker is not None:
            raise AssertionError("_growth_tracker initialized before _scale")
        self._scale = full((), self._init_scale, dtype=dtypes.float32, device=device)
        self._growth_tracker = full((), self._init_growth_tracker, dtype=dtypes.int32, device=device)

    def unscale_(self, optimizer: Any) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, for those who want to look at or clip them
        before `step`. RuntimeError for a second time before `update()`."""
        if not self._enabled:
            return
        self._check_scale_growth_tracker("unscale_")
        progress = self._progress_of(optimizer)
        if progress["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        assert self._scale is not None
        inverse = self._scale.double().reciprocal().float()  # in float64: the reciprocal of a large scale is exact
        found_inf = full((), 0.0, dtype=dtypes.float32, device=self._scale.device)
        progress["found_inf_per_device"] = self._unscale_grads_(optimizer, inverse, found_inf, False)
        progress["stage"] = OptState.UNSCALED

    @no_grad()
    def _unscale_grads_(
        self, optimizer: Any, inv_scale: Tensor, found_inf: Tensor, allow_fp16: bool
    ) -> dict[Any, Tensor]:
        """Multiplies all gradients by `inv_scale`: for each device, whether one there is not finite, as 1.0 or 0.0."""
        grads: dict[Any, dict[Any, list[Tensor]]] = defaultdict(lambda: defaultdict(list))
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if not allow_fp16 and param.grad.dtype is dtypes.float16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grads[param.grad.device][param.grad.dtype].append(param.grad)
        found = {}
        for device, by_dtype in grads.items():
            found[device] = found_inf.to(device)
            for alike in by_dtype.values():
                _amp_foreach_non_finite_check_and_unscale_(alike, found[device], inv_scale.to(device))
        return found

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step(*args, **kwargs)`, with the gradients unscaled; skipped (None) where some are not finite.

        An optimizer that says `_step_supports_amp_scaling` unscales them itself: it is given `grad_scale` and
        `found_inf`. Errors: RuntimeError for a closure, and for a second step before `update()`.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_growth_tracker("step")
        progress = self._progress_of(optimizer)
        if progress["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_of_one_that_scales(optimizer, progress, args, kwargs)
        else:
            if progress["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not progress["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            result = self._maybe_opt_step(optimizer, progress, *args, **kwargs)
        progress["stage"] = OptState.STEPPED
        return result

    def _progress_of(self, optimizer: Any) -> Progress:
        progress = self._per_optimizer_states[id(optimizer)]
        progress.optimizer = optimizer
        return progress

    def _maybe_opt_step(self, optimizer: Any, progress: Progress, *args: Any, **kwargs: Any) -> Any:
        if sum(found.item() for found in progress["found_inf_per_device"].values()):
            return None
        return optimizer.step(*args, **kwargs)

    def _step_of_one_that_scales(self, optimizer: Any, progress: Progress, args: Any, kwargs: Any) -> Any:
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the near "
                "future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed optimizer and "
                "let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if progress["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        assert self._scale is not None
        scale, own = self._scale, getattr(optimizer, "grad_scale", None)
        unscaled = progress["stage"] is OptState.UNSCALED
        optimizer.grad_scale = own if unscaled else scale if own is None else scale * own
        optimizer.found_inf = sum(found.to(scale.device) for found in progress["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def _check_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        """Returns whether gradients are finite, and leaves them as they are."""
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        one = full((), 1.0, dtype=dtypes.float32, device=scale.device)
        none = full((), 0.0, dtype=dtypes.float32, device=scale.device)
        found = self._unscale_grads_(optimizer, one, none, True)
        self._progress_of(optimizer)["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer: Any) -> dict[Any, Tensor]:
        return self._progress_of(optimizer)["found_inf_per_device"]

    def update(self, new_scale: Any = None) -> None:
        """The scale of the next step: smaller if a step was skipped, larger after `growth_interval` that were not; or
        `new_scale`, a float or a tensor of one element. AssertionError where no step was taken."""
        if not self._enabled:
            return
        scale, tracker = self._check_scale_growth_tracker("update")
        if new_scale is not None:
            self._set_scale(scale, new_scale)
        else:
            found = [
                one.to(device=scale.device)
                for progress in self._per_optimizer_states.values()
                for one in progress["found_inf_per_device"].values()
            ]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            total = found[0] if len(found) == 1 else sum(found[1:], found[0])
            factors = self._growth_factor, self._backoff_factor, self._growth_interval
            _amp_update_scale_(scale, tracker, total, *factors)
        self._per_optimizer_states = defaultdict(Progress)

    def _set_scale(self, scale: Tensor, new_scale: Any) -> None:
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
            return
        if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad is True:
            raise AssertionError(
                "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                "requires_grad=False."
            )
        scale.copy_(new_scale)

    def _check_scale_growth_tracker(self, funcname: str) -> tuple[Tensor, Tensor]:
        fix = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."
        if self._scale is None:
            raise AssertionError(f"Attempted {funcname} but _scale is None.  " + fix)
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {funcname} but _growth_tracker is None.  " + fix)
        return self._scale, self._growth_tracker

    # What it knows ---------------------------------------------------------------------------------------------------

    def _get_scale_async(self) -> Tensor | None:
        return self._scale

    def get_scale(self) -> float:
        """The scale; 1.0 where scaling is off."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def get_growth_factor(self) -> float:
        """Returns the factor of the scale after enough finite gradients."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets that."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Returns the factor of the scale after gradients that were not finite."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets that."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Returns how many updates with finite gradients are enough."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets that."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else self._growth_tracker.item()

    def is_enabled(self) -> bool:
        """Returns whether this scaler scales."""
        return self._enabled

    # Saving and loading ----------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Returns the state for a checkpoint: the scale, the factors, the interval, and the finite updates in a row so
        far. Empty where scaling is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on where another scaler's `state_dict()` was. RuntimeError for an empty one."""
        if not self._enabled:
            return
        if len(state_dict) == 0:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._growth_tracker is not None:
            self._growth_tracker.fill_(state_dict["_growth_tracker"])

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state["_init_scale"], state["_init_growth_tracker"] = self.get_scale(), self._get_growth_tracker()
            state["_scale"] = state["_growth_tracker"] = None  # made again with the next loss
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
