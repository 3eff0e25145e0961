// SPDX-License-Identifier: Apache-2.0
//
// Expressions of elements, an op for each number of results. Their gradients are expressions too:
// one call gives those of up to 8 inputs, from what the expression needs of the inputs again.
#include "functional/fused_elements.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

#include "functional/binary.h"
#include "functional/copy.h"
#include "oneflow_lite/core/error.h"
#include "oneflow_lite/core/expression_types.h"
#include "oneflow_lite/framework/autograd.h"
#include "oneflow_lite/framework/op_registry.h"
#include "ops/broadcast.h"

namespace oneflow_lite {
namespace {

constexpr int kMostResults = 8;

bool IsNumber(const Attrs& attrs, int i) {
  return static_cast<uint64_t>(attrs.get<int64_t>(1)) >> i & 1;
}

StatusOr<std::shared_ptr<const TypedExpression>> TypedOf(const InferContext& c) {
  absl::InlinedVector<ElementType, 8> types;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const bool is_number = IsNumber(c.attrs(), i);
    if (is_number && c.shape(i).ndim() > 0) {
      return ShapeMismatch(c.op(), absl::StrCat("number ", i), c.shape(i), "no dims");
    }
    types.push_back({c.dtype(i), is_number                ? ElementType::kNumber
                                 : c.shape(i).ndim() == 0 ? ElementType::kScalar
                                                          : ElementType::kTensor});
  }
  return TypedOnce(c.attr<std::string>(0), types);
}

Status InferElements(InferContext& c) {
  if (c.num_inputs() > static_cast<int>(Expression::kMostParameters)) {
    return Error(ErrorKind::kType, c.op(), "(): ", c.num_inputs(), " operands, at most ",
                 Expression::kMostParameters, " are allowed");
  }
  OFL_ASSIGN_OR_RETURN(const auto typed, TypedOf(c));
  if (static_cast<int>(typed->outputs.size()) != c.num_outputs()) {
    return Error(ErrorKind::kValue, c.op(), "(): the expression has ", typed->outputs.size(),
                 " result(s), the op gives ", c.num_outputs());
  }
  Shape shape;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const std::string& name = typed->expression.parameters()[i];
    OFL_ASSIGN_OR_RETURN(shape, Broadcast(c, shape, i, name.c_str()));
  }
  for (int j = 0; j < c.num_outputs(); ++j) c.SetOutput(j, shape, typed->outputs[j]);
  return OkStatus();
}

StatusOr<SbpSignatures> Signatures(const SbpContext& c) {
  OFL_ASSIGN_OR_RETURN(const auto e, ParsedExpression(c.attrs.get<std::string>(0)));
  SbpSignatures out = BroadcastSignatures(c);
  for (SbpSignature& s : out) s.outputs.assign(e->outputs().size(), s.outputs[0]);
  return out;
}

Cost CostOfElements(const InferContext& c, absl::Span<const TensorSpec> outputs) {
  Cost cost;
  for (int i = 0; i < c.num_inputs(); ++i) {
    cost.bytes += static_cast<double>(c.shape(i).numel()) * SizeOf(c.dtype(i));
  }
  for (const TensorSpec& t : outputs) {
    cost.bytes += static_cast<double>(t.shape.numel()) * SizeOf(t.dtype);
  }
  const auto e = ParsedExpression(c.attr<std::string>(0));
  if (!e.ok()) return cost;
  const auto computes = [](const Expression::Step& step) { return step.arity() > 0; };
  const auto& steps = (*e)->steps();
  cost.flops = static_cast<double>(std::count_if(steps.begin(), steps.end(), computes)) *
               static_cast<double>(outputs[0].shape.numel());
  return cost;
}

// A gradient's expression, and which of its call's inputs it takes after the gradients.
struct Gradient {
  std::string text;
  std::vector<int> inputs;
};

StatusOr<Gradient> GradientOf(const std::string& text, const ElementGradient& wanted) {
  OFL_ASSIGN_OR_RETURN(const auto e, ParsedExpression(text));
  OFL_ASSIGN_OR_RETURN(const Expression all, Differentiate(*e, wanted));
  const int given = static_cast<int>(wanted.given.size());
  std::vector<char> used(all.parameters().size(), 0);
  for (const Expression::Step& step : all.steps()) {
    if (step.fn == ElementFn::kInput) used[step.input] = 1;
  }
  Gradient gradient;
  std::vector<std::string> names(all.parameters().begin(), all.parameters().begin() + given);
  for (int i = given; i < static_cast<int>(used.size()); ++i) {
    if (!used[i]) continue;
    names.push_back(all.parameters()[i]);
    gradient.inputs.push_back(i - given);
  }
  Expression taken(names);
  std::vector<int> arguments;
  for (size_t i = 0, next = given; i < used.size(); ++i) {
    const bool has = static_cast<int>(i) < given || used[i];
    arguments.push_back(
        !has ? -1 : taken.Input(static_cast<int>(static_cast<int>(i) < given ? i : next++)));
  }
  taken.Finish(taken.Inline(all, arguments));
  gradient.text = taken.Text();
  return gradient;
}

