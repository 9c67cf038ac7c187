"""PyTorch's paths to the layers: `nn.modules.linear.Linear` is `nn.Linear`.

Its files are cut otherwise than ours, and programs import from them. So each of them is a module that is made here, of
names of `nn`; nothing is defined in it. Imported when first asked for.
"""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

nn: Any = sys.modules[__name__.rpartition(".")[0]]  # the package above, whose names alone are wanted

# PyTorch's file -> the layers in it, a pattern of their names; the first that fits. The others are in `activation`.
PLACES = {
    "adaptive": "AdaptiveLog.*", "batchnorm": ".*BatchNorm.*", "channelshuffle": "ChannelShuffle",
    "container": "Container|Sequential|.*List|.*Dict", "conv": "(Lazy)?Conv.*",
    "distance": "CosineSimilarity|PairwiseDistance", "dropout": ".*Dropout.*", "flatten": "Flatten|Unflatten",
    "fold": "Fold|Unfold", "instancenorm": ".*InstanceNorm.*", "linear": "Bilinear|Identity|(Lazy)?Linear",
    "loss": ".*Loss(2d)?", "module": "Module", "normalization": ".*(Norm|LRN2d)", "padding": ".*Pad.d",
    "pixelshuffle": "Pixel.*", "pooling": ".*(Pool|Unpool).d", "rnn": "(RNN|LSTM|GRU).*", "sparse": "Embedding.*",
    "transformer": "Transformer.*", "upsampling": "Upsampl.*", "activation": ".*",
}  # fmt: skip


def place(name: str, members: dict[str, Any]) -> ModuleType:
    """The module `nn.modules.<name>` of these members, where `import` finds it."""
    full = f"{__name__}.{name}"
    made = ModuleType(full, f"PyTorch's path to what `nn` has: {', '.join(members)}.")
    made.__spec__ = ModuleSpec(full, None)
    made.__dict__.update(members)
    sys.modules[full] = made
    return made


_CLASSES = {
    name: kind
    for name, kind in vars(nn).items()
    if isinstance(kind, type) and issubclass(kind, nn.Module) and kind is not nn.DataParallel
}
_FILE_OF = {name: next(file for file, names in PLACES.items() if re.fullmatch(names, name)) for name in _CLASSES}
globals().update(_CLASSES)
globals().update(
    {file: place(file, {name: kind for name, kind in _CLASSES.items() if _FILE_OF[name] == file}) for file in PLACES}
)


def _ntuple(n: int, name: str) -> Any:
    """Returns a function that makes of one number a tuple of `n` equal ones, and of several a tuple."""

    def as_tuple(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, tuple | list) else (x,) * n

    as_tuple.__name__ = name
    return as_tuple


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix off the keys of a state dict, in place, and off those of its metadata."""
    metadata = getattr(state_dict, "_metadata", {})
    for key in [*state_dict]:
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    for key in [*metadata]:
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)


utils = place(
    "utils",
    {name: _ntuple(n, name) for n, name in enumerate(["_single", "_pair", "_triple", "_quadruple"], start=1)}
    | {"_ntuple": _ntuple, "consume_prefix_in_state_dict_if_present": consume_prefix_in_state_dict_if_present},
)

# PyTorch's private bases, of which programs ask whether a layer is one, by file -> our file and name
BASES = """
    batchnorm._BatchNorm=normalization._BatchNorm batchnorm._NormBase=normalization._NormBase
    batchnorm._LazyNormBase=lazy._LazyNorm conv._ConvNd=linear._Convolution conv._ConvTransposeNd=linear._Transposed
    conv._LazyConvXdMixin=lazy._LazyConvolution dropout._DropoutNd=dropout._Dropout
    instancenorm._InstanceNorm=normalization._InstanceNorm lazy.LazyModuleMixin=lazy.LazyModuleMixin
    linear.NonDynamicallyQuantizableLinear=attention.NonDynamicallyQuantizableLinear loss._Loss=loss._Loss
    loss._WeightedLoss=loss._WeightedLoss module._IncompatibleKeys=checkpoint.IncompatibleKeys
    padding._CircularPadNd=images._CircularPad padding._ConstantPadNd=images._ConstantPad
    pooling._AdaptiveAvgPoolNd=pooling._AdaptiveAvgPool pooling._AdaptiveMaxPoolNd=pooling._AdaptiveMaxPool
    pooling._AvgPoolNd=pooling._AvgPool pooling._LPPoolNd=pooling._LPPool pooling._MaxPoolNd=pooling._MaxPool
    pooling._MaxUnpoolNd=pooling._MaxUnpool transformer._get_activation_fn=transformer._get_activation_fn
"""
lazy = place("lazy", {})
LinearCrossEntropyOptions = nn.LinearCrossEntropyOptions
linear_cross_entropy = place("linear_cross_entropy", {"LinearCrossEntropyLoss": nn.LinearCrossEntropyLoss})
linear_cross_entropy_options = place(
    "linear_cross_entropy_options", {"LinearCrossEntropyOptions": LinearCrossEntropyOptions}
)
for _row in BASES.split():
    _file, _name, _ours, _base = _row.replace("=", ".").split(".")
    setattr(sys.modules[f"{__name__}.{_file}"], _name, getattr(getattr(nn, _ours), _base))
vars(sys.modules[f"{__name__}.module"]).update(
    {name: function for name, function in vars(nn.hooks).items() if name.startswith("register_module_")}
    | {"_EXTRA_STATE_KEY_SUFFIX": nn.checkpoint.EXTRA_STATE}
    | {f"_global{store[:-1]}_registration_hooks": hooks for store, hooks in nn.tree.ON_REGISTRATION.items()}
)
__all__ = sorted(_CLASSES)  # a list, made of the table
