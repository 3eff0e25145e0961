# SPDX-License-Identifier: Apache-2.0
"""Arguments whose methods change, empty or free what is being read while it is read.

Calls of every registered function, of indexing, operators, flow.tensor, autograd, custom ops and
the functions written in Python get objects of _hostile.py among their arguments. Each call must
give a result, an exception that is promised, or the exception that the object raised.
"""

import _thread
import functools
import gc
import inspect
import resource
import sys
import time
from pathlib import Path

from _frame import run
from _hostile import Armoury, Mine

import oneflow_lite as flow

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from fuzzer import PROMISED, TELLTALE, Fuzzer, pages, show  # noqa: E402

_ext = flow._oneflow_lite
# What hostile Python code may raise from within Python functions, beside its own exceptions.
TAKEN = (*PROMISED, Mine, ZeroDivisionError, KeyError, StopIteration)
# Functions that write files, compile, run for long, or change the process.
LEFT_OUT = {"save", "load", "load_library", "check_op", "set_num_threads", "set_printoptions",
            "register_op", "fuse", "compile", "set_default_dtype", "set_default_device",
            "use_deterministic_algorithms", "set_grad_enabled", "seed", "manual_seed"}  # fmt: skip


class Borrowed(Fuzzer):
    """Calls as Fuzzer makes them, with hostile objects among the arguments."""

    def __init__(self, seed):
        self.armoury = None
        super().__init__(seed, "cpu")
        self.armoury = Armoury(self.rng, self.pool)
        self.composed = {
            name: f for name, f in vars(flow).items()
            if inspect.isfunction(f) and not name.startswith("_") and name not in LEFT_OUT
        }  # fmt: skip
        self.composed |= {
            f"Tensor.{name}": f for name, f in vars(flow.Tensor).items() if inspect.isfunction(f)
        }

    # Arguments: what the fuzzer would give, and what says that it is that.

    def hostile(self, kind):
        return self.armoury.of_kind(kind) if self.armoury and self.chance(0.35) else None

    def of_type(self, kind):
        given = self.hostile(kind.split("(")[0].rstrip("?"))
        return super().of_type(kind) if given is None else given

    def wrong(self):
        given = self.hostile(self.rng.choice(["int", "int[]", "Tensor[]", "Tensor", "data"]))
        return super().wrong() if given is None else given

    def integer(self):
        given = self.hostile("int")
        return super().integer() if given is None else given

    def number(self):
        given = self.hostile("float")
        return super().number() if given is None else given

    def size(self):  # the fuzzer computes with sizes
        armoury, self.armoury = self.armoury, None
        try:
            return super().size()
        finally:
            self.armoury = armoury

    def keep(self, result):
        """Checks what is plainly a tensor; hostile ones give what they like."""
        for y in result if type(result) in (list, tuple) else [result]:
            if type(y) is flow.Tensor:
                super().keep(y)

    # Calls that the fuzzer does not make.

    def data_call(self):
        data = self.armoury.of_kind("data")
        dtype, device, grad = (self.hostile("int") for _ in range(3))
        kwargs = {"dtype": dtype} if self.chance(0.2) else {}
        kwargs |= {"device": device} if self.chance(0.2) else {}
        kwargs |= {"requires_grad": grad} if self.chance(0.3) else {}
        function = self.rng.choice(
            [
                flow.tensor,
                flow.tensor,
                flow.Tensor,
                flow.from_dlpack,
                flow.from_numpy,
                flow.as_tensor,
            ]
        )
        text = f"{function.__name__}({show(data)}, {show(kwargs)})"
        return text, lambda: function(data, **kwargs)

    def thread_call(self):
        """The one way to hand over a dict that is ours: its values are borrowed by who reads it."""
        data = self.armoury.of_kind("data")
        kwargs = {"data": data, "dtype": None, "requires_grad": self.armoury.of_kind("int")}
        for trap in self.armoury.traps:
            trap.holders.append(kwargs)

        def call():
            _thread.start_new_thread(flow.tensor, (), kwargs)
            while _thread._count() > 0:
                time.sleep(1e-4)

        return f"in a thread: tensor({show(kwargs)})", call

    def composed_call(self):
        name = self.rng.choice(list(self.composed))
        args = [self.tensor()] if name.startswith("Tensor.") else []
        kinds = ["Tensor", "Tensor[]", "Tensor[]", "int", "int[]", "float", "bool", "str", "data"]
        args += [self.of_type(self.rng.choice(kinds)) for _ in range(self.rng.randrange(4))]
        return f"{name}({show(args)})", lambda: self.composed[name](*args)

    def method_call(self):
        """Methods that are no registered functions."""
        x, hostile = self.tensor(), self.armoury.of_kind(self.rng.choice(["int", "int[]", "data"]))
        name = self.rng.choice(["size", "stride", "numpy", "__array__", "requires_grad_", "to",
                                "backward", "__deepcopy__", "__setstate__", "register_hook",
                                "__contains__", "new_tensor", "view", "type"])  # fmt: skip
        pair = self.rng.choice([(hostile, 0), (1, hostile), (1, 0), hostile])
        return self.rng.choice([
            (f"{name}({show(x)}, {show(hostile)})", lambda: getattr(x, name)(hostile)),
            (f"__dlpack__({show(x)}, {show(pair)})",
             lambda: flow.from_dlpack(x.__dlpack__(max_version=pair))),
            (f"__dlpack__({show(x)}, device {show(pair)})",
             lambda: flow.from_dlpack(x.detach().__dlpack__(dl_device=pair, stream=None))),
            (f"backward({show(x)}, retain {show(hostile)})",
             lambda: x.sum().backward(retain_graph=hostile)),
            (f"shape = {show(hostile)}", lambda: setattr(x, "data", hostile)),
            (f"Tensor({show(x)}, {show(hostile)})", lambda: flow.Tensor(x, requires_grad=hostile)),
        ])  # fmt: skip

    def out_call(self):
        """An out= list that an observer of the ops changes while results are stored."""
        x, out = flow.randn(3, 4), [flow.empty(4), flow.empty(4, dtype=flow.int64)]
        trap = self.armoury.trap(["empty", "refill", "shrink", "raise"])
        trap.holders.append(out)

        def observe(name, proceed):
            trap.spring()
            proceed()

        def call():
            _ext.push_observer(observe)
            try:
                flow.max(x, 0, out=out)
            finally:
                _ext.pop_observer()

        return f"max(out=...), {trap}", call

    def op_call(self):
        x = flow.randn(2, 3, requires_grad=self.chance(0.7))
        how = {name: self.armoury.of_kind(kind) if self.chance(0.4) else None
               for name, kind in HOSTILE_OP.items()}  # fmt: skip

        def call():
            behaviour.update(how)
            y = flow.ops.attack.hostile(x, self.hostile("int[]") or (1, 2))
            y.sum().backward()
            _ext.op_cost("attack::hostile", [x, (1,)])
            _ext.op_signatures("attack::hostile", [x, (1,)])

        return f"ops.attack.hostile({show(how)})", call

    def next_call(self):
        self.armoury.traps.clear()
        own = [self.data_call] * 3 + [self.composed_call] * 3 + [self.method_call] * 2
        own += [self.thread_call, self.out_call, self.op_call]
        return self.rng.choice(own)() if self.chance(0.5) else super().next_call()

    def is_endless(self, name, args, kwargs):
        return name == "arange" or super().is_endless(name, args, kwargs)


