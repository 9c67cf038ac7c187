"""`dtype_abbrs`: a dtype -> its short name, as `f32` of `float32`."""

from redispatch.dispatch.tensor import dtypes

__all__ = ["dtype_abbrs"]

LETTERS = {"bfloat": "bf", "float": "f", "complex": "c", "uint": "u", "int": "i"}
dtype_abbrs = {
    kind: kind.name.replace(word, letter)
    for kind in vars(dtypes).values()
    if isinstance(kind, dtypes.dtype)
    for word, letter in LETTERS.items()
    if kind.name.rstrip("0123456789") == word
} | {dtypes.bool: "b8"}
