# SPDX-License-Identifier: Apache-2.0
"""Neural networks: modules, layers, losses."""

from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite.nn import functional, init, utils
from oneflow_lite.nn.activations import (
    CELU,
    ELU,
    GELU,
    GLU,
    SELU,
    AlphaDropout,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    LeakyReLU,
    LogSigmoid,
    Mish,
    PReLU,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softplus,
    Softshrink,
    Softsign,
    Tanh,
    Tanhshrink,
    Threshold,
)
from oneflow_lite.nn.attention import (
    MultiheadAttention,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from oneflow_lite.nn.containers import (
    ModuleDict,
    ModuleList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from oneflow_lite.nn.distances import CosineSimilarity, PairwiseDistance
from oneflow_lite.nn.embedding import Embedding
from oneflow_lite.nn.layers import (
    Flatten,
    Identity,
    Linear,
    LogSoftmax,
    Softmax,
    Softmax2d,
    Softmin,
    Unflatten,
)
from oneflow_lite.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
)
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.norms import GroupNorm, LayerNorm, RMSNorm
from oneflow_lite.nn.pair_losses import (
    CosineEmbeddingLoss,
    GaussianNLLLoss,
    HingeEmbeddingLoss,
    MarginRankingLoss,
    MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    PoissonNLLLoss,
    SoftMarginLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from oneflow_lite.nn.parameter import Buffer, Parameter
from oneflow_lite.nn.rotary import RotaryEmbedding, SwiGLU
from oneflow_lite.nn.transformer import Transformer, TransformerDecoder, TransformerDecoderLayer

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "Buffer", "CELU", "CosineSimilarity", "CrossEntropyLoss",
    "AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout",
    "ELU", "Embedding", "Flatten", "GELU", "GLU", "GroupNorm", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "HuberLoss", "Identity", "KLDivLoss", "L1Loss",
    "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "Mish", "Module",
    "ModuleDict", "ModuleList", "MultiheadAttention", "NLLLoss", "PReLU", "PairwiseDistance",
    "Parameter", "ParameterDict", "ParameterList", "RMSNorm", "ReLU", "ReLU6", "SELU", "Sequential",
    "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink",
    "Softsign", "Tanh", "Tanhshrink", "Threshold", "Transformer", "TransformerDecoder",
    "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer", "Unflatten",
    "functional", "init", "utils", "RotaryEmbedding", "SwiGLU", "CosineEmbeddingLoss",
    "GaussianNLLLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "PoissonNLLLoss", "SoftMarginLoss",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
