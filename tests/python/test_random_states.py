# SPDX-License-Identifier: Apache-2.0
"""flow.random, and the functions of its names in flow.cuda: seeds and states of the generators."""

import copy
import pickle

import numpy as np
import pytest
from numerics import flow

cuda = flow.cuda


@pytest.fixture(autouse=True)
def generator_as_it_was():
    before = flow.default_generator.get_state()
    yield
    flow.default_generator.set_state(before)


def test_a_state_is_taken_up_again():
    flow.manual_seed(5)
    flow.rand(7)
    state = flow.get_rng_state()
    assert state.dtype is flow.uint8 and state.shape == (16,) and state.is_cpu
    x, y = flow.randn(3), flow.randperm(10)
    flow.manual_seed(6)
    flow.set_rng_state(state)
    assert flow.equal(flow.randn(3), x) and flow.equal(flow.randperm(10), y)
    assert flow.initial_seed() == 5


def test_a_state_outlives_a_file(tmp_path):
    flow.manual_seed(2**64 - 1)
    flow.rand(3)
    flow.save({"rng": flow.get_rng_state()}, tmp_path / "checkpoint.pt")
    x = flow.rand(4)
    flow.set_rng_state(flow.load(tmp_path / "checkpoint.pt")["rng"].cpu())
    assert flow.equal(flow.rand(4), x)
    assert flow.initial_seed() == flow.random.initial_seed() == 2**64 - 1


def test_a_state_is_a_copy():
    state = flow.get_rng_state()
    kept = state.clone()
    flow.rand(5)
    assert flow.equal(state, kept) and not flow.equal(flow.get_rng_state(), kept)


@pytest.mark.parametrize(
    ("state", "error"),
    [((1, 2), TypeError), (np.zeros(16, np.uint8), TypeError),
     (flow.zeros(16), ValueError), (flow.zeros(15, dtype=flow.uint8), ValueError),
     (flow.zeros(4, 4, dtype=flow.uint8), ValueError)],
)  # fmt: skip
def test_what_is_no_state(state, error):
    before = flow.get_rng_state().tolist()
    with pytest.raises(error, match=r"set_rng_state\(\): new_state must be"):
        flow.set_rng_state(state)
    assert flow.get_rng_state().tolist() == before


def test_seed_draws_one():
    seeds = {flow.seed() for _ in range(4)}
    assert len(seeds) == 4 and flow.initial_seed() in seeds
    assert flow.random.manual_seed is not None
    flow.random.manual_seed(3)
    assert flow.initial_seed() == 3


@pytest.mark.parametrize("failing", [False, True])
def test_fork_rng(failing):
    state = flow.get_rng_state()
    try:
        with flow.random.fork_rng():
            flow.manual_seed(9)
            x = flow.rand(3)
            if failing:
                raise KeyError
    except KeyError:
        pass
    assert flow.equal(flow.get_rng_state(), state)
    with flow.random.fork_rng(enabled=False):
        flow.manual_seed(9)
    assert flow.equal(flow.rand(3), x)

    @flow.random.fork_rng(devices=[])
    def draws():
        return flow.rand(3)

    state = flow.get_rng_state()
    assert flow.equal(draws(), draws()) and flow.equal(flow.get_rng_state(), state)


def test_seeding_gpus_needs_none():
    before = flow.get_rng_state().tolist()
    cuda.manual_seed(1)
    cuda.manual_seed_all(2)
    cuda.seed()
    cuda.seed_all()
    states = cuda.get_rng_state_all()
    cuda.set_rng_state_all(states)
    assert len(states) == cuda.device_count()
    assert flow.get_rng_state().tolist() == before  # the CPU's is another
    for seed in (cuda.manual_seed, cuda.manual_seed_all, flow.random.manual_seed):
        with pytest.raises(TypeError):
            seed("1")


def test_the_state_of_a_gpu():
    if not cuda.is_available():
        pytest.skip("no GPU here")
    before = cuda.get_rng_state_all()
    cuda.manual_seed(4)
    assert cuda.initial_seed() == 4
    state = cuda.get_rng_state()
    x = flow.rand(5, device="cuda")
    cuda.manual_seed_all(5)
    assert cuda.initial_seed() == 5
    cuda.set_rng_state(state, "cuda")
    assert state.is_cpu and flow.equal(flow.rand(5, device="cuda"), x)
    state = cuda.get_rng_state(0)
    with flow.random.fork_rng():
        flow.rand(5, device="cuda")
    assert flow.equal(cuda.get_rng_state(0), state)
    cuda.set_rng_state_all(before)


def test_the_default_generators_are_objects():
    own, default = flow.Generator(), flow.default_generator
    assert flow.manual_seed(3) is default is flow.random.manual_seed(3)
    assert default.device == own.device == flow.device("cpu")
    assert len(cuda.default_generators) == cuda.device_count()
    for i, generator in enumerate(cuda.default_generators):
        assert generator.device == flow.device("cuda", i)
    assert own.manual_seed(3) is own
    x = flow.randn(2, generator=default)
    assert flow.equal(flow.randn(2, generator=own), x)
    assert flow.equal(own.get_state(), flow.get_rng_state()) and own.get_state().is_cpu


def test_states_of_generators_are_tensors():
    own = flow.Generator().manual_seed(5)
    flow.rand(3, generator=own)
    state, pair = own.get_state(), (5, 1)  # as earlier versions wrote it
    x = flow.rand(4, generator=own)
    for kept in (state, state.cpu(), pair):
        own.set_state(kept)
        assert flow.equal(flow.rand(4, generator=own), x)
    own.set_state(flow.get_rng_state())
    assert own.initial_seed() == flow.initial_seed()
    with pytest.raises(ValueError, match=r"set_state\(\): new_state must be what"):
        own.set_state(flow.zeros(3))
    with pytest.raises(TypeError, match=r"set_state\(\): new_state must be a Tensor, not int"):
        own.set_state(3)


def test_generators_are_copied_and_pickled():
    own = flow.Generator().manual_seed(5)
    flow.rand(3, generator=own)
    made = copy.deepcopy(own), pickle.loads(pickle.dumps(own)), copy.copy(flow.default_generator)
    x, y = flow.rand(4, generator=own), flow.rand(4)
    assert all(flow.equal(flow.rand(4, generator=g), x) for g in made[:2])
    assert flow.equal(flow.rand(4, generator=made[2]), y) and made[2] is not flow.default_generator
