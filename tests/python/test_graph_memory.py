# SPDX-License-Identifier: Apache-2.0
"""Who keeps what in a graph: cycles through C++ that are collected, long chains that are freed."""

import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
from numerics import flow
from test_threads import side_by_side

nn = flow.nn
Function = flow.autograd.Function


class Marked(flow.Tensor):
    """A subclass, whose objects keep attributes."""


class Thing:
    """Something whose end can be seen."""


def leaf(*values):
    return flow.tensor(values or (1.0, 2.0), requires_grad=True)


class Kept(Function):
    """Doubles; its context keeps the output, and whatever else it is given."""

    @staticmethod
    def forward(ctx, x, thing=None):
        y = x * 2
        ctx.y, ctx.thing = y, thing
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy * 2, None


# ---------------------------------------------------------------------------------------------
# Cycles through C++ that Python's collector must see.


def hook_of_a_leaf(thing):
    x = leaf()
    x.register_hook(lambda g: (x, thing))


def hook_of_a_result(thing):
    y = leaf() * 2
    y.register_hook(lambda g: (y, thing))


def hook_of_an_inner_result(thing):
    y = leaf() * 2
    z = (y * y).exp()
    y.register_hook(lambda g: (z, thing))


def post_hook(thing):
    x = leaf()
    x.register_post_accumulate_grad_hook(lambda p: (x, thing))


def hook_on_a_leaf_that_a_graph_keeps(thing):
    w = leaf()
    y = w * w
    w.register_hook(lambda g: (y, thing))


def two_tensors_hooked_crosswise(thing):
    a, b = leaf(), leaf() * 2
    a.register_hook(lambda g: (b, thing))
    b.register_hook(lambda g: (a, thing))


def leaf_that_a_result_keeps(thing):
    x = leaf()
    x.register_hook(lambda g: thing)
    thing.two = x, x * 2


def inner_result_of_two_results(thing):
    y = leaf() * 2
    thing.two = y.exp(), y.log()
    y.register_hook(lambda g: thing)


def module_that_keeps_its_loss(thing):
    module = nn.Linear(2, 2)
    module.weight.register_hook(lambda g: (module, thing))
    module.loss = module(flow.ones(2)).sum()


def context_of_two_results(thing):
    y = Kept.apply(leaf(), thing)
    thing.two = y + 1, y * y


def functions_of_saving_for_two_results(thing):
    with flow.autograd.graph.saved_tensors_hooks(lambda t: (t, thing), lambda p: p[0]):
        a = leaf() * leaf()
        thing.two = a, (a * a).exp()


def node_beside_its_tensor(thing):
    y = leaf() * 2
    y.register_hook(lambda g: thing)
    thing.node, thing.z, thing.more = y.grad_fn, y + 1, [y]


def operand_of_a_change_through_a_view(thing):
    w, y = leaf() * 2, leaf() * 1
    w.register_hook(lambda g: thing)
    y[0].mul_(w[0])
    thing.more = [y]


def node_of_a_change_through_a_view(thing):
    w, y = leaf() * 2, leaf() * 1
    y[0].mul_(w[0])
    w.register_hook(lambda g, node=y.grad_fn: thing)
    thing.node = w.grad_fn


def attributes_of_a_tensor_of_two_results(thing):
    y = leaf() * 2
    y.mark = thing
    thing.two = y.exp(), y * y


def context_keeps_the_output(thing):
    Kept.apply(leaf(), thing)


def context_keeps_the_output_after_backward(thing):
    Kept.apply(leaf(), thing).sum().backward()


class Holds(Kept):
    """Its context keeps what it is given alone."""

    @staticmethod
    def forward(ctx, x, thing):
        ctx.thing = thing
        return x * 2


def context_keeps_a_later_result(thing):
    y = Holds.apply(leaf(), thing)
    z = y + y * y
    thing.z = z
    z.sum().backward(retain_graph=True)


def context_keeps_its_node(thing):
    thing.node = Holds.apply(leaf(), thing).grad_fn
    thing.node.name()


def hook_keeps_a_node(thing):
    y = leaf() * 2
    node = (y + 1).grad_fn
    y.register_hook(lambda g: (node, thing))


def hook_keeps_a_leaf_s_node(thing):
    x = leaf()
    ((node, _),) = (-x).grad_fn.next_functions
    x.register_hook(lambda g: (node, thing))


def attribute_of_itself(thing):
    x = leaf()
    x.me, x.thing = x, thing


def attribute_of_its_gradient(thing):
    x = Marked(flow.ones(2), True)
    x.grad = flow.ones(2)
    x.grad.owner, x.grad.thing = x, thing


def attribute_of_a_base(thing):
    base = flow.ones(4)
    view = base[1:]
    base.view, base.thing = view, thing


def attribute_of_a_saved_tensor(thing):
    x = Marked(flow.ones(2))
    y = leaf() * x
    x.result, x.thing = y, thing


