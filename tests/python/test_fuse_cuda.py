# SPDX-License-Identifier: Apache-2.0
"""The CUDA side of flow.fuse: the generated source compiles for every kernel (wherever there is
NVRTC, GPU or not), operands are read from the right places. What the kernels compute is in
test_fuse.py, whose tests run on each device, the op around them in test_fuse_op.py.
"""

import functools
import itertools
import math
import shutil
import subprocess
import tempfile
import warnings

import numpy as np
import pytest
from numerics import host, tensor
from test_fuse import check, softmax

flow = pytest.importorskip("oneflow_lite")

from oneflow_lite import _oneflow_lite as _ext  # noqa: E402
from oneflow_lite.fuse import kernel, kinds, source  # noqa: E402
from oneflow_lite.utils.extension import include_dir  # noqa: E402

fuse = flow.fuse
RNG = np.random.default_rng(5)
KERNELS = ["RowGroupKernel<8, 1, A>", "RowBlockKernel<false, A>", "RowStreamedKernel<true, A>",
           "RowClusterKernel<A>", "RowGridKernel<A>", "RowStreamedKernel<false, A>"]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))
    _ext.forget_kernels()


@pytest.fixture
def compiler():
    if problem := _ext.compiler_problem():
        pytest.skip(problem)


def everything(base):
    """An op with every function, of operands of every form."""
    return getattr(fuse, base)(
        load=lambda x, m, b, c, s: fuse.where(
            (m > 0) + (x != b), abs(x) * s + fuse.exp(b) / c - fuse.log(x), -math.inf
        ),
        store=lambda y, g, x, s: (
            fuse.sqrt(y) + fuse.rsqrt(g) * fuse.tanh(x) - fuse.sigmoid(-y) * fuse.relu(g)
            + fuse.maximum(y, s) * fuse.minimum(y, 0.5) + (y <= x) * (y >= 0) + (y == 1) * (y < s)
        ),
    )  # fmt: skip


def kind(base, dtype):
    operand = kinds.Operand
    return kinds.Kind(base, dtype, "x", (
        ("m", operand("matrix", "bool", "period")), ("b", operand("matrix", dtype, "none")),
        ("c", operand("column", "float32", "repeat")), ("s", operand("number")),
        ("g", operand("matrix", "float32", "all")),
    ))  # fmt: skip


def expression(name):
    return "oneflow_lite::cuda::" + name.replace("A>", source.ALGORITHM + ">")


@pytest.mark.slow
@pytest.mark.parametrize("base, dtype, name", [
    *zip(itertools.cycle(["softmax", "log_softmax", "layer_norm", "rms_norm"]),
         itertools.cycle(["float16", "bfloat16", "float32", "float64", "float32"]), KERNELS * 2),
    ("rms_norm", "float16", "RowBlockKernel<true, A>"),
])  # fmt: skip
def test_source_compiles(compiler, base, dtype, name):
    op = everything(base)
    text = source.generate(kind(base, dtype), op.load, op.store)
    compiled = _ext.compile_kernel(text, expression(name), 90)
    assert compiled.image[:4] == b"\x7fELF" and name.split("<")[0] in compiled.name


