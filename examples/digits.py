# SPDX-License-Identifier: Apache-2.0
"""Trains a two-layer classifier on real handwritten digits and draws what it has learnt.

    .venv/bin/python examples/digits.py [--device cuda] [--epochs 40] [--seed 0] [--out digits.png]

The data are scikit-learn's: 1797 images of 8 x 8 grey levels, part of its package.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

try:
    import matplotlib  # noqa: F401  (drawn with at the end)
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from tqdm import tqdm
except ImportError as error:
    sys.exit(f"digits.py: {error}; pip install matplotlib scikit-learn tqdm")

import oneflow_lite as flow
from oneflow_lite import nn, optim
from oneflow_lite.utils.data import batches

BATCH = 32
ROWS, COLUMNS = 3, 4  # of test images in the picture
GREEN, RED, GREY = "#2a7f62", "#c8553d", "#c3ccd6"


class Digits(NamedTuple):
    """Images of shape [N, 64] with values in [0, 1], labels of shape [N]."""

    train_x: np.ndarray
    test_x: np.ndarray
    train_y: np.ndarray
    test_y: np.ndarray


def load(seed: int) -> Digits:
    """The same split for the same seed; a fifth of the images is for the test."""
    images, labels = load_digits(return_X_y=True)
    images, labels = (images / 16).astype(np.float32), labels.astype(np.int64)
    return Digits(
        *train_test_split(images, labels, test_size=0.2, random_state=seed, stratify=labels)
    )


def train(model: nn.Module, data: Digits, args: argparse.Namespace) -> tuple[list[float], float]:
    """The loss of every step, and the seconds they took together."""
    # Smoothed targets keep it from being sure of what it has merely learnt by heart.
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    rng = np.random.default_rng(args.seed)
    losses = []
    start = time.perf_counter()
    with tqdm(range(args.epochs), desc="training", unit="epoch") as epochs:
        for _ in epochs:
            running = []
            for x, y in batches(
                data.train_x, data.train_y, size=BATCH, rng=rng, device=args.device
            ):
                loss = loss_fn(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                running.append(loss.detach())
            losses += [loss.item() for loss in running]  # waits for the GPU once an epoch
            epochs.set_postfix(loss=f"{np.mean(losses[-len(running) :]):.4f}")
    return losses, time.perf_counter() - start


def predict(model: nn.Module, images: np.ndarray, device: str) -> np.ndarray:
    """Probabilities of the ten digits, shape [N, 10]."""
    with flow.no_grad():
        return flow.softmax(model(flow.from_numpy(images).to(device)), dim=1).cpu().numpy()


def draw_losses(axes, losses: list[float]) -> None:
    """The loss of every step and its running mean."""
    from matplotlib.ticker import LogLocator, NullLocator

    width = max(1, len(losses) // 60)
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")
    middle = np.arange(len(smooth)) + (width + 1) / 2
    axes.semilogy(np.arange(len(losses)) + 1, losses, color=GREY, linewidth=0.8, label="each step")
    axes.semilogy(middle, smooth, color=GREEN, linewidth=2, label=f"mean of {width} steps")
    axes.set(xlabel="step", ylabel="cross-entropy on the training batch", title="Loss")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(axis="y", color="#e6e9ed")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def draw_image(picture, bars, image: np.ndarray, p: np.ndarray, label: int) -> None:
    """One test image and what the softmax makes of it: red is a wrong guess, green the digit."""
    guess = int(p.argmax())
    color = GREEN if guess == label else RED
    picture.imshow(image.reshape(8, 8), cmap="gray_r")
    picture.set(xticks=[], yticks=[])
    verdict = f"{guess}" if guess == label else f"{guess}, is {label}"
    picture.set_title(verdict, color=color, fontweight="bold")
    colors = [GREY] * 10
    colors[guess] = color
    colors[label] = GREEN
    bars.barh(range(10), p, color=colors)
    bars.set(xlim=(0, 1), ylim=(9.6, -0.6), yticks=range(10))
    bars.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    bars.tick_params(length=0, labelsize=7.5)
    bars.grid(axis="x", color="#e6e9ed")
    bars.set_axisbelow(True)
    bars.spines[["top", "right", "bottom"]].set_visible(False)


def draw(losses: list[float], data: Digits, probabilities: np.ndarray, title: str, out: Path):
    """The loss on the left, test images with their probabilities on the right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ink = dict.fromkeys(["text.color", "axes.labelcolor", "xtick.color", "ytick.color"], "#2b2f36")
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": "#9aa3ad", **ink})
    figure = plt.figure(figsize=(15, 6.6), dpi=110, layout="constrained")
    figure.suptitle(title, fontsize=14, fontweight="bold")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.75], wspace=0.02)
    draw_losses(left.subplots(), losses)

    # The least certain test images: there the softmax has something to tell.
    shown = np.argsort(probabilities.max(1), kind="stable")[: ROWS * COLUMNS]
    right.suptitle(f"The {len(shown)} test images it is least sure of, with its softmax",
                   fontsize=12)  # fmt: skip
    right.get_layout_engine().set(wspace=0.06, hspace=0.05)
    grid = right.subplots(ROWS, 2 * COLUMNS, width_ratios=[1, 1.25] * COLUMNS).flat
    for picture, bars, i in zip(grid[::2], grid[1::2], shown, strict=True):
        draw_image(picture, bars, data.test_x[i], probabilities[i], int(data.test_y[i]))
    figure.savefig(out)
    plt.close(figure)