def retained_gradient(thing):
    y = leaf() * 2
    y.retain_grad()
    y.sum().backward()
    y.grad.owner = y, thing


def module_hooked_by_itself(thing):
    layer = nn.Linear(2, 2)
    layer.thing = thing
    layer.register_full_backward_hook(lambda m, gi, go: (layer, None)[1])
    layer.out = layer(flow.ones(1, 2, requires_grad=True))
    layer.out.sum().backward()


def parameter_hooked_by_its_module(thing):
    layer = nn.Linear(2, 2)
    layer.thing = thing
    layer.weight.register_hook(lambda g: (layer, None)[1])
    layer(flow.ones(1, 2)).sum().backward()


def packed_tensors(thing):
    box = []
    x = leaf()
    with flow.autograd.graph.saved_tensors_hooks(lambda t: (t, box), lambda p: p[0]):
        box += [(x * x).exp(), thing]


def unpack_function(thing):
    box = []
    x = leaf()
    with flow.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (t, box)[0]):
        box += [(x * x).exp(), thing]


def checkpoint_of_a_module_that_keeps_its_result(thing):
    class Keeps(nn.Module):
        def forward(self, x):
            return (x * self.w).exp()

    module = Keeps()
    module.w, module.thing = nn.Parameter(flow.ones(2)), thing
    module.out = flow.utils.checkpoint.checkpoint(module, leaf(), use_reentrant=False)


CYCLES = [f for name, f in list(globals().items())
          if callable(f) and getattr(f, "__code__", None)
          and f.__code__.co_varnames[:1] == ("thing",) and f.__module__ == __name__]  # fmt: skip


def test_there_are_cycles():
    assert len(CYCLES) > 20


@pytest.mark.parametrize("build", CYCLES, ids=lambda f: f.__name__)
def test_cycles_through_graphs_are_collected(build):
    gc.collect()
    gc.disable()
    try:
        thing = Thing()
        end = weakref.ref(thing)
        build(thing)
        del thing
        assert end() is not None, "not kept by a cycle at all"
    finally:
        gc.enable()
    for _ in range(2):
        gc.collect()
    assert end() is None


@pytest.mark.parametrize("build", CYCLES, ids=lambda f: f.__name__)
def test_what_is_reached_from_outside_stays(build):
    """The same cycles, with the thing in them held: no part of them is cleared."""
    thing = Thing()
    build(thing)
    before = dict(vars(thing))
    for _ in range(2):
        gc.collect()
    assert vars(thing) == before
    for value in before.values():
        if isinstance(value, flow.Tensor):
            assert value.requires_grad and value.grad_fn is not None


@pytest.mark.parametrize("build", CYCLES, ids=lambda f: f.__name__)
def test_a_part_held_from_outside_keeps_the_rest(build):
    """Each cycle twice over, joined by a graph of both, which is then all that is held."""
    outside = leaf()
    things = [Thing(), Thing()]
    for thing in things:
        build(thing)
        outside.register_hook(lambda g, thing=thing: None)
    result = (outside * outside).sum()
    ends = [weakref.ref(thing) for thing in things]
    before = [sorted(vars(thing)) for thing in things]
    del things, thing, outside
    for _ in range(2):
        gc.collect()
    assert [sorted(vars(end())) for end in ends] == before
    result.backward()
    del result
    gc.collect()
    assert [end() for end in ends] == [None, None]


def test_many_worlds_of_hooks_leave_nothing():
    """Two results, a leaf and a module keep each other crosswise; no one of them alone does."""
    alive = weakref.WeakSet()

    def world():
        thing, x = Thing(), leaf()
        alive.add(thing)
        module = nn.Linear(2, 2)
        a, b = x * 2, module(x)
        c = a + b
        for t in (x, a, b, c, module.weight):
            t.register_hook(lambda g, t=t, thing=thing: None)
        module.loss = c.sum()
        module.loss.backward(retain_graph=True)
        thing.all = [x, a, b, c, module]

    for _ in range(20):
        world()
    gc.collect()
    assert len(alive) == 0


def test_what_a_graph_in_use_keeps_stays():
    """Each part is held by the loss alone, which the collector sees no object of."""
    calls = []
    x = leaf()
    y = Kept.apply(x, Thing())
    y.register_hook(lambda g, y=y: calls.append(y.shape))
    z = (y * y).exp()
    z.register_hook(lambda g, z=z: calls.append(z.shape))
    with flow.autograd.graph.saved_tensors_hooks(lambda t: (t, calls), lambda p: p[0]):
        loss = (z * z).sum()
    del y, z
    for _ in range(3):
        gc.collect()
    loss.backward(retain_graph=True)
    gc.collect()
    loss.backward()
    assert calls == [(2,)] * 4 and x.grad is not None


