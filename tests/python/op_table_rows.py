# SPDX-License-Identifier: Apache-2.0
"""Rows of the op table: functions of rows, which are softmax, the norms and the losses."""

import math

import numpy as np
from numerics import flow
from op_reference import (
    np_add_layer_norm,
    np_add_rms_norm,
    np_cross_entropy,
    np_layer_norm,
    np_log_softmax,
    np_nll,
    np_rms_norm,
    np_scale_mask_softmax,
    np_softmax,
)
from op_row import Bad, Op, S, T, labels, ones

DTypeError, ShapeError = flow.DTypeError, flow.ShapeError


SOFTMAX = [
    S(T(())), S(T(()), -1), S(T((1,))), S(T((9,))), S(T((3, 4))), S(T((3, 4)), 0), S(T((2, 3, 4))),
    S(T((2, 3, 4)), -2), S(T((2, 3, 2, 2)), 1), S(T((0, 3)), 1), S(T((3, 0)), 1),
    S(T((2, 0, 3)), 0), S(T((5, 131)), 1), S(T((67, 5)), 0), S(T((4, 1)), 1),
    S(T((2, 2, 2, 1, 3)), 2),
]  # fmt: skip


def softmax_errors(name):
    def call(*args, **kwargs):
        return getattr(flow, name)(*args, **kwargs)

    return [
        Bad(lambda d: call(ones(d, 4, 5), 3), IndexError,
            f"{name}(): dim 3 is out of range [-2, 1] for a tensor of shape [4, 5] "
            "(float32, {device})"),
        Bad(lambda d: call(ones(d), 1), IndexError,
            f"{name}(): dim 1 is out of range [-1, 0] for a tensor of shape [] "
            "(float32, {device})"),
        Bad(lambda d: call(ones(d, 2, dtype="int64"), 0), DTypeError,
            f"{name}(): input has dtype int64, but it must be float16, bfloat16, float32 or "
            "float64"),
        Bad(lambda d: call(ones(d, 2), "0"), TypeError,
            f"{name}(): argument 'dim' must be int or None, not str"),
        Bad(lambda d: call([1.0], 0), TypeError,
            f"{name}(): argument 'input' must be Tensor, not list"),
    ]  # fmt: skip


BANDS = np.tri(5, 9, 2, dtype=bool)
# A mask that is constant along the keys has a gradient of 0, of which only rounding would be seen.
SCALE_MASK = [
    S(T((7,)), None, 0.5), S(T((5, 9)), BANDS, 2.0), S(T((3, 4)), None, 1.0, "nan", True),
    S(T((2, 3, 5, 9)), BANDS, 0.25, "zero", True), S(T((2, 3, 4)), T((3, 1), grad=False), 0.7),
    S(T((2, 3, 4)), T((2, 1, 4)), scale=0.7, causal=True), S(T((4, 130)), T((130,))),
    S(T((2, 2, 3, 33)), T((2, 1, 1, 33)), -0.5), S(T((3, 4)), T((), grad=False)),
    S(T((2, 0, 4)), None), S(T((3, 0)), T((3, 1), grad=False)),
    S(T((2, 1, 2, 1, 2, 3)), T((2, 1, 1, 1, 2, 3)), causal=True),
]  # fmt: skip