# Prints what serves whole and odd rows on a device as large as an H200, by fused/policy.h and
# fused/names.h alone: of each kernel one that has all its packs, one that has not, and so on.
PLANNED = """
#include <cstdio>
#include <set>
#include "primitive/cuda/fused/names.h"
using namespace oneflow_lite::cuda;
std::set<std::string> kinds;
void Print(const std::string& name, const HeldPlan& plan, int pack, bool copied = false) {
  const std::string kind = name.substr(0, name.find('<')) + (plan.full ? "f" : "") +
                           (plan.kept > 0 ? "k" : "") + (plan.packs > 8 ? "m" : "") +
                           (plan.parked > 0 ? "p" : "") +
                           (plan.stays ? "s" : "") + (copied ? "c" : "") +
                           std::to_string(pack);
  const bool odd = name.find("Odd") != std::string::npos;
  if (kinds.insert(kind).second) std::printf("%d %d %s\\n", odd, pack, name.c_str());
}
int main() {
  DeviceLimits limits;
  limits.multiprocessors = 132, limits.shared_per_multiprocessor = 228 << 10;
  limits.shared_per_block = 227 << 10;
  for (const int pack : {8, 4, 2}) {
    for (const int common_bytes : {0, 16, 32, 48, 64}) {
      for (const int64_t rows : {3, 60, 100000}) {
        for (int64_t packs = 1; packs < 40000; packs += packs < 3000 ? 1 : 16) {
          const bool costly = common_bytes == 64 || (common_bytes == 0 && rows == 60);
          const HeldTraits traits{pack == 8 ? 32 : 16, !costly && pack > 2, packs % 2 > 0,
                                  16, common_bytes, 0, pack == 2};
          HeldPlan plan;
          if (PlanHeldRows(rows, packs, traits, limits, &plan)) {
            Print(KernelName(plan), plan, pack);
          }
          OddPlan odd;
          if (PlanOddRows(rows, packs * pack + 1, pack, traits, limits, &odd)) {
            Print(KernelName(odd), odd.held, pack, odd.copied);
          }
        }
      }
    }
  }
}
"""


@functools.cache
def planned():
    """Names of kernels for whole and odd rows, by (odd, elements in a pack)."""
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    names = {}
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/planned"
        command = [compiler, "-std=c++17", "-x", "c++", "-", "-o", program, "-I", include_dir()]
        subprocess.run(command, input=PLANNED, text=True, check=True)
        listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        odd, pack, name = line.split(" ", 2)
        names.setdefault((odd == "1", int(pack)), []).append(name)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("base, dtype, part", [
    ("softmax", "float16", 0), ("log_softmax", "bfloat16", 1), ("layer_norm", "float16", 1),
    ("rms_norm", "bfloat16", 0), ("softmax", "float32", 0), ("layer_norm", "float32", 1),
    ("softmax", "float64", 0), ("layer_norm", "float64", 1),
])  # fmt: skip
@pytest.mark.parametrize("odd", [False, True])
def test_source_of_whole_and_odd_rows_compiles(compiler, base, dtype, part, odd):
    op, given = everything(base), kind(base, dtype)
    if base.endswith("norm"):  # weight and bias are operands of the Store
        weights = (("weight", kinds.Operand("matrix", dtype, "none")),
                   ("bias", kinds.Operand("matrix", "float32", "none")))  # fmt: skip
        given = given._replace(operands=given.operands + weights)
    text = source.generate(given._replace(whole=True, odd=odd), op.load, op.store)
    assert base.startswith(("log_", "soft")) or "p_weight" in text
    names = planned()[odd, {"float64": 2, "float32": 4}.get(dtype, 8)]
    for name in names[part::2]:
        _ext.compile_kernel(text, expression(name), 90)


def given(dtype, **rows):
    operands = [(n, kinds.Operand("matrix", d, r)) for n, (d, r) in rows.items()]
    return kinds.Kind("softmax", dtype, "x", (*operands, ("s", kinds.Operand("number"))))


def names(operands):
    return [name for name, _ in operands]