# What the Python functions of attack::hostile give, where it is not None.
HOSTILE_OP = {"infer": "data", "forward": "Tensor[]", "backward": "Tensor[]", "sbp": "data",
              "cost": "float"}  # fmt: skip
behaviour = dict.fromkeys(HOSTILE_OP)


@functools.cache
def register():
    @flow.register_op("attack::hostile")
    class Hostile:
        """x, mostly."""

        def infer(x, dims: list[int]):
            given = behaviour["infer"]
            return (x.shape, x.dtype) if given is None else given

        def forward(x, dims: list[int]):
            given = behaviour["forward"]
            return x * 1 if given is None else given

        def backward(ctx, dy):
            given = behaviour["backward"]
            return dy if given is None else given

        def sbp(x, dims: list[int]):
            given = behaviour["sbp"]
            return [("S(0)", "S(0)")] if given is None else given

        def cost(x, dims: list[int]):
            given = behaviour["cost"]
            return (1.0, 1.0) if given is None else (given, 1.0)


def attempt(fuzzer, call):
    """One call with the traps armed: "taken" or "refused"; anything else is raised."""
    try:
        for trap in fuzzer.armoury.traps:
            trap.armed = True
        result = call()
    except TAKEN as error:
        if TELLTALE.search(str(error)):
            raise
        return "refused"
    finally:
        for trap in fuzzer.armoury.traps:
            trap.armed = False
    fuzzer.keep(result)
    return "taken"


def rounds(rng, say):
    sys.unraisablehook = lambda unraisable: None  # of sbp, cost, threads and finalizers
    used = pages("all") * resource.getpagesize()
    if used < 1 << 40:  # AddressSanitizer maps more than there is
        # Twice what the tensors that are kept, their copies and the BLAS's buffers came to.
        resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 30), -1))
    register()
    fuzzer = Borrowed(rng.randrange(1 << 30))
    done = 0
    while True:
        behaviour.update(dict.fromkeys(HOSTILE_OP))
        text, call = fuzzer.next_call()
        if text == "skipped":
            continue
        say(text)
        kind = attempt(fuzzer, call)
        del call
        done += 1
        if done % 500 == 0:
            gc.collect()
        yield kind


if __name__ == "__main__":
    run(rounds, full={"count": 100_000}, patience=60)
