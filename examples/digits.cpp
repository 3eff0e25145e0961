// SPDX-License-Identifier: Apache-2.0
//
// Trains a two-layer classifier on real handwritten digits in C++ alone: digits FILE. FILE has 64
// grey levels and a label in each of 1797 lines, as scikit-learn's datasets/data/digits.csv.gz.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <vector>

#include "functional/binary.h"
#include "functional/copy.h"
#include "functional/creation.h"
#include "functional/cross_entropy.h"
#include "functional/index.h"
#include "functional/matmul.h"
#include "functional/random.h"
#include "functional/reduce.h"
#include "functional/unary.h"
#include "functional/view.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/dispatch.h"

using namespace oneflow_lite;
using namespace oneflow_lite::functional;

StatusOr<Tensor> Logits(const Tensor& rows, const std::vector<Tensor>& p) {
  OFL_ASSIGN_OR_RETURN(Tensor x, Div(*Slice(rows, 1, 0, 64), 16));
  OFL_ASSIGN_OR_RETURN(Tensor hidden, Linear(x, p[0], p[1]));
  OFL_ASSIGN_OR_RETURN(hidden, Relu(hidden));
  return Linear(hidden, p[2], p[3]);
}
StatusOr<Tensor> Labels(const Tensor& rows) { return Cast(*Select(rows, 1, 64), DType::kInt64); }

Status Step(const Tensor& rows, std::vector<Tensor>& p) {
  OFL_ASSIGN_OR_RETURN(Tensor logits, Logits(rows, p));
  OFL_ASSIGN_OR_RETURN(Tensor labels, Labels(rows));
  OFL_ASSIGN_OR_RETURN(Tensor loss, CrossEntropy(logits, labels));
  OFL_RETURN_IF_ERROR(autograd::Backward({loss}, {}));
  GradGuard no_grad(false);
  for (Tensor& w : p) {  // SGD
    OFL_ASSIGN_OR_RETURN(Tensor change, Mul(autograd::Grad(w), 0.3));
    OFL_RETURN_IF_ERROR(SubInto(w, change).status());
    OFL_RETURN_IF_ERROR(autograd::SetGrad(w, Tensor()));
  }
  return OkStatus();
}

StatusOr<double> TrainAndTest(const std::vector<float>& numbers) {
  const int64_t n = static_cast<int64_t>(numbers.size()) / 65, learnt = n * 4 / 5;
  if (n == 0) return absl::InvalidArgumentError("digits: no images were read");
  OFL_ASSIGN_OR_RETURN(Tensor rows, Empty({n, 65}));
  std::copy_n(numbers.begin(), n * 65, rows.data<float>());
  OFL_ASSIGN_OR_RETURN(rows, IndexSelect(rows, 0, *RandPerm(n)));
  std::vector<Tensor> p;
  for (const Shape& shape : {Shape{128, 64}, Shape{128}, Shape{10, 128}, Shape{10}}) {
    OFL_ASSIGN_OR_RETURN(Tensor w, UniformInto(*Empty(shape), -0.1, 0.1));
    OFL_RETURN_IF_ERROR(autograd::SetRequiresGrad(p.emplace_back(w), true));
  }
  for (int epoch = 0; epoch < 30; ++epoch) {
    OFL_ASSIGN_OR_RETURN(Tensor order, RandPerm(learnt));
    for (int64_t i = 0; i < learnt; i += 32) {
      OFL_ASSIGN_OR_RETURN(Tensor places, Slice(order, 0, i, std::min(i + 32, learnt)));
      OFL_RETURN_IF_ERROR(Step(*IndexSelect(rows, 0, places), p));
    }
  }
  OFL_ASSIGN_OR_RETURN(Tensor rest, Slice(rows, 0, learnt, n));
  OFL_ASSIGN_OR_RETURN(Tensor right, Eq(*ArgMax(*Logits(rest, p), 1), *Labels(rest)));
  OFL_ASSIGN_OR_RETURN(Tensor share, Mean(right, {}, false, DType::kFloat64));
  return share.data<double>()[0];
}

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "digits.csv");
  std::vector<float> numbers;
  for (float number; file >> number; file.ignore()) numbers.push_back(number);
  const StatusOr<double> share = TrainAndTest(numbers);
  if (!share.ok()) return std::cerr << share.status() << "\n", 1;
  std::cout << "test accuracy " << 100 * *share << "%\n";
}