GAMMA, BETA = T((4,), "positive"), T((4,))
GAMMA_2D, BETA_2D = T((2, 3), "positive"), T((2, 3))
LAYER_NORM = [
    S(T((3, 4)), (4,), GAMMA, BETA), S(T((3, 4)), 4), S(T((3, 4)), (4,), GAMMA),
    S(T((3, 4)), (4,), None, BETA), S(T((4,)), (4,), GAMMA, BETA, 0.1),
    S(T((2, 2, 3)), (2, 3), GAMMA_2D, BETA_2D), S(T((3, 4)), (4,), GAMMA, BETA, 1e-5, True),
    S(T((3, 4)), (4,), None, BETA, 0.1, True), S(T((2, 1, 4)), 4, GAMMA, memory_efficient=True),
    S(T((0, 4)), (4,), GAMMA, BETA), S(T((2, 0)), (0,)), S(T((3, 1)), 1, T((1,)), T((1,))),
    S(T((5, 131)), (131,), T((131,)), T((131,))), S(T((2, 3, 2, 2)), (2, 2)),
]  # fmt: skip
RMS_NORM = [
    S(T((3, 4)), (4,), GAMMA, 1e-3), S(T((3, 4)), 4, None, 1e-3), S(T((4,)), (4,), GAMMA, 0.1),
    S(T((2, 2, 3)), (2, 3), GAMMA_2D, 1e-3), S(T((3, 4)), (4,), GAMMA, 1e-3, True),
    S(T((2, 1, 4)), 4, eps=1e-3, memory_efficient=True), S(T((0, 4)), (4,), GAMMA, 1e-3),
    S(T((2, 0)), (0,), None, 1e-3), S(T((3, 1)), 1, T((1,)), 1e-1),
    S(T((5, 131)), (131,), T((131,)), 1e-3), S(T((2, 3, 2, 2)), (2, 2), None, 1e-3),
]  # fmt: skip


def with_residual(samples):
    """The same calls of the form that adds a second tensor like the first."""
    return [S(s.args[0], s.args[0], *s.args[1:], **s.kwargs) for s in samples]


def norm_errors(name, residual=()):
    def call(x, *args, **kwargs):
        return getattr(flow, name)(x, *(x for _ in residual), *args, **kwargs)

    return [
        Bad(lambda d: call(ones(d, 2, 3), (4,)), ShapeError,
            f"{name}(): input has shape [2, 3], expected [..., 4] to go with normalized_shape"),
        Bad(lambda d: call(ones(d, 2, 3), (1, 2, 3)), ShapeError,
            f"{name}(): input has shape [2, 3], expected [..., 1, 2, 3] to go with "
            "normalized_shape"),
        Bad(lambda d: call(ones(d, 2, 3), ()), ShapeError,
            f"{name}(): normalized_shape is [], but it must name a dim"),
        Bad(lambda d: call(ones(d, 2, 3), 3, ones(d, 1)), ShapeError,
            f"{name}(): weight has shape [1], expected [3]"),
        *([] if "rms" in name else [  # which takes a weight of any floating dtype
            Bad(lambda d: call(ones(d, 2, 3), 3, ones(d, 3, dtype="float16")), DTypeError,
                f"{name}(): weight has dtype float16, expected float32"),
            Bad(lambda d: call(ones(d, 2, 3, dtype="float16"), 3, ones(d, 3, dtype="bfloat16")),
                DTypeError, f"{name}(): weight has dtype bfloat16, expected float16 or float32"),
        ]),
        Bad(lambda d: call(ones(d, 2, 3), 3, ones(d, 3, dtype="int64")), DTypeError,
            f"{name}(): weight has dtype int64, expected float32"),
        Bad(lambda d: call(ones(d, 2, 3, dtype="int64"), 3), DTypeError,
            f"{name}(): input has dtype int64, but it must be float16, bfloat16, float32 or "
            "float64"),
        Bad(lambda d: call(ones(d, 2, 3), 3, eps=math.nan), ValueError,
            f"{name}(): eps is nan, but it must be a number"),
        Bad(lambda d: call(ones(d, 2, 3), "3"), TypeError,
            f"{name}(): argument 'normalized_shape' must be int or a tuple of ints, not str"),
    ]  # fmt: skip


def residual_errors(name):
    def call(*args):
        return getattr(flow, name)(*args)

    return norm_errors(name, ["residual"]) + [
        Bad(lambda d: call(ones(d, 2, 3), ones(d, 3), 3), ShapeError,
            f"{name}(): residual has shape [3], expected [2, 3]"),
        Bad(lambda d: call(ones(d, 2, 3), ones(d, 2, 3, dtype="float64"), 3), DTypeError,
            f"{name}(): residual has dtype float64, expected float32"),
    ]  # fmt: skip


