// Batch: the nested tensors that a data loader produces.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace det {

/// A batch of records: a tensor, or a list or dict of batches, nested to any depth. The first dimension of
/// every tensor is the record. Most batches are pairs: `auto [images, labels] = batch.unpack<2>();`, or
/// batch.data() and batch.target(). A single record of a dataset has the same type, without the first
/// dimension.
///
/// Copies share their tensors. Accessors throw std::invalid_argument, with a description of the actual
/// structure, when the batch is of another kind.
class Batch {
 public:
  using List = std::vector<Batch>;
  /// Entries in insertion order. Keys are unique.
  using Dict = std::vector<std::pair<std::string, Batch>>;

  Batch() = default;  ///< a single undefined tensor
  /// The constructors convert implicitly, so that a function may return a tensor, `{images, labels}`, a List
  /// or a Dict.
  Batch(torch::Tensor tensor) : value_(std::move(tensor)) {}
  Batch(torch::Tensor data, torch::Tensor target) : value_(List{std::move(data), std::move(target)}) {}
  Batch(List list) : value_(std::move(list)) {}
  Batch(Dict dict) : value_(std::move(dict)) {}

  /// Kind of this node. Exactly one of the three is true.
  bool is_tensor() const { return std::holds_alternative<torch::Tensor>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }

  /// The tensor of a leaf, the items of a list, the entries of a dict.
  const torch::Tensor& tensor() const;
  const List& list() const;
  const Dict& dict() const;
  /// Item `index` of a list. Throws std::invalid_argument when the list is shorter.
  const Batch& operator[](std::size_t index) const;
  /// Entry `key` of a dict. Throws std::invalid_argument, with the existing keys, when there is none.
  const Batch& operator[](const std::string& key) const;
  /// The tensors of a list of exactly N tensors.
  template <std::size_t N>
  std::array<torch::Tensor, N> unpack() const {
    expect_list_of(N);
    std::array<torch::Tensor, N> tensors;
    for (std::size_t i = 0; i < N; ++i) tensors[i] = (*this)[i].tensor();
    return tensors;
  }
  /// The inputs: the tensor itself, or the first item of a list.
  const torch::Tensor& data() const { return is_list() ? (*this)[0].tensor() : tensor(); }
  /// The targets: the second item of a list.
  const torch::Tensor& target() const { return (*this)[1].tensor(); }

  /// Number of records: the first dimension of the first defined tensor in depth-first order; 0 when there is
  /// none.
  int64_t size() const;

  /// Returns a batch of the same structure with every defined tensor replaced by `change(tensor)`.
  template <typename Change>
  Batch map(const Change& change) const {
    if (const auto* tensor = std::get_if<torch::Tensor>(&value_))
      return tensor->defined() ? change(*tensor) : *tensor;
    if (const auto* items = std::get_if<List>(&value_)) {
      List changed;
      changed.reserve(items->size());
      for (const Batch& item : *items) changed.push_back(item.map(change));
      return changed;
    }
    Dict changed;
    for (const auto& [key, item] : std::get<Dict>(value_)) changed.emplace_back(key, item.map(change));
    return changed;
  }

 private:
  void expect_list_of(std::size_t count) const;
  std::variant<torch::Tensor, List, Dict> value_;
};

/// Stacks records (each without the batch dimension) into one batch, as torch.utils.data.default_collate. All
/// records must have the same structure, shapes and types. Throws std::invalid_argument with the path of the
/// first difference, for example `[1]["label"]`, and the two descriptions; also when `records` is empty.
Batch default_collate(const std::vector<Batch>& records);

/// Returns `batch` with every tensor on `device`. Copies from pinned memory to a GPU are asynchronous; copies
/// to the CPU are complete on return.
Batch to_device(const Batch& batch, const torch::Device& device);

}  // namespace det
