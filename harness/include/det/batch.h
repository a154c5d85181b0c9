// Owns Batch: what a loader hands out.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace det {

/// Some records: a tensor, a list, a dict, or any nest of these. The first dimension of every tensor counts
/// the records. Most batches are pairs: `auto [images, labels] = batch.unpack<2>();`, or batch.data() and
/// batch.target(). A record of a dataset is the same thing without the first dimension. Copies share their
/// tensors.
class Batch {
 public:
  using List = std::vector<Batch>;
  /// In the order written; names are unique.
  using Dict = std::vector<std::pair<std::string, Batch>>;

  Batch() = default;  ///< one undefined tensor
  Batch(torch::Tensor tensor) : value_(std::move(tensor)) {}
  Batch(torch::Tensor data, torch::Tensor target) : value_(List{std::move(data), std::move(target)}) {}
  Batch(List list) : value_(std::move(list)) {}
  Batch(Dict dict) : value_(std::move(dict)) {}

  bool is_tensor() const { return std::holds_alternative<torch::Tensor>(value_); }
  bool is_list() const { return std::holds_alternative<List>(value_); }
  bool is_dict() const { return std::holds_alternative<Dict>(value_); }

  // These throw std::invalid_argument that names what the batch is instead.
  const torch::Tensor& tensor() const;
  const List& list() const;
  const Dict& dict() const;
  const Batch& operator[](std::size_t index) const;       ///< of a list
  const Batch& operator[](const std::string& key) const;  ///< of a dict; the message names the keys there are
  /// The tensors of a list of N.
  template <std::size_t N>
  std::array<torch::Tensor, N> unpack() const {
    expect_list_of(N);
    std::array<torch::Tensor, N> tensors;
    for (std::size_t i = 0; i < N; ++i) tensors[i] = (*this)[i].tensor();
    return tensors;
  }
  /// The tensor itself, or the first of a list.
  const torch::Tensor& data() const { return is_list() ? (*this)[0].tensor() : tensor(); }
  /// The second of a list.
  const torch::Tensor& target() const { return (*this)[1].tensor(); }

  /// The first dimension of the first defined tensor found; 0 when there is none.
  int64_t size() const;

  /// The same nest with `change(tensor)` in place of every defined tensor.
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

/// One batch of records (each without the first dimension): their tensors are stacked. All must have the same
/// structure, shapes and types; throws std::invalid_argument that says where they differ, as `[1]["label"]`,
/// and how.
Batch default_collate(const std::vector<Batch>& records);

/// A batch whose tensors are on `device`; copies from pinned memory do not wait.
Batch to_device(const Batch& batch, const torch::Device& device);

}  // namespace det
