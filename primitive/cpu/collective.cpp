// SPDX-License-Identifier: Apache-2.0
#include "primitive/cpu/collective.h"

#include <dlfcn.h>

#include <cstdlib>

namespace oneflow_lite {
namespace {

CommunicatorFactory::Function gloo = nullptr;

// Beside this library, unless OFL_GLOO_LIBRARY names another place.
std::string GlooPath() {
  if (const char* path = std::getenv("OFL_GLOO_LIBRARY"); path && *path) return path;
  Dl_info self;
  std::string path = "liboneflow_lite_gloo.so";
  if (dladdr(reinterpret_cast<void*>(&GlooPath), &self) && self.dli_fname) {
    const std::string here = self.dli_fname;
    if (const size_t slash = here.rfind('/'); slash != std::string::npos) {
      path = here.substr(0, slash + 1) + path;
    }
  }
  return path;
}

StatusOr<std::unique_ptr<Communicator>> NewCpuCommunicator(const Communicator::Spec& spec) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (!gloo && !dlopen(GlooPath().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    const std::string reason = dlerror();
    return Error(ErrorKind::kRuntime,
                 "collectives on the CPU go through Gloo, which is not there: ", reason,
                 ". On Debian and Ubuntu, install libgloo-dev and build again");
  }
  if (!gloo) {
    return Error(ErrorKind::kRuntime, "collectives on the CPU go through Gloo, but ", GlooPath(),
                 " is another library");
  }
  return gloo(spec);
}

const bool registered = RegisterPrimitive<Communicator>(DeviceType::kCPU, &NewCpuCommunicator);

}  // namespace

void RegisterCpuCollectives(CommunicatorFactory::Function make) { gloo = make; }

}  // namespace oneflow_lite
