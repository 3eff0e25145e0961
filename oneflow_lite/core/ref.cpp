// SPDX-License-Identifier: Apache-2.0
#include "oneflow_lite/core/ref.h"

#include <vector>

namespace oneflow_lite {
namespace {

// Deletions that are under way on a thread, and what waits for them to end. Trivially destructible,
// because objects are freed while a thread ends, too.
struct Deletions {
  int depth;
  std::vector<RefCounted*>* waiting;
};
// Each freed tensor asks, so without a call of __tls_get_addr.
[[gnu::tls_model("initial-exec")]] constinit thread_local Deletions deletions{0, nullptr};

}  // namespace

void RefCounted::DeleteFlat() {
  Deletions& now = deletions;
  if (now.depth >= kMaxDepth) {
    if (!now.waiting) now.waiting = new std::vector<RefCounted*>;
    now.waiting->push_back(this);
    return;
  }
  ++now.depth;
  delete this;
  // The outermost deletion takes up what waits; each may bring more.
  while (now.depth == 1 && now.waiting) {
    if (now.waiting->empty()) {
      delete now.waiting;
      now.waiting = nullptr;
    } else {
      RefCounted* object = now.waiting->back();
      now.waiting->pop_back();
      delete object;
    }
  }
  --now.depth;
}

}  // namespace oneflow_lite
