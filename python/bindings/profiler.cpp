// SPDX-License-Identifier: Apache-2.0
//
// The profiler's records for Python, which makes tables, traces and pictures of them.
#include "oneflow_lite/framework/profiler.h"

#include <pybind11/stl.h>

#include "python/bindings/classes.h"
#include "python/bindings/throwing.h"

namespace oneflow_lite::python {
namespace {

Profiler& Readable(Profiler& p) {
  if (!p.readable()) throw std::runtime_error("profile: it is recording in another thread");
  return p;
}

// Fields of 8 bytes, in the order of `record_fields`.
py::bytes RecordsOf(Profiler& p) {
  const std::vector<ProfileRecord> records = Readable(p).records();
  return py::bytes(reinterpret_cast<const char*>(records.data()),
                   records.size() * sizeof(ProfileRecord));
}

// Names and NumPy's types.
std::vector<std::pair<const char*, const char*>> RecordFields() {
  static_assert(sizeof(ProfileRecord) == 16 * 8);
  return {
      {"kind", "i8"},         {"name", "i8"},       {"parent", "i8"},       {"begin", "i8"},
      {"end", "i8"},          {"device", "i8"},     {"dtype", "i8"},        {"launches", "i8"},
      {"memory_begin", "i8"}, {"memory_end", "i8"}, {"failed", "i8"},       {"shapes", "i8"},
      {"bytes", "f8"},        {"flops", "f8"},      {"device_begin", "f8"}, {"device_end", "f8"}};
}

// A range in all profiles of its thread, and for a tool that watches the process.
class ProfileRange {
 public:
  explicit ProfileRange(const std::string& name) {
    for (Ref<Profiler>& p : Profiler::Active()) {
      const int64_t record = p->BeginRange(name);
      records_.push_back({std::move(p), record});
    }
    marker_ = GetRangeMarker();
    if (marker_.push) marker_.push(name.c_str());
  }
  void End() {
    if (marker_.pop) marker_.pop();
    marker_ = {};
    for (const auto& [profiler, record] : records_) profiler->EndRange(record);
    records_.clear();
  }

 private:
  std::vector<std::pair<Ref<Profiler>, int64_t>> records_;
  RangeMarker marker_;
};

}  // namespace

void AddProfiler(py::module_& m) {
  py::class_<Profiler, Ref<Profiler>>(m, "Profiler", "Records of the ops of a thread.")
      .def(py::init([](bool launches, bool shapes, bool synchronize) {
             return MakeRef<Profiler>(Profiler::Options{launches, shapes, synchronize});
           }),
           py::arg("launches") = false, py::arg("shapes") = false, py::arg("synchronize") = false)
      .def("start", [](Profiler& p) { ThrowIfError(p.Start()); })
      .def("stop",
           [](Profiler& p) {
             Status status;
             {
               GilRelease unlocked;
               status = p.Stop();
             }
             ThrowIfError(status);
           })
      .def_property_readonly("running", &Profiler::running)
      .def("records", &RecordsOf, "The records' memory; record_fields says what they hold.")
      .def("names", [](Profiler& p) { return Readable(p).names(); });
  py::class_<ProfileRange>(m, "ProfileRange")
      .def(py::init<const std::string&>(), py::arg("name"))
      .def("end", &ProfileRange::End);
  m.def(
      "meta_memory",
      [](bool reset) {
        const MetaMemory memory = GetMetaMemory();
        if (reset) ResetMetaPeak();
        return py::make_tuple(memory.held, memory.peak);
      },
      py::arg("reset") = false,
      "The bytes that tensors of the meta device would hold, and their peak since the last reset.");
  m.attr("record_fields") = RecordFields();
  py::list dtypes;  // by the numbers in the records
  for (int i = 0; i < kNumDTypes; ++i) dtypes.append(Name(static_cast<DType>(i)));
  m.attr("record_dtypes") = dtypes;
}

}  // namespace oneflow_lite::python
