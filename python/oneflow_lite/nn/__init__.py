# SPDX-License-Identifier: Apache-2.0
"""Neural networks: modules, layers, losses."""

from oneflow_lite.nn import functional, init
from oneflow_lite.nn.containers import ModuleList, Sequential
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
from oneflow_lite.nn.losses import CrossEntropyLoss, NLLLoss
from oneflow_lite.nn.module import Module
from oneflow_lite.nn.norms import LayerNorm, RMSNorm
from oneflow_lite.nn.parameter import Parameter

__all__ = [
    "CrossEntropyLoss", "Flatten", "Identity", "LayerNorm", "Linear", "LogSoftmax", "Module",
    "ModuleList", "NLLLoss", "Parameter", "RMSNorm", "ReLU", "Sequential", "Sigmoid", "Softmax",
    "Softmax2d", "Softmin", "Tanh", "functional", "init",
]  # fmt: skip
