# SPDX-License-Identifier: Apache-2.0
"""C++ extensions: attributes and inputs of every kind, and what is said of mistakes in them."""

import shutil
import subprocess
from pathlib import Path

import pytest

import oneflow_lite as flow

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("g++"), reason="g++ is not installed"),
]

SOURCE = r"""
#include <oneflow_lite/extension/op.h>

#include <algorithm>
namespace ext = oneflow_lite::extension;

static void Copy(ext::Tensor x, float* y) { std::copy_n(x.data<float>(), x.numel(), y); }
static void LikeX(ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); }

OFL_EXTENSION {
  ext::Op("kinds::attrs")
      .input("x").output("y")
      .attr("dim", -1).attr("mode", "mean").attr("axes", {1, 2}).attr("one", {3})
      .attr("to", OFL_INT64).attr("eps", 1e-5).attr("flag", true).attr("n", OFL_VALUE_INT)
      .optional_attr("scale", OFL_VALUE_FLOAT)
      .infer([](ext::Infer c) {
        const auto a = c.attrs();
        c.set_output(0, {a.to_int(0), a.to_string(1) == "sum", a.to_ints(2).back(),
                         a.to_ints(3)[0], a.to_float(5) < 1, a.to_bool(6), a.to_int(7), a.has(8)},
                     a.to_dtype(4));
      })
      .add();
  ext::Op("kinds::cat")  // with a gradient of each
      .input("xs", OFL_INPUT_VARIADIC).output("y")
      .infer([](ext::Infer c) {
        int64_t n = 0;
        for (int i = 0; i < c.num_inputs(); ++i) n += c.shape(i)[0];
        c.set_output(0, {n}, c.dtype(0));
      })
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
        float* y = c.output(0).data<float>();
        for (int i = 0; i < c.num_inputs(); ++i) {
          Copy(c.input(i), y);
          y += c.input(i).numel();
        }
      })
      .backward({~uint64_t{0}}, [](ext::Grad c) {
        const int64_t n = c.input(0).numel();
        std::vector<ext::Tensor> parts = ext::call_all("split", c.grad(0), n);
        // There and back: lists and dtypes are arguments too.
        ext::Tensor again = ext::call("to", ext::call("cat", parts), nullptr, OFL_FLOAT32);
        parts = ext::call_all("split", again, n);
        for (int i = 0; i < c.num_inputs(); ++i) c.set(i, parts[i]);
      })
      .add();
  ext::Op("kinds::wrong")
      .input("x").input("b", OFL_INPUT_OPTIONAL).output("y").attr("how", "")
      .infer([](ext::Infer c) {
        const std::string how = c.attrs().to_string(0);
        if (how == "shape of 7") c.shape(7);
        if (how == "dtype of b") c.dtype(1);
        if (how == "output 1") c.set_output(1, c.shape(0), c.dtype(0));
        if (how == "output like") c.set_output_like(2, 0);
        if (how == "negative") c.set_output(0, {2, -3}, c.dtype(0));
        if (how == "dtype 77") c.set_output(0, c.shape(0), 77);
        if (how == "attribute 9") c.attrs().to_float(9);
        if (how == "attribute type") c.attrs().to_float(0);
        if (how != "nothing set") LikeX(c);
      })
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
        const std::string how = c.attrs().to_string(0);
        if (how == "data of b") c.input(1).data<float>();
        if (how == "input 9") c.input(9).shape();
        if (how == "double") c.input(0).data<const double>();
        if (how == "int32") c.input(0).data<int32_t>();
        if (how == "bits") c.input(0).data<uint32_t>();
        if (how == "half the bits") c.input(0).data<uint16_t>();
        if (how == "throw 3") throw 3;
        if (how == "throw error") throw ext::Error(OFL_VALUE_ERROR, "as I say");
        if (how == "NUL") ext::call("gelu", c.input(0), std::string("tanh\0", 5));
        const std::vector<ext::Tensor> none = {ext::Tensor()};
        if (how == "undefined") ext::call("cartesian_prod", none);
        ofl_value x = {}, result = {};
        x.type = OFL_VALUE_STRING;
        if (how == "null string") ext::check(ext::api()->call("gelu", &x, 1, &result));
        if (how == "null arguments") ext::check(ext::api()->call("mul", nullptr, 2, &result));
        if (how == "null function") ext::check(ext::api()->call(nullptr, &x, 1, &result));
        if (how == "null result") ext::check(ext::api()->call("gelu", &x, 1, nullptr));
        x.type = OFL_VALUE_INTS;
        x.as.ints.size = -2;
        if (how == "negative ints") ext::check(ext::api()->call("zeros", &x, 1, &result));
        x.as.ints.size = 3;
        if (how == "null ints") ext::check(ext::api()->call("zeros", &x, 1, &result));
        Copy(c.input(0), c.output(0).data<float>());
      })
      .backward({2}, [](ext::Grad c) {
        const std::string how = c.attrs().to_string(0);
        if (how == "not kept") c.set(0, c.input(0));
        if (how == "not kept output") c.set(0, c.output(0));
        if (how == "set 5") c.set(5, c.grad(0));
        if (how == "no function") c.set(0, ext::call("nope", c.grad(0)));
        if (how == "two results") c.set(0, ext::call("split", c.grad(0), 1));
        if (how == "string") c.set(0, ext::call("mul", c.grad(0), "x"));
        if (how == "dtype") c.set(0, ext::call("to", c.grad(0), nullptr, OFL_FLOAT64));
        if (how == "another's") c.set(1, c.grad(0));
      })
      .add();
}
"""


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OFL_EXTENSION_CACHE", str(tmp_path_factory.mktemp("a folder")))
        flow.utils.load_inline("kinds", SOURCE, flags=["-Wall", "-Wextra", "-Wpedantic", "-Werror"],
                               verbose=False)  # fmt: skip
        yield