def test_collecting_in_threads_beside_backward():
    """Nothing that a pass uses is freed, whatever is garbage."""
    errors, rounds = [], 25
    shared = leaf()

    def work(number):
        def run():
            for i in range(rounds):
                x = flow.ones(8, requires_grad=True)
                y = Kept.apply(x * shared.sum(), number)
                hits = []
                handle = y.register_hook(lambda g, y=y, hits=hits: hits.append(y.shape))
                z = (y * y).exp()
                z.register_hook(lambda g, z=z, hits=hits: hits.append(z.shape))
                loss = z.sum()
                del y, z
                loss.backward(retain_graph=i % 2 == 0)
                if i % 3 == 0:
                    handle.remove()
                if hits != [(8,), (8,)] or x.grad is None:
                    errors.append((number, i, hits))

        return run

    def collect():
        for _ in range(rounds):
            gc.collect()

    gc.collect()
    gc.freeze()  # the many objects of the test session, which are not what is tested
    try:
        side_by_side(*(work(n) for n in range(4)), *[collect] * 4)
    finally:
        gc.unfreeze()
    assert not errors


def test_what_threads_leave_is_dropped_while_the_main_thread_waits():
    """The main thread runs no instruction in join(); the others' garbage must not wait for it."""
    alive = weakref.WeakSet()

    class Counted(Thing):
        pass

    most = []

    def work():
        for _ in range(300):
            thing = Counted()
            alive.add(thing)
            x = leaf()
            y = Kept.apply(x, thing) if len(most) % 2 else x * 2
            y.register_hook(lambda g, thing=thing: None)
            del thing
            # The graph goes in C++, where the lock is free: what the pass alone holds.
            flow.autograd.backward([(y * 3).exp().sum()])
            del x, y
            most.append(len(alive))

    side_by_side(work, work)
    gc.collect()
    assert len(alive) == 0
    assert max(most) < 250


# ---------------------------------------------------------------------------------------------
# Chains of any length.

CHAINS = {
    "assigned gradients": """
        x = flow.ones(1)
        for _ in range(N):
            y = flow.ones(1)
            y.grad = x
            x = y
    """,
    "gradients with a graph": """
        x = flow.ones(1, requires_grad=True)
        for _ in range(N):
            (x * x).sum().backward(create_graph=True)
            y, x.grad = x.grad, None
            y.retain_grad()
            z = y.detach().requires_grad_()
            z.grad = (y * 2)
            x = z
    """,
    "a graph": """
        x = flow.ones(1, requires_grad=True)
        for _ in range(N):
            x = x * x
    """,
    "closures of hooks": """
        x = flow.ones(1, requires_grad=True)
        for i in range(N):
            y = flow.ones(1, requires_grad=True)
            y = y * 2 if i % 2 else y
            y.register_hook(lambda g, x=x: x)
            x = y
    """,
    "attributes": """
        class Marked(flow.Tensor): pass
        x = flow.ones(1)
        for i in range(N):
            y = Marked(flow.ones(1)) if i % 2 else flow.ones(1)
            y.before = x
            x = y
    """,
    "attributes of gradients": """
        x = flow.ones(1)
        for i in range(N):
            y = flow.ones(1)
            y.grad = flow.ones(1)
            y.grad.before = [x]
            x = y
    """,
    "contexts": """
        class Keeps(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x, before):
                ctx.before = before
                return x * 2
            @staticmethod
            def backward(ctx, dy):
                return dy, None
        x = None
        for i in range(N):
            x = Keeps.apply(flow.ones(1, requires_grad=True), x)
    """,
    "arrays of NumPy": """
        x = flow.ones(1)
        for i in range(N):
            x = flow.from_numpy(x.numpy())
    """,
    "packed tensors": """
        x = flow.ones(1, requires_grad=True)
        for i in range(N):
            before = x
            x = flow.ones(1, requires_grad=True)
            with flow.autograd.graph.saved_tensors_hooks(lambda t: (t, before), lambda p: p[0]):
                x = x * x
    """,
    "a cycle": """
        x = first = flow.ones(1, requires_grad=True)
        for i in range(N):
            y = flow.ones(1, requires_grad=True) * 2
            y.register_hook(lambda g, x=x: x)
            x = y
        first.register_hook(lambda g, y=y: y)
        del first, y
    """,
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_freed_on_a_small_stack(name):
    """In a process of its own, on a thread with a stack of 512 KB: 20,000 frames do not fit."""
    script = f"""
import gc, sys, threading
import oneflow_lite as flow
N = {200_000 if name == "assigned gradients" else 20_000}
def run():
{textwrap.indent(textwrap.dedent(CHAINS[name]), "    ")}
    before = flow._oneflow_lite.memory_stats("cpu")["allocated"]
    del x
    gc.collect()
    locals().clear()
threading.stack_size(512 << 10)
thread = threading.Thread(target=run)
thread.start()
thread.join()
gc.collect()
left = flow._oneflow_lite.memory_stats("cpu")["allocated"]
print("left", left)
sys.exit(0 if left < 10_000 else 3)
"""
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.returncode == 0, (result.returncode, result.stdout, result.stderr[-2000:])
