# SPDX-License-Identifier: Apache-2.0
"""What Python's collector sees of a graph: by generation, in its two counts, at its end."""

import gc
import weakref

import pytest
from numerics import flow
from test_graph_memory import Thing, leaf


def test_collections_of_the_young_alone():
    """What an old object keeps too is not garbage, nor is it once that object is all there is."""
    shared = leaf() * 2
    old = shared + 1
    gc.collect()  # `old` is of the last generation from here on
    thing = Thing()
    shared.register_hook(lambda g, thing=thing: setattr(thing, "called", True))
    thing.young = shared + 2
    end = weakref.ref(thing)
    del shared, thing
    for generation in (0, 1, 0, 1):
        gc.collect(generation)
    assert end().young.shape == (2,)
    end().young.sum().backward(retain_graph=True)
    assert end().called
    old.sum().backward()
    del old
    gc.collect()
    assert end() is None


def test_what_a_finalizer_brings_back_stays_whole():
    """The collection counts a second time, over the garbage that its finalizers left."""
    back = []

    class Returns(Thing):
        def __del__(self):
            back.append(self)

    for _ in range(2):
        thing = Returns()
        a = leaf()
        a.register_hook(lambda g, thing=thing: setattr(thing, "called", True))
        thing.parts = [a * 2, a * 3]
        end = weakref.ref(thing)
        del a, thing
        gc.collect()
        (thing,) = back
        sum(thing.parts).sum().backward()
        assert thing.called
        back.clear()
        del thing
        for _ in range(2):
            gc.collect()
        assert end() is None


class Finalizer:
    """Runs a function where the collector finds it in a cycle."""

    def __init__(self, at_the_end):
        self.at_the_end, self.itself = at_the_end, self

    def __del__(self):
        self.at_the_end(self)


def test_a_finalizer_that_builds_a_graph_is_counted_anew():
    """Between the collector's two counts of one collection a tensor comes into a graph."""
    alive = leaf()
    alive.register_hook(lambda g: None)
    gc.collect()
    seen = []

    def at_the_end(it):
        it.leaf.grad = None
        it.plain.requires_grad_()
        it.plain.grad = alive
        alive.register_hook(it.hook)

    def build():
        it = Finalizer(at_the_end)
        it.plain, it.leaf = flow.ones(2), leaf()
        it.leaf.grad = alive
        it.hook = lambda g: seen.append(it)

    build()
    gc.collect(0)
    (alive * 2).sum().backward()
    assert [type(it) for it in seen] == [Finalizer]


def test_garbage_that_is_saved_ends_its_collection():
    """gc.DEBUG_SAVEALL clears nothing; the next collection counts anew all the same."""
    y = leaf() * 2
    old = y + 1
    gc.collect()
    thing = Thing()
    end = weakref.ref(thing)
    y.register_hook(lambda g, thing=thing: None)
    box = [y + 2]
    box.append(box)
    del thing, y, box
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect(0)
        gc.set_debug(0)
        gc.collect()
        assert end() is not None
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    del old
    gc.collect()
    assert end() is None


def test_a_subclass_of_a_node_cannot_be_made():
    kind = type(leaf().exp().grad_fn)
    with pytest.raises(TypeError, match="No constructor"):
        type("Sub", (kind,), {})()


def test_the_referents_of_one_object_are_its_own():
    """Outside a collection a traversal gives what goes with this object alone, each time."""
    x, thing = leaf(), Thing()

    def hook(g, thing=thing):
        return None

    x.register_hook(hook)
    gc.collect()
    assert [hook in gc.get_referents(x) for _ in range(3)] == [True] * 3
    y = x * 2
    gc.collect()
    assert hook not in gc.get_referents(x) and hook not in gc.get_referents(y)