def test_attributes_and_their_defaults():
    op = flow.ops.kinds.attrs
    assert repr(op) == (
        "<op kinds::attrs(Tensor x, int dim=-1, str mode='mean', int[] axes=[1, 2], int[] one=[3], "
        "dtype to=int64, float eps=1e-05, bool flag=True, int n, float? scale=None) -> (Tensor y)>"
    )
    x = flow.empty(1, device="meta")
    y = op(x, dim=4, mode="sum", n=7, scale=2.0)
    assert y.shape == (4, 1, 2, 3, 1, 1, 7, 1) and y.dtype == flow.int64
    y = op(x, dim=4, axes=(5,), to=flow.float16, flag=False, n=7)
    assert y.shape == (4, 0, 5, 3, 1, 0, 7, 0) and y.dtype == flow.float16
    with pytest.raises(TypeError, match="missing required argument 'n'"):
        op(x)


def test_a_list_of_tensors_with_gradients():
    x, y = flow.randn(2, requires_grad=True), flow.randn(2, requires_grad=True)
    z = flow.ops.kinds.cat([x, y])
    assert z.tolist() == x.tolist() + y.tolist()
    (z * flow.arange(4)).sum().backward()
    assert x.grad.tolist() == [0, 1] and y.grad.tolist() == [2, 3]
    with pytest.raises(TypeError, match="a list has at least one tensor"):
        flow.ops.kinds.cat([])


@pytest.mark.parametrize(
    "how, message",
    [
        ("shape of 7", "infer asks for input 7, which the call does not have"),
        ("dtype of b", "infer asks for input 1"),
        ("output 1", "set_output: no such output as 1: the op has 1"),
        ("output like", "set_output_like: no such output as 2: the op has 1"),
        ("negative", r"set_output: output 0 cannot have the shape \[2, -3\]"),
        ("dtype 77", "set_output: output 0 cannot have the dtype 77"),
        ("attribute 9", "there is no attribute 9, but 1"),
        ("attribute type", "attribute 0 is absent or of another type"),
        ("nothing set", "infer did not set output y"),
        ("data of b", "a tensor that is not there: an optional input that was not given"),
        ("input 9", "a tensor that is not there"),
        ("double", r"data\(\) of a tensor of float32 is asked for another type"),
        ("int32", r"data\(\) of a tensor of float32 is asked for another type"),
        ("half the bits", r"data\(\) of a tensor of float32 is asked for another type"),
        ("throw 3", "an unknown exception"),
        ("throw error", r"^kinds::wrong\(\): as I say$"),
        ("undefined", r"cartesian_prod\(\): tensors is not defined"),
        ("null string", r"gelu\(\): argument input cannot be string"),
        ("null arguments", "call: the arguments are missing"),
        ("null function", "call: the name is missing"),
        ("null result", "call: there is no room for the result"),
        ("negative ints", "a list of -2 ints at a null pointer is not valid"),
        ("null ints", "a list of 3 ints at a null pointer is not valid"),
        ("a\0b", r"^kinds::wrong\(\): attribute 0 has a NUL, at which C would cut it$"),
        ("NUL", "a string with a NUL in it cannot be given to the library"),
        ("\ud800", r"^kinds::wrong\(\): argument 'how' has half of a surrogate pair: '.ud800'$"),
    ],
)
def test_what_a_call_does_wrong_is_an_error(how, message):
    with pytest.raises((ValueError, IndexError, TypeError, RuntimeError), match=message):
        flow.ops.kinds.wrong(flow.ones(2), how=how)
    for right in ("", "bits"):
        assert flow.ops.kinds.wrong(flow.ones(2), how=right).tolist() == [1, 1]


