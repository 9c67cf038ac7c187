"""Layers of nn with arguments for each, for tests that run all of them."""

import redispatch as rd
from redispatch import nn


def indices(*shape):
    return rd.randint(0, 3, shape)


def signs(*shape):
    return rd.randn(shape).sign()


SEQUENCE = [(2, 3, 4)]
LAYERS = {  # the arguments of a class -> shapes of what the layer is given, or makers of it
    "Linear": [(4, 3), [(2, 4)]],
    "Bilinear": [(3, 4, 2), [(5, 3), (5, 4)]],
    "Conv1d": [(3, 4, 3), [(2, 3, 8)]],
    "Conv2d": [(3, 4, 3), [(2, 3, 8, 8)]],
    "Conv3d": [(2, 3, 2), [(1, 2, 4, 4, 4)]],
    "ConvTranspose1d": [(3, 4, 3), [(2, 3, 5)]],
    "ConvTranspose2d": [(3, 4, 3, 2), [(2, 3, 5, 5)]],
    "ConvTranspose3d": [(2, 2, 2), [(1, 2, 3, 3, 3)]],
    "BatchNorm1d": [(4,), [(5, 4)]],
    "BatchNorm2d": [(3,), [(2, 3, 4, 4)]],
    "BatchNorm3d": [(2,), [(2, 2, 3, 3, 3)]],
    "InstanceNorm1d": [(3,), [(2, 3, 6)]],
    "InstanceNorm2d": [(3, 1e-5, 0.1, True, True), [(2, 3, 4, 4)]],
    "GroupNorm": [(2, 4), [(2, 4, 5)]],
    "LayerNorm": [(4,), [(3, 4)]],
    "RMSNorm": [(4,), [(3, 4)]],
    "LocalResponseNorm": [(2,), [(2, 4, 5, 5)]],
    "Embedding": [(5, 3), [lambda: indices(4)]],
    "EmbeddingBag": [(5, 3), [lambda: indices(4, 2)]],
    "RNN": [(3, 4, 2), [(5, 2, 3)]],
    "LSTM": [(3, 4, 2), [(5, 2, 3)]],
    "GRU": [(3, 4, 2), [(5, 2, 3)]],
    "RNNCell": [(3, 4), [(2, 3)]],
    "LSTMCell": [(3, 4), [(2, 3)]],
    "GRUCell": [(3, 4), [(2, 3)]],
    "MultiheadAttention": [(4, 2), SEQUENCE * 3],
    "TransformerEncoderLayer": [(4, 2, 8), SEQUENCE],
    "TransformerDecoderLayer": [(4, 2, 8), SEQUENCE * 2],
    "Transformer": [(4, 2, 1, 1, 8), SEQUENCE * 2],
    "Fold": [((4, 4), (2, 2)), [(1, 8, 9)]],
    "Unfold": [((2, 2),), [(1, 2, 4, 4)]],
    "PixelShuffle": [(2,), [(1, 4, 3, 3)]],
    "PixelUnshuffle": [(2,), [(1, 1, 4, 4)]],
    "Upsample": [(None, 2, "bilinear"), [(1, 2, 3, 3)]],
    "ChannelShuffle": [(2,), [(1, 4, 2, 2)]],
    "Flatten": [(), [(2, 3, 4)]],
    "Unflatten": [(1, (2, 2)), [(2, 4)]],
    "CosineSimilarity": [(), [(3, 4), (3, 4)]],
    "PairwiseDistance": [(), [(3, 4), (3, 4)]],
    "Dropout": [(), [(3, 4)]],
    "Dropout2d": [(), [(2, 3, 4, 4)]],
    "AlphaDropout": [(), [(3, 4)]],
    "FeatureAlphaDropout": [(), [(2, 3, 4)]],
    "RReLU": [(), [(3, 4)]],
    "PReLU": [(), [(3, 4)]],
    "Threshold": [(0.1, 2.0), [(3, 4)]],
    "FractionalMaxPool2d": [(2, 3), [(1, 2, 6, 6)]],
    **{
        name: [(), [(3, 4)]]
        for name in """ELU Hardshrink Hardsigmoid Hardtanh Hardswish LeakyReLU LogSigmoid ReLU ReLU6 SELU CELU GELU
        Sigmoid SiLU Mish Softplus Softshrink Softsign Tanh Tanhshrink GLU""".split()
    },
    **{name: [(-1,), [(3, 4)]] for name in "Softmin Softmax LogSoftmax".split()},
    **{
        f"{name}{d}d": [(2, 2) if name == "LPPool" else (2,), [(2, 2, *[6] * d)]]
        for name in "MaxPool AvgPool AdaptiveAvgPool AdaptiveMaxPool LPPool".split()
        for d in (1, 2, 3)
    },
    **{
        f"{name}Pad{d}d": [(1, 2.0) if name == "Constant" else (1,), [(2, 2, *[6] * d)]]
        for name in "Reflection Replication Zero Circular Constant".split()
        for d in (1, 2, 3)
    },
    **{name: [(), [(3, 4), (3, 4)]] for name in "L1Loss MSELoss SmoothL1Loss HuberLoss".split()},
    **{name: [(), [(3, 4), lambda: indices(3)]] for name in "CrossEntropyLoss NLLLoss MultiMarginLoss".split()},
    "BCELoss": [(), [lambda: rd.rand(3, 4), lambda: rd.rand(3, 4)]],
    **{
        name: [(), [(3, 4), lambda: indices(3, 4).bool().double().float()]]
        for name in "BCEWithLogitsLoss PoissonNLLLoss MultiLabelSoftMarginLoss".split()
    },
    **{name: [(), [(3, 4), lambda: signs(3, 4)]] for name in "HingeEmbeddingLoss SoftMarginLoss".split()},
    "KLDivLoss": [(None, None, "sum"), [(3, 4), lambda: rd.rand(3, 4)]],
    "CosineEmbeddingLoss": [(), [(3, 4), (3, 4), lambda: signs(3)]],
    "MarginRankingLoss": [(), [(3,), (3,), lambda: signs(3)]],
    "TripletMarginLoss": [(), [(3, 4), (3, 4), (3, 4)]],
    "TripletMarginWithDistanceLoss": [(), [(3, 4), (3, 4), (3, 4)]],
    "MultiLabelMarginLoss": [(), [(3, 4), lambda: rd.tensor([[1, 0, -1, 0]] * 3)]],
    "Identity": [(), [(3, 4)]],
    "Dropout1d": [(), [(2, 3, 4)]],
    "Dropout3d": [(), [(2, 3, 2, 2, 2)]],
    "InstanceNorm3d": [(2,), [(2, 2, 3, 3, 3)]],
    "CrossMapLRN2d": [(2,), [(2, 4, 5, 5)]],
    "FractionalMaxPool3d": [(2, 3), [(1, 2, 6, 6, 6)]],
    "Softmax2d": [(), [(2, 3, 4, 4)]],
    "UpsamplingNearest2d": [(None, 2), [(1, 2, 3, 3)]],
    "UpsamplingBilinear2d": [(None, 2), [(1, 2, 3, 3)]],
    **{
        f"MaxUnpool{d}d": [
            (2,),
            [(2, 2, *[2] * d), lambda d=d: rd.arange(2**d).mul(2).reshape(*[2] * d).repeat(2, 2, *[1] * d)],
        ]
        for d in (1, 2, 3)
    },
    "GaussianNLLLoss": [(), [(3, 4), (3, 4), lambda: rd.rand(3, 4) + 0.1]],
    "LinearCrossEntropyLoss": [(4, 5), [(3, 4), lambda: indices(3)]],
    "CTCLoss": [(), [(6, 2, 4), lambda: indices(2, 3) + 1, lambda: rd.full((2,), 6), lambda: rd.full((2,), 3)]],
    "AdaptiveLogSoftmaxWithLoss": [(4, 6, [2, 4]), [(3, 4), lambda: indices(3)]],
    "TransformerEncoder": [(nn.TransformerEncoderLayer(4, 2, 8), 1), SEQUENCE],
    "TransformerDecoder": [(nn.TransformerDecoderLayer(4, 2, 8), 1), SEQUENCE * 2],
}
NO_LAYERS = {  # classes of modules that compute nothing of their own -> why
    **dict.fromkeys("Module Container RNNBase RNNCellBase".split(), "a base of others"),
    **dict.fromkeys("ModuleDict ModuleList ParameterDict ParameterList".split(), "a container without forward"),
    "Sequential": "as its modules",
    "DataParallel": "as the module in it, where there are no GPUs",
    "SyncBatchNorm": "as BatchNorm, where there are no other processes",
    "NLLLoss2d": "another name of NLLLoss",
}  # and Lazy...: the layer without that word, from its first call on

# Which dimension of the inputs counts examples, where that is not the first
BATCH = {
    **dict.fromkeys("RNN LSTM GRU MultiheadAttention Transformer TransformerEncoderLayer TransformerDecoderLayer "
                    "TransformerEncoder TransformerDecoder".split(), (1, 1, 1)),
    "CTCLoss": (1, 0, 0, 0),
}  # fmt: skip


def of_size(name, size, seed=0):
    """Arguments as those of `layer`, for so many examples."""
    rd.manual_seed(seed)
    found = []
    for one, dim in zip(LAYERS[name][1], BATCH.get(name, (0, 0, 0, 0)), strict=False):
        if callable(one):
            made = one()
            found.append(made.index_select(dim, rd.arange(size) % made.shape[dim]))
        else:
            found.append(rd.randn(*one[:dim], size, *one[dim + 1 :], requires_grad=True))
    return found


def layer(name, seed=0):
    """(a layer, its arguments, of which those that are given by their shape want a gradient)."""
    rd.manual_seed(seed)
    arguments, inputs = LAYERS[name]
    made = getattr(nn, name)(*arguments)
    return made, [one() if callable(one) else rd.randn(one, requires_grad=True) for one in inputs]