def test_what_is_cheap_is_computed_again():
    scaled, biased = fuse.softmax(load=lambda x, s: x * s), fuse.softmax(lambda x, s, b: x * s + b)
    one, two = given("float16"), given("float16", b=("float16", "none"))
    assert kinds.is_lean(one, scaled.load) and kinds.is_lean(one, None)
    assert kinds.computes_again(two, biased.load) and not kinds.is_lean(two, biased.load)
    assert names(kinds.matrices(two, biased.load)) == ["x", "b"]
    # A double's exponential, a costly expression, and three matrices: what is computed stays.
    costly = fuse.softmax(load=lambda x, s, b: fuse.tanh(x * s) + b)
    affine = fuse.softmax(load=lambda x, s, g, b: x * g * s + b)
    three = given("float16", g=("float16", "none"), b=("float16", "none"))
    for kind_, op in (given("float64"), scaled), (two, costly), (three, affine):
        assert not kinds.computes_again(kind_, op.load)
        assert not kinds.is_lean(kind_, op.load)
        assert names(kinds.matrices(kind_, op.load)) == ["x"]  # rows that serve all are read late
    wide = given("float16", b=("float32", "none"))  # kept in float32: two packs for one
    assert not kinds.is_lean(wide, biased.load)
    assert kinds.is_lean(three._replace(whole=True), affine.load)
    assert kinds.is_lean(three._replace(whole=True, odd=True), affine.load)
    assert kinds.common_bytes(three._replace(whole=True), affine.load, None, 8) == 32
    assert not kinds.is_lean(two._replace(whole=True), costly.load)
    # A divisor that a row has one of has one reciprocal; what a row has one of is computed once.
    row = kinds.Kind("softmax", "float16", "x", (
        ("c", kinds.Operand("column", "float16", "all")), ("s", kinds.Operand("number")),
        ("b", kinds.Operand("matrix", "float16", "none")),
    ), True)  # fmt: skip
    for load, cheap in (
        (lambda x, s: x / s, True), (lambda x, c, s: (x - c) / fuse.exp(c * s), True),
        (lambda x: x / 3, True), (lambda x, b: x / b, False), (lambda x, s: s / x, False),
        (lambda x, s: fuse.sqrt(x * s), False),
    ):  # fmt: skip
        assert kinds.is_cheap(row, fuse.softmax(load=load).load) == cheap
        assert not kinds.is_cheap(row._replace(dtype="float64"), fuse.softmax(load=load).load)
    # Beside whole rows it is in shared memory, in 16 bytes or several.
    for other, size in ("float16", 16), ("float32", 32), ("bool", 16):
        beside = given("float16", b=(other, "none"))._replace(whole=True)
        assert kinds.is_lean(beside, biased.load)
        assert kinds.common_bytes(beside, biased.load, None, 8) == size
    # What Store reads is counted once: as common where it is alone, and a single row.
    after = fuse.softmax(store=lambda y, g, b: y * g + b)
    first = fuse.softmax(store=lambda y, g: y * g)
    both = fuse.softmax(load=lambda x, b: x + b, store=lambda y, g: y * g)
    beside = three._replace(whole=True)
    for op, common, late in (after, 0, 32), (first, 16, 0), (both, 16, 16), (affine, 32, 0):
        assert kinds.common_bytes(beside, op.load, op.store, 8) == common
        assert kinds.late_bytes(beside, op.load, op.store, 8) == late
    both = fuse.softmax(lambda x, s, b: x * s + b, store=lambda y, b, g: y * b + g)
    two = given("float16", b=("float16", "none"), g=("float32", "none"))._replace(whole=True)
    assert kinds.common_bytes(two, both.load, both.store, 8) == 16
    assert kinds.late_bytes(two, both.load, both.store, 8) == 16 + 32
    assert kinds.operands_of_all(two, both.load, both.store) == {"b": "float16", "g": "float32"}
    full = given("float16", b=("float16", "all"))._replace(whole=True)
    assert not kinds.is_lean(full, biased.load)
    # One input of a row's own, cheap or not.
    assert kinds.is_single(two._replace(odd=True), costly.load)
    assert not kinds.is_single(full, biased.load)
    assert kinds.common_bytes(full, biased.load, None, 8) == 0


@pytest.mark.slow
@pytest.mark.parametrize("dtype, other", [
    ("float16", "float16"), ("float32", "bool"), ("bfloat16", "float32"), ("float64", "float64"),
])  # fmt: skip
@pytest.mark.parametrize("name", KERNELS[:1] + KERNELS[-1:])
def test_cheap_expressions_compile(compiler, dtype, other, name):
    op = fuse.softmax(load=lambda x, s, b: fuse.where(b != 0, x * s, -math.inf))
    for kind_ in given(dtype, b=(other, "none")), given(dtype, b=(other, "period")):
        _ext.compile_kernel(source.generate(kind_, op.load, None), expression(name), 90)


@pytest.mark.slow
def test_names_that_are_not_those_of_cuda(compiler):
    op = fuse.softmax(
        load=lambda float, λ, double, b, b_rows: float * λ + double * b + b_rows,
        store=lambda y, λ: y - λ,
    )
    operand = kinds.Operand
    given = (("λ", operand("number")), ("double", operand("column", "float16", "all")),
             ("b", operand("matrix", "bool", "period")), ("b_rows", operand("number")))  # fmt: skip
    text = source.generate(kinds.Kind("softmax", "float16", "float", given), op.load, op.store)
    _ext.compile_kernel(text, expression(KERNELS[0]), 90)