// Kept by what it is of.
StatusOr<std::shared_ptr<const Gradient>> GradientOnce(const std::string& text,
                                                       const ElementGradient& wanted) {
  static std::mutex* mutex = new std::mutex;
  static auto* made = new std::unordered_map<std::string, std::shared_ptr<const Gradient>>;
  std::string key = text;
  key += '\0';
  for (size_t k = 0; k < wanted.wanted.size(); ++k) {
    key += static_cast<char>(wanted.wanted[k]);
    key += static_cast<char>(wanted.dtypes[k]);
  }
  key += '\xff';
  for (const int j : wanted.given) key += static_cast<char>(j);
  key += absl::StrCat("\xff", wanted.numbers);
  {
    const std::lock_guard lock(*mutex);
    if (const auto found = made->find(key); found != made->end()) return found->second;
  }
  OFL_ASSIGN_OR_RETURN(Gradient gradient, GradientOf(text, wanted));
  const std::lock_guard lock(*mutex);
  if (made->size() >= 4096) made->clear();
  return (*made)[key] = std::make_shared<const Gradient>(std::move(gradient));
}

SavePlan Saved(const Attrs& attrs, Needs needs) {
  const auto& text = attrs.get<std::string>(0);
  const auto e = ParsedExpression(text);
  SavePlan plan;
  if (!e.ok()) return plan;
  ElementGradient wanted;
  for (size_t i = 0; i < (*e)->parameters().size(); ++i) {
    if (needs >> i & 1) wanted.wanted.push_back(static_cast<int>(i));
  }
  wanted.dtypes.assign(wanted.wanted.size(), DType::kBool);
  for (size_t j = 0; j < (*e)->outputs().size(); ++j) wanted.given.push_back(static_cast<int>(j));
  wanted.numbers = static_cast<uint64_t>(attrs.get<int64_t>(1));
  const auto gradient = GradientOnce(text, wanted);
  if (!gradient.ok()) return plan;
  for (const int i : (*gradient)->inputs) plan.inputs |= Bit(i);
  return plan;
}

// Gradients of a few inputs, of those outputs that have one; all have the outputs' shape.
Status BackwardOfFew(GradContext& c, absl::Span<const int> few, const std::vector<int>& given) {
  const Shape& shape = c.grad(given[0]).shape();
  ElementGradient wanted{{few.begin(), few.end()}, {}, given};
  for (const int i : few) {
    const bool whole = c.spec(i).shape == shape;
    wanted.dtypes.push_back(whole ? c.spec(i).dtype : DType::kBool);
  }
  for (int i = 0; i < c.num_inputs(); ++i) {  // as clamp sees them; which are saved is the same
    if (c.spec(i).shape.ndim() == 0 && !c.needs(i)) wanted.numbers |= Bit(i);
  }
  OFL_ASSIGN_OR_RETURN(const auto gradient, GradientOnce(c.attr<std::string>(0), wanted));
  TensorList tensors;
  uint64_t numbers = 0;
  for (const int j : given) tensors.push_back(c.grad(j));
  for (const int i : gradient->inputs) {
    if (IsNumber(c.attrs(), i)) numbers |= Bit(static_cast<int>(tensors.size()));
    tensors.push_back(c.input(i));
  }
  OFL_ASSIGN_OR_RETURN(
      const TensorList found,
      functional::FuseElementsOf(gradient->text, tensors, static_cast<int64_t>(numbers)));
  for (size_t k = 0; k < few.size(); ++k) {
    const TensorSpec& spec = c.spec(few[k]);
    OFL_ASSIGN_OR_RETURN(Tensor g, functional::SumToShape(found[k], spec.shape));
    OFL_RETURN_IF_ERROR(c.Set(few[k], functional::To(g, spec.device, spec.dtype)));
  }
  return OkStatus();
}

Status Backward(GradContext& c) {
  std::vector<int> wanted, given;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.needs(i)) wanted.push_back(i);
  }
  for (int j = 0; j < kMostResults; ++j) {
    if (c.grad(j).defined()) given.push_back(j);
  }
  if (given.empty()) return OkStatus();
  for (size_t from = 0; from < wanted.size(); from += kMostResults) {
    OFL_RETURN_IF_ERROR(
        BackwardOfFew(c, absl::MakeConstSpan(wanted).subspan(from, kMostResults), given));
  }
  return OkStatus();
}

template <int kResults>
void DefineElements(OpDef& op) {
  op.Input("tensors", InputDef::Kind::kVariadic);
  for (int j = 0; j < kResults; ++j) op.Output(kResults == 1 ? "out" : absl::StrCat("out", j));
  op.Attr("expression", AttrType::kString).Attr("numbers", AttrType::kInt, int64_t{0});
  op.doc = "The results of an expression of one element over tensors that are broadcast.";
  op.scalar_operands = true;
  op.infer = InferElements;
  op.sbp = Signatures;
  op.sbp_text = kBroadcastSbpText;
  op.cost = CostOfElements;
  op.cost_text = "each tensor once; for each element of a result the operations of the expression";
  op.save = Saved;
  op.backward = Backward;
}

OFL_REGISTER_OP("fuse_elements", DefineElements<1>);
OFL_REGISTER_OP("fuse_elements_2", DefineElements<2>);
OFL_REGISTER_OP("fuse_elements_3", DefineElements<3>);
OFL_REGISTER_OP("fuse_elements_4", DefineElements<4>);
OFL_REGISTER_OP("fuse_elements_5", DefineElements<5>);
OFL_REGISTER_OP("fuse_elements_6", DefineElements<6>);
OFL_REGISTER_OP("fuse_elements_7", DefineElements<7>);
OFL_REGISTER_OP("fuse_elements_8", DefineElements<8>);

}  // namespace
}  // namespace oneflow_lite
