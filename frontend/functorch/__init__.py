"""The package `functorch`, from before its functions were `redispatch.func`: they forward there, and warn."""

from __future__ import annotations

from redispatch import func
from redispatch._functorch import make_functional as _made
from redispatch._functorch.make_functional import FunctionalModule as FunctionalModule
from redispatch._functorch.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from redispatch._names import former
from redispatch.fx.experimental.proxy_tensor import make_fx as make_fx


def _former(function: object, name: str, present: str = "") -> object:
    return former(
        function,  # type: ignore[arg-type]  # it is callable
        name,
        "We've integrated functorch into PyTorch. As the final step of the integration, `functorch."
        f"{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. "
        f"Please use `{present or 'torch.func.' + name}` instead; see the PyTorch 2.0 release notes and/or the "
        "`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html",
    )


vmap = _former(func.vmap, "vmap", "torch.vmap")
grad = _former(func.grad, "grad")
grad_and_value = _former(func.grad_and_value, "grad_and_value")
vjp = _former(func.vjp, "vjp")
jvp = _former(func.jvp, "jvp")
jacrev = _former(func.jacrev, "jacrev")
jacfwd = _former(func.jacfwd, "jacfwd")
hessian = _former(func.hessian, "hessian")
functionalize = _former(func.functionalize, "functionalize")
make_functional = _former(_made.make_functional, "make_functional", "torch.func.functional_call")
make_functional_with_buffers = _former(
    _made.make_functional_with_buffers, "make_functional_with_buffers", "torch.func.functional_call"
)
combine_state_for_ensemble = _former(
    _made.combine_state_for_ensemble, "combine_state_for_ensemble", "torch.func.stack_module_state"
)
