# SPDX-License-Identifier: Apache-2.0
"""Objects that do harm when they are asked for their value.

A trap knows the lists, dicts and tensors of a call. An object whose method is a trap's springs it:
the list loses its items, the tensor gets other data, and only then the method gives a value. Each
object has a class of its own, which goes with it, so that its name goes too.
"""

import gc
import itertools

import numpy as np

import oneflow_lite as flow

ACTS = ("empty", "empty", "shrink", "grow", "refill", "refill", "replace data", "free", "raise",
        "call", "nothing")  # fmt: skip
NAMES = ("Hostile", "numpy.bool_", "numpy.bool", "numpy.complex64", "numpy.float32", "x" * 300)


class Mine(Exception):
    """What a trap raises."""


class Trap:
    def __init__(self, rng, pool, act):
        self.rng, self.pool, self.act = rng, pool, act
        self.armed, self.holders = False, []
        self.waits = rng.choice([0, 0, 0, 1, 2])  # how often it gives its value in peace

    def __repr__(self):
        return f"{self.act} after {self.waits}"

    def spring(self):
        if not self.armed:
            return
        if self.waits > 0:
            self.waits -= 1
            return
        self.armed = False  # what is done below may ask again
        try:
            getattr(self, self.act.replace(" ", "_"))()
        finally:
            self.armed = self.rng.random() < 0.5

    def empty(self):
        for holder in self.holders:
            holder.clear()

    def shrink(self):
        for holder in self.holders:
            if isinstance(holder, list):
                del holder[len(holder) // 2 :]

    def grow(self):
        for holder in self.holders:
            if isinstance(holder, list):
                holder.extend([1] * 1000)

    def refill(self):
        """As long as before, with other items, where the old ones were."""
        for holder in self.holders:
            if isinstance(holder, list):
                length = len(holder)
                holder.clear()
                holder.extend(object() for _ in range(length))

    def replace_data(self):
        for x in self.pool[:]:
            other = self.rng.choice([flow.zeros(()), flow.zeros(0), flow.zeros([2] * 7),
                                     flow.zeros(2, device="meta"), flow.zeros(3)])  # fmt: skip
            if x.dtype.is_floating_point:
                x.data = other

    def free(self):
        self.empty()
        for i in range(len(self.pool)):
            self.pool[i] = flow.zeros(2, 3)
        gc.collect()

    def call(self):
        flow.tensor([[1, 2], [3, 4]]).reshape([4]).sum([0])
        flow.zeros([2, 3])[0, 1].tolist()

    def nothing(self):
        pass

    def __getattr__(self, name):
        if name == "raise":
            raise Mine("as planned")
        raise AttributeError(name)


class Armoury:
    """Makes hostile arguments of each kind; the traps of one call are in `traps`."""

    def __init__(self, rng, pool):
        self.rng, self.pool, self.traps = rng, pool, []

    def trap(self, acts=ACTS):
        self.traps.append(Trap(self.rng, self.pool, self.rng.choice(acts)))
        return self.traps[-1]

    def small(self):
        return self.rng.choice([-2, -1, 0, 0, 1, 1, 2, 3, 5])

    def method(self, trap, give):
        def asked(*args, **kwargs):
            trap.spring()
            return give()

        return asked

    def object(self, methods, bases=(object,), *args):
        """An object with those methods, each of which springs the same trap."""
        trap = self.trap()
        members = {name: self.method(trap, give) for name, give in methods.items()}
        members["__repr__"] = self.method(trap, lambda: f"<{sorted(methods)} {trap}>")
        made = type(self.rng.choice(NAMES), bases, members)(*args)
        return made, trap

    def number(self, holder=None):
        wrong = self.rng.choice(["x", None, 1 << 70, 1.5])
        give = self.rng.choice([self.small, self.small, self.small, lambda: wrong])
        names = self.rng.choice([
            ["__index__"], ["__index__"], ["__float__"], ["__index__", "__float__"], ["__bool__"],
            ["__index__", "__float__", "__int__", "__bool__", "__len__", "__eq__", "__hash__"],
            ["__getattr__"], ["__len__"],
        ])  # fmt: skip
        wanted = {"__float__": lambda: float(self.small()), "__bool__": lambda: True,
                  "__len__": lambda: 2, "__hash__": lambda: 3}  # fmt: skip
        made, trap = self.object({name: wanted.get(name, give) for name in names})
        if holder is not None:
            trap.holders.append(holder)
        return made

    def items(self, plain):
        """A list that loses its items while they are read, or a tuple or sequence of such."""
        holder = []
        for _ in range(self.rng.randrange(1, 5)):
            holder.append(self.number(holder) if self.rng.random() < 0.5 else plain())
        kind = self.rng.randrange(8)
        if kind == 0:
            return tuple(holder)
        if kind == 1:
            return self.sequence(holder)
        if kind == 2:
            return self.subclass(holder)
        return holder

    def sequence(self, holder):
        asked = itertools.count()

        def item():
            if next(asked) % 7 == 6:  # an end, for whoever asks until there is one
                raise IndexError
            return holder[0] if holder else 1

        odd = self.rng.choice([0, 0, 1, -1])
        reads = {"__len__": lambda: len(holder) + odd, "__getitem__": item}
        if self.rng.random() < 0.3:
            reads["__iter__"] = lambda: iter(holder)
        made, trap = self.object(reads)
        trap.holders.append(holder)
        return made

    def subclass(self, holder):
        base = self.rng.choice([list, tuple])
        made, trap = self.object({"__len__": lambda: 1, "__iter__": lambda: iter(holder)}, (base,),
                                 holder)  # fmt: skip
        trap.holders.append(made if base is list else holder)
        for other in self.traps:
            if any(h is holder for h in other.holders):
                other.holders.append(trap.holders[0])
        return made

    def tensor(self):
        """A tensor of a class whose methods give what they like."""
        odd = self.rng.choice([[1, 2], 5, None, {1: 2}, (1, 2), "x", object()])
        name = self.rng.choice(["tolist", "item", "__len__", "__index__", "__array__", "detach"])
        made, _ = self.object({name: lambda: odd}, (flow.Tensor,), flow.zeros(2))
        return made

    def array(self):
        value = np.ones(self.rng.choice([0, 1, 3]), self.rng.choice(["f4", "i8", "?", "c8", "O"]))
        methods = self.rng.choice([
            {"__array__": lambda: value},
            {"__array__": lambda: "no array"},
            {"__array__": lambda: value, "__len__": lambda: 3},
            {"__dlpack__": lambda: flow.zeros(2).__dlpack__(), "__dlpack_device__": self.pair},
            {"__dlpack__": lambda: value, "__dlpack_device__": lambda: (1, 0)},
        ])  # fmt: skip
        return self.object(methods)[0]

    def pair(self):
        return self.rng.choice([(1, 0), [1, 0], (self.number(), 0), (1, "x"), (1, self.number()),
                                (1,), None, (1 << 40, 0), (2, -7)])  # fmt: skip

    def data(self, depth=0):
        if depth < 3 and self.rng.random() < 0.5:
            holder = []
            for _ in range(self.rng.randrange(1, 4)):
                holder.append(self.data(depth + 1))
            for trap in self.traps[-3:]:
                trap.holders.append(holder)
            return holder if self.rng.random() < 0.8 else tuple(holder)
        return self.rng.choice([
            lambda: self.items(self.small), self.number, self.array, self.tensor, self.small,
        ])()  # fmt: skip

    def of_kind(self, kind):
        """A hostile argument, or None where the kind has none."""
        make = {
            "Tensor": self.tensor,
            "Tensor[]": lambda: self.items(lambda: self.rng.choice(self.pool)),
            "Operand": self.number,
            "int": self.number,
            "int[]": lambda: self.items(self.small),
            "float": self.number,
            "Scalar": self.number,
            "bool": self.number,
            "dtype": self.number,
            "Device": self.number,
            "data": self.data,
        }.get(kind)
        return make() if make else None
