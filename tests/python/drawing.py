# SPDX-License-Identifier: Apache-2.0
"""Property tests that hypothesis drives, or a seeded generator where it is not installed.

@properties(200)
def test_sum_is_linear(draw):
    n = draw.integer(0, 9)

hypothesis shrinks a failing case; the generator, for machines that carry little, names its seed.
"""

import functools
import inspect

import numpy as np

try:
    from hypothesis import given, settings
    from hypothesis import strategies as st
except ImportError:
    given = None


class HypothesisDraw:
    """Draws through hypothesis."""

    def __init__(self, data):
        self._data = data

    def integer(self, low, high):
        return self._data.draw(st.integers(low, high))

    def choice(self, options):
        return self._data.draw(st.sampled_from(list(options)))


class SeededDraw:
    """The same from NumPy's generator."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)

    def integer(self, low, high):
        return int(self._rng.integers(low, high + 1))

    def choice(self, options):
        options = list(options)
        return options[self._rng.integers(len(options))]


def properties(examples):
    """Runs a test ``examples`` times; its argument ``draw`` gives the case."""

    def decorate(test):
        names = [name for name in inspect.signature(test).parameters if name != "draw"]

        def signature(*extra):
            return inspect.Signature(
                [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
                 for name in (*names, *extra)]
            )  # fmt: skip

        if given is not None:

            @functools.wraps(test)
            def drawn(*args, **fixtures):  # hypothesis passes by place, pytest by name
                fixtures |= dict(zip((*names, "data"), args, strict=False))
                test(draw=HypothesisDraw(fixtures.pop("data")), **fixtures)

            drawn.__signature__ = signature("data")
            del drawn.__wrapped__
            return settings(max_examples=examples)(given(data=st.data())(drawn))

        @functools.wraps(test)
        def seeded(**fixtures):
            for seed in range(examples):
                try:
                    test(draw=SeededDraw(seed), **fixtures)
                except Exception as error:
                    raise AssertionError(f"with seed {seed}") from error

        seeded.__signature__ = signature()
        del seeded.__wrapped__
        return seeded

    return decorate