def positive(text: str) -> int:
    """An option that counts something."""
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"at least 1 is needed, not {number}")
    return number


def picture(text: str) -> Path:
    """The path of a file to be written, whose folder must be there."""
    if not (path := Path(text)).parent.is_dir():
        raise argparse.ArgumentTypeError(f"there is no folder {path.parent}")
    return path


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Trains a classifier on handwritten digits.")
    parser.add_argument("--device", default="cuda" if flow.cuda.is_available() else "cpu",
                        help="cpu or cuda (here: %(default)s)")  # fmt: skip
    parser.add_argument("--epochs", type=positive, default=40, help="(%(default)s)")
    parser.add_argument("--hidden", type=positive, default=128, help="hidden units (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(%(default)s)")
    parser.add_argument("--out", type=picture, default=Path("digits.png"), help="(%(default)s)")
    return parser.parse_args()


def main() -> None:
    """Loads, trains, tests, draws."""
    args = parse()
    flow.manual_seed(args.seed)
    data = load(args.seed)
    model = nn.Sequential(nn.Linear(64, args.hidden), nn.ReLU(), nn.Linear(args.hidden, 10))
    model.to(args.device)
    where = flow.cuda.get_device_name() if args.device.startswith("cuda") else "the CPU"
    count = sum(p.numel() for p in model.parameters())
    print(f"{len(data.train_x)} digits to learn, {len(data.test_x)} to be tested on; "
          f"{count} parameters on {where}")  # fmt: skip

    losses, seconds = train(model, data, args)
    probabilities = predict(model, data.test_x, args.device)
    accuracy = (probabilities.argmax(1) == data.test_y).mean()
    rate = len(data.train_x) * args.epochs / seconds
    print(f"test accuracy {accuracy:.2%}, {rate:,.0f} images/s in training ({seconds:.1f} s)")
    title = f"Handwritten digits: test accuracy {accuracy:.1%}, {rate:,.0f} images/s on {where}"
    draw(losses, data, probabilities, title, args.out)
    print(f"drawn: {args.out}")
    python, here = Path(sys.executable), Path.cwd()
    python = python.relative_to(here) if python.is_relative_to(here) else python
    print("\nTo try next:")
    print(f"  {python} {sys.argv[0]} --epochs 5 --hidden 32 --seed 1")
    show = "import oneflow_lite as flow; print(flow.__config__); help(flow.softmax)"
    for code in ("import oneflow_lite as flow; print(flow.softmax(flow.randn(2, 3), dim=1))", show):
        print(f"  {python} -c '{code}'")


if __name__ == "__main__":
    main()
