// SPDX-License-Identifier: Apache-2.0
//
// What a node keeps of its forward for backward, and hooks that change how it is kept.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "oneflow_lite/framework/node.h"

namespace oneflow_lite {

// Hooks on saving (offloading to the host, recomputing): pack turns a tensor into anything, unpack
// turns it back. Per thread; the innermost pair counts. pack runs with recording off.
struct SavedTensorHooks {
  std::function<StatusOr<std::shared_ptr<void>>(const Tensor&)> pack;
  std::function<StatusOr<Tensor>(void*)> unpack;
  // What the two keep of another language, for its collector (owned.h); may be null.
  std::shared_ptr<void> foreign_pack, foreign_unpack;
};
class OFL_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(SavedTensorHooks hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
};

// A tensor kept for backward: remembers the version, and an output without its node, so that the
// node does not own itself.
class OFL_API SavedTensor {
 public:
  SavedTensor() = default;
  // is_output: t is output output_nr of the node that saves it.
  static StatusOr<SavedTensor> Save(const Tensor& t, bool is_output, uint32_t output_nr = 0);
  // A number of the call, which is no saved tensor to hooks and stays where those are freed.
  static SavedTensor Number(const Tensor& t);
  // The tensor with its history; `owner` is the saving node. RuntimeError where it was changed in
  // place since.
  StatusOr<Tensor> Unpack(Node* owner, const std::string& op) const;
  bool defined() const { return data_.defined() || packed_; }
  bool is_number() const { return is_number_; }
  void VisitOwned(OwnedWalk& walk) const;

 private:
  // Under hooks, instead of data_: what pack gave, and where the tensor's gradient flows.
  struct Packed {
    std::shared_ptr<void> value;
    std::shared_ptr<const SavedTensorHooks> hooks;
    Edge edge;
  };

  Tensor data_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  bool is_output_ = false;
  bool is_number_ = false;
  std::shared_ptr<const Packed> packed_;
};

// All that a node keeps. One pass may free it while another one reads it.
class OFL_API SavedTensors {
 public:
  // Before the node is seen by others: makes room, and fills it.
  void Resize(size_t n) { list_.resize(n); }
  size_t size() const { return list_.size(); }
  void Set(size_t i, SavedTensor saved) { list_[i] = std::move(saved); }

  // Undefined where nothing was set. RuntimeError where something was, and was freed.
  StatusOr<TensorList> Unpack(Node* owner, const std::string& op) const;
  // Where there is more than numbers.
  void Free();
  // Precondition: nothing else uses the node.
  void VisitOwned(OwnedWalk& walk) const;

 private:
  using List = absl::InlinedVector<SavedTensor, 1>;

  mutable std::mutex mutex_;
  bool freed_ = false;
  List list_;
};

}  // namespace oneflow_lite