@pytest.mark.parametrize(
    "how, message",
    [
        ("not kept", "backward asks for input 0, whose bit is not in the Save"),
        ("not kept output", "backward asks for output 0"),
        ("set 5", "backward set the gradient of input 5, but the op has 2"),
        ("no function", 'there is no function named "nope"'),
        ("two results", r"split\(\) gives 2 tensors, not one; use call_all"),
        ("string", r"mul\(\): argument other cannot be string in mul\(Operand input"),
        ("dtype", r"the gradient of x has dtype float64, expected float32 \(.*:\d+\)"),
        ("forgotten", r"backward gave no gradient, though x needs one; .* \(.*:\d+\)$"),
        ("another's", "backward gave no gradient, though x needs one"),
    ],
)
def test_what_backward_does_wrong_is_an_error(how, message):
    y = flow.ops.kinds.wrong(flow.ones(2, requires_grad=True), flow.ones(2), how=how).sum()
    with pytest.raises((IndexError, TypeError, RuntimeError, ValueError), match=message):
        y.backward()


REGISTERING = r"""
#include <oneflow_lite/extension/op.h>

#include <cstdlib>
namespace ext = oneflow_lite::extension;

OFL_EXTENSION {
  const std::string how = std::getenv("OFL_TEST_HOW");
  if (how == "throw") throw 3;
  ofl_op raw = {};
  raw.name = "wrong::raw";
  raw.num_inputs = -1;
  if (how == "negative") ext::check(ext::api()->register_op(&raw));
  ofl_input input = {nullptr, OFL_INPUT_REQUIRED};
  const char* output = nullptr;
  ofl_attr attr = {};
  raw.num_inputs = how == "null input";
  raw.num_outputs = how == "null output";
  raw.num_attrs = how == "null attribute" || how == "null default";
  raw.inputs = &input;
  raw.outputs = &output;
  raw.attrs = &attr;
  attr.type = OFL_VALUE_INTS;
  if (how == "null default") attr.name = "axes";
  attr.default_value.type = OFL_VALUE_INTS;
  attr.default_value.as.ints.size = 3;
  raw.infer = [](ofl_infer_context, void*) -> int32_t { return 0; };
  if (how.substr(0, 4) == "null" && how.size() > 7) ext::check(ext::api()->register_op(&raw));
  if (how == "null op") ext::check(ext::api()->register_op(nullptr));
  if (how == "null k") ext::check(ext::api()->register_kernel(nullptr));
  ofl_kernel kernel = {};  // for an op that is there, and then for none
  kernel.op = "kinds::cat";
  kernel.dtypes = 1u << OFL_INT8;
  kernel.launch = [](ofl_kernel_context, void*) -> int32_t { return 0; };
  if (how == "kernels") ext::check(ext::api()->register_kernel(&kernel));
  kernel.op = "wrong::none";
  if (how == "kernels") ext::check(ext::api()->register_kernel(&kernel));
  ext::Op op(how == "name" ? "wrong::a b" : "wrong::op");
  op.input("x", how == "changed" ? OFL_INPUT_MUTATED : OFL_INPUT_REQUIRED).output("y");
  if (how == "changed") op.output("z");
  op.infer([](ext::Infer c) { c.set_output(0, {}, c.dtype(0)); });
  if (how == "digit") op.attr("1abc", 2);
  if (how == "NUL") op.attr("a", std::string("q\0z", 3));
  if (how == "nameless") op.input("");
  if (how == "dtype") op.kernel(OFL_CPU, {77}, [](ext::Kernel) {});
  if (how == "dtypes") op.kernel(OFL_CPU, {}, [](ext::Kernel) {});
  if (how == "null") op.kernel(OFL_CPU, {OFL_BOOL}, nullptr);
  if (how != "forgotten") op.add();
  if (how == "twice") op.add();
}
"""


PLACE = r"^load_library\(\): /.*\.so: "