WEIGHT = T((5,), "positive", grad=False)
IGNORED = np.array([1, -100, 4, 0], dtype=np.int64)
NLL = [
    S(T((4, 5)), labels((4,), 5)), S(T((4, 5)), labels((4,), 5), WEIGHT),
    S(T((4, 5)), IGNORED, WEIGHT, reduction="sum"),
    S(T((4, 5)), np.abs(IGNORED) % 5, None, 4, "none"),
    S(T((5,)), labels((), 5)), S(T((2, 5, 3)), labels((2, 3), 5), WEIGHT),
    S(T((2, 5, 3, 2)), labels((2, 3, 2), 5), reduction="none"),
    S(T((0, 5)), labels((0,), 5), reduction="sum"),
]  # fmt: skip
CROSS_ENTROPY = NLL + [
    S(T((4, 5)), labels((4,), 5), label_smoothing=0.2),
    S(T((4, 5)), IGNORED, WEIGHT, label_smoothing=0.2, reduction="sum"),
    S(T((4, 5)), T((4, 5), "probability")), S(T((5,)), T((5,), "probability"), WEIGHT),
    S(T((2, 5, 3)), T((2, 5, 3), "probability"), WEIGHT, label_smoothing=0.1, reduction="none"),
]  # fmt: skip


def np_linear_cross_entropy(x, weight, target, chunks=1, bias=None, **kwargs):
    logits = x @ weight.T + (0 if bias is None else bias)
    loss = np_cross_entropy(logits.reshape(-1, len(weight)), target.reshape(-1), **kwargs)
    return loss.reshape(target.shape) if kwargs.get("reduction") == "none" else loss


LINEAR_CROSS_ENTROPY = [
    S(T((4, 3)), T((5, 3)), labels((4,), 5)),
    S(T((4, 3)), T((5, 3)), labels((4,), 5), 3, T((5,)), label_smoothing=0.2),
    S(T((2, 3, 4)), T((6, 4)), labels((2, 3), 6), 2, reduction="sum"),
    S(T((2, 3, 4)), T((6, 4)), labels((2, 3), 6), 4, reduction="none"),
    S(T((4, 3)), T((5, 3)), IGNORED, 9, ignore_index=-100),
    S(T((3,)), T((5, 3)), labels((), 5)), S(T((0, 3)), T((5, 3)), labels((0,), 5), reduction="sum"),
]  # fmt: skip

