# SPDX-License-Identifier: Apache-2.0
"""Tensors whose .grad are each other: collected once nobody has them, whole until then."""

import gc
import weakref

import numpy as np
import pytest
from numerics import flow
from test_graph_memory import Marked, Thing, leaf
from test_threads import side_by_side


def two():
    a, b = flow.ones(2), flow.ones(2)
    a.grad, b.grad = b, a
    return a, b


def ring():
    """Of a subclass, a leaf, a plain tensor and a result that retains its gradient."""
    tensors = [Marked(flow.ones(2)), leaf(), flow.ones(2), leaf() * 2]
    tensors[3].retain_grad()
    for t, grad in zip(tensors, tensors[1:] + tensors[:1], strict=True):
        t.grad = grad
    return tensors


def one_with_an_attribute_of_itself():
    a, b = two()
    a.me = a
    return a, b


def one_that_gets_an_object_again():
    a, b = two()
    del a
    gc.collect(0)
    return b.grad, b


def one_whose_attribute_has_it_as_gradient():
    a, b, c = flow.ones(2), flow.ones(2), flow.ones(2)
    a.grad, b.parts, c.grad = b, [c], a
    return a, b


def one_that_a_hook_of_the_other_knows():
    a, b = two()
    a.requires_grad_().register_hook(lambda g, kept=[]: kept)
    return a, b


BUILDERS = [two, ring, one_with_an_attribute_of_itself, one_that_gets_an_object_again,
            one_whose_attribute_has_it_as_gradient, one_that_a_hook_of_the_other_knows]  # fmt: skip


@pytest.mark.parametrize("build", BUILDERS, ids=lambda f: f.__name__)
def test_cycles_of_gradients_are_collected(build):
    gc.collect()
    gc.disable()
    try:
        thing = Thing()
        end = weakref.ref(thing)
        build()[1].thing = thing
        del thing
        assert end() is not None, "not kept by a cycle at all"
    finally:
        gc.enable()
    for _ in range(2):
        gc.collect()
    assert end() is None


def test_the_memory_of_a_cycle_is_freed():
    """Of tensors without attributes, and not before the last reference goes."""
    arrays = [np.ones(2, np.float32) for _ in range(3)]
    ends = [weakref.ref(array) for array in arrays]
    a, b, c = (flow.from_numpy(array) for array in arrays)
    a.grad, b.grad, c.grad = b, c, a
    del arrays, a, b
    gc.collect()
    assert all(end() is not None for end in ends)
    assert c.grad.grad.grad is c
    del c
    gc.collect()
    assert [end() for end in ends] == [None] * 3


def test_gradients_of_each_other_that_a_graph_holds():
    """Nobody in Python has the two, but a backward will come for them."""
    a, b = leaf(), flow.ones(2)
    a.grad, b.grad, b.thing = b, a, Thing()
    end, memory = weakref.ref(b.thing), b.detach()
    whole = []
    a.register_post_accumulate_grad_hook(lambda p: whole.append(p.grad.grad is p))
    loss = (a * 3).sum()
    del a, b
    for _ in range(2):
        gc.collect()
    loss.backward(retain_graph=True)
    assert memory.tolist() == [4, 4] and whole == [True] and end()
    gc.collect()
    loss.backward()
    assert memory.tolist() == [7, 7] and whole == [True] * 2 and end()
    del loss
    gc.collect()
    assert end() is None


def test_one_of_a_ring_keeps_it():
    tensors = [flow.ones(2) for _ in range(5)]
    for i, t in enumerate(tensors):
        t.grad, t.number = tensors[i - 1], i
    one = tensors[3]
    del tensors, t
    for generation in (0, 1, 2, 2):
        gc.collect(generation)
    numbers = []
    t = one
    for _ in range(6):
        numbers.append(t.number)
        t = t.grad
    assert numbers == [3, 2, 1, 0, 4, 3] and t is one.grad


def test_rings_that_another_thread_works_in():
    """One collects while the other one's backward adds into a ring that its loss alone holds."""
    whole, done = [], []
    alive = weakref.WeakSet()

    def work():
        for _ in range(100):
            a, b, c = leaf(), flow.ones(2), leaf()
            a.grad, b.grad, c.grad, c.thing = b, c, a, Thing()
            alive.add(c.thing)
            a.register_post_accumulate_grad_hook(lambda p: whole.append(p.grad.grad.grad is p))
            loss = ((a * a).exp() * 2).sum()
            del a, b, c
            for _ in range(3):
                loss.backward(retain_graph=True)
            del loss
        done.append(True)

    def collect():
        while not done:
            gc.collect()

    side_by_side(work, collect)
    gc.collect()
    assert whole == [True] * 300 and len(alive) == 0
