// Batch: accessors, collation and device transfer of nested tensors.
#include "det/batch.h"

#include <ATen/ops/stack.h>

#include <stdexcept>

#include "harness/src/base/torch_compat.h"

namespace det {
namespace {

std::string kind_text(const Batch& batch) {
  if (batch.is_list()) return "a list of " + std::to_string(batch.list().size());
  if (batch.is_dict()) {
    std::string keys;
    for (const auto& [key, item] : batch.dict()) keys += (keys.empty() ? "\"" : ", \"") + key + "\"";
    return keys.empty() ? "an empty dict" : "a dict of " + keys;
  }
  return batch.tensor().defined() ? "a tensor" : "an undefined tensor";
}

[[noreturn]] void wrong_kind(const std::string& wanted, const Batch& batch) {
  throw std::invalid_argument("a batch was taken for " + wanted + ", but it is " + kind_text(batch));
}

/// Shape and type of a tensor, or the kind of the node: the properties that all records must share.
std::string describe(const Batch& batch) {
  if (!batch.is_tensor() || !batch.tensor().defined()) return kind_text(batch);
  return compat::shape_text(batch.tensor()) + " of " + c10::toString(batch.tensor().scalar_type());
}

[[noreturn]] void differ(const std::vector<const Batch*>& records, std::size_t other,
                         const std::string& path) {
  throw std::invalid_argument("records cannot be stacked: " + (path.empty() ? "" : path + " ") + "is " +
                              describe(*records[0]) + " in record 0 of the batch and " +
                              describe(*records[other]) + " in record " + std::to_string(other));
}

/// Whether two nodes can be stacked, not considering the nodes below them.
bool alike(const Batch& a, const Batch& b) {
  if (a.is_list() && b.is_list()) return a.list().size() == b.list().size();
  if (a.is_dict() && b.is_dict()) {
    bool same = a.dict().size() == b.dict().size();
    for (std::size_t i = 0; same && i < a.dict().size(); ++i) same = a.dict()[i].first == b.dict()[i].first;
    return same;
  }
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const torch::Tensor &one = a.tensor(), &other = b.tensor();
  if (!one.defined() || !other.defined()) return one.defined() == other.defined();
  return one.sizes() == other.sizes() && one.scalar_type() == other.scalar_type();
}

/// Stacks the nodes at `path` of all records; recurses into lists and dicts.
Batch stack(const std::vector<const Batch*>& records, const std::string& path) {
  const Batch& first = *records[0];
  for (std::size_t r = 1; r < records.size(); ++r) {
    // The first record is the reference for all others.
    if (!alike(first, *records[r])) differ(records, r, path);
  }
  if (first.is_tensor()) {
    if (!first.tensor().defined()) return first;
    std::vector<torch::Tensor> tensors;
    tensors.reserve(records.size());
    for (const Batch* record : records) tensors.push_back(record->tensor());
    return at::stack(tensors);
  }
  std::vector<const Batch*> items(records.size());
  if (first.is_list()) {
    Batch::List list;
    for (std::size_t i = 0; i < first.list().size(); ++i) {
      for (std::size_t r = 0; r < records.size(); ++r) items[r] = &records[r]->list()[i];
      list.push_back(stack(items, path + "[" + std::to_string(i) + "]"));
    }
    return list;
  }
  Batch::Dict dict;
  for (std::size_t i = 0; i < first.dict().size(); ++i) {
    const std::string& key = first.dict()[i].first;
    for (std::size_t r = 0; r < records.size(); ++r) items[r] = &records[r]->dict()[i].second;
    dict.emplace_back(key, stack(items, path + "[\"" + key + "\"]"));
  }
  return dict;
}

/// The first defined tensor in depth-first order, or null.
const torch::Tensor* first_tensor(const Batch& batch) {
  if (batch.is_tensor()) return batch.tensor().defined() ? &batch.tensor() : nullptr;
  if (batch.is_list()) {
    for (const Batch& item : batch.list()) {
      if (const torch::Tensor* found = first_tensor(item)) return found;
    }
    return nullptr;
  }
  for (const auto& [key, item] : batch.dict()) {
    if (const torch::Tensor* found = first_tensor(item)) return found;
  }
  return nullptr;
}

}  // namespace

const torch::Tensor& Batch::tensor() const {
  if (const auto* tensor = std::get_if<torch::Tensor>(&value_)) return *tensor;
  wrong_kind("a tensor", *this);
}

const Batch::List& Batch::list() const {
  if (const auto* list = std::get_if<List>(&value_)) return *list;
  wrong_kind("a list", *this);
}

const Batch::Dict& Batch::dict() const {
  if (const auto* dict = std::get_if<Dict>(&value_)) return *dict;
  wrong_kind("a dict", *this);
}

const Batch& Batch::operator[](std::size_t index) const {
  const List& items = list();
  if (index < items.size()) return items[index];
  wrong_kind("a list with an item " + std::to_string(index), *this);
}

const Batch& Batch::operator[](const std::string& key) const {
  for (const auto& [name, item] : dict()) {
    if (name == key) return item;
  }
  wrong_kind("a dict with \"" + key + "\"", *this);
}

void Batch::expect_list_of(std::size_t count) const {
  if (!is_list() || list().size() != count) wrong_kind("a list of " + std::to_string(count), *this);
}

int64_t Batch::size() const {
  const torch::Tensor* tensor = first_tensor(*this);
  return tensor != nullptr && tensor->dim() > 0 ? tensor->size(0) : 0;
}

Batch default_collate(const std::vector<Batch>& records) {
  if (records.empty()) throw std::invalid_argument("default_collate: there are no records");
  std::vector<const Batch*> pointers;
  pointers.reserve(records.size());
  for (const Batch& record : records) pointers.push_back(&record);
  return stack(pointers, "");
}

Batch to_device(const Batch& batch, const torch::Device& device) {
  return batch.map([&](const torch::Tensor& tensor) {
    // A copy to the CPU must be complete on return: its reader does not synchronize with the device.
    return tensor.device() == device ? tensor : tensor.to(device, /*non_blocking=*/!device.is_cpu());
  });
}

}  // namespace det
