# SPDX-License-Identifier: Apache-2.0
"""check_op of ops that were written in C++ outside of the tree."""

import pytest
from checked import DISTINCT, X, check
from numerics import flow

SOURCE = r"""
#include <oneflow_lite/extension/op.h>
#include <stdexcept>
namespace ext = oneflow_lite::extension;

static ext::Op Twice(const char* name) {
  ext::Op op(name);
  op.doc("x + x.").input("x").output("y");
  op.infer([](ext::Infer c) { c.set_output(0, c.shape(0), c.dtype(0)); });
  op.kernel(OFL_CPU, {OFL_FLOAT64}, [](ext::Kernel c) {
    for (int64_t i = 0; i < c.input(0).numel(); ++i) {
      c.output(0).data<double>()[i] = 2 * c.input(0).data<double>()[i];
    }
  });
  op.backward({}, [](ext::Grad c) { c.set(0, ext::call("mul", c.grad(0), 2)); });
  op.sbp([](ext::SbpSignatures s) {
    for (int32_t d = 0; d < s.ndim(0); ++d) s.add({{'S', d}, {'S', d}});
    s.add({{'P', 0}, {'P', 0}});
  });
  op.cost([](ext::Infer c) {
    double n = 1;
    for (int64_t d : c.shape(0)) n *= static_cast<double>(d);
    return ext::Cost{16 * n, n};
  });
  return op;
}

static ext::Op Total() {
  ext::Op op("checked::total");
  op.doc("The sum of tensors of one shape.").input("xs", OFL_INPUT_VARIADIC).output("y");
  op.infer([](ext::Infer c) {
    for (int i = 1; i < c.num_inputs(); ++i) {
      if (c.shape(i) != c.shape(0)) throw ext::Error(OFL_SHAPE_ERROR, "shapes differ");
      if (c.dtype(i) != c.dtype(0)) throw ext::Error(OFL_DTYPE_ERROR, "dtypes differ");
    }
    c.set_output(0, c.shape(0), c.dtype(0));
  });
  op.kernel(OFL_CPU, {OFL_FLOAT64}, [](ext::Kernel c) {
    double* y = c.output(0).data<double>();
    for (int64_t j = 0; j < c.output(0).numel(); ++j) {
      y[j] = 0;
      for (int i = 0; i < c.num_inputs(); ++i) y[j] += c.input(i).data<double>()[j];
    }
  });
  op.backward({}, [](ext::Grad c) {
    for (int i = 0; i < 3; ++i) {
      if (c.needs(i)) c.set(i, c.grad(0));
    }
  });
  op.sbp([](ext::SbpSignatures s) {
    for (int32_t d = 0; d < s.ndim(0); ++d) s.add({{'S', d}, {'S', d}, {'S', d}, {'S', d}});
    s.add({{'P', 0}, {'P', 0}, {'P', 0}, {'P', 0}});
  });
  return op;
}

OFL_EXTENSION {
  Total().add();
  Twice("checked::right").add();
  Twice("checked::sbp").sbp([](ext::SbpSignatures s) { s.add({{'S', 0}, {'B', 0}}); }).add();
  Twice("checked::sbp_count").sbp([](ext::SbpSignatures s) { s.add({{'S', 0}}); }).add();
  Twice("checked::cost").cost([](ext::Infer) { return ext::Cost{1, 1}; }).add();
  Twice("checked::cost_throws")
      .cost([](ext::Infer) -> ext::Cost { throw std::runtime_error("mine"); })
      .add();
  Twice("checked::sbp_throws")
      .sbp([](ext::SbpSignatures) { throw std::runtime_error("yours"); })
      .add();
  Twice("checked::gradient")
      .backward({}, [](ext::Grad c) { c.set(0, ext::call("mul", c.grad(0), 3)); })
      .add();
  Twice("checked::mutates")
      .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
        for (int64_t i = 0; i < c.input(0).numel(); ++i) {
          c.output(0).data<float>()[i] = c.input(0).data<float>()[i]++;
        }
      })
      .add();
}
"""


@pytest.mark.slow
def test_extensions_in_cpp(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("OFL_EXTENSION_CACHE", str(tmp_path))
    flow.utils.load_inline("checked", SOURCE, verbose=False)
    ops = flow.ops.checked
    right = check(ops.right, [X], devices=["cpu"])
    assert {c.status for c in right.checks} == {"ok"}, str(right)
    assert right["sharding"].detail == "S(0) -> S(0), S(1) -> S(1), P -> P"
    for op, name, detail in [
        (ops.sbp, "sharding", "as S(0) -> B in 2 parts"),
        (ops.sbp_count, "sharding", "one entry per input and output"),
        (ops.cost, "cost", "costs 1 bytes"),
        (ops.cost_throws, "cost", "costs nan bytes"),
        (ops.sbp_throws, "sharding", "checked::sbp_throws(): yours"),
        (ops.gradient, "gradients", "autograd gives 3, differences 2"),
    ]:
        result = check(op, [X], devices=["cpu"])
        assert result[name].status == "FAILED" and detail in result[name].detail, str(result)
        assert len(result.failures) == 1 or op is ops.gradient, str(result)
    printed = capfd.readouterr().err
    assert "in cost: checked::cost_throws(): mine" in printed
    assert "sbp_throws" not in printed
    several = check(ops.total, [[[X, DISTINCT, X + 1]], ([X[0], X[1], X[2]],)], devices=["cpu"])
    assert {c.status for c in several.checks} == {"ok"}, str(several)
    assert "(P, P, P) -> P" in several["sharding"].detail
    result = check(ops.mutates, [X.float()], devices=["cpu"])
    assert result["mutation"].status == "FAILED"
