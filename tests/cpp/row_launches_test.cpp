// SPDX-License-Identifier: Apache-2.0
//
// Which kernels the row ops launch, in what grids and with how much shared memory, for some 350,000
// cases of op, dtype, rows, columns, alignment and device. Needs no GPU: the runtime is a fake one.
// golden/row_launches.inc holds a hash for each op, dtype and device. To see what has changed:
//
//   row_launches_test --dump=FILE    every case, readable; compare with that of the commit before
//   row_launches_test --write=FILE   the hashes: golden/row_launches.inc, once the change is meant
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "primitive/cuda/c_api/ofl_rows.h"
#include "tests/cpp/fake_cudart.h"
#include "tests/cpp/fused_plans.h"

namespace {

using fake_cudart::Device;

struct Golden {
  const char* block;  // op, dtype, device
  int cases;
  uint64_t hash;
};
constexpr Golden kGolden[] = {
#include "tests/cpp/golden/row_launches.inc"
};

struct NamedDevice {
  const char* name;
  Device device;
};
constexpr NamedDevice kDevices[] = {
    {"hopper", {132, 227 << 10, 228 << 10, true, true}},
    {"ampere", {108, 163 << 10, 164 << 10, false, true}},
    {"ada", {128, 99 << 10, 100 << 10, false, true}},
};
struct NamedDtype {
  const char* name;
  ofl_dtype dtype;
  int bytes;
};
constexpr NamedDtype kDtypes[] = {{"float16", OFL_FLOAT16, 2},
                                  {"bfloat16", OFL_BFLOAT16, 2},
                                  {"float32", OFL_FLOAT32, 4},
                                  {"float64", OFL_FLOAT64, 8}};

// On both sides of what the policies tell apart: packs, warps, blocks, clusters, on chip or not.
constexpr int64_t kCols[] = {
    1,     2,     3,      5,      7,      8,      12,     16,     17,     24,    31,
    32,    33,    40,     48,     64,     65,     96,     97,     100,    128,   160,
    192,   200,   224,    255,    256,    257,    320,    384,    400,    500,   512,
    640,   768,   800,    999,    1000,   1024,   1026,   1536,   2000,   2048,  2049,
    3000,  3072,  4095,   4096,   4098,   5000,   6144,   7168,   8192,   8193,  10240,
    12288, 12289, 16384,  16385,  20480,  24576,  32768,  32769,  40000,  50257, 65536,
    65537, 98304, 131072, 131073, 151936, 262144, 262145, 600000, 1000000};
constexpr int64_t kRows[] = {1, 66, 300, 4096, 100000};

struct Case {
  const Device* device;
  NamedDtype type;
  int64_t rows, cols;
  int offset;  // elements by which the first tensor lies behind a multiple of 16 bytes