@pytest.mark.slow
def test_a_second_call_compiles_nothing(compiler, tmp_path):
    text = source.generate(kind("softmax", "float32"), None, None)
    compile_it = functools.partial(_ext.compile_kernel, text, expression(KERNELS[0]))
    before = _ext.kernel_compilations()
    first = compile_it(90)
    assert compile_it(90).key == first.key and _ext.kernel_compilations() == before + 1
    _ext.forget_kernels()  # another process
    assert compile_it(90).image == first.image and _ext.kernel_compilations() == before + 1
    for file in (tmp_path / "fused").iterdir():  # half a file is not trusted
        file.write_bytes(file.read_bytes()[:-100])
    _ext.forget_kernels()
    assert compile_it(90).name == first.name and _ext.kernel_compilations() == before + 2


def test_a_compiler_error_shows_the_source(compiler):
    with pytest.raises(RuntimeError, match="no_such_type"):
        _ext.compile_kernel("no_such_type x;", "x", 90)


def test_without_nvrtc_the_composition_serves_with_one_warning(monkeypatch):
    class OnCuda:
        """What can_serve looks at."""

        device, ndim, dtype, shape = flow.device("cuda"), 2, flow.float32, (2, 3)

        def numel(self):
            return 6

    monkeypatch.setattr(_ext, "compiler_problem", lambda: "NVRTC was not found; install it")
    monkeypatch.setattr(kernel, "_warned", set())
    op = fuse.softmax(load=lambda x: x)
    with pytest.warns(UserWarning, match="install it"):
        assert not kernel.can_serve(op, OnCuda(), {}, {"dim": -1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not kernel.can_serve(op, OnCuda(), {}, {"dim": -1})


# ---- operands


SHAPES = [
    (), (1,), (6,), (5, 6), (5, 1), (4, 5, 6), (4, 1, 6), (4, 1, 1), (3, 4, 5, 6), (3, 1, 1, 6),
    (3, 4, 1, 1), (3, 1, 5, 6), (1, 4, 1, 1), (3, 1, 5, 1), (3, 4, 5, 1),
]  # fmt: skip


@pytest.mark.parametrize("row_ndim", [1, 2, 4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_where_an_operand_is_read(shape, row_ndim):
    whole = (3, 4, 5, 6)
    values = RNG.normal(size=shape)
    operand, memory, number = kernel.prepare(tensor(values, "float32"), whole, row_ndim)
    cols = math.prod(whole[4 - row_ndim :])
    row = np.arange(math.prod(whole) // cols)
    at = {"none": row * 0, "all": row, "period": row % max(number, 1),
          "repeat": row // max(number, 1)}[operand.rows]  # fmt: skip
    read = memory.numpy().reshape(-1)
    if operand.form == "column":
        read = np.repeat(read[at][:, None], cols, 1)
    else:
        read = read.reshape(-1, cols)[at]
    want = np.broadcast_to(values, whole).reshape(-1, cols)
    np.testing.assert_array_equal(read, want.astype(np.float32))


def test_common_masks_are_not_copied():
    for shape, rows in [((3, 1, 1, 6), "repeat"), ((5, 6), "period"), ((1, 4, 5, 6), "period")]:
        operand, memory, _ = kernel.prepare(flow.ones(shape), (3, 4, 5, 6), 1)
        assert operand.rows == rows and memory.numel() == math.prod(shape)


def test_words_fill_the_struct():
    for base, dtype in itertools.product(["softmax", "rms_norm"], ["float16", "float64"]):
        op, k = everything(base), kind(base, dtype)
        load = [w for n, o in kinds.load_operands(k, op.load) for w in o.fields(n)]
        store = [w for n, o in kinds.store_operands(k, op.store) for w in o.fields(n)]
        norm = {"weight": 1, "bias": 2, "float_weight": True, "eps": 1e-5}
        words = source.launch_words(
            k, 7, 3, [0] * len(load), [0] * len(store), norm if op.is_norm else None
        )
        assert len(words) == source.words_of(k, op.load, op.store)
        assert all(0 <= w < 2**64 for w in words)


@pytest.mark.parametrize("copied", [True, False])
def test_a_kernel_reads_copies_in_place_of_operands(monkeypatch, copied):
    op = fuse.rms_norm(lambda x, s, b, m: x * s + b + m, store=lambda y, b, g, c: y * b * c + g)
    x, m, c = tensor(RNG.normal(size=(3, 9)), "float32"), flow.ones(3, 9), flow.ones(3, 1)
    b, g, weight = flow.ones(9), flow.ones(1, 9, dtype=flow.float64), flow.ones(9)
    launched, weights = {}, {"weight": weight, "normalized_shape": [9]}
    _, values, options = op._bind((x, 0.5, b, m, g, c), weights)

    class Planned:
        workspace_bytes, copies = (4096, [0, 1024, 2048]) if copied else (0, [])

        def launch(self, y, words, operands, workspace):
            launched.update(words=words, operands=operands, workspace=workspace)

    monkeypatch.setattr(kernel._Kernels, "_plan", lambda self, kind, *_: (Planned(), kind))
    options |= {"width": 9, "eps": 1e-5}
    kernel._Kernels(op).launch(values, options)
    words, given = launched["words"], {t.data_ptr() for t in (b, weight, g)}
    if not copied:
        assert given < set(words) and launched["operands"] == []
        return
    at = launched["workspace"].data_ptr()
    assert set(launched["operands"]) == given and not given & set(words)
    # Once each, but b is read in front and behind.
    order = {p: at + 1024 * i for i, p in enumerate(launched["operands"])}
    for t, times in (b, 2), (weight, 1), (g, 1):
        assert words.count(order[t.data_ptr()]) == times
    for t in x, m, c:
        assert t.data_ptr() in words


# ---- on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("base", ["softmax", "rms_norm"])
def test_one_kernel_and_no_second_compilation(base):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    op = getattr(fuse, base)(load=lambda x, s: x * s, store=lambda y: y + 1)
    given = {"dim": -1} if base == "softmax" else {"normalized_shape": 640}
    x = flow.randn(300, 640, device="cuda", dtype=flow.float16)
    op(x, 2.0, **given)
    before = _ext.kernel_compilations()
    y = op(x * 1, 3.0, **given)
    assert _ext.kernel_compilations() == before
    with flow.profiler.profile() as profile:
        y = op(x, 3.0, **given)
    assert f"fuse::{base}_" in profile.table()
    flow.cuda.synchronize()
    assert y.shape == x.shape


@pytest.mark.cuda
@pytest.mark.parametrize("rows, width", [(3001, 1001), (1031, 4097), (401, 16385), (5, 50257)])
def test_copies_of_one_call_are_read_before_the_next_writes_its_own(rows, width):
    if not flow.cuda.is_available():
        pytest.skip("no GPU here")
    op = fuse.softmax(load=lambda x, r, b: x * r + b)

    def made(*shape):
        return tensor(RNG.normal(size=shape), "float16", "cuda")

    x, r, bs = made(rows, width), made(width), [made(width) for _ in range(6)]

    def right(ys):
        for y, b in zip(ys, bs, strict=True):
            want = softmax(host(x[-20:]) * host(r) + host(b))
            check(y[-20:], want, "float16", scale=1e-4)

    right([op(x, r, b, dim=-1) for b in bs])  # in the same memory, as the allocator gives it
    side = flow.cuda.Stream()
    side.wait_stream(flow.cuda.current_stream())
    with flow.cuda.stream(side):
        op(x, r, bs[0], dim=-1)
    flow.cuda.current_stream().wait_stream(side)
    graph = flow.cuda.CUDAGraph()
    with flow.cuda.graph(graph):
        ys = [op(x, r, b, dim=-1) for b in bs]
    for _ in range(2):
        for t in x, r, *bs:
            t.copy_(made(*t.shape))
        graph.replay()
        flow.cuda.synchronize()
        right(ys)
