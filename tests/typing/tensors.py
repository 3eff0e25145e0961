# SPDX-License-Identifier: Apache-2.0
"""What programs do with tensors: making, indexing, operators, reductions; typed strictly."""

from __future__ import annotations

import numpy as np

import oneflow_lite as flow
from oneflow_lite import Tensor
from oneflow_lite.nn import functional as F


def made() -> Tensor:
    device = flow.device("cpu")
    x = flow.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=flow.float32, device=device)
    shapes = [flow.zeros(2, 3), flow.zeros((2, 3)), flow.ones([2, 3]), flow.empty(x.shape),
              flow.full((2, 3), 0.5), flow.zeros_like(x), flow.randn(2, 3, requires_grad=True),
              flow.rand(*x.shape), flow.rand(2, 3, generator=flow.Generator().manual_seed(1)),
              x.new_zeros(2, 3), flow.eye(3)[:2], flow.linspace(0, 1, 6).view(2, 3),
              flow.arange(6, dtype=flow.float32).reshape(2, 3), x.clone(), x.detach()]  # fmt: skip
    order = flow.randperm(len(shapes))
    assert int(order.sum()) == sum(range(len(shapes)))
    a = flow.from_numpy(np.ones((2, 3), dtype=np.float32))
    array = a.numpy()
    assert array.shape == (2, 3) and np.asarray(a).sum() == 6
    return flow.stack(shapes).to("cpu", flow.float64)


def indexed(x: Tensor) -> Tensor:
    x = flow.arange(24).view(2, 3, 4)
    mask = x > 11
    rows = [x[0], x[-1, 1:], x[..., 0], x[:, None, ::2], x[mask], x[flow.tensor([1, 0])],
            x[[0, 1], [1, 2]], x[None], x[np.array([0, 1])], x[:, :, flow.arange(2)]]  # fmt: skip
    x[0, 0] = 1
    x[mask] = 0
    x[:, 1] += 2
    x[0] = x[1]
    for row in x:
        for element in row[0]:
            assert isinstance(element.item(), int)
    first, second = x
    a, b = x.unbind(0)
    (c, d), e = x.chunk(2), x.split(1, dim=1)
    assert len(rows) == 10 and first.equal(a) and b.equal(second) and c.shape == d.shape
    assert 3 not in flow.zeros(2) and len(e) == 3 and len(list(x)) == 2
    return x.gather(0, flow.zeros(1, 3, 4, dtype=flow.long)).masked_fill(x[:1] > 5, 0)


def computed(x: Tensor, y: Tensor) -> Tensor:
    z = x + y - 2 * x / (y + 1) ** 2
    z = 1 - z if bool((z > 0).any()) else -z
    z += 1
    z -= x
    z *= 2.0
    z /= 3
    both = (z > 0) & ~(z < 1) | (z == 2) ^ (z != z)
    z = flow.where(both, z, flow.zeros_like(z)).abs().sqrt().exp()
    z = z.clamp(min=0, max=10).add_(1).mul_(2).clamp_(0, 5)
    z = flow.clip(z, 0, 4) % 3 // 1 + flow.multiply(z, 2).subtract(1)
    z = flow.maximum(z, x).pow(2).log1p().tanh().sigmoid().softmax(-1)
    matrix = x @ y.T + x.matmul(y.t()) + flow.einsum("ij,kj->ik", x, y)
    batch = flow.bmm(x.unsqueeze(0), y.unsqueeze(0).transpose(1, 2))
    assert matrix.shape == batch.squeeze(0).shape and flow.allclose(batch[0], x @ y.mT)
    return F.relu(z) + F.gelu(z, approximate="tanh") + z.float().to(flow.float64).to(z)


