# SPDX-License-Identifier: Apache-2.0
"""Training the demo's model from the same weights gives the same losses: here, in NumPy's float64,
and in PyTorch where it is installed.
"""

import numpy as np
import pytest

flow = pytest.importorskip("oneflow_lite")
nn = flow.nn

STEPS, BATCH = 100, 32
OPTIONS = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}


def problem():
    """Batches of images and labels, and the weights to start from, all float32."""
    try:
        from sklearn.datasets import load_digits

        images, labels = load_digits(return_X_y=True)
    except ImportError:  # any learnable data will do
        rng = np.random.default_rng(1)
        labels = rng.integers(0, 10, 1797)
        images = 16 * np.clip(rng.random((10, 64))[labels] + rng.normal(0, 0.2, (1797, 64)), 0, 1)
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, len(images), BATCH) for _ in range(STEPS)]
    batches = [((images[r] / 16).astype(np.float32), labels[r].astype(np.int64)) for r in rows]
    shapes = {"0.weight": (128, 64), "0.bias": (128,), "2.weight": (10, 128), "2.bias": (10,)}
    fan_in = {"0": 64, "2": 128}
    weights = {name: (rng.uniform(-1, 1, shape) / np.sqrt(fan_in[name[0]])).astype(np.float32)
               for name, shape in shapes.items()}  # fmt: skip
    return batches, weights


def train_here(batches, weights, device="cpu"):
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    model.load_state_dict(weights)
    model.to(device)
    optimizer = flow.optim.SGD(model.parameters(), **OPTIONS)
    loss_fn = nn.CrossEntropyLoss()
    losses = []
    for x, y in batches:
        loss = loss_fn(model(flow.from_numpy(x).to(device)), flow.from_numpy(y).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def train_in_numpy(batches, weights):
    """The formulas written out, in float64."""
    p = {name: w.astype(np.float64) for name, w in weights.items()}
    momentum = {}
    losses = []
    for x, y in batches:
        x = x.astype(np.float64)
        hidden = x @ p["0.weight"].T + p["0.bias"]
        active = np.maximum(hidden, 0)
        logits = active @ p["2.weight"].T + p["2.bias"]
        log_p = logits - logits.max(1, keepdims=True)
        log_p -= np.log(np.exp(log_p).sum(1, keepdims=True))
        losses.append(-log_p[np.arange(len(y)), y].mean())
        d_logits = np.exp(log_p)
        d_logits[np.arange(len(y)), y] -= 1
        d_logits /= len(y)
        d_hidden = (d_logits @ p["2.weight"]) * (hidden > 0)
        grads = {"0.weight": d_hidden.T @ x, "0.bias": d_hidden.sum(0),
                 "2.weight": d_logits.T @ active, "2.bias": d_logits.sum(0)}  # fmt: skip
        for name, g in grads.items():
            g = g + OPTIONS["weight_decay"] * p[name]
            momentum[name] = OPTIONS["momentum"] * momentum[name] + g if name in momentum else g
            p[name] = p[name] - OPTIONS["lr"] * momentum[name]
    return np.array(losses)


def train_in_torch(torch, batches, weights):
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model.load_state_dict({name: torch.from_numpy(w.copy()) for name, w in weights.items()})
    optimizer = torch.optim.SGD(model.parameters(), **OPTIONS)
    loss_fn = torch.nn.CrossEntropyLoss()
    losses = []
    for x, y in batches:
        loss = loss_fn(model(torch.from_numpy(x)), torch.from_numpy(y))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return np.array(losses)


def test_losses_are_those_of_the_formulas():
    batches, weights = problem()
    losses, expected = train_here(batches, weights), train_in_numpy(batches, weights)
    assert expected[-20:].mean() < 0.5 * expected[:20].mean()  # it does learn
    assert np.abs(losses - expected).max() < 1e-4


def test_losses_are_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: no parity check")
    batches, weights = problem()
    losses, expected = train_here(batches, weights), train_in_torch(torch, batches, weights)
    assert np.abs(losses - expected).max() < 1e-4


@pytest.mark.cuda
def test_losses_on_the_gpu_are_those_of_the_formulas():
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    batches, weights = problem()
    losses = train_here(batches, weights, "cuda")
    assert np.abs(losses - train_in_numpy(batches, weights)).max() < 1e-3
