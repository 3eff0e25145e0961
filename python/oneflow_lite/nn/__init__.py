# SPDX-License-Identifier: Apache-2.0
"""Neural networks: modules, layers, losses."""

from oneflow_lite.nn import functional, init
from oneflow_lite.nn.activations import GELU, Dropout, LeakyReLU, SiLU, Softplus
from oneflow_lite.nn.containers import ModuleList, Sequential
from oneflow_lite.nn.embedding import Embedding
from oneflow_lite.nn.layers import (
    Flatten,
    Identity,
    Linear,
    LogSoftmax,
    ReLU,
    Sigmoid,
    Softmax,
    Softmax2d,
    Softmin,
    Tanh,
)
from oneflow_lite.nn.losses import BCEWithLogitsLoss, CrossEntropyLoss, L1Loss, MSELoss, NLLLoss
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.norms import LayerNorm, RMSNorm
from oneflow_lite.nn.parameter import Parameter

__all__ = [
    "BCEWithLogitsLoss", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "GELU", "Identity",
    "L1Loss", "LayerNorm", "LeakyReLU", "Linear", "LogSoftmax", "MSELoss", "Module", "ModuleList",
    "NLLLoss", "Parameter", "RMSNorm", "ReLU", "Sequential", "SiLU", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Softplus", "Tanh", "functional", "init",
]  # fmt: skip
