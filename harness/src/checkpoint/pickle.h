// Reads and writes state_dict.pth: PyTorch's zip of one pickle and raw tensor data. Files open with Python's
// torch.load, also with weights_only=True from PyTorch 2.0 on (the reader of 1.13 rejects floats). The reader
// interprets only the opcodes that such files need and never runs code: the only names accepted are PyTorch's
// tensor types and builders. NumPy objects are skipped and leave a Foreign marker.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace det::pickle {

struct Value;
using List = std::vector<Value>;

/// An ordered dictionary with unique string keys; an OrderedDict in Python. Integer keys in a file
/// are read as their decimal text.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;

  /// Appends an entry; the caller guarantees a new key.
  void add(std::string key, Value value);
  /// Returns null when the key is absent. Linear search.
  const Value* find(std::string_view key) const;
};

/// Marks the position of a NumPy object in a file; its content is not read.
struct Foreign {
  std::string name;  ///< the Python callable that builds it
};

/// One object of a pickle. std::monostate is None; Python tuples and lists are both List.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict, torch::Tensor, Foreign>
      data;

  Value() = default;
  Value(bool v) : data(v) {}
  Value(std::int64_t v) : data(v) {}
  Value(double v) : data(v) {}
  Value(std::string v) : data(std::move(v)) {}
  Value(List v) : data(std::move(v)) {}
  Value(Dict v) : data(std::move(v)) {}
  Value(torch::Tensor v) : data(std::move(v)) {}
  Value(Foreign v) : data(std::move(v)) {}

  /// Null when the value has another type.
  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
};

/// JSON as plain data. Numbers keep their kind (integer or float) and bits.
Value to_value(const nlohmann::ordered_json& json);
/// Plain data as JSON; one-element tensors become numbers. Throws std::runtime_error naming `name` for a
/// larger tensor or a Foreign.
nlohmann::ordered_json from_value(const Value& value, const std::string& name);

/// A file before it is written: the pickle, and the tensors it refers to. The bytes of a tensor go
/// into a zip entry of their own. Tensors are those passed in (device, strides); kept_strides()
/// gives their layout in the file.
struct Encoded {
  std::string pickle;
  std::vector<torch::Tensor> tensors;
};
/// Throws std::runtime_error when a tensor's element type cannot be saved.
Encoded encode(const Value& value);
/// The strides of a tensor in the file: its own when its elements are dense in memory, else contiguous ones.
std::vector<std::int64_t> kept_strides(const torch::Tensor& tensor);

/// Writes `value` to a new file and syncs it. Tensors on a device are copied to the CPU. Throws
/// std::runtime_error naming the file.
void save(const Value& value, const std::string& path);

/// Reads a file written by save() or by Python's torch.save. The tensors are views of a private mapping of
/// the file: copy them; writes to them do not reach the file. Throws std::runtime_error naming the file and
/// the problem: damaged, truncated, or holding objects that are not plain data.
Value load(const std::string& path);

/// value[name] of a dict. Throws std::runtime_error when it is missing.
const Value& member(const Value& value, const char* name);
/// Throws std::runtime_error "checkpoint does not fit: <what>".
[[noreturn]] void misfit(const std::string& what);
/// Throws std::runtime_error for a value `name` of an unexpected type.
[[noreturn]] void wrong_kind(const Value& value, const std::string& name);
/// The value as a T. Throws std::runtime_error naming `name` when it has another type.
template <typename T>
const T& expect(const Value& value, const std::string& name) {
  const T* data = value.as<T>();
  if (data == nullptr) wrong_kind(value, name);
  return *data;
}

}  // namespace det::pickle
