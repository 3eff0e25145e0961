# SPDX-License-Identifier: Apache-2.0
"""Optimizers: they change parameters in place by their gradients."""

from typing import TYPE_CHECKING

from oneflow_lite._absent import public_face
from oneflow_lite.optim import lr_scheduler, swa_utils
from oneflow_lite.optim.adadelta import Adadelta
from oneflow_lite.optim.adagrad import Adagrad
from oneflow_lite.optim.adam import Adam, AdamW
from oneflow_lite.optim.lbfgs import LBFGS
from oneflow_lite.optim.lion import Lion
from oneflow_lite.optim.optimizer import Optimizer
from oneflow_lite.optim.rmsprop import RMSprop
from oneflow_lite.optim.sgd import SGD

__all__ = ["SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "LBFGS", "Lion", "Optimizer", "RMSprop",
           "lr_scheduler", "swa_utils"]  # fmt: skip

if not TYPE_CHECKING:
    __getattr__, __dir__ = public_face(__name__)
