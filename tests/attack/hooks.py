# SPDX-License-Identifier: Apache-2.0
"""Six threads on one world of graphs: hooks come, go and run; backward, second backward, gc, del.

Every hook checks what its closure keeps, so that a cell which the collector emptied too early is
an error, as are an unexpected exception, a hang, a signal and memory that grows.
"""

import gc
import random
import threading

from _frame import run

import oneflow_lite as flow

THREADS, STEPS, SLOTS = 6, 30, 12
PROMISED = ("a second time", "does not require grad", "no output depends on")


class Token:
    """What a closure or a context keeps."""

    def __init__(self):
        self.alive = True


class Twice(flow.autograd.Function):
    """Its context keeps the output, the context's token, and a tensor of somebody else."""

    @staticmethod
    def forward(ctx, x, token, other):
        y = x * 2
        ctx.y, ctx.token, ctx.other = y, token, other
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, y = ctx.saved_tensors
        if not (ctx.token.alive and ctx.y.shape == dy.shape == x.shape == y.shape):
            raise AssertionError("a context was cleared while it is in use")
        return dy * 2, None, None


class World:
    """What the threads share."""

    def __init__(self):
        self.leaves = [flow.ones(4, requires_grad=True) for _ in range(4)]
        self.results = [leaf * 2 for leaf in self.leaves] * (SLOTS // 4)
        self.handles = [None] * SLOTS
        self.retaining = []
        self.module = flow.nn.Linear(4, 4)


def hook(world, rng, kept):
    """A hook over a token, the tensor that it hangs on, and another one; it may do anything."""
    token, other, seed = Token(), rng.choice(world.results), rng.random()

    def call(grad):
        if not token.alive or kept.shape != (4,) or other.shape != (4,):
            raise AssertionError("a closure was cleared while it is in use")
        if seed < 0.05:
            handle = world.handles[int(seed * 1000) % SLOTS]
            if handle is not None:
                handle.remove()
        elif seed < 0.1:
            add_hook(world, random.Random(seed))
        elif seed < 0.13:
            gc.collect(0)
        elif seed < 0.2:
            with flow.enable_grad():
                y = flow.ones(3, requires_grad=True)
                (y * y).sum().backward()
        return grad * 0.5 if seed > 0.9 else None

    return call


def add_hook(world, rng):
    leaf, t = rng.choice(world.leaves), rng.choice(world.results)
    kind = rng.randrange(3)
    if kind == 0:
        handle = leaf.register_hook(hook(world, rng, t))
    elif kind == 1:
        handle = leaf.register_post_accumulate_grad_hook(hook(world, rng, t))
    elif t.requires_grad:
        handle = t.register_hook(hook(world, rng, t))
    else:
        return
    place = rng.randrange(SLOTS)
    before, world.handles[place] = world.handles[place], handle
    if before is not None:
        before.remove()


def give_gradients_in_a_ring(world, rng):
    """A leaf and tensors that are each other's .grad; only a result leads to them."""
    leaf = flow.ones(4, requires_grad=True)
    ring = [leaf, *(flow.ones(4) for _ in range(rng.randrange(1, 4)))]
    for t, grad in zip(ring, ring[1:] + ring[:1], strict=True):
        t.grad, t.token = grad, Token()
    world.results[rng.randrange(SLOTS)] = leaf * 2


def compute(world, rng):
    a, b = rng.choice(world.results), rng.choice(world.leaves)
    kind = rng.randrange(6)
    if kind == 0:
        y = Twice.apply(b, Token(), a)
    elif kind == 1:
        y = (a.detach() * b).exp().clamp(0, 2)
    elif kind == 2:
        y = a * 0.5 + b
        y.retain_grad()
        world.retaining.append(y)
    elif kind == 3:
        token = Token()
        with flow.autograd.graph.saved_tensors_hooks(
            lambda t: (t, token, a), lambda p: p[0] if p[1].alive else None
        ):
            y = b * b + b
    elif kind == 4:
        y = world.module(b)
    else:
        y = b * 1
        y.me, y.token = y, Token()  # a cycle of its own
    world.results[rng.randrange(SLOTS)] = y


def differentiate(world, rng):
    t, kind = rng.choice(world.results), rng.randrange(4)
    if kind == 0:
        t.sum().backward(retain_graph=True)
    elif kind == 1:
        t.sum().backward()
    elif kind == 2:
        leaf = rng.choice(world.leaves)
        (g,) = flow.autograd.grad((t * t).sum(), leaf, create_graph=True, allow_unused=True)
        if g is not None and g.requires_grad:
            g.sum().backward(retain_graph=True)
    else:
        t.sum().backward(inputs=[rng.choice(world.leaves)], retain_graph=True)


def forget(world, rng):
    kind = rng.randrange(6)
    if kind == 0:
        rng.choice(world.leaves).grad = None
    elif kind == 1:
        world.results[rng.randrange(SLOTS)] = rng.choice(world.leaves) * 2
    elif kind == 2:
        gc.collect(rng.randrange(3))
    elif kind == 3:
        handle = world.handles[rng.randrange(SLOTS)]
        if handle is not None:
            handle.remove()
    elif kind == 4:
        give_gradients_in_a_ring(world, rng)
    else:
        node = rng.choice(world.results).grad_fn
        while node is not None and node.next_functions:
            node = node.next_functions[0][0]


def work(world, seed, errors):
    rng = random.Random(seed)
    for _ in range(STEPS):
        action = rng.choice((add_hook, compute, compute, differentiate, differentiate, forget))
        try:
            action(world, rng)
        except RuntimeError as error:
            if not any(text in str(error) for text in PROMISED):
                errors.append((action.__name__, error))
        except BaseException as error:
            errors.append((action.__name__, error))


def rounds(rng, say):
    while True:
        say("a new world")
        world, errors = World(), []
        world.module.hooked = world.module.register_full_backward_hook(
            lambda module, grad_in, grad_out, world=world: None if world.module else 1 / 0
        )
        for _ in range(5):
            seeds = [rng.random() for _ in range(THREADS)]
            say(f"threads of seeds {seeds}")
            threads = [threading.Thread(target=work, args=(world, s, errors)) for s in seeds]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                raise RuntimeError(f"{len(errors)} errors, first in {errors[0][0]}") from errors[0][
                    1
                ]
            yield "worlds shared by six threads"
        # A .grad with a history is the one cycle that the collector does not see.
        for t in world.leaves + world.retaining:
            t.grad = None


if __name__ == "__main__":
    run(rounds, full={"seconds": 600}, flat=True)
