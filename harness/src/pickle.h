// Owns state_dict.pth: PyTorch's file format (a zip of one pickle and raw tensor data), written so that Python's
// torch.load opens it, also with weights_only=True, and read by an interpreter of the few opcodes such files need.
// Reading never runs code: the only names a file may mention are PyTorch's tensor types and builders.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace det::pickle {

struct Value;
using List = std::vector<Value>;

/// Keys are strings, unique, in the order written; an OrderedDict in Python.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;

  void add(std::string key, Value value);
  /// Null when absent.
  const Value* find(std::string_view key) const;
};

struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict, torch::Tensor> data;

  Value() = default;
  Value(bool v) : data(v) {}
  Value(std::int64_t v) : data(v) {}
  Value(double v) : data(v) {}
  Value(std::string v) : data(std::move(v)) {}
  Value(List v) : data(std::move(v)) {}
  Value(Dict v) : data(std::move(v)) {}
  Value(torch::Tensor v) : data(std::move(v)) {}

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
};

/// Writes `value` to a new file. Tensors on a device are copied to the CPU. Throws std::runtime_error naming the file.
void save(const Value& value, const std::string& path);

/// Reads a file that save() or Python's torch.save wrote. Throws std::runtime_error naming the file and what is wrong
/// with it: damaged, cut, or holding objects that are not plain data.
Value load(const std::string& path);

}  // namespace det::pickle
