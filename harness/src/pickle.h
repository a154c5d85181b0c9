// Owns state_dict.pth: PyTorch's file format (a zip of one pickle and raw tensor data), written so that
// Python's torch.load opens it, also with weights_only=True (from 2.0 on: the reader of 1.13 knows no
// floats), and read by an interpreter of the few opcodes such files need. Reading never runs code: the only
// names a file may mention are PyTorch's tensor types and builders. NumPy's are passed over: what they would
// have built can be told from None, and no more.
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

/// Keys are strings, unique, in the order written; an OrderedDict in Python. A number that is a key in a file
/// is read as its decimal text.
struct Dict {
  std::vector<std::pair<std::string, Value>> items;

  void add(std::string key, Value value);
  /// Null when absent.
  const Value* find(std::string_view key) const;
};

/// In the place of an object of NumPy that a file holds.
struct Foreign {
  std::string name;  ///< of what builds it in Python
};

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

  template <typename T>
  const T* as() const {
    return std::get_if<T>(&data);
  }
};

/// JSON as plain data, and back. Numbers keep their kind and bits. from_value throws std::runtime_error
/// naming `name` when there is a tensor of more than one element, or Foreign.
Value to_value(const nlohmann::ordered_json& json);
nlohmann::ordered_json from_value(const Value& value, const std::string& name);

/// What a file is made of: the pickle, and the tensors it speaks of, whose bytes go into entries of their
/// own. A tensor is as it was given (device, strides); kept_strides() says how its bytes lie in the file.
struct Encoded {
  std::string pickle;
  std::vector<torch::Tensor> tensors;
};
/// Throws std::runtime_error when a tensor's element type cannot be saved.
Encoded encode(const Value& value);
/// The tensor's own when its elements fill their memory without gaps; else contiguous.
std::vector<std::int64_t> kept_strides(const torch::Tensor& tensor);

/// Writes `value` to a new file, durably. Tensors on a device are copied to the CPU. Throws
/// std::runtime_error naming the file.
void save(const Value& value, const std::string& path);

/// Reads a file that save() or Python's torch.save wrote. Its tensors are views of the mapped file: copy
/// them; what is written into them is lost. Throws std::runtime_error naming the file and what is wrong with
/// it: damaged, cut, or holding objects that are not plain data.
Value load(const std::string& path);

/// value[name] of a dict. Throws std::runtime_error when there is none.
const Value& member(const Value& value, const char* name);
/// `name` is of another kind, "is missing"…: throws what does not fit a checkpoint.
[[noreturn]] void misfit(const std::string& what);
[[noreturn]] void wrong_kind(const Value& value, const std::string& name);
/// The value as a T. Throws std::runtime_error naming `name`.
template <typename T>
const T& expect(const Value& value, const std::string& name) {
  const T* data = value.as<T>();
  if (data == nullptr) wrong_kind(value, name);
  return *data;
}

}  // namespace det::pickle
