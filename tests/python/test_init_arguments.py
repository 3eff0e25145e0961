# SPDX-License-Identifier: Apache-2.0
"""Errors of nn.init name the argument, before the tensor is touched."""

import inspect

import pytest
from numerics import flow, host

init = flow.nn.init
FILLERS = [name for name in init.__all__ if name != "calculate_gain"]
NUMBERS = [(name, p.name) for name in FILLERS
           for p in inspect.signature(getattr(init, name)).parameters.values()
           if p.annotation == "float"]  # fmt: skip


@pytest.mark.parametrize("name", FILLERS)
@pytest.mark.parametrize("wrong", ["text", None, 3.0, [1.0]], ids=repr)
def test_what_is_no_tensor(name, wrong):
    more = (1.0,) if name == "constant_" else ()
    with pytest.raises(TypeError) as caught:
        getattr(init, name)(wrong, *more)
    given = type(wrong).__name__
    assert str(caught.value) == f"{name}(): argument 'tensor' must be Tensor, not {given}"


@pytest.mark.parametrize("name, argument", NUMBERS)
@pytest.mark.parametrize("wrong", ["0.1", None, [0.1]], ids=repr)
def test_what_is_no_number(name, argument, wrong):
    x = flow.full([3, 3], 7.0)
    with pytest.raises(TypeError) as caught:
        getattr(init, name)(x, **{argument: wrong})
    given = type(wrong).__name__
    assert str(caught.value) == f"{name}(): argument '{argument}' must be a number, not {given}"
    assert (host(x) == 7).all()


def test_there_are_numbers():
    assert len(NUMBERS) == 14, NUMBERS


def test_a_number_may_be_a_tensor():
    x = init.constant_(flow.ones(2), flow.tensor(3.0))
    assert x.tolist() == [3, 3]
    assert abs(init.uniform_(flow.ones(9), flow.tensor(2.0), 3).mean().item() - 2.5) < 0.5