def test_what_fails_to_register_leaves_nothing(monkeypatch):
    before = flow.ops.list(), flow.ops.describe("kinds::cat")
    for how, message in {
        "twice": "add.. has been called",
        "forgotten": "op wrong::op was described, but add.. not called",
        "throw": "an unknown exception",
        "name": '"namespace::name" of two identifiers',
        "changed": "an op that changes an input has that as its only output",
        "dtype": "it is for no dtype, or for one that there is not",
        "dtypes": "it is for no dtype",
        "null": "a kernel of wrong::op is no function",
        "negative": "a list is missing, or its size negative",
        "kernels": "is for op wrong::none, which is not registered",
        "null input": "op wrong::raw: input 0 has no name",
        "null output": "op wrong::raw: output 0 has no name",
        "null attribute": "op wrong::raw: attribute 0 has no name",
        "null default": "a list of 3 ints at a null pointer is not valid",
        "null op": "register_op: there is no op",
        "null k": "register_kernel: there is no kernel",
        "digit": '"1abc" is no name of an argument or output',
        "NUL": "a string with a NUL in it cannot be given to the library",
        "nameless": '"" is no name of an argument or output',
    }.items():
        monkeypatch.setenv("OFL_TEST_HOW", how)
        with pytest.raises((RuntimeError, ValueError), match=rf"{PLACE}.*{message}"):
            flow.utils.load_inline("wrong", REGISTERING, flags=["-O0"], verbose=False)
        assert (flow.ops.list(), flow.ops.describe("kinds::cat")) == before


FIXED = r"""
#include <oneflow_lite/extension/op.h>
namespace ext = oneflow_lite::extension;

OFL_EXTENSION {
  ext::Op(NAME)
      .input("x").output("y")
      .infer([](ext::Infer c) { c.set_output_like(0, 0); })
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) { *c.output(0).data<float>() = 7; })
      .add();
}
"""


def test_a_library_that_failed_loads_once_it_is_mended(tmp_path):
    source = tmp_path / "fixed.cpp"
    source.write_text(FIXED)

    def build(library, name, *flags):
        library.unlink(missing_ok=True)
        include = Path(flow.__file__).parent / "include"
        subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", f"-I{include}", *flags,
                        f'-DNAME="{name}"', "-o", library, source], check=True)  # fmt: skip

    library = tmp_path / "fixed.so"
    build(library, "bad name", "-fno-gnu-unique")  # as oneflow_lite_add_extension does
    with pytest.raises(ValueError, match="two identifiers$"):
        flow.load_library(library)
    build(library, "fixed::seven", "-fno-gnu-unique")
    assert flow.load_library(library) == ["fixed::seven"]
    assert flow.ops.fixed.seven(flow.zeros(1)).item() == 7
    # Code that the loader cannot let go of: the error says what to do.
    build(tmp_path / "kept.so", "bad name")
    with pytest.raises(ValueError, match="two identifiers; this file's code stays in the process"):
        flow.load_library(tmp_path / "kept.so")


def test_load_inline_says_what_it_lacks(monkeypatch, tmp_path):
    source = "#include <oneflow_lite/extension/op.h>\nOFL_EXTENSION {}\n"
    with pytest.raises(TypeError, match="flags is a list of options"):
        flow.utils.load_inline("a", source, flags="-O0")
    with pytest.raises(ValueError, match="there is no source"):
        flow.utils.load_inline("a", "")
    (tmp_path / "file").touch()
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path / "file"))
    with pytest.raises(RuntimeError, match="cannot write to .*OFL_EXTENSION_CACHE"):
        flow.utils.load_inline("a", source)
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "nonesuch -O0")
    with pytest.raises(RuntimeError, match="CXX names 'nonesuch', which was not found"):
        flow.utils.load_inline("a", source, verbose=False)
    monkeypatch.setenv("CXX", "true")
    with pytest.raises(RuntimeError, match=r"a.cpp was not compiled, though the command succeeds"):
        flow.utils.load_inline("a", source, verbose=False)
    with pytest.raises(ValueError, match=r"cpp has '.udc80', half of a surrogate pair"):
        flow.utils.load_inline("a", source + "\udc80", verbose=False)
    monkeypatch.setenv("CXX", "env g++")
    assert flow.utils.load_inline("a", source, flags=["-O0"], verbose=False) == []
    [library] = tmp_path.glob("a-*/liba.so")
    library.unlink()
    library.mkdir()
    with pytest.raises(RuntimeError, match="cannot write to .*Is a directory.*OFL_EXTENSION_CACHE"):
        flow.utils.load_inline("a", source, flags=["-O0"], verbose=False)
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(RuntimeError, match="none of g.., .* was found; install g.. or set CXX"):
        flow.utils.load_inline("b", source, verbose=False)


def test_the_header_says_that_it_needs_exceptions(tmp_path):
    include = Path(flow.__file__).parent / "include"
    (tmp_path / "a.cpp").write_text("#include <oneflow_lite/extension/op.h>\n")
    command = ["g++", "-fno-exceptions", "-fsyntax-only", f"-I{include}", tmp_path / "a.cpp"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0 and "op.h throws: build without -fno-exceptions" in done.stderr
