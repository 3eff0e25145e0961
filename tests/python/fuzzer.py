# SPDX-License-Identifier: Apache-2.0
"""python fuzzer.py SEED CALLS LOG DEVICE: random calls; the text of the call at hand is in LOG.

Ends with status 0 and a line of counts, or with a traceback for an exception that is not among
those promised or a result that contradicts itself.
"""

import mmap
import random
import re
import resource
import sys

import numpy as np

import oneflow_lite as flow

# What the library raises (DTypeError, ShapeError and OutOfMemoryError derive from these), and what
# Python itself raises: for an int of more than 64 bits, a buffer that cannot be shared, a method
# asked of something that is no tensor, a list that does not fit.
PROMISED = (TypeError, ValueError, IndexError, NotImplementedError, RuntimeError,
            OverflowError, BufferError, AttributeError, MemoryError)  # fmt: skip
TELLTALE = re.compile(
    r"internal|unknown C\+\+|std::|bad_|basic_string|vector(?!_norm)|CHECK|Assertion|map::"
)
DTYPES = [flow.float32, flow.float32, flow.float32, flow.float64, flow.float16, flow.bfloat16,
          flow.int64, flow.int32, flow.int16, flow.int8, flow.uint8, flow.bool]  # fmt: skip
HUGE = [1 << 31, (1 << 31) - 1, 1 << 32, 1 << 40, (1 << 62) - 1, (1 << 63) - 1, -(1 << 63),
        1 << 64, -(1 << 70), 1 << 100]  # fmt: skip
MOST = 1 << 16  # elements of a tensor that is kept


def show(v):
    """A value in short."""
    if isinstance(v, flow.Tensor):
        return (f"Tensor({list(v.shape)}, {v.dtype.name}, {v.device}, strides {list(v.stride())}"
                f"{', requires_grad' if v.requires_grad else ''})")  # fmt: skip
    if type(v) in (list, tuple):
        return f"[{', '.join(map(show, v))}]"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k}: {show(a)}" for k, a in v.items()) + "}"
    return repr(v)


