# SPDX-License-Identifier: Apache-2.0
"""Optimizers: they change parameters in place by their gradients."""

from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite.optim import lr_scheduler
from oneflow_lite.optim.adam import Adam, AdamW
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.optim.sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
