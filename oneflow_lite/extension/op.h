// SPDX-License-Identifier: Apache-2.0
//
// Your own op in C++, out of tree: a header-only face on the extension table (c_api.h) that needs
// neither Abseil nor our compiler flags. C++17, g++, clang++ or nvcc.
//
//   #include <oneflow_lite/extension/op.h>
//   namespace ext = oneflow_lite::extension;
//
//   OFL_EXTENSION {
//     ext::Op("my::twice")
//         .input("x").output("y")
//         .infer([](ext::Infer c) { c.set_output_like(0, 0); })
//         .kernel(OFL_CPU, {OFL_FLOAT32}, [](ext::Kernel c) {
//           for (int64_t i = 0; i < c.input(0).numel(); ++i)
//             c.output(0).data<float>()[i] = 2 * c.input(0).data<float>()[i];
//         })
//         .backward({}, [](ext::Grad c) { c.set(0, ext::call("mul", c.grad(0), 2.0)); })
//         .add();
//   }
//
// A callback reports an error by throwing ext::Error (or any std::exception: a RuntimeError).
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "oneflow_lite/extension/tensor.h"

namespace oneflow_lite {
namespace extension {

namespace internal {
// Runs f. No exception crosses the table.
template <class F>
int32_t guarded(const F& f) noexcept {
  try {
    f();
    return OFL_OK;
  } catch (const Error& e) {
    return api()->set_error(e.code(), e.what());
  } catch (const std::exception& e) {
    return api()->set_error(OFL_RUNTIME_ERROR, e.what());
  } catch (...) {
    return api()->set_error(OFL_RUNTIME_ERROR, "an unknown exception");
  }
}

// The name of an op that went without add().
inline std::string& forgotten() {
  static std::string name;
  return name;
}

// Attribute i, counted as they were declared, through one of the table's getters.
template <class Context>
struct Attrs {
  Context c;
  int32_t (*get)(Context, int32_t, ofl_value*);
  ofl_value at(int32_t i, int32_t type) const {
    ofl_value v;
    check(get(c, i, &v));
    if (v.type == type) return v;
    throw Error(OFL_TYPE_ERROR, "attribute " + std::to_string(i) + " is absent or of another type");
  }
  bool has(int32_t i) const {
    ofl_value v;
    check(get(c, i, &v));
    return v.type != OFL_NONE;
  }
  int64_t to_int(int32_t i) const { return at(i, OFL_VALUE_INT).as.i; }
  double to_float(int32_t i) const { return at(i, OFL_VALUE_FLOAT).as.f; }
  bool to_bool(int32_t i) const { return at(i, OFL_VALUE_BOOL).as.b != 0; }
  std::string to_string(int32_t i) const { return at(i, OFL_VALUE_STRING).as.s; }
  ofl_dtype to_dtype(int32_t i) const {
    return static_cast<ofl_dtype>(at(i, OFL_VALUE_DTYPE).as.i);
  }
  std::vector<int64_t> to_ints(int32_t i) const {
    const ofl_value v = at(i, OFL_VALUE_INTS);
    return std::vector<int64_t>(v.as.ints.data, v.as.ints.data + v.as.ints.size);
  }
};
}  // namespace internal

// What infer sees of a call.
class Infer {
 public:
  explicit Infer(ofl_infer_context c) : c_(c) {}
  int num_inputs() const { return api()->infer_num_inputs(c_); }
  bool has_input(int i) const { return api()->infer_ndim(c_, i) >= 0; }
  std::vector<int64_t> shape(int i) const {
    const int64_t* p = api()->infer_shape(c_, given(i));
    return std::vector<int64_t>(p, p + api()->infer_ndim(c_, i));
  }
  ofl_dtype dtype(int i) const { return static_cast<ofl_dtype>(api()->infer_dtype(c_, given(i))); }
  internal::Attrs<ofl_infer_context> attrs() const { return {c_, api()->infer_attr}; }
  void set_output(int i, const std::vector<int64_t>& shape, int32_t dtype) const {
    check(api()->infer_set_output(c_, i, static_cast<int32_t>(shape.size()), shape.data(), dtype));
  }
  // Shape and dtype of an input, without a copy of them.
  void set_output_like(int i, int input) const {
    check(api()->infer_set_output_like(c_, i, given(input)));
  }

