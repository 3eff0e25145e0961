# SPDX-License-Identifier: Apache-2.0
"""Each attack of tests/attack, for some seconds. `make test-attack` runs them at full size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from gloo import needs_gloo

pytest.importorskip("oneflow_lite")

FOLDER = Path(__file__).resolve().parents[1] / "attack"
ATTACKS = sorted(path.stem for path in FOLDER.glob("*.py") if not path.name.startswith("_"))
OF_RANKS = {"rank_kills"}
MEMORY = r"[1-9]\d* -> [1-9]\d* -> [1-9]\d* MiB"  # of the first round, a quarter, all
SECONDS = min(10, 60 / len(ATTACKS))  # in all, about a minute


def run(program, *options):
    return subprocess.run(
        [sys.executable, str(program), *map(str, options)], text=True, capture_output=True
    )


@pytest.mark.parametrize(
    "name", [pytest.param(a, marks=[needs_gloo] if a in OF_RANKS else []) for a in ATTACKS]
)
def test_attack(name):
    result = run(FOLDER / f"{name}.py", "--seed", 0, "--seconds", SECONDS)
    said = result.stdout + result.stderr
    assert result.returncode == 0, said
    last = result.stdout.splitlines()[-1]
    assert re.fullmatch(rf"{name}: [1-9]\d* rounds in [\d.]+ s, seed 0: .+; {MEMORY}", last), said


ROUNDS = {
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "raises": "1 / 0",
    "hangs": "import time; time.sleep(60)",
    "leaks": "kept.append(b'x' * (1 << 20))",
    "is well": "pass",
}
PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from _frame import run
kept = []
def rounds(rng, say):
    for i in range(1000):
        say("round %d" % i)
        if i >= 100:
            {body}
        yield "odd" if i % 2 else "even"
if __name__ == "__main__":
    run(rounds, full={{"count": 400}}, patience=1, flat=True)
"""


@pytest.mark.parametrize(
    "case, status, line",
    [
        ("dies", 1, "died of SIGKILL after 100 rounds, seed 3, at: round 100"),
        ("raises", 1, "failed with status 1 after 100 rounds, seed 3, at: round 100"),
        ("hangs", 1, "hung for 1 s after 100 rounds, seed 3, at: round 100"),
        ("leaks", 1, "failed with status 1 after 400 rounds, seed 3, at: round 399"),
        ("is well", 0, r"400 rounds in [\d.]+ s, seed 3: 200 even, 200 odd; " + MEMORY),
    ],
)
def test_the_frame_sees_an_attack_that(case, status, line, tmp_path):
    if case == "leaks" and "libasan" in Path("/proc/self/maps").read_text():
        pytest.skip("AddressSanitizer keeps freed memory, so growth is not looked at")
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM.format(folder=str(FOLDER), body=ROUNDS[case]))
    result = run(program, "--seed", 3, "--full")
    said = result.stdout + result.stderr
    assert result.returncode == status, said
    assert re.fullmatch("mine: " + line, result.stdout.splitlines()[-1]), said
