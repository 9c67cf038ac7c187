"""DtypeCheckMode: tells of silent upcasts, such as float64 creeping into a float32 program.

    with DtypeCheckMode():
        model(x) * rd.from_numpy(scale)     # warns: aten.mul.Tensor(f32[8], f64[8]) made float64 of float32

What it teaches: promotion is a rule that nobody sees at work. One array of numpy, which is float64 by default, and
everything after it is, too: half as fast, twice as large, and equal in all tests. A mode sees inputs and results of
every operator side by side, and so the *first* mixed one is found, where the types meet. How serious it is: for every
day; it looks at dtypes only, and needs no data.

Read next: nan_detector.py; docs/operators.md has the rules of promotion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree

from .findings import FindingMode
from .logging_mode import call_text

POLICIES = ("promotion", "any")


class UpcastError(TypeError):
    """An operator made a tensor of a forbidden dtype. func: the operator; dtype: what it made."""

    def __init__(self, message: str, func: Any, dtype: Any) -> None:
        super().__init__(message)
        self.func, self.dtype = func, dtype


class DtypeCheckMode(FindingMode):
    """A region with a policy on the dtypes of results.

    forbidden: the dtypes that are not to creep in.
    policy: "promotion" tells of a new tensor of such a dtype if one of the floating inputs was of a lower dtype and the
    call did not ask for it (`dtype=`, `.double()`); "any" tells of every new one, asked for or not.
    allow: operators, or packets such as `ops.aten.cumsum`, that may do it. action: "warn", "raise" or "record".
    Errors: ValueError for another policy or action.
    """

    def __init__(
        self,
        forbidden: Iterable[Any] = (rd.float64, rd.complex128),
        *,
        policy: str = "promotion",
        allow: Iterable[Any] = (),
        action: str = "warn",
    ) -> None:
        super().__init__(action)
        if policy not in POLICIES:
            raise ValueError(f"DtypeCheckMode: policy should be one of {', '.join(POLICIES)}, got {policy!r}")
        self.forbidden, self.policy, self.allow = frozenset(forbidden), policy, frozenset(allow)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        call = call_text(func, args, kwargs)
        result = func(*args, **kwargs)
        if func not in self.allow and func.overloadpacket not in self.allow:
            self.check(func, args, kwargs, result, call)
        return result

    def check(self, func: Any, args: Any, kwargs: Any, result: Any, call: str) -> None:
        """Reports the first new tensor in the result that the policy forbids."""
        inputs = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, rd.Tensor)]
        given = {id(tensor) for tensor in inputs}
        for made in pytree.tree_leaves(result):
            if not isinstance(made, rd.Tensor) or id(made) in given or made.dtype not in self.forbidden:
                continue
            if self.policy == "any":
                why = "which is forbidden"
            else:
                lower = [x.dtype for x in inputs if is_lower(x.dtype, made.dtype)]
                if not lower or asks_for_dtype(func, args, kwargs):
                    continue
                why = f"of {plain(lower[0])}, and nobody asked for it"
            message = f"{call} made {plain(made.dtype)} {why}; say so (`.to(dtype)`), or convert the wider input first"
            return self.report(UpcastError(message, func, made.dtype))


def is_lower(one: Any, other: Any) -> bool:
    """Whether a floating or complex dtype has less precision than another one."""
    if not (one.is_floating_point or one.is_complex):
        return False
    return rd.finfo(one).bits < rd.finfo(other).bits if other.is_floating_point or other.is_complex else False


def asks_for_dtype(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Whether a call names the dtype of its result."""
    names = [argument.name for argument in func._schema.arguments]
    return dict(zip(names, args, strict=False)).get("dtype", kwargs.get("dtype")) is not None


def plain(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


NOT_SUPPORTED: dict[str, str] = {}