class Fuzzer:
    def __init__(self, seed, device):
        self.rng = random.Random(seed)
        self.devices = ["cpu"] if device == "cpu" else ["cpu", device, device]
        # No address space is set aside beside a GPU's: only what no memory can hold.
        self.huge = HUGE if device == "cpu" else [n for n in HUGE if abs(n) > 1 << 61]
        self.functions = flow._oneflow_lite.list_functions()
        self.succeeded = dict.fromkeys((f["name"] for f in self.functions), 0)
        self.pool = [self.new_tensor() for _ in range(40)]
        self.first = None  # the tensor that a call has already

    # Arguments --------------------------------------------------------------------------------

    def chance(self, p):
        return self.rng.random() < p

    def integer(self):
        if self.chance(0.03):
            return self.rng.choice(self.huge)
        return self.rng.choice([-5, -3, -2, -1, -1, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 7, 100])

    def number(self):
        return self.rng.choice([
            self.integer, lambda: self.rng.uniform(-4, 4), lambda: self.chance(0.5),
            lambda: float("nan"), lambda: float("inf"), lambda: -1e308, lambda: 1e-320,
            lambda: np.float32(1.5), lambda: np.int64(2),
        ])()  # fmt: skip

    def size(self):
        if self.chance(0.02):
            return [self.integer() for _ in range(self.rng.randrange(40))]
        return [self.rng.choice([0, 1, 1, 2, 3, 4, 5, 8, 17]) for _ in range(self.rng.randrange(5))]

    def ints(self):
        return self.rng.choice([tuple, list])(self.integer() for _ in range(self.rng.randrange(5)))

    def new_tensor(self):
        size = self.size() if self.chance(0.97) else [self.rng.choice([1000, 4097, 30_000])]
        if len(size) > 8 or any(n not in range(1 << 16) for n in size):
            size = [3, 4]
        dtype, device = self.rng.choice(DTYPES), self.rng.choice(self.devices)
        if self.chance(0.06):
            device = "meta"
        if device == "meta" and self.chance(0.2):
            size = [1 << 30, 1 << 20]
        make = self.rng.choice([flow.zeros, flow.ones, flow.randn, flow.randn, flow.randn])
        if make is flow.randn and not dtype.is_floating_point:
            x = (flow.randn(size, device=device) * 5).to(dtype)
        else:
            x = make(size, dtype=dtype, device=device)
        if self.chance(0.03) and not x.is_meta and x.numel() and dtype.is_floating_point:
            x.view(-1)[-1] = self.rng.choice([float("nan"), float("inf"), -float("inf"), 1e30])
        if self.chance(0.3) and dtype.is_floating_point:
            x.requires_grad_()
        return x

    def tensor(self):
        if self.chance(0.05):
            return self.new_tensor()
        return self.rng.choice(self.pool)

    def operand(self):
        """A tensor for a call, often the one it has already: shapes and dtypes go together then."""
        if self.first is None or self.chance(0.6):
            self.first = self.tensor()
        elif self.first.ndim > 0 and self.first.shape[0] > 0 and self.chance(0.1):
            try:
                return self.first[0]
            except NotImplementedError:  # a view of what was changed in a way that has no gradient
                self.first = self.new_tensor()
        return self.first

    def mask(self):
        """What a mask is wanted for has truths of its own shape, mostly."""
        x = self.operand()
        return x if self.chance(0.3) else flow.zeros_like(x, dtype=flow.bool)

    def wrong(self):
        """Something that most arguments cannot be."""
        return self.rng.choice([
            None, "x", "", b"y", 1.5, float("nan"), True, 1 << 80, object(), [], (), {}, [[]], int,
            float, [1, "a"], (1.5,), np.ones(2), np.float64(1), 1j, flow, flow.float32, "cuda",
            flow.device("meta"), lambda: 1, range(3), slice(1), Ellipsis, self.tensor(),
            [self.tensor()], "\udcff", float,
        ])  # fmt: skip

    def of_type(self, kind):
        kind = re.sub(r"\(a!?\)", "", kind)
        if kind.endswith("?"):
            if self.chance(0.35):
                return None
            kind = kind[:-1]
        return {
            "Tensor": self.operand,
            "Tensor[]": lambda: [self.operand()] * self.rng.randrange(4),
            "Tensor...": lambda: [self.operand()] * self.rng.randrange(4),
            "Operand": lambda: self.operand() if self.chance(0.7) else self.number(),
            "int": self.integer,
            "int[]": lambda: self.size() if self.chance(0.4) else self.ints(),
            "float": self.number,
            "Scalar": self.number,
            "bool": lambda: self.chance(0.5),
            "dtype": lambda: self.rng.choice(DTYPES),
            "Device": lambda: self.rng.choice(
                ["cpu", "cpu", "meta", "cuda", "cuda:9", "", "cpu:3"]
            ),
            "str": lambda: self.rng.choice(["mean", "sum", "none", "", "max", "\0"]),
            "Generator": flow.Generator,
        }.get(kind, self.wrong)()

    # Calls ------------------------------------------------------------------------------------

    def function_call(self):
        f = self.rng.choice(self.functions)
        name, self.first = f["name"], None
        args, kwargs, keyword_only = [], {}, False
        inside = re.fullmatch(r"\w+\((.*)\) -> .*", f["signature"])[1]
        for text in [t for t in inside.split(", ") if t]:
            if text == "*":
                keyword_only = True
                continue
            kind, _, rest = text.partition(" ")
            argument, _, default = rest.partition("=")
            if default and self.chance(0.5):
                keyword_only = True  # the rest by name, or not at all
                continue
            if self.chance(0.04):
                value = self.wrong()
            elif (argument, kind) == ("mask", "Tensor"):
                value = self.mask()
            else:
                value = self.of_type(kind)
            if keyword_only:
                kwargs[argument] = value
            else:
                args.append(value)
        if self.chance(0.02):
            kwargs[self.rng.choice(["dim", "out", "x" * 300, ""])] = self.wrong()
        if self.chance(0.02):
            args.append(self.wrong())
        if self.is_endless(name, args, kwargs):
            return "skipped", lambda: None
        if args and (f["method_only"] or (f["method"] and self.chance(0.3))):
            target, args = args[0], args[1:]
            call = lambda: getattr(target, name)(*args, **kwargs)  # noqa: E731
            return f"Tensor.{name}({show(target)}, {show(args)}, {show(kwargs)})", call
        if f["method_only"]:
            return "skipped", lambda: None
        return f"{name}({show(args)}, {show(kwargs)})", lambda: getattr(flow._C, name)(
            *args, **kwargs
        )

    def is_endless(self, name, args, kwargs):
        """Whether the call would run for hours, and rightly so: 2^40 elements of stride 0."""
        lists = [a for a in [*args, *kwargs.values()] if isinstance(a, list | tuple)]
        big = any(isinstance(n, int) and n > MOST for a in lists for n in a)
        return (
            big
            and name in ("expand", "as_strided")
            or (name == "arange" and any(isinstance(a, int) and abs(a) > MOST for a in args))
        )

    def index_call(self):
        x = self.tensor()

        def item():
            return self.rng.choice([
                self.integer, self.integer, lambda: None, lambda: Ellipsis, lambda: slice(None),
                lambda: slice(self.integer(), self.integer(), self.rng.choice([1, 2, 0, -1, None])),
                lambda: slice(self.integer(), None), self.wrong,
            ])()  # fmt: skip

        index = item() if self.chance(0.5) else tuple(item() for _ in range(self.rng.randrange(5)))
        if self.chance(0.3):
            value = self.rng.choice([self.number, self.tensor, self.wrong])()
            return f"setitem({show(x)}, {show(index)}, {show(value)})", lambda: x.__setitem__(
                index, value
            )
        return f"getitem({show(x)}, {show(index)})", lambda: x[index]

    def operator_call(self):
        a, b = self.tensor(), self.tensor() if self.chance(0.6) else self.number()
        if self.chance(0.05):
            b = self.wrong()
        name = self.rng.choice([
            "add", "sub", "mul", "truediv", "matmul", "eq", "lt", "iadd", "imul", "itruediv",
            "radd", "rsub", "rmatmul", "ne", "ge", "isub",
        ])  # fmt: skip
        return f"__{name}__({show(a)}, {show(b)})", lambda: getattr(a, f"__{name}__")(b)

    def product_or_loss_call(self):
        """Shapes that go together, mostly: they rarely meet by chance."""
        n, m, k = (self.rng.choice([0, 1, 2, 5, 33]) for _ in range(3))
        dtype = self.rng.choice(DTYPES)
        batch = self.rng.choice([[], [], [2], [3, 1]])
        other = self.wrong() if self.chance(0.05) else flow.zeros(k, m).to(dtype)
        a = flow.ones([*batch, n, k], requires_grad=self.chance(0.5)).to(dtype)
        target = flow.tensor([self.rng.choice([0, 0, 1, 4, -100, -1]) for _ in range(n)])
        weight = self.rng.choice([None, flow.ones(k), flow.ones(m).to(dtype), self.wrong()])
        reduction = self.rng.choice(["mean", "sum", "none", "x"])
        target = self.rng.choice([target, target.long(), a, target.to(self.rng.choice(DTYPES))])
        text = f"{show(a)}, {show(other)}, {show(target)}, {show(weight)}, {reduction}"
        return self.rng.choice([
            (f"matmul({text})", lambda: flow.matmul(a, other)),
            (f"linear({text})", lambda: flow.linear(a, other.t(), weight)),
            (f"nll_loss({text})",
             lambda: flow.nll_loss(a, target, weight, reduction=reduction)),
            (f"cross_entropy({text})", lambda: flow.cross_entropy(
                a, target, weight, label_smoothing=self.rng.choice([0, 0.1]))),
            (f"cross_entropy_backward({text})",
             lambda: flow.cross_entropy(a, target).backward()),
        ])  # fmt: skip

    def norm_call(self):
        """Weights that fit the last dims of the input, mostly."""
        size = [self.rng.choice([0, 1, 2, 3]) for _ in range(self.rng.randrange(3))]
        x = flow.randn([*size, self.rng.choice([0, 1, 3, 33])]).to(self.rng.choice(DTYPES))
        fitting = x.shape[self.rng.randrange(x.ndim) :]
        dims = fitting if self.chance(0.9) else self.wrong()
        weight, bias = (
            self.rng.choice([None, None, flow.ones(fitting).to(x.dtype), self.wrong()])
            for _ in range(2)
        )
        residual = x * 1 if self.chance(0.9) else self.tensor()
        efficient = self.chance(0.5)
        text = f"{show(x)}, {show(dims)}, {show(weight)}, {show(bias)}, {efficient}"
        return self.rng.choice([
            (f"layer_norm({text})",
             lambda: flow.layer_norm(x, dims, weight, bias, 1e-5, efficient)),
            (f"rms_norm({text})", lambda: flow.rms_norm(x, dims, weight, None, efficient)),
            (f"add_layer_norm({text})",
             lambda: flow.add_layer_norm(x, residual, dims, weight, bias, 1e-5, efficient)),
            (f"add_rms_norm({text})",
             lambda: flow.add_rms_norm(x, residual, dims, weight, None, efficient)),
        ])  # fmt: skip

    def moves_call(self):
        """Places within the dim, mostly, in an index that fits."""
        x = self.tensor()
        # Of an empty tensor too the other dims may be too long for an index.
        if x.is_meta or x.ndim == 0 or np.prod([float(max(n, 3)) for n in x.shape]) > MOST:
            x = flow.randn(3, 4)
        dim = self.rng.randrange(x.ndim)
        size = x.shape[dim]
        shape = [self.rng.choice([0, 1, 3]) if d == dim else self.rng.randint(0, n)
                 for d, n in enumerate(x.shape)]  # fmt: skip
        low, high = (0, max(size - 1, 0)) if self.chance(0.9) else (-3, size + 3)
        count = int(np.prod(shape))
        index = flow.tensor([self.rng.randint(low, high) for _ in range(count)] or np.zeros(0, int))
        index = index.view(shape).to(x.device)
        src = flow.ones(shape).to(x.dtype).to(x.device) if self.chance(0.9) else self.wrong()
        line = index.reshape(-1)
        reduce = self.rng.choice(["prod", "mean", "amax", "amin", "x"])
        text = f"{show(x)}, {dim}, {show(index)}, {show(src)}, {reduce}"
        return self.rng.choice([
            (f"gather({text})", lambda: x.gather(dim, index)),
            (f"scatter({text})", lambda: x.scatter(dim, index, src)),
            (f"scatter({text}, 3)", lambda: x.scatter(dim, index, 3)),
            (f"scatter_({text})", lambda: (x * 1).scatter_(dim, index, src)),
            (f"scatter_add({text})", lambda: x.scatter_add(dim, index, src)),
            (f"scatter_add_({text})", lambda: (x * 1).scatter_add_(dim, index, src)),
            (f"index_select({text})", lambda: x.index_select(dim, line)),
            (f"index_add_({text})",
             lambda: (x * 1).index_add_(dim, line, x.index_select(dim, line))),
            (f"index_copy_({text})",
             lambda: (x * 1).index_copy_(dim, line, x.index_select(dim, line))),
            (f"index_add({text})", lambda: x.index_add(dim, line, x.index_select(dim, line))),
            (f"index_copy({text})", lambda: x.index_copy(dim, line, x.index_select(dim, line))),
            (f"index_reduce({text})",
             lambda: x.index_reduce(dim, line, x.index_select(dim, line), reduce)),
            (f"index_fill({text})", lambda: x.index_fill(dim, line, 3)),
            (f"index_fill_({text})", lambda: (x * 1).index_fill_(dim, line, 3)),
            (f"index_reduce_({text})", lambda: (x * 1).index_reduce_(
                dim, line, x.index_select(dim, line), reduce)),
            (f"diagonal_scatter({text})", lambda: x.diagonal_scatter(x.diagonal())),
            (f"select_scatter({text})", lambda: x.select_scatter(x.select(dim, 0), dim, 0)),
            (f"scatter_reduce_({text})",
             lambda: (x * 1).scatter_reduce_(dim, index, src, reduce)),
            (f"put_({text})", lambda: (x * 1).put_(index, src)),
            (f"take_along_dim({text})", lambda: x.take_along_dim(index, dim)),
            (f"masked_scatter_({text})", lambda: (x * 1).masked_scatter_(x > 0, x)),
            (f"split_with_sizes({text})", lambda: x.split_with_sizes([size, 0], dim)),
            (f"embedding({text})", lambda: flow.embedding(line, flow.ones(size, 2).to(x.device))),
            (f"getitem({text})", lambda: x[line]), (f"getitem({text}, 2)", lambda: x[index, line]),
            (f"getitem(mask of {text})", lambda: x[x > 0]),
            (f"setitem({text})", lambda: (x * 1).__setitem__(line, 1)),
            (f"cat({text})", lambda: flow.cat([x, x, self.tensor()][: self.rng.choice([1, 2, 3])],
                                              dim)),
        ])  # fmt: skip

    def sum_of_products_call(self):
        """Products of shapes that fit, factors of LU with their pivots, attention over one QKV."""
        n, m, k = (self.rng.choice([0, 1, 2, 5]) for _ in range(3))
        dtype = self.rng.choice([flow.float32, flow.float32, flow.float64, self.rng.choice(DTYPES)])
        a, b = flow.ones(n, k, m).to(dtype), flow.ones(m, k).to(dtype)
        dims = ([1, 2], [1, 0]) if self.chance(0.8) else (self.ints(), self.ints())
        square, right = flow.eye(n).to(dtype), flow.ones(n, m).to(dtype)
        pivots = flow.arange(1, n + 1).to(self.rng.choice([flow.int32, flow.int64]))
        heads = self.rng.choice([1, 2, 3])
        qkv = flow.ones(2, n, 3, heads, 4, requires_grad=True).to(dtype)
        operands = [b, b + 1, b][: self.rng.choice([1, 2, 3])]
        expression = self.rng.choice(["x, y: x * y", "x: sin(x)", "x: x +", "x: z", ""])
        text = f"{show(a)}, {show(b)}, {dims}, {show(pivots)}, {expression}"
        return self.rng.choice([
            (f"tensordot({text})", lambda: flow._C.tensordot(a, b, *dims)),
            (f"lu_unpack({text})", lambda: flow._C.lu_unpack(square, pivots)),
            (f"lu_solve({text})", lambda: flow._C.lu_solve(right, square, pivots)),
            (f"linalg_lu_solve({text})", lambda: flow._C.linalg_lu_solve(square, pivots, right)),
            (f"attention_packed({text})", lambda: flow._C.attention_packed(qkv)),
            (f"bmm({text})", lambda: flow._C.bmm(a, a.transpose(1, 2))),
            (f"addmm_({text})", lambda: (b @ b.t()).addmm_(b, b.t())),
            (f"addmv_({text})", lambda: (b[:, 0] * 1).addmv_(b, b[0])),
            (f"addr_({text})", lambda: (b * 1).addr_(b[:, 0], b[0])),
            (f"addbmm_({text})", lambda: flow.zeros(k, k).to(dtype).addbmm_(a, a.mT)),
            (f"baddbmm_({text})", lambda: (a @ a.mT).baddbmm_(a, a.mT)),
            (f"rotary_embedding({text})",
             lambda: flow._C.rotary_embedding(qkv.flatten(2), flow.ones(n, 2), flow.ones(n, 2))),
            (f"addmv({text})", lambda: flow._C.addmv(b[:, 0], b, b[0])),
            (f"linalg_solve({text})", lambda: flow._C.linalg_solve(square, right)),
            (f"cholesky_solve({text})", lambda: flow._C.cholesky_solve(right, square)),
            (f"scaled_dot_product_attention({text})",
             lambda: flow._C.scaled_dot_product_attention(*qkv.unbind(2))),
            (f"multi_margin_loss({text})",
             lambda: flow._C.multi_margin_loss(right, pivots % max(m, 1))),
            (f"multilabel_margin_loss({text})",
             lambda: flow._C.multilabel_margin_loss(right, (right * 0).long())),
            (f"cosine_embedding_loss({text})",
             lambda: flow._C.cosine_embedding_loss(b, b + 1, b[:, 0])),
            (f"linear_cross_entropy({text})",
             lambda: flow._C.linear_cross_entropy(b, b + 1, pivots[:m] % max(m, 1), chunks=m)),
            (f"fuse_elements({text})", lambda: flow._C.fuse_elements(expression, operands)),
        ])  # fmt: skip

    def autograd_call(self):
        x, y = self.tensor(), self.tensor()
        retain, create = self.chance(0.5), self.chance(0.3)
        gradient = self.rng.choice([None, self.tensor(), self.wrong()])
        hook = self.rng.choice([lambda g: g, lambda g: None, lambda g: "x", lambda g: 1 / 0, "no"])
        return self.rng.choice([
            (f"sum.backward({show(x)})", lambda: x.sum().backward(retain_graph=retain)),
            (f"backward({show(x)}, {show(gradient)})",
             lambda: x.backward(gradient, retain, create)),
            (f"grad({show(y)}, {show(x)}, {create})",
             lambda: flow.autograd.grad(y, x, None, retain, create, retain)),
            (f"grad(sums, {show(x)})", lambda: flow.autograd.grad(
                [flow.softmax(x, -1).sum(), y.sum()], [x, y], None, retain, create, True)),
            (f"backward(list, {show(gradient)})", lambda: flow.autograd.backward([x, y], gradient)),
            (f"hook({show(x)})", lambda: (x * 1).register_hook(hook)),
            (f"grad = {show(gradient)}", lambda: setattr(x, "grad", gradient)),
            (f"requires_grad_({show(x)})", lambda: x.requires_grad_(retain)),
            (f"requires_grad = {show(gradient)}", lambda: setattr(x, "requires_grad", gradient)),
            (f"retain_grad({show(x)})", lambda: x.retain_grad()),
            (f"data = {show(y)}", lambda: setattr(x, "data", y)),
            (f"detach({show(x)})", lambda: x.detach()),
        ])  # fmt: skip

    def conversion_call(self):
        x, w = self.tensor(), self.wrong()
        if max(x.shape, default=0) > MOST:  # Python's lists of it would not end
            x = flow.ones(2, 3)
        return self.rng.choice([
            (f"item({show(x)})", lambda: x.item()), (f"float({show(x)})", lambda: float(x)),
            (f"bool({show(x)})", lambda: bool(x)), (f"int({show(x)})", lambda: int(x)),
            (f"numpy({show(x)})", lambda: x.numpy()), (f"len({show(x)})", lambda: len(x)),
            (f"list({show(x)})", lambda: list(x)[:3]), (f"repr({show(x)})", lambda: repr(x)),
            (f"tolist({show(x)})", lambda: x.tolist()), (f"{show(w)} in {show(x)}", lambda: w in x),
            (f"tensor({show(w)})", lambda: flow.tensor(w)), (f"size({show(x)})", lambda: x.size(w)),
            (f"tensor([{show(x)}, {show(w)}])", lambda: flow.tensor([x, w])),
            (f"from_numpy({show(w)})", lambda: flow.from_numpy(w)),
            (f"dlpack({show(x)})", lambda: flow.from_dlpack(x)),
            (f"dlpack({show(w)})", lambda: flow.from_dlpack(w)),
            (f"to({show(w)})", lambda: x.to(w)), (f"stride({show(w)})", lambda: x.stride(w)),
            (f"device({show(w)})", lambda: flow.device(w)),
            (f"from_numpy of {show(x)}", lambda: flow.from_numpy(x.numpy()[..., ::2])),
        ])  # fmt: skip

    def next_call(self):
        kinds = [self.function_call] * 60 + [self.index_call] * 14 + [self.operator_call] * 12
        kinds += [self.autograd_call] * 8 + [self.conversion_call] * 6
        kinds += [self.product_or_loss_call] * 5 + [self.norm_call] * 3 + [self.moves_call] * 5
        kinds += [self.sum_of_products_call] * 3
        return self.rng.choice(kinds)()

    # Results ----------------------------------------------------------------------------------

    def keep(self, result):
        """Checks a result against itself; small tensors go into the pool."""
        for y in result if isinstance(result, tuple | list) else [result]:
            if not isinstance(y, flow.Tensor):
                continue
            shape = y.shape
            assert len(shape) == y.ndim == len(y.stride()) and all(n >= 0 for n in shape)
            count = 1
            for n in shape:
                count *= n
            assert y.numel() == count and y.dtype in DTYPES
            if not y.is_meta and 0 < count <= 64:
                assert len(y.detach().reshape(-1).tolist()) == count
            if (y.is_meta or count <= MOST) and y.ndim <= 8:
                self.pool[self.rng.randrange(len(self.pool))] = y
        if self.chance(0.05):  # histories and shapes would only grow
            self.pool[self.rng.randrange(len(self.pool))] = self.new_tensor()


