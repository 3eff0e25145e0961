# SPDX-License-Identifier: Apache-2.0
"""Losses of margins, of pairs and triplets, and of the parameters of distributions."""

from __future__ import annotations

from collections.abc import Callable

from oneflow_lite._oneflow_lite import _C, Tensor
from oneflow_lite.nn import functional
from oneflow_lite.nn.distances import PairwiseDistance
from oneflow_lite.nn.losses import Reduced, take_older_arguments


class MarginRankingLoss(Reduced):
    """``max(0, -target * (input1 - input2) + margin)``: the target says which is to be larger.

    Parameters
    ----------
    margin : float
        By how much.
    reduction : str
        none, mean or sum.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return _C.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(Reduced):
    """The input itself where the target is 1, ``max(0, margin - input)`` where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.hinge_embedding_loss(input, target, self.margin, self.reduction)


class CosineEmbeddingLoss(Reduced):
    """One minus the cosine of two rows where the target is 1, ``max(0, cosine - margin)`` where
    it is -1.
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return _C.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class TripletMarginLoss(Reduced):
    """``max(0, |anchor - positive| - |anchor - negative| + margin)`` of rows.

    Parameters
    ----------
    margin : float
        By how much the negative is to be farther; positive.
    p : float
        Which norm measures.
    eps : float
        Is added to each difference.
    swap : bool
        The negative's distance is the lesser of those to the anchor and to the positive.
    reduction : str
        none, mean or sum.
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return _C.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps,
                                      self.swap, self.reduction)  # fmt: skip


class TripletMarginWithDistanceLoss(Reduced):
    """:class:`TripletMarginLoss` by any distance, ``PairwiseDistance`` where absent."""

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return functional.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function,
            margin=self.margin, swap=self.swap, reduction=self.reduction)  # fmt: skip


class SoftMarginLoss(Reduced):
    """``log(1 + exp(-target * input))`` of targets 1 and -1; ``reduction`` as in MSELoss."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(Reduced):
    """The sum over the wrong classes of ``max(0, margin - right + wrong)^p``, by their number.

    Parameters
    ----------
    p : int
        1 or 2.
    margin : float
        By how much the right class is to lead.
    weight : Tensor, optional
        A factor per class.
    reduction : str
        none, mean or sum.
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.p, self.margin = p, margin
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.multi_margin_loss(input, target, self.p, self.margin, self.weight,
                                    self.reduction)  # fmt: skip


class MultiLabelMarginLoss(Reduced):
    """Margins of several right classes, whose numbers stand in the target until the first -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.multilabel_margin_loss(input, target, self.reduction)


class MultiLabelSoftMarginLoss(Reduced):
    """Cross entropy of two classes for each label, of which logits are given, by their number.

    Parameters
    ----------
    weight : Tensor, optional
        A factor per label.
    reduction : str
        none, mean or sum.
    """

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return _C.multilabel_soft_margin_loss(input, target, self.weight, self.reduction)


class PoissonNLLLoss(Reduced):
    """The negative log-likelihood of counts under a Poisson distribution.

    Parameters
    ----------
    log_input : bool
        The input is the logarithm of the rate.
    full : bool
        Adds Stirling's term for the factorial of targets above 1.
    eps : float
        Is added to a rate before its logarithm.
    reduction : str
        none, mean or sum.
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        *,
        eps: float = 1e-8,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return _C.poisson_nll_loss(log_input, target, self.log_input, self.full, self.eps,
                                   self.reduction)  # fmt: skip


class GaussianNLLLoss(Reduced):
    """The negative log-likelihood of targets under normal distributions of given mean and variance.

    Parameters
    ----------
    full : bool
        Adds the constant, half the logarithm of 2 pi.
    eps : float
        The least variance.
    reduction : str
        none, mean or sum.
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor) -> Tensor:
        return _C.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


take_older_arguments(globals(), without=("GaussianNLLLoss", "TripletMarginWithDistanceLoss"))
