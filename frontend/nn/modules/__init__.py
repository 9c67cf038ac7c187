"""PyTorch's paths to the layers: `nn.modules.linear.Linear` is `nn.Linear`.

Its files are cut otherwise than ours, and programs import from them. So each of them is a module that is made here, of
names of `nn`; nothing is defined in it. Imported when first asked for.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

nn: Any = sys.modules[__name__.rpartition(".")[0]]  # the package above, whose names alone are wanted

# PyTorch's file -> what programs import from it
PLACES = {
    "activation": """
        CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
        MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus
        Softshrink Softsign Tanh Tanhshrink Threshold
    """,
    "adaptive": "AdaptiveLogSoftmaxWithLoss",
    "batchnorm": "BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d SyncBatchNorm",
    "channelshuffle": "ChannelShuffle",
    "container": "Container ModuleDict ModuleList ParameterDict ParameterList Sequential",
    "conv": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d LazyConv3d
        LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
    """,
    "distance": "CosineSimilarity PairwiseDistance",
    "dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
    "flatten": "Flatten Unflatten",
    "fold": "Fold Unfold",
    "instancenorm": """
        InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
    """,
    "linear": "Bilinear Identity LazyLinear Linear",
    "loss": """
        BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss
        HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss
        MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PoissonNLLLoss SmoothL1Loss
        SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss
    """,
    "module": "Module",
    "normalization": "CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm",
    "padding": """
        CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d
        ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d
        ZeroPad3d
    """,
    "pixelshuffle": "PixelShuffle PixelUnshuffle",
    "pooling": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d
        LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
    """,
    "rnn": "GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase",
    "sparse": "Embedding EmbeddingBag",
    "transformer": "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
    "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
}


def place(name: str, members: dict[str, Any]) -> ModuleType:
    """The module `nn.modules.<name>` of these members, where `import` finds it."""
    full = f"{__name__}.{name}"
    made = ModuleType(full, f"PyTorch's path to what `nn` has: {', '.join(members)}.")
    made.__spec__ = ModuleSpec(full, None)
    made.__dict__.update(members)
    sys.modules[full] = made
    return made


_CLASSES = {name: getattr(nn, name) for names in PLACES.values() for name in names.split()}
globals().update(_CLASSES)
globals().update(
    {file: place(file, {name: _CLASSES[name] for name in names.split()}) for file, names in PLACES.items()}
)


def _ntuple(n: int, name: str) -> Any:
    """Returns a function that makes of one number a tuple of `n` equal ones, and of several a tuple."""

    def as_tuple(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, tuple | list) else (x,) * n

    as_tuple.__name__ = name
    return as_tuple


utils = place(
    "utils",
    {name: _ntuple(n, name) for n, name in enumerate(["_single", "_pair", "_triple", "_quadruple"], start=1)}
    | {"_ntuple": _ntuple},
)
vars(sys.modules[f"{__name__}.module"]).update(
    {name: function for name, function in vars(nn.hooks).items() if name.startswith("register_module_")}
)
__all__ = sorted(_CLASSES)  # a list, made of the table