def pages(kind):
    """Of this process' memory: all that is mapped, or what is resident."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[kind == "resident"])


def main(seed, calls, log, device):
    # What asks for more than this is told that there is no memory, at once.
    used = pages("all") * resource.getpagesize()
    if device == "cpu" and used < 1 << 40:  # AddressSanitizer maps more than there is
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), -1))
    with open(log, "w+b") as file:
        file.truncate(1 << 16)
        note = mmap.mmap(file.fileno(), 1 << 16)
    flow.manual_seed(seed)
    fuzzer = Fuzzer(seed, device)
    results = exceptions = 0
    while results + exceptions < calls:
        text, call = fuzzer.next_call()
        if text == "skipped":
            continue
        line = f"call {results + exceptions}: {text}".encode(errors="replace")[: (1 << 16) - 1]
        note[: len(line) + 1] = line + b"\0"
        try:
            result = call()
        except PROMISED as error:
            exceptions += 1
            if TELLTALE.search(str(error)):
                raise
        except ZeroDivisionError:  # of a hook
            exceptions += 1
        else:
            results += 1
            name = text.split("(")[0].removeprefix("Tensor.")
            if name in fuzzer.succeeded:
                fuzzer.succeeded[name] += 1
            fuzzer.keep(result)
    if device == "cuda":
        flow.cuda.synchronize()
    never = ",".join(name for name, n in fuzzer.succeeded.items() if n == 0)
    fuzzer.pool.clear()
    megabytes = pages("resident") * resource.getpagesize() >> 20
    print(f"calls={calls} results={results} exceptions={exceptions} megabytes={megabytes} "
          f"never={never}")  # fmt: skip
    if "--verbose" in sys.argv:
        print(fuzzer.succeeded)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
