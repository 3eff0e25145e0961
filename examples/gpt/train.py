# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT on the characters of a novel, and lets it write.

.venv/bin/python examples/gpt/train.py                       # a small one, two minutes on a CPU
.venv/bin/python examples/gpt/train.py --preset baby --device cuda --dtype bfloat16 --graph
.venv/bin/python examples/gpt/train.py --resume              # goes on where it was ended
.venv/bin/python examples/gpt/train.py --steps 0 --resume --prompt "It is a truth"   # only writes

On several processes, which python -m oneflow_lite.launch --nproc 4 starts:

examples/gpt/train.py --data-parallel 4 --zero 2             # each rank has some of the rows
examples/gpt/train.py --data-parallel 2 --tensor-parallel 2  # and some of the weights
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import oneflow_lite as flow
from oneflow_lite import distributed as dist
from oneflow_lite.distributed import checkpoint
from oneflow_lite.models import gpt

TEXT = Path(__file__).with_name("pride_and_prejudice.txt")
VALIDATION_BATCHES = 8


class Characters:
    """The text as ids of its characters, a tenth of it at the end kept for validation."""

    def __init__(self, path: Path) -> None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise SystemExit(f"gpt: --text: {path} cannot be read: {e}") from None
        self.characters = "".join(sorted(set(text)))
        self._ids = {c: i for i, c in enumerate(self.characters)}
        ids = self.encode(text)
        self.train, self.held = np.split(ids, [len(ids) * 9 // 10])

    def encode(self, text: str) -> np.ndarray:
        if strange := sorted(set(text) - set(self.characters)):
            raise SystemExit(f"gpt: the text has no {' '.join(map(repr, strange))}")
        return np.array([self._ids[c] for c in text], dtype=np.int64)

    def decode(self, ids: Any) -> str:
        return "".join(self.characters[int(i)] for i in ids)

    def batch(self, rng: np.random.Generator, size: int, length: int, held: bool) -> Any:
        """Ids [size, length] and the ids that follow each."""
        ids = self.held if held else self.train
        starts = rng.integers(0, len(ids) - length, size)
        rows = np.stack([ids[s : s + length + 1] for s in starts])
        return flow.from_numpy(rows[:, :-1].copy()), flow.from_numpy(rows[:, 1:].copy())


def learning_rate(step: int, steps: int, most: float) -> float:
    """Up in a twentieth of the steps, then down to a tenth by half a cosine."""
    warm = max(1, steps // 20)
    if step < warm:
        return most * (step + 1) / warm
    share = min(1.0, (step - warm) / max(1, steps - warm))
    return most * (0.1 + 0.45 * (1 + math.cos(math.pi * share)))


class Progress:
    """A line with a bar, the loss, tokens/s and the time left; without a terminal a line of each
    twentieth part.
    """

    def __init__(self, steps: int, tokens: int, begun: int) -> None:
        self.steps, self.tokens, self.begun = steps, tokens, begun
        self.start = time.perf_counter()
        self.live = sys.stderr.isatty()

    def show(self, step: int, loss: float) -> None:
        done = step - self.begun
        if (
            dist.get_rank() > 0
            or done < 1
            or not (self.live or step == self.steps or step % max(1, self.steps // 20) == 0)
        ):
            return
        seconds = (time.perf_counter() - self.start) / done
        left = round(seconds * (self.steps - step))
        bar = "#" * (24 * step // self.steps)
        speed = f"{self.tokens / seconds:,.0f} tokens/s"
        line = (f"[{bar:<24}] {step}/{self.steps}  loss {loss:.4f}  {speed}  "
                f"{left // 60}:{left % 60:02d} left")  # fmt: skip
        print(f"\r{line:<79}" if self.live else line, end="" if self.live else "\n",
              file=sys.stderr, flush=True)  # fmt: skip
        if self.live and step == self.steps:
            print(file=sys.stderr)


class Ranks:
    """How the processes share the work: the rows of a batch, and the weights."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.data, self.tensor = options.data_parallel, options.tensor_parallel
        self.place, self.seed = None, options.seed
        if self.tensor > 1:
            ranks = np.arange(self.data * self.tensor).reshape(self.data, self.tensor)
            self.place = flow.placement(options.device, ranks.tolist())

    def spread(self, model: Any) -> Any:
        """What lets the ranks' gradients come together."""
        if self.place is not None:
            return gpt.split_weights(model, self.place, dim=1)
        return dist.DataParallel(model) if self.data > 1 else model

    def rows(self, x: Any) -> Any:
        """Those of a batch that this rank has."""
        if self.place is not None:
            whole = x.to_global(self.place, [flow.sbp.broadcast] * 2)
            return whole.to_global(sbp=[flow.sbp.split(0), flow.sbp.broadcast])
        if self.data == 1:
            return x
        ends = [len(x) * i // self.data for i in range(self.data + 1)]
        return x[ends[dist.get_rank()] : ends[dist.get_rank() + 1]]

    def mean(self, loss: Any, rows: int) -> Any:
        """Whose gradient is that of the mean over the rows of all."""
        if self.place is not None or self.data == 1:
            return loss
        return dist.global_mean(loss * rows, rows)

    def shown(self, loss: Any) -> float:
        """The mean over all rows."""
        if self.place is None and self.data > 1:
            loss = loss.clone()
            dist.all_reduce(loss, "avg")
        return loss.item()

    def go_on(self, generator: Any, state: Any, step: int) -> None:
        """The random numbers of a resumed run: those of before, but on other ranks, whose dropout
        has masks of its own.
        """
        generator.set_state(state)
        if self.place is None and dist.get_rank() > 0:
            generator.manual_seed(self.seed + (step << 16) + dist.get_rank())


def generator_of(device: str) -> flow.Generator:
    """The generator of dropout's masks."""
    where = flow.device(device)
    if where.type == "cpu":
        return flow.default_generator
    return flow.cuda.default_generators[flow.cuda.current_device()]


class Run:
    """The model, its optimizer, the numbers drawn so far: all that a checkpoint holds."""

    def __init__(self, options: argparse.Namespace, text: Characters) -> None:
        self.options, self.text, self.ranks = options, text, Ranks(options)
        flow.manual_seed(options.seed)
        self.rng = np.random.default_rng(options.seed)
        preset = gpt.PRESETS[options.preset]
        self.config = preset.replaced(vocab=len(text.characters), dropout=options.dropout)
        self.model = gpt.build(flow, self.config).to(options.device)
        self.model.loss_chunks = options.loss_chunks
        if options.dtype != "float32" and not options.autocast:
            self.model.to(getattr(flow, options.dtype))
        self.spread = self.ranks.spread(self.model)
        groups = gpt.parameter_groups(self.model, 0.1)
        adam = {"lr": options.lr, "betas": (0.9, 0.95),
                "master_weights": options.dtype != "float32"}  # fmt: skip
        if options.zero:
            self.optimizer = dist.ZeroOptimizer(
                flow.optim.AdamW, groups, stage=options.zero, **adam
            )
        else:
            self.optimizer = flow.optim.AdamW(groups, **adam)
        self.step = 0
        self.losses: list[tuple[int, float]] = []
        self.held_losses: list[tuple[int, float]] = []

    def precision(self) -> Any:
        if not self.options.autocast or self.options.dtype == "float32":
            return nullcontext()
        return flow.autocast(self.options.device, getattr(flow, self.options.dtype))

    def train_step(self, ids: Any, targets: Any) -> Any:
        with self.precision():
            loss = self.model.loss(ids, targets)
        loss = self.ranks.mean(loss, len(ids))
        self.optimizer.zero_grad()
        loss.backward()
        flow.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.detach()

    def validate(self) -> float:
        """The mean loss of batches that are the same each time."""
        rng, total = np.random.default_rng(1), 0.0
        self.model.eval()
        with flow.no_grad(), self.precision():
            for _ in range(VALIDATION_BATCHES):
                ids, targets = self.text.batch(rng, self.options.batch, self.config.length, True)
                ids, targets = (x.to(self.options.device) for x in (ids, targets))
                if self.ranks.place is not None:
                    ids, targets = self.ranks.rows(ids), self.ranks.rows(targets)
                total += self.model.loss(ids, targets).item()
        self.model.train()
        return total / VALIDATION_BATCHES

    def save(self, path: Path) -> None:
        """Whenever the program is ended, the file is there as a whole, this one or the last."""
        state = {
            "preset": self.options.preset, "seed": self.options.seed, "step": self.step,
            "characters": self.text.characters, "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(), "losses": json.dumps(self.losses),
            "held_losses": json.dumps(self.held_losses),
            "rng": json.dumps(self.rng.bit_generator.state),
            "generator": generator_of(self.options.device).get_state(),
        }  # fmt: skip
        path.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.save_whole(state, path)

    def load(self, path: Path) -> None:
        if not path.exists():
            raise SystemExit(f"gpt: --resume: there is no {path}; --out names another folder")
        state = flow.load(path)
        for name, own in (("preset", self.options.preset), ("characters", self.text.characters)):
            if state[name] != own:
                raise SystemExit(f"gpt: {path} was written with another {name}")
        if self.ranks.place is None:
            self.model.load_state_dict(state["model"])
        else:  # what lies on several ranks is filled there
            self.optimizer.begin_all()
            into = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            state = checkpoint.load(path, into)
        self.optimizer.load_state_dict(state["optimizer"])
        self.step = int(state["step"])
        self.losses = [tuple(pair) for pair in json.loads(state["losses"])]
        self.held_losses = [tuple(pair) for pair in json.loads(state["held_losses"])]
        self.rng.bit_generator.state = json.loads(state["rng"])
        generator = generator_of(self.options.device)
        self.ranks.go_on(generator, state["generator"], self.step)

    def train(self) -> None:
        o = self.options
        begin = self.step
        progress = Progress(o.steps, o.batch * self.config.length, begin)
        step = flow.cuda.graphed_step(self.train_step) if o.graph else self.train_step
        while self.step < min(o.steps, o.stop_at or o.steps):
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(self.step, o.steps, o.lr)
            ids, targets = self.text.batch(self.rng, o.batch, self.config.length, False)
            loss = step(*(self.ranks.rows(x.to(o.device)) for x in (ids, targets)))
            self.step += 1
            if self.step % o.log_every == 0 or self.step == o.steps:
                self.losses.append((self.step, self.ranks.shown(loss)))
                progress.show(self.step, self.losses[-1][1])
            if self.step % o.validate_every == 0 or self.step == o.steps:
                self.held_losses.append((self.step, self.validate()))
                self.save(o.out / "checkpoint.npz")

    def gather(self) -> None:
        """Makes the model one of this process, whose weights may have been split."""
        if self.ranks.place is not None:
            self.model.to_global(sbp=[flow.sbp.broadcast] * 2)
            state = {k: v.to_local() for k, v in self.model.state_dict().items()}
            self.model = gpt.build(flow, self.config).to(self.options.device)
            self.model.load_state_dict(state, assign=True)

    def write(self, prompt: str, count: int) -> str:
        """The prompt and what the model writes after it."""
        self.model.eval()
        ids = flow.from_numpy(self.text.encode(prompt)[None]).to(self.options.device)
        with self.precision():
            ids = self.model.generate(ids, count, self.options.temperature, self.options.top_k)
        self.model.train()
        return self.text.decode(ids[0].tolist())


def draw(run: Run, path: Path) -> None:
    """The losses over the steps, as a PNG."""
    try:
        import matplotlib
    except ImportError:
        print(f"gpt: no {path}: it needs matplotlib (pip install matplotlib)", file=sys.stderr)
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(*zip(*run.losses, strict=True), color="#1b6ca8", linewidth=1, label="training")
    axes.plot(*zip(*run.held_losses, strict=True), color="#d95f02", marker="o", markersize=3,
              label="validation")  # fmt: skip
    axes.set(xlabel="step", ylabel="cross entropy of a character",
             title=f"{run.options.preset}, {run.options.dtype}, {run.options.device}")  # fmt: skip
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def number(kind: type, least: float, most: float = math.inf) -> Callable[[str], Any]:
    """What argparse makes of an option's text: a number in a range."""

    def read(text: str) -> Any:
        value = kind(text)
        if not least <= value <= most:
            end = "" if most == math.inf else f" and at most {most:g}"
            raise argparse.ArgumentTypeError(f"it must be at least {least:g}{end}, not {text}")
        return value

    read.__name__ = kind.__name__  # argparse says "invalid int value"
    return read


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Trains a GPT on the characters of a text.")
    add = parser.add_argument
    add("--preset", default="small", choices=gpt.PRESETS, help="the model's shape (%(default)s)")
    add("--text", type=Path, default=TEXT, help="a file to learn (a novel of 1813)")
    add("--device", default="cuda" if flow.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    add("--dtype", default="float32", choices=["float32", "bfloat16"])
    add("--autocast", action="store_true", help="parameters in float32, products in --dtype")
    add("--graph", action="store_true", help="the step as one CUDA graph")
    count = number(int, 1)
    add("--loss-chunks", type=count, default=1, metavar="N",
        help="the logits in so many parts: less memory, with a large vocabulary")  # fmt: skip
    add("--data-parallel", type=count, default=1, metavar="N", help="the rows on so many ranks")
    add("--tensor-parallel", type=count, default=1, metavar="N",
        help="the weights on so many ranks")  # fmt: skip
    add("--zero", type=int, default=0, choices=[0, 1, 2],
        help="split over ranks: the optimizer's state, and with 2 the gradients")  # fmt: skip
    add("--steps", type=number(int, 0), default=1000, help="(%(default)s)")
    add("--batch", type=count, default=16, help="(%(default)s)")
    add("--lr", type=number(float, 0, 1e3), default=2e-3, help="the most it is (%(default)s)")
    add("--dropout", type=number(float, 0, 1), default=0.0, help="the share (%(default)s)")
    add("--seed", type=number(int, 0), default=0)
    add("--log-every", type=count, default=10, metavar="STEPS")
    add("--validate-every", type=count, default=100, metavar="STEPS",
        help="and write a checkpoint")  # fmt: skip
    add("--out", type=Path, default=Path("build/gpt"), help="the folder of what is written")
    add("--resume", action="store_true", help="go on from the checkpoint in --out")
    add("--stop-at", type=count, metavar="STEP", help="end there, as a run does that is killed")
    add("--prompt", default="It is a truth", help="what it writes on")
    add(
        "--length", type=number(int, 0), default=400, help="characters that it writes (%(default)s)"
    )
    add("--temperature", type=number(float, 0, 1e3), default=0.7,
        help="0: the likeliest character each time (%(default)s)")  # fmt: skip
    add("--top-k", type=number(int, 0), default=0, help="of the likeliest alone; 0: of all")
    options = parser.parse_args(arguments)
    if options.device == "cuda" and not flow.cuda.is_available():
        parser.error("--device cuda: there is no GPU here")
    if not options.prompt:
        parser.error("--prompt is empty; it needs a character at least")
    if options.graph and options.device != "cuda":
        parser.error("--graph needs --device cuda")
    if options.autocast and options.dtype == "float32":
        parser.error("--autocast needs --dtype bfloat16")
    check_ranks(parser, options)
    return options


def check_ranks(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    ranks, there = options.data_parallel * options.tensor_parallel, dist.get_world_size()
    if ranks != there:
        parser.error(f"--data-parallel {options.data_parallel} --tensor-parallel "
                     f"{options.tensor_parallel} needs {ranks} processes, but there are {there}: "
                     f"python -m oneflow_lite.launch --nproc {ranks} ...")  # fmt: skip
    if options.zero and options.tensor_parallel > 1:
        parser.error(
            "--zero goes with --data-parallel; state of split weights is split as they are"
        )
    if options.batch < options.data_parallel:
        parser.error(
            f"--batch {options.batch} has no row for each of {options.data_parallel} ranks"
        )
    if options.graph and ranks > 1:
        parser.error("--graph is for one process")


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    text = Characters(options.text)
    text.encode(options.prompt)  # what the text does not have is said before the training
    size, least = len(text.train) + len(text.held), 10 * (gpt.PRESETS[options.preset].length + 1)
    if size < least:
        raise SystemExit(f"gpt: --text: {options.text} has {size} characters; --preset "
                         f"{options.preset} needs {least}")  # fmt: skip
    run = Run(options, text)
    if options.resume:
        run.load(options.out / "checkpoint.npz")
    size = sum(p.numel() for p in run.model.parameters())
    speaks = dist.get_rank() == 0
    say = print if speaks else (lambda text: None)
    say(f"{options.preset}: {size:,} parameters, {len(text.train):,} characters to learn, "
          f"{options.device}, {options.dtype}")  # fmt: skip
    if run.step < options.steps:
        run.train()
        if run.step < options.steps:
            say(f"ended at step {run.step} of {options.steps}")
            return
        say(f"validation loss {run.held_losses[-1][1]:.4f} after {run.step} steps")
        if speaks:
            draw(run, options.out / "loss.png")
    run.gather()
    if speaks:
        say(run.write(options.prompt, options.length))


if __name__ == "__main__":
    main()
