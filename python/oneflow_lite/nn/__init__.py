# SPDX-License-Identifier: Apache-2.0
"""Neural networks: modules, layers, losses."""

from oneflow_lite.nn import functional, init, utils
from oneflow_lite.nn.activations import (
    ELU,
    GELU,
    Dropout,
    LeakyReLU,
    LogSigmoid,
    ReLU,
    Sigmoid,
    SiLU,
    Softplus,
    Tanh,
)
from oneflow_lite.nn.attention import (
    MultiheadAttention,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from oneflow_lite.nn.containers import ModuleDict, ModuleList, ParameterList, Sequential
from oneflow_lite.nn.embedding import Embedding
from oneflow_lite.nn.layers import (
    Flatten,
    Identity,
    Linear,
    LogSoftmax,
    Softmax,
    Softmax2d,
    Softmin,
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
from oneflow_lite.nn.parameter import Parameter

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CrossEntropyLoss", "Dropout", "ELU", "Embedding", "Flatten",
    "GELU", "GroupNorm", "HuberLoss", "Identity", "KLDivLoss", "L1Loss", "LayerNorm", "LeakyReLU",
    "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "Module", "ModuleDict", "ModuleList",
    "MultiheadAttention", "NLLLoss", "Parameter", "ParameterList", "RMSNorm", "ReLU", "Sequential",
    "SiLU", "Sigmoid", "SmoothL1Loss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Tanh",
    "TransformerEncoder", "TransformerEncoderLayer", "functional", "init", "utils",
]  # fmt: skip
