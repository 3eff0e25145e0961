// SPDX-License-Identifier: Apache-2.0
//
// As much of cuDNN as is looked at before it is used: a part that has the version, and a library
// that asks the part of that name. FAKE_CUDNN_PART tells which of the two this is.
#include <dlfcn.h>

#include <cstddef>

#define OFL_FAKE_API extern "C" __attribute__((visibility("default")))

#ifdef FAKE_CUDNN_PART
OFL_FAKE_API const int cudnn_graph_version;
const int cudnn_graph_version = FAKE_CUDNN_PART;
OFL_FAKE_API std::size_t cudnnGetVersion() {
  const int v = cudnn_graph_version;
  return static_cast<std::size_t>((v >> 16 & 255) * 10000 + (v >> 8 & 255) * 100 + (v & 255));
}
#else
OFL_FAKE_API std::size_t cudnnGetVersion() {
  void* part = dlopen("libcudnn_graph.so.9", RTLD_NOW | RTLD_LOCAL);
  void* get = part ? dlsym(part, "cudnnGetVersion") : nullptr;
  return get ? reinterpret_cast<std::size_t (*)()>(get)() : 0;
}
#endif