def reduced(x: Tensor) -> Tensor:
    total = x.sum() + x.sum(0).sum() + x.sum(dim=1).sum() + x.sum((0, 1)) + x.sum([0, 1])
    means = x.mean(-1, keepdim=True), x.mean(dim=(0, 1)), x.var(0), x.std(1, unbiased=False)
    values, places = x.max(dim=1)
    best = x.max(1)
    most: Tensor = x.max()
    low: Tensor = flow.min(x)
    lowest, where_lowest = flow.min(x, dim=0)
    row: Tensor = flow.max(x, 1, keepdim=True).values + flow.max(x, dim=-1).indices[:, None]
    larger: Tensor = flow.max(x, row) - flow.min(x, other=lowest)
    larger += flow.max(x, axis=1).values[:, None]
    limited: Tensor = flow.where(larger > 0, larger, 0.0) + flow.where(x > low, 1.0, x)
    rows, columns = flow.where(limited > 0)
    (first,) = flow.where(where_lowest > 0)
    assert flow.max(x).item() >= low.item() and rows.shape == columns.shape and first.ndim == 1
    sum_of_largest: float = flow.max(x).item() + flow.max(x, 0)[0].sum().item()
    assert sum_of_largest > 0 or flow.where(x < 0)[0].numel() > 0
    high = flow.amax(x, dim=0)
    top = x.topk(2, dim=-1)
    ordered, order = x.sort(dim=1, descending=True)
    several = [x.argmax(), x.argmin(dim=1), x.cumsum(0), x.prod(), x.norm(), x.logsumexp(1),
               flow.median(x), x.any(), x.all(), x.argsort(dim=1), flow.unique(x)]  # fmt: skip
    assert len(means) == 4 and len(several) == 11 and values.equal(best.values)
    assert ordered.gather(1, order).shape == x.shape and top.indices.shape == (2, 2)
    return total + most + low + high.sum() + places.sum() + best.indices.sum()


def by_numpy_names(x: Tensor) -> Tensor:
    """axis is dim and keepdims is keepdim, of a function and of a method."""
    sums = x.sum(axis=1), x.sum(axis=(0, 1), keepdims=True), flow.sum(x, dim=0, keepdims=True)
    means = x.mean(axis=(0, 1), keepdims=True), flow.mean(x, axis=0, keepdim=True)
    both = flow.cat([x, x], axis=0), flow.stack([x, x], axis=1), x.flip(axis=0)
    several = [x.std(axis=1), x.argmax(axis=-1), x.cumsum(axis=0), x.softmax(axis=1),
               x.any(axis=0, keepdims=True), x.amax(axis=(0, 1)), flow.unsqueeze(x, axis=0),
               x.index_select(axis=0, index=flow.tensor([0])), x.logsumexp(axis=1)]  # fmt: skip
    values, places = x.max(axis=1, keepdims=True)
    low: Tensor = flow.min(x, axis=0).values
    ordered = x.sort(axis=1, descending=True).values.sum(keepdims=True)
    assert len(several) == 9 and values.shape == places.shape and sums[1].shape == (1, 1)
    return means[0] + both[0].sum() + low.sum() + ordered


def shaped(x: Tensor) -> Tensor:
    batch, width = x.shape
    y = x.view(batch, -1, 1).squeeze(0).squeeze(-1).unsqueeze(0).squeeze()
    y = x.permute(1, 0).contiguous().flatten().reshape(batch, width)
    y = y.expand(2, batch, width).transpose(0, 1).repeat(1, 1, 2)
    y = flow.cat([y, y], dim=-1).movedim(0, -1).swapaxes(0, 1).flip(0).roll(1, dims=0)
    size: int = y.size(0)
    sizes: tuple[int, ...] = y.size()
    assert size == sizes[0] and y.numel() == y.nelement() and y.is_contiguous() in (True, False)
    return y.tril().triu(-1)


if __name__ == "__main__":
    made()
    indexed(flow.zeros(1))
    two = flow.rand(2, 3)
    computed(two, two + 1)
    reduced(two)
    by_numpy_names(two)
    shaped(two)
