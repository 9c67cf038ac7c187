"""`redispatch.backends.cuda.matmul`: how exactly products are made. frontend/utils/settings.py keeps the answer."""

from __future__ import annotations

from typing import Any


class MatmulSettings:
    """allow_tf32: whether float32 products may be made of factors rounded to TF32, by NVIDIA's library on a card; the
    same as `set_float32_matmul_precision("high")`.

    The others are as PyTorch has them at first, and cannot be changed: sums are always float32.
    """

    FIXED = {
        "allow_fp16_reduced_precision_reduction": False,
        "allow_bf16_reduced_precision_reduction": False,
        "allow_fp16_accumulation": False,
    }

    def __getattr__(self, name: str) -> Any:
        from redispatch.utils.settings import get_float32_matmul_precision  # here, because it imports this room

        if name == "allow_tf32":
            return get_float32_matmul_precision() != "highest"
        if name == "fp32_precision":
            return "tf32" if get_float32_matmul_precision() != "highest" else "none"
        if name in self.FIXED:
            return self.FIXED[name]
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        from redispatch.utils.settings import set_float32_matmul_precision

        if name == "allow_tf32":
            set_float32_matmul_precision("high" if value else "highest")
        elif name == "fp32_precision" and value in ("none", "ieee", "tf32"):
            set_float32_matmul_precision("high" if value == "tf32" else "highest")
        elif name in self.FIXED:
            if value is not self.FIXED[name] and value is not True:
                raise RuntimeError(f"{name} is {self.FIXED[name]} here, whatever is asked for, and got {value!r}")
        else:
            raise AttributeError(f"Unknown attribute {name}")


matmul = MatmulSettings()