ROWS = [
    # The softmax family.
    Op("softmax", SOFTMAX, np_softmax, bound="softmax", errors=softmax_errors("softmax")),
    Op("log_softmax", SOFTMAX, np_log_softmax, bound="log_softmax",
       errors=softmax_errors("log_softmax")),
    Op("fused_scale_mask_softmax", SCALE_MASK, np_scale_mask_softmax, bound="softmax", errors=[
        Bad(lambda d: flow.fused_scale_mask_softmax(ones(d, 2, 3), ones(d, 2, dtype="bool")),
            ShapeError, "fused_scale_mask_softmax(): mask has shape [2], expected one that "
            "broadcasts to [2, 3]"),
        Bad(lambda d: flow.fused_scale_mask_softmax(ones(d, 2), ones(d, 2, dtype="int64")),
            DTypeError,
            "fused_scale_mask_softmax(): mask has dtype int64, expected bool or float32"),
        Bad(lambda d: flow.fused_scale_mask_softmax(ones(d, 2, dtype="int32")), DTypeError,
            "fused_scale_mask_softmax(): input has dtype int32, but it must be float16, bfloat16, "
            "float32 or float64"),
        Bad(lambda d: flow.fused_scale_mask_softmax(ones(d)), ShapeError,
            "fused_scale_mask_softmax(): input has shape [], expected at least 1 dim"),
        Bad(lambda d: flow.fused_scale_mask_softmax(ones(d, 2), masked_row="one"), ValueError,
            'fused_scale_mask_softmax(): masked_row is "one", but it must be "nan" or "zero"')]),

    # Norms. The sum of the fused forms is rounded before it is normalised, which the reference does
    # not know; test_norms.py does.
    Op("layer_norm", LAYER_NORM, np_layer_norm, bound="norm", errors=[
        *norm_errors("layer_norm"),
        Bad(lambda d: flow.layer_norm(ones(d, 2, 3), 3, None, ones(d, 2)), ShapeError,
            "layer_norm(): bias has shape [2], expected [3]"),
        Bad(lambda d: flow.layer_norm(ones(d, 2, 3, dtype="float16"), 3, ones(d, 3),
                                      ones(d, 3, dtype="float16")), DTypeError,
            "layer_norm(): bias has dtype float16, expected float32")]),
    Op("rms_norm", RMS_NORM, np_rms_norm, bound="norm", errors=norm_errors("rms_norm")),
    Op("add_layer_norm", with_residual(LAYER_NORM), np_add_layer_norm, bound="composite",
       magnitude=lambda *a, **k: 4.0, errors=residual_errors("add_layer_norm")),
    Op("add_rms_norm", with_residual(RMS_NORM), np_add_rms_norm, bound="composite",
       magnitude=lambda *a, **k: 4.0, errors=residual_errors("add_rms_norm")),

    # Losses.
    Op("nll_loss", NLL, np_nll, bound="composite", magnitude=lambda x, *a, **k: 1 + np.abs(x).max(
        initial=0.0) * x.size, errors=[
        Bad(lambda d: flow.nll_loss(ones(d, 2, 3), ones(d, 2, dtype="int64"), reduction="avg"),
            ValueError, 'nll_loss(): reduction is "avg", but it must be "none", "sum" or "mean"'),
        Bad(lambda d: flow.nll_loss(ones(d, 2, 3), ones(d, 2)), DTypeError,
            "nll_loss(): target has dtype float32, expected int64"),
        Bad(lambda d: flow.nll_loss(ones(d, 2, 3), ones(d, 3, dtype="int64")), ShapeError,
            "nll_loss(): target has shape [3], expected [2]")]),
    Op("cross_entropy", CROSS_ENTROPY, np_cross_entropy, bound="composite",
       magnitude=lambda x, *a, **k: 1 + 2 * np.abs(x).max(initial=0.0) * x.size, errors=[
        Bad(lambda d: flow.cross_entropy(ones(d, 2, 3), ones(d, 2, dtype="int64"),
                                         label_smoothing=2.0), ValueError,
            "cross_entropy(): label_smoothing is 2, but it must be in [0, 1]"),
        Bad(lambda d: flow.cross_entropy(ones(d, 2, 3), ones(d, 2, dtype="int64"), ones(d, 2)),
            ShapeError, "cross_entropy(): weight has shape [2], expected [3]")]),
    # 16 bits round the logits, which the reference does not know: test_linear_cross_entropy.py.
    Op("linear_cross_entropy", LINEAR_CROSS_ENTROPY, np_linear_cross_entropy, bound="composite",
       dtypes=("float32", "float64"),
       magnitude=lambda x, w, *a, **k: 1 + 8 * x.size * np.abs(w).max(initial=0.0), errors=[
        Bad(lambda d: flow.linear_cross_entropy(ones(d, 2, 3), ones(d, 5, 3), ones(d, 2)),
            DTypeError,
            "linear_cross_entropy(): target has dtype float32, expected an integer dtype"),
        Bad(lambda d: flow.linear_cross_entropy(ones(d, 2, 3), ones(d, 5, 4),
                                                ones(d, 2, dtype="int64")), ShapeError,
            "linear_cross_entropy(): input has shape [2, 3], expected a last dim of 4 to go with "
            "the weight's [5, 4]"),
        Bad(lambda d: flow.linear_cross_entropy(ones(d, 2, 3), ones(d, 5, 3),
                                                ones(d, 3, dtype="int64")), ShapeError,
            "linear_cross_entropy(): target has shape [3], expected [2], a class for each row of "
            "input"),
        Bad(lambda d: flow.linear_cross_entropy(ones(d, 2, 3), ones(d, 5, 3),
                                                ones(d, 2, dtype="int64"), chunks=0), ValueError,
            "linear_cross_entropy(): chunks is 0, but it must be at least 1")]),
]  # fmt: skip
