// SPDX-License-Identifier: Apache-2.0
#include "tests/cpp/fake_cudart.h"

#include <cuda_runtime_api.h>
#include <cxxabi.h>

#include <cstdlib>
#include <map>

namespace fake_cudart {
namespace {

struct State {
  std::map<int, Device> devices;
  int current = 0;
  std::map<const void*, std::string> kernels;  // by the host's function
  std::vector<std::string> launches;
};
State& TheState() {
  static State* const state = new State;  // kernels register before main
  return *state;
}

void Replace(std::string& text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    text.replace(at, what.size(), by);
  }
}

// "void oneflow_lite::cuda::RowKernel<float>(Row<float>, int)" becomes "RowKernel<float>".
std::string ShortName(const char* mangled) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = status == 0 ? demangled : mangled;
  std::free(demangled);
  Replace(name, "oneflow_lite::cuda::", "");
  Replace(name, "(anonymous namespace)::", "");
  if (name.rfind("void ", 0) == 0) name.erase(0, 5);
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += (name[i] == '<') - (name[i] == '>' && (i == 0 || name[i - 1] != '-'));
    if (name[i] == '(' && depth == 0) return name.substr(0, i);
  }
  return name;
}

// How many clusters of so many blocks a device holds, as far as threads and shared memory go.
int ClustersOf(const Device& device, int blocks, int threads, size_t shared) {
  if (!device.clusters || shared > static_cast<size_t>(device.shared_per_block)) return 0;
  const int by_threads = 2048 / (threads > 0 ? threads : 1);
  const int by_shared = static_cast<int>(device.shared_per_multiprocessor / (shared + 1024));
  const int resident = by_threads < by_shared ? by_threads : by_shared;
  return resident * device.multiprocessors / blocks;
}

std::string Describe(const cudaLaunchConfig_t& c, const std::string& kernel) {
  std::string text = kernel + " grid " + std::to_string(c.gridDim.x);
  if (c.gridDim.y > 1) text += "x" + std::to_string(c.gridDim.y);
  text += " block " + std::to_string(c.blockDim.x);
  if (c.blockDim.y > 1) text += "x" + std::to_string(c.blockDim.y);
  if (c.dynamicSmemBytes > 0) text += " shared " + std::to_string(c.dynamicSmemBytes);
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    const cudaLaunchAttribute& a = c.attrs[i];
    if (a.id == cudaLaunchAttributeClusterDimension) {
      text += " cluster " + std::to_string(a.val.clusterDim.x);
    } else if (a.id == cudaLaunchAttributeCooperative) {
      text += " cooperative";
    } else {
      text += " attribute " + std::to_string(a.id);
    }
  }
  return text;
}

}  // namespace

void SetDevice(int index, const Device& device) {
  TheState().devices.emplace(index, device);
  TheState().current = index;
}

std::vector<std::string> TakeLaunches() {
  std::vector<std::string> taken;
  taken.swap(TheState().launches);
  return taken;
}

std::vector<std::string> Kernels() {
  std::vector<std::string> names;
  for (const auto& [_, name] : TheState().kernels) names.push_back(name);
  return names;
}

}  // namespace fake_cudart

using fake_cudart::TheState;

// The part of the runtime that the row kernels and their C interface call; the rest is not there,
// so that a program that needs more of it does not link.
extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  TheState().kernels[host] = fake_cudart::ShortName(name);
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}
unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st*) { return 0; }
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, size_t*, void*) {
  return cudaErrorNotSupported;
}
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t) {
  return cudaErrorNotSupported;
}

cudaError_t cudaGetDevice(int* device) {
  *device = TheState().current;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  TheState().current = device;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const fake_cudart::Device& d = TheState().devices.at(device);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = d.multiprocessors;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = d.shared_per_block;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = d.shared_per_multiprocessor;
      return cudaSuccess;
    case cudaDevAttrCooperativeLaunch:
      *value = d.cooperative;
      return cudaSuccess;
    case cudaDevAttrClusterLaunch:
      *value = d.clusters;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  attributes->ptxVersion = TheState().devices.at(TheState().current).clusters ? 90 : 80;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void*,
                                           const cudaLaunchConfig_t* config) {
  int blocks = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
      blocks = static_cast<int>(config->attrs[i].val.clusterDim.x);
    }
  }
  *clusters =
      fake_cudart::ClustersOf(TheState().devices.at(TheState().current), blocks,
                              static_cast<int>(config->blockDim.x), config->dynamicSmemBytes);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  TheState().launches.push_back(fake_cudart::Describe(*config, TheState().kernels.at(kernel)));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int value, size_t bytes, cudaStream_t) {
  TheState().launches.push_back("memset " + std::to_string(value) + " " + std::to_string(bytes));
  return cudaSuccess;
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error of the fake runtime"; }

}  // extern "C"
