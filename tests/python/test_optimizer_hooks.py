# SPDX-License-Identifier: Apache-2.0
"""Hooks around an optimizer's step, state_dict and load_state_dict, as PyTorch has them."""

import copy
import pickle

import pytest
from numerics import flow

from oneflow_lite.optim import optimizer as module

CLASSES = [flow.optim.SGD, flow.optim.Adam, flow.optim.AdamW, flow.optim.RMSprop,
           flow.optim.Adadelta, flow.optim.Adagrad, flow.optim.Lion]  # fmt: skip


def make(cls=flow.optim.SGD, **options):
    p = flow.nn.Parameter(flow.ones(2))
    p.grad = flow.ones(2)
    return cls([p], lr=0.5, **options), p


@pytest.mark.parametrize("cls", CLASSES)
def test_hooks_run_around_a_step(cls):
    optimizer, p = make(cls)
    seen = []
    pre = optimizer.register_step_pre_hook(lambda *given: seen.append(("pre", given, p.tolist())))
    post = optimizer.register_step_post_hook(
        lambda *given: seen.append(("post", given, p.tolist()))
    )

    def closure():
        return 3.0

    assert optimizer.step(closure) == 3.0
    given = (optimizer, (optimizer, closure), {})
    assert [(when, what) for when, what, _ in seen] == [("pre", given), ("post", given)]
    assert seen[0][2] == [1, 1] and seen[1][2] == p.tolist() != [1, 1]
    optimizer.step(closure=closure)
    assert seen[2][1] == (optimizer, (optimizer,), {"closure": closure})
    pre.remove()
    pre.remove()
    optimizer.step()
    assert [when for when, *_ in seen[4:]] == ["post"]
    with post:
        pass
    optimizer.step()
    assert len(seen) == 5


def test_a_pre_hook_changes_the_arguments_of_a_step():
    optimizer, _ = make()
    with optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: 7), {})):
        assert optimizer.step() == 7
    for wrong in (5, (1, 2, 3), [1, 2]):
        with (
            optimizer.register_step_pre_hook(lambda *given, wrong=wrong: wrong),
            pytest.raises(RuntimeError, match=r"^SGD.step\(\): a pre-hook must give None or"),
        ):
            optimizer.step()
    assert optimizer.step() is None
    with pytest.raises(TypeError, match="argument 'hook' must be callable, not int"):
        optimizer.register_step_pre_hook(1)


def test_hooks_of_all_optimizers_run_outside_of_its_own():
    (a, _), (b, _) = make(), make(flow.optim.Adam)
    seen = []
    own = [a.register_step_pre_hook(lambda *_: seen.append("pre")),
           a.register_step_post_hook(lambda *_: seen.append("post"))]  # fmt: skip
    everywhere = [
        module.register_optimizer_step_pre_hook(lambda o, *_: seen.append(("pre", o))),
        module.register_optimizer_step_post_hook(lambda o, *_: seen.append(("post", o))),
    ]
    try:
        a.step()
        b.step()
    finally:
        for handle in everywhere:
            handle.remove()
    assert seen == [("pre", a), "pre", "post", ("post", a), ("pre", b), ("post", b)]
    for handle in own:
        handle.remove()
    a.step()
    assert len(seen) == 6


def test_hooks_run_once_around_what_a_subclass_defines():
    class Own(flow.optim.SGD):
        def step(self, closure=None):
            seen.append("step")
            return super().step(closure)

        def load_state_dict(self, state_dict):
            super().load_state_dict(state_dict)
            seen.append("load")

    seen = []
    optimizer, _ = make(Own)
    optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))
    optimizer.register_load_state_dict_post_hook(lambda _: seen.append("loaded"))
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    assert seen == ["pre", "step", "post", "load", "loaded"]

    class Failing(flow.optim.Optimizer):
        def step(self, closure=None):
            raise ValueError("no")

    optimizer = Failing([flow.nn.Parameter(flow.ones(2))], {})
    optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    for count in (6, 7):
        with pytest.raises(ValueError, match="no"):
            optimizer.step()
        assert len(seen) == count


@pytest.mark.parametrize("cls", CLASSES)
def test_hooks_run_around_saving_and_loading(cls):
    optimizer, _ = make(cls)
    optimizer.step()
    seen = []
    optimizer.register_state_dict_pre_hook(lambda o: seen.append(("before", o)))
    optimizer.register_state_dict_post_hook(lambda o, state: {**state, "more": len(seen)})
    optimizer.register_state_dict_post_hook(lambda o, state: state.pop("more") and None)
    optimizer.register_state_dict_post_hook(lambda o, state: seen.append("first"), prepend=True)
    state = optimizer.state_dict()
    assert {*state} == {"state", "param_groups"} and seen == [("before", optimizer), "first"]

    def with_lr(o, given):
        assert o is other and given is not state and given == state
        groups = [{**group, "lr": 0.25} for group in given["param_groups"]]
        return {**given, "param_groups": groups}

    other, _ = make(cls)
    other.register_load_state_dict_pre_hook(with_lr)
    other.register_load_state_dict_post_hook(lambda o: seen.append(o.param_groups[0]["lr"]))
    other.load_state_dict(state)
    assert seen[-1] == 0.25 and state["param_groups"][0]["lr"] == 0.5
    other.load_state_dict(state_dict=state)
    assert len(seen) == 4


def test_a_copy_has_no_hooks():
    optimizer, _ = make()
    seen = []
    optimizer.register_step_pre_hook(lambda *_: seen.append(1))
    for copied in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        copied.step()
        assert not seen
        copied.register_step_post_hook(lambda *_: None)
    optimizer.step()
    assert seen == [1]


def test_a_scaler_runs_hooks_of_the_steps_that_are_taken():
    optimizer, p = make()
    seen = []
    optimizer.register_step_post_hook(lambda *_: seen.append(1))
    scaler = flow.amp.GradScaler("cpu", init_scale=2.0)
    for gradient in (1.0, float("inf")):
        p.grad = flow.full([2], gradient)
        scaler.scale(flow.ones(1))
        scaler.step(optimizer)
        scaler.update()
    assert seen[:1] == [1]