 private:
  int given(int i) const {
    if (has_input(i)) return i;
    throw Error(OFL_INDEX_ERROR, "infer asks for input " + std::to_string(i) +
                                     ", which the call does not have; see has_input");
  }
  ofl_infer_context c_;
};

// One launch: inputs are contiguous and may be empty, outputs allocated and not all of them empty.
class Kernel {
 public:
  explicit Kernel(ofl_kernel_context c) : c_(c) {}
  int num_inputs() const { return api()->kernel_num_inputs(c_); }
  TensorRef input(int i) const { return TensorRef(api()->kernel_input(c_, i)); }
  TensorRef output(int i) const { return TensorRef(api()->kernel_output(c_, i)); }
  internal::Attrs<ofl_kernel_context> attrs() const { return {c_, api()->kernel_attr}; }
  // cudaStream_t: static_cast it.
  void* stream() const { return api()->kernel_stream(c_); }
  void* workspace(uint64_t nbytes) const {
    void* p = nullptr;
    check(api()->kernel_workspace(c_, nbytes, &p));
    return p;
  }

 private:
  ofl_kernel_context c_;
};

// What backward keeps: bit i for input (output) i.
struct Save {
  uint64_t inputs = 0;
  uint64_t outputs = 0;
};

// What backward sees: kept tensors, incoming gradients (undefined where zero).
class Grad {
 public:
  Grad(ofl_grad_context c, Save save) : c_(c), save_(save) {}
  int num_inputs() const { return api()->grad_num_inputs(c_); }
  bool needs(int input) const { return api()->grad_needs(c_, input) != 0; }
  // Undefined for an optional input that was not given; an error for what backward() did not name.
  Tensor input(int i) const {
    return Tensor::borrow(api()->grad_input(c_, kept(i, save_.inputs, "input")));
  }
  Tensor output(int i) const {
    return Tensor::borrow(api()->grad_output(c_, kept(i, save_.outputs, "output")));
  }
  Tensor grad(int output) const { return Tensor::borrow(api()->grad_of_output(c_, output)); }
  internal::Attrs<ofl_grad_context> attrs() const { return {c_, api()->grad_attr}; }
  void set(int input, const Tensor& gradient) const {
    check(api()->grad_set(c_, input, gradient.handle()));
  }

 private:
  static int kept(int i, uint64_t mask, const char* what) {
    if (i >= 0 && (mask >> (i & 63) & 1)) return i;
    throw Error(OFL_RUNTIME_ERROR, std::string("backward asks for ") + what + " " +
                                       std::to_string(i) +
                                       ", whose bit is not in the Save that backward() was given");
  }
  ofl_grad_context c_;
  Save save_;
};

// What sbp sees, and where it adds the ways in which the op may run on shards.
class SbpSignatures {
 public:
  explicit SbpSignatures(ofl_sbp_context c) : c_(c) {}
  int ndim(int input) const { return api()->sbp_ndim(c_, input); }
  internal::Attrs<ofl_sbp_context> attrs() const { return {c_, api()->sbp_attr}; }
  // One entry per input, then one per output.
  void add(const std::vector<ofl_sbp>& entries) const {
    check(api()->sbp_add(c_, entries.data(), static_cast<int32_t>(entries.size())));
  }