  // The n-th tensor: an address that nobody reads. The first is the one that lies askew; offset 2
  // stands for all of them by one element.
  void* At(int n) const {
    const int64_t askew = offset == 2 || (offset == 1 && n == 0) ? type.bytes : 0;
    return reinterpret_cast<void*>((int64_t{1} << 40) * (n + 1) + askew);
  }
  const int64_t* Targets() const { return static_cast<const int64_t*>(Whole(7)); }
  // A tensor that lies at a multiple of 16 bytes.
  void* Whole(int n) const { return reinterpret_cast<void*>((int64_t{1} << 40) * (n + 1)); }
};

void* const kWorkspace = reinterpret_cast<void*>(int64_t{1} << 50);

// What a call has launched, or why it was refused.
std::string TextOf(ofl_status status, size_t workspace) {
  if (status != OFL_OK) return " status " + std::to_string(status);
  std::string text = " workspace " + std::to_string(workspace);
  for (const std::string& launch : fake_cudart::TakeLaunches()) text += "; " + launch;
  return text;
}

// Asks for workspace, then launches with it.
template <class Args>
std::string Run(Args a, ofl_status (*ask)(const Args*, size_t*),
                ofl_status (*run)(ofl_stream, const Args*)) {
  if (ofl_status status = ask(&a, &a.workspace_bytes)) return TextOf(status, 0);
  a.workspace = a.workspace_bytes > 0 ? kWorkspace : nullptr;
  return TextOf(run(nullptr, &a), a.workspace_bytes);
}

template <class Args>
Args ArgsOf(const Case& c) {
  Args a = {};
  a.dtype = c.type.dtype, a.rows = c.rows;
  if constexpr (requires { a.classes; }) {
    a.classes = c.cols;
  } else {
    a.cols = c.cols;
  }
  return a;
}

std::string Softmax(const Case& c, bool log, int64_t inner, bool to_float32) {
  auto a = ArgsOf<ofl_softmax_args>(c);
  a.log = log, a.inner = inner, a.rows *= inner, a.x = c.At(0), a.y = c.At(1);
  if (to_float32) a.y_dtype = OFL_FLOAT32, a.y = c.Whole(1);
  return Run(a, ofl_softmax_workspace, ofl_softmax_with);
}
std::string SoftmaxBackward(const Case& c, bool log, int64_t inner) {
  auto a = ArgsOf<ofl_softmax_backward_args>(c);
  a.log = log, a.inner = inner, a.rows *= inner, a.y = c.At(0), a.dy = c.At(1), a.dx = c.At(2);
  return Run(a, ofl_softmax_backward_workspace, ofl_softmax_backward_with);
}

enum Weights { kNone, kOwn, kFloat };
std::string Norm(const Case& c, bool centred, bool residual, Weights weights) {
  auto a = ArgsOf<ofl_norm_args>(c);
  a.x = c.At(0), a.y = c.At(1), a.rstd = c.Whole(4);
  if (weights != kNone) a.weight = c.Whole(2);
  if (weights == kFloat) a.weight_dtype = OFL_FLOAT32;
  if (centred) a.bias = weights != kNone ? c.Whole(3) : nullptr, a.mean = c.Whole(5);
  if (residual) a.residual = c.At(6), a.sum = c.At(7);
  return centred ? Run(a, ofl_layer_norm_workspace, ofl_layer_norm_with)
                 : Run(a, ofl_rms_norm_workspace, ofl_rms_norm_with);
}
std::string NormBackward(const Case& c, bool centred, bool efficient, bool dsum, Weights weights) {
  auto a = ArgsOf<ofl_norm_backward_args>(c);
  (efficient ? a.y : a.x) = c.At(0), a.dy = c.At(1), a.dx = c.At(2), a.rstd = c.Whole(3);
  if (weights != kNone) a.weight = c.Whole(4), a.dweight = c.Whole(5);
  if (weights == kFloat) a.weight_dtype = OFL_FLOAT32;
  if (centred) a.mean = c.Whole(6);
  if (centred && weights != kNone) a.bias = c.Whole(7), a.dbias = c.Whole(8);
  if (dsum) a.dsum = c.At(9);
  return centred ? Run(a, ofl_layer_norm_backward_workspace, ofl_layer_norm_backward_with)
                 : Run(a, ofl_rms_norm_backward_workspace, ofl_rms_norm_backward_with);
}

std::string CrossEntropy(const Case& c) {
  auto a = ArgsOf<ofl_cross_entropy_args>(c);
  a.x = c.At(0), a.target = c.Targets(), a.loss = c.Whole(1), a.stats = c.Whole(2);
  return Run(a, ofl_cross_entropy_workspace, ofl_cross_entropy_with);
}
std::string CrossEntropyBackward(const Case& c) {
  auto a = ArgsOf<ofl_cross_entropy_backward_args>(c);
  a.x = c.At(0), a.target = c.Targets(), a.stats = c.Whole(2), a.dx = c.At(1);
  return TextOf(ofl_cross_entropy_backward_with(nullptr, &a), 0);
}
std::string CrossEntropyInPlace(const Case& c, double smoothing) {
  auto a = ArgsOf<ofl_cross_entropy_in_place_args>(c);
  a.x = c.At(0), a.target = c.Targets(), a.loss = c.Whole(1), a.smoothing = smoothing;
  return Run(a, ofl_cross_entropy_in_place_workspace, ofl_cross_entropy_in_place_with);
}

std::string ScaleMask(const Case& c, ofl_dtype mask, bool causal) {
  auto a = ArgsOf<ofl_scale_mask_softmax_args>(c);
  a.scale = 0.125, a.causal = causal, a.x = c.At(0), a.y = c.At(1);
  if (mask != 0) a.mask = c.Whole(2), a.mask_dtype = mask;
  return Run(a, ofl_scale_mask_softmax_workspace, ofl_scale_mask_softmax_with);
}
std::string ScaleMaskBackward(const Case& c) {
  auto a = ArgsOf<ofl_scale_mask_softmax_backward_args>(c);
  a.scale = 0.125, a.y = c.At(0), a.dy = c.At(1), a.dx = c.At(2);
  return Run(a, ofl_scale_mask_softmax_backward_workspace, ofl_scale_mask_softmax_backward_with);
}

struct Op {
  const char* name;
  std::function<std::string(const Case&)> run;
  bool only_short = false;  // 16-bit dtypes alone
};
std::vector<Op> SoftmaxOps() {
  return {
      {"softmax", [](const Case& c) { return Softmax(c, false, 1, false); }},
      {"log_softmax", [](const Case& c) { return Softmax(c, true, 1, false); }},
      {"softmax_to_float32", [](const Case& c) { return Softmax(c, false, 1, true); }, true},
      {"softmax_axis_8", [](const Case& c) { return Softmax(c, false, 8, false); }},
      {"softmax_axis_33", [](const Case& c) { return Softmax(c, false, 33, false); }},
      {"log_softmax_axis_1028", [](const Case& c) { return Softmax(c, true, 1028, false); }},
      {"log_softmax_axis_6", [](const Case& c) { return Softmax(c, true, 6, false); }},
      {"log_softmax_to_float32", [](const Case& c) { return Softmax(c, true, 1, true); }, true},
      {"softmax_backward", [](const Case& c) { return SoftmaxBackward(c, false, 1); }},
      {"log_softmax_backward", [](const Case& c) { return SoftmaxBackward(c, true, 1); }},
      {"softmax_axis_backward_8", [](const Case& c) { return SoftmaxBackward(c, false, 8); }},
      {"softmax_axis_backward_33", [](const Case& c) { return SoftmaxBackward(c, false, 33); }},
      {"log_softmax_axis_backward_1028",
       [](const Case& c) { return SoftmaxBackward(c, true, 1028); }},
      {"log_softmax_axis_backward_6", [](const Case& c) { return SoftmaxBackward(c, true, 6); }},
      {"cross_entropy", CrossEntropy},
      {"cross_entropy_backward", CrossEntropyBackward},
      {"cross_entropy_in_place", [](const Case& c) { return CrossEntropyInPlace(c, 0); }},
      {"cross_entropy_in_place_smooth", [](const Case& c) { return CrossEntropyInPlace(c, 0.1); }},
      {"scale_softmax", [](const Case& c) { return ScaleMask(c, 0, false); }},
      {"scale_causal_softmax", [](const Case& c) { return ScaleMask(c, 0, true); }},
      {"scale_bool_softmax", [](const Case& c) { return ScaleMask(c, OFL_BOOL, false); }},
      {"scale_add_softmax", [](const Case& c) { return ScaleMask(c, c.type.dtype, false); }},
      {"scale_mask_softmax_backward", ScaleMaskBackward},
  };
}
std::vector<Op> NormOps() {
  std::vector<Op> ops;
  for (const bool centred : {true, false}) {
    const auto add = [&](const char* layer, const char* rms, auto run, bool only_short = false) {
      ops.push_back(
          {centred ? layer : rms, [=](const Case& c) { return run(c, centred); }, only_short});
    };
    add("layer_norm", "rms_norm",
        [](const Case& c, bool centred) { return Norm(c, centred, false, kOwn); });
    add("layer_norm_plain", "rms_norm_plain",
        [](const Case& c, bool centred) { return Norm(c, centred, false, kNone); });
    add(
        "layer_norm_float", "rms_norm_float",
        [](const Case& c, bool centred) { return Norm(c, centred, false, kFloat); }, true);
    add("add_layer_norm", "add_rms_norm",
        [](const Case& c, bool centred) { return Norm(c, centred, true, kOwn); });
    add("layer_norm_backward", "rms_norm_backward",
        [](const Case& c, bool centred) { return NormBackward(c, centred, false, false, kOwn); });
    add("layer_norm_backward_plain", "rms_norm_backward_plain",
        [](const Case& c, bool centred) { return NormBackward(c, centred, false, false, kNone); });
    add(
        "layer_norm_backward_float", "rms_norm_backward_float",
        [](const Case& c, bool centred) { return NormBackward(c, centred, false, false, kFloat); },
        true);
    add("layer_norm_backward_efficient", "rms_norm_backward_efficient",
        [](const Case& c, bool centred) { return NormBackward(c, centred, true, false, kOwn); });
    add("add_layer_norm_backward", "add_rms_norm_backward",
        [](const Case& c, bool centred) { return NormBackward(c, centred, false, true, kOwn); });
  }
  return ops;
}

// The kernels around which flow.fuse generates code: their plans.
std::string Fused(const Case& c) {
  oneflow_lite::cuda::DeviceLimits limits;
  limits.multiprocessors = c.device->multiprocessors;
  limits.shared_per_block = c.device->shared_per_block;
  limits.shared_per_multiprocessor = c.device->shared_per_multiprocessor;
  limits.clusters = c.device->clusters, limits.cooperative = c.device->cooperative;
  return oneflow_lite::cuda::FusedPlans(c.rows, c.cols, c.type.bytes, c.offset > 0, limits);
}

// One line: the case, and what was launched or planned.
std::string Line(const std::string& block, const Op& op, const Case& c) {
  return block + " rows " + std::to_string(c.rows) + " cols " + std::to_string(c.cols) +
         " offset " + std::to_string(c.offset) + ":" + op.run(c);
}

uint64_t Hash(uint64_t hash, const std::string& line) {  // FNV-1a
  for (const char c : line) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

struct Block {
  std::string name;
  int cases = 0;
  uint64_t hash = 0xcbf29ce484222325;
};
// Calls line(text) for every case, and gives the hashes of their blocks.
std::vector<Block> VisitAll(const std::function<void(const std::string&)>& visit) {
  std::vector<Op> ops = SoftmaxOps();
  for (const Op& op : NormOps()) ops.push_back(op);
  ops.push_back({"fused", Fused});
  std::vector<Block> blocks;
  for (int d = 0; d < static_cast<int>(std::size(kDevices)); ++d) {
    fake_cudart::SetDevice(d, kDevices[d].device);
    for (const Op& op : ops) {
      for (const NamedDtype& type : kDtypes) {
        if (op.only_short && type.bytes != 2) continue;
        Block block{std::string(op.name) + " " + type.name + " " + kDevices[d].name};
        for (int i = 0; i < static_cast<int>(std::size(kRows) * std::size(kCols)); ++i) {
          if (i % 2 == 1 && kDevices[d].name != std::string("hopper")) continue;
          for (const int offset : {0, 1, 2}) {
            const Case c{&kDevices[d].device, type, kRows[i / std::size(kCols)],
                         kCols[i % std::size(kCols)], offset};
            const std::string line = Line(block.name, op, c);
            block.hash = Hash(block.hash, line), ++block.cases;
            visit(line);
          }
        }
        blocks.push_back(block);
      }
    }
  }
  return blocks;
}

TEST(RowLaunchesTest, EveryCaseLaunchesAsBefore) {
  std::map<std::string, Golden> golden;
  for (const Golden& g : kGolden) golden[g.block] = g;
  int cases = 0, refused = 0;
  const auto blocks = VisitAll([&](const std::string& line) {
    ++cases;
    refused += line.find(": status ") != std::string::npos;
  });
  EXPECT_GT(cases, 20000);
  EXPECT_EQ(refused, 0);
  std::string changed;
  for (const Block& block : blocks) {
    const auto found = golden.find(block.name);
    if (found == golden.end() || found->second.hash != block.hash) changed += "\n  " + block.name;
    if (found != golden.end()) golden.erase(found);
  }
  for (const auto& [name, _] : golden) changed += "\n  " + name + " is no more";
  EXPECT_EQ(changed, "")
      << "These launch otherwise. row_launches_test --dump=FILE writes all cases;"
         " compare with the build before. If it is meant: --write="
         "tests/cpp/golden/row_launches.inc";
}

// The kernels that no case above launches: a share of them, so that the cases stay wide enough to
// notice a plan that has changed.
TEST(RowLaunchesTest, MostKernelsAreLaunchedBySomeCase) {
  const std::vector<std::string> all = fake_cudart::Kernels();
  std::set<std::string> left(all.begin(), all.end());
  const size_t count = left.size();
  VisitAll([&](const std::string& line) {
    for (size_t at = line.find("; "); at != std::string::npos; at = line.find("; ", at + 2)) {
      left.erase(line.substr(at + 2, line.find(" grid ", at) - at - 2));
    }
  });
  EXPECT_GT(count, 1000u);
  EXPECT_LT(left.size(), count / 10) << testing::PrintToString(left);
}

// A case's text must tell cases apart: else a change would not be seen.
TEST(RowLaunchesTest, DevicesDtypesAndWidthsAreToldApart) {
  std::map<std::string, std::string> lines;
  VisitAll([&](const std::string& line) {
    const size_t colon = line.find(':');
    lines[line.substr(0, colon)] = line.substr(colon);
  });
  const auto of = [&](const std::string& key) { return lines.at(key + " offset 0"); };
  EXPECT_NE(of("softmax float16 hopper rows 66 cols 65536"),
            of("softmax float16 ampere rows 66 cols 65536"));
  EXPECT_NE(of("softmax float16 hopper rows 66 cols 1024"),
            of("softmax float32 hopper rows 66 cols 1024"));
  EXPECT_NE(of("rms_norm float16 hopper rows 4096 cols 4096"),
            of("rms_norm float16 hopper rows 4096 cols 8192"));
  EXPECT_NE(of("softmax float16 hopper rows 4096 cols 4096").find("softmax"), 0u);
  EXPECT_NE(of("softmax float32 hopper rows 66 cols 65536").find(" cluster "), std::string::npos);
  EXPECT_EQ(of("softmax float32 ampere rows 66 cols 65536").find(" cluster "), std::string::npos);
}

int Write(const char* path, bool dump) {
  std::ofstream file(path);
  const auto blocks = VisitAll([&](const std::string& line) {
    if (dump) file << line << "\n";
  });
  if (!dump) file << "// Written by row_launches_test --write: op, dtype, device; cases; hash.\n";
  for (const Block& b : blocks) {
    if (dump) break;
    char text[160];
    std::snprintf(text, sizeof(text), "{\"%s\", %d, 0x%016llx},\n", b.name.c_str(), b.cases,
                  static_cast<unsigned long long>(b.hash));
    file << text;
  }
  return file.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--dump=", 7) == 0) return Write(argv[i] + 7, true);
    if (std::strncmp(argv[i], "--write=", 8) == 0) return Write(argv[i] + 8, false);
  }
  return RUN_ALL_TESTS();
}
