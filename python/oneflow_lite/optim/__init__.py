# SPDX-License-Identifier: Apache-2.0
"""Optimizers: they change parameters in place by their gradients."""

from oneflow_lite._absent import absent_names
from oneflow_lite.optim import lr_scheduler
from oneflow_lite.optim.adam import Adam, AdamW
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]

__getattr__ = absent_names(__name__)