 private:
  ofl_sbp_context c_;
};

// What a call needs at least: bytes that move, and operations.
struct Cost {
  double bytes = 0;
  double flops = 0;
};

// Describes an op and its kernels; add() registers them.
class Op {
 public:
  explicit Op(std::string name, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : d_(new Definition) {
    d().name = std::move(name);
    d().file = file;
    d().line = line;
  }
  Op(Op&&) = default;
  ~Op() {
    if (d_ && std::uncaught_exceptions() == 0) internal::forgotten() = d_->name;
  }
  Op& doc(std::string text) { return d().doc = std::move(text), *this; }
  Op& input(std::string name, int32_t kind = OFL_INPUT_REQUIRED) {
    return d().inputs.emplace_back(std::move(name), kind), *this;
  }
  Op& output(std::string name) { return d().outputs.push_back(std::move(name)), *this; }
  // An attribute that each call must give (OFL_VALUE_INT, ...), or with the default that calls may
  // leave out: a float, int, bool, string, list of ints or dtype (OFL_FLOAT32).
  Op& attr(std::string name, ofl_value_type type) { return add_attr({std::move(name), type}); }
  Op& attr(std::string name, double v) { return add_attr({std::move(name), Value(v)}); }
  Op& attr(std::string name, int64_t v) { return add_attr({std::move(name), Value(v)}); }
  Op& attr(std::string name, int v) { return attr(std::move(name), static_cast<int64_t>(v)); }
  Op& attr(std::string name, bool v) { return add_attr({std::move(name), Value(v)}); }
  Op& attr(std::string name, ofl_dtype v) { return add_attr({std::move(name), Value(v)}); }
  Op& attr(std::string name, std::string v) { return add_attr({std::move(name), std::move(v)}); }
  Op& attr(std::string name, const char* v) { return attr(std::move(name), std::string(v)); }
  Op& attr(std::string name, std::vector<int64_t> v) {
    return add_attr({std::move(name), std::move(v)});
  }
  Op& attr(std::string name, std::initializer_list<int64_t> v) {
    return attr(std::move(name), std::vector<int64_t>(v));
  }
  // An attribute that may be absent: attrs().has(i).
  Op& optional_attr(std::string name, ofl_value_type type) {
    return add_attr({std::move(name), type, true});
  }
  Op& infer(std::function<void(Infer)> f) { return d().infer = std::move(f), *this; }
  Op& backward(Save save, std::function<void(Grad)> f) {
    return d().save = save, d().backward = std::move(f), *this;
  }
  Op& sbp(std::function<void(SbpSignatures)> f) { return d().sbp = std::move(f), *this; }
  // Default: every input read and every output written once, one operation per output element.
  Op& cost(std::function<Cost(Infer)> f) { return d().cost = std::move(f), *this; }
  // A kernel for OFL_CPU, OFL_CUDA or OFL_ANY_DEVICE and the dtypes of the first input.
  Op& kernel(int32_t device, std::initializer_list<int32_t> dtypes, std::function<void(Kernel)> f,
             const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    if (!f) throw Error(OFL_VALUE_ERROR, "a kernel of " + d().name + " is no function");
    uint32_t set = 0;
    for (int32_t t : dtypes) set |= t < OFL_BOOL || t > OFL_FLOAT64 ? kNoDType : 1u << t;
    d().kernels.push_back({device, set, file, line, std::move(f)});
    return *this;
  }
  // Registers the op, then its kernels. Throws Error with the library's message.
  void add() {
    Definition* d = &this->d();
    d_.release();  // the callbacks' user pointer: lives as long as the process
    std::vector<ofl_input> inputs;
    for (const auto& in : d->inputs) inputs.push_back({in.first.c_str(), in.second});
    std::vector<const char*> outputs;
    for (const auto& out : d->outputs) outputs.push_back(out.c_str());
    std::vector<ofl_attr> attrs;
    for (const auto& a : d->attrs) attrs.push_back(a.c());
    ofl_op op = {};
    op.name = d->name.c_str();
    op.doc = d->doc.c_str();
    op.file = d->file;
    op.line = d->line;
    op.num_inputs = static_cast<int32_t>(inputs.size());
    op.num_outputs = static_cast<int32_t>(outputs.size());
    op.num_attrs = static_cast<int32_t>(attrs.size());
    op.inputs = inputs.data();
    op.outputs = outputs.data();
    op.attrs = attrs.data();
    op.user = d;
    if (d->infer)
      op.infer = [](ofl_infer_context c, void* u) { return run(def(u)->infer, Infer(c)); };
    if (d->backward) {
      op.backward = [](ofl_grad_context c, void* u) {
        return run(def(u)->backward, Grad(c, def(u)->save));
      };
    }
    if (d->sbp)
      op.sbp = [](ofl_sbp_context c, void* u) { return run(def(u)->sbp, SbpSignatures(c)); };
    if (d->cost) {
      op.cost = [](ofl_infer_context c, void* u, double* bytes, double* flops) {
        const auto set = [&](Infer i) {
          const Cost cost = def(u)->cost(i);
          *bytes = cost.bytes, *flops = cost.flops;
        };
        return run(set, Infer(c));
      };
    }
    op.save_inputs = d->save.inputs;
    op.save_outputs = d->save.outputs;
    check(api()->register_op(&op));
    for (KernelDefinition& k : d->kernels) {
      ofl_kernel kernel = {};
      kernel.op = d->name.c_str();
      kernel.device = k.device;
      kernel.dtypes = k.dtypes;
      kernel.file = k.file;
      kernel.line = k.line;
      kernel.user = &k;
      kernel.launch = [](ofl_kernel_context c, void* u) {
        return run(static_cast<KernelDefinition*>(u)->launch, Kernel(c));
      };
      check(api()->register_kernel(&kernel));
    }
  }

 private:
  static constexpr uint32_t kNoDType = 1u << 31;  // refused when the kernel is registered
  struct KernelDefinition {
    int32_t device;
    uint32_t dtypes;
    const char* file;
    int line;
    std::function<void(Kernel)> launch;
  };
  struct AttrDefinition {
    AttrDefinition(std::string n, ofl_value_type t, bool may_be_absent = false)
        : name(std::move(n)), type(t), optional(may_be_absent) {}
    AttrDefinition(std::string n, Value v) : name(std::move(n)), type(v.type), value(v) {}
    AttrDefinition(std::string n, std::string v)
        : name(std::move(n)), type(OFL_VALUE_STRING), text(std::move(v)) {
      value.type = type;
    }
    AttrDefinition(std::string n, std::vector<int64_t> v)
        : name(std::move(n)), type(OFL_VALUE_INTS), ints(std::move(v)) {
      value.type = type;
    }
    // Borrows the members.
    ofl_attr c() const {
      ofl_value v = value;
      if (v.type == OFL_VALUE_STRING) v = Value(text);
      if (v.type == OFL_VALUE_INTS) v = Value(ints);
      return {name.c_str(), type, optional, v};
    }
    std::string name;
    int32_t type;
    bool optional = false;
    Value value = nullptr;
    std::string text;
    std::vector<int64_t> ints;
  };
  struct Definition {
    std::string name, doc;
    const char* file;
    int line;
    std::vector<std::pair<std::string, int32_t>> inputs;
    std::vector<std::string> outputs;
    std::vector<AttrDefinition> attrs;
    std::function<void(Infer)> infer;
    std::function<void(Grad)> backward;
    std::function<void(SbpSignatures)> sbp;
    std::function<Cost(Infer)> cost;
    Save save;
    std::vector<KernelDefinition> kernels;
  };

  static Definition* def(void* user) { return static_cast<Definition*>(user); }
  Definition& d() {
    if (!d_) throw Error(OFL_RUNTIME_ERROR, "add() has been called: this Op is done with");
    return *d_;
  }
  Op& add_attr(AttrDefinition a) { return d().attrs.push_back(std::move(a)), *this; }
  template <class F, class C>
  static int32_t run(const F& f, C context) noexcept {
    return internal::guarded([&] { f(context); });
  }

  std::unique_ptr<Definition> d_;
};

namespace internal {
// What the entry point of a library does around its OFL_EXTENSION block.
inline int32_t init(const ofl_api* a, void (*body)()) {
  if (a->size < sizeof(ofl_api)) {
    return a->set_error(OFL_RUNTIME_ERROR, "the extension was built with a newer oneflow_lite");
  }
  api() = a;
  forgotten().clear();  // g++ may share it between libraries
  return guarded([&] {
    body();
    if (forgotten().empty()) return;
    throw Error(OFL_RUNTIME_ERROR, "op " + forgotten() + " was described, but add() not called");
  });
}
}  // namespace internal
}  // namespace extension
}  // namespace oneflow_lite

// The body registers the library's ops when the library is loaded. One per library.
#define OFL_EXTENSION                                                                              \
  static void ofl_extension_body();                                                                \
  extern "C" __attribute__((visibility("default"))) uint32_t ofl_extension_version() {             \
    return OFL_EXTENSION_VERSION;                                                                  \
  }                                                                                                \
  extern "C" __attribute__((visibility("default"))) int32_t ofl_extension_init(const ofl_api* a) { \
    return oneflow_lite::extension::internal::init(a, ofl_extension_body);                         \
  }                                                                                                \
  static void ofl_extension_body()
