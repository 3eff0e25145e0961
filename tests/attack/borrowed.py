# SPDX-License-Identifier: Apache-2.0
"""Arguments whose methods change, empty or free what is being read while it is read."""

import itertools

from _frame import run

import oneflow_lite as flow


class Index:
    """An int that is made anew when it is asked for, or raises."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return int(str(self.value))


def rounds(rng, say):
    x = flow.zeros(2, 3)
    for i in itertools.count():
        sizes = [Index(rng.choice([2, 3, "x"])) for _ in range(2)]
        say(f"reshape(x, {[n.value for n in sizes]}) {i}")
        try:
            x.reshape(sizes)
        except (TypeError, ValueError, RuntimeError, IndexError):
            yield "refused"
        else:
            yield "taken"


if __name__ == "__main__":
    run(rounds, full={"count": 100_000})
