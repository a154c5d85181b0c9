// Pickle writer: protocol 2, restricted to opcodes that weights_only readers accept.
#include <bit>
#include <limits>
#include <stdexcept>

#include "harness/src/base/or_throw.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/pickle_types.h"
#include "harness/src/checkpoint/snapshot.h"

namespace det::pickle {

void Dict::add(std::string key, Value value) { items.emplace_back(std::move(key), std::move(value)); }

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : items) {
    if (name == key) return &value;
  }
  return nullptr;
}

namespace {

/// Opcodes that build an empty collections.OrderedDict.
constexpr std::string_view kOrderedDict = "ccollections\nOrderedDict\n)R";

/// Encodes one value. Each opcode is written with its operands; see Python's pickletools for their meaning.
class Writer {
 public:
  Encoded encode(const Value& value) {
    encoded_.pickle = "\x80\x02";
    std::visit([this](const auto& v) { put(v); }, value.data);
    out_ += '.';
    return std::move(encoded_);
  }

 private:
  void put(std::monostate) { out_ += 'N'; }
  void put(bool v) { out_ += v ? '\x88' : '\x89'; }
  void put(std::int64_t v) {
    // BININT holds 32 bits; LONG1 with eight bytes the rest.
    const bool small = v == static_cast<std::int32_t>(v);
    out_ += small ? "J" : "\x8a\x08";
    put_bytes(static_cast<std::uint64_t>(v), small ? 4 : 8);
  }
  /// BINFLOAT is big-endian, unlike every other number.
  void put(double v) {
    out_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(v);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }
  void put(const Foreign& v) { throw std::runtime_error(v.name + " cannot be saved"); }
  void put(const std::string& v) {
    if (v.size() > std::numeric_limits<std::uint32_t>::max())
      throw std::runtime_error("a text is over 4 GiB");
    out_ += 'X';
    put_bytes(v.size(), 4);
    out_ += v;
  }
  void put(const List& list) {
    out_ += "](";
    for (const Value& item : list) std::visit([this](const auto& v) { put(v); }, item.data);
    out_ += 'e';
  }
  void put(const Dict& dict) {
    out_ += kOrderedDict;
    out_ += '(';
    for (const auto& [key, item] : dict.items) {
      put(key);
      std::visit([this](const auto& v) { put(v); }, item.data);
    }
    out_ += 'u';
  }
  /// A call of _rebuild_tensor_v2(storage, offset, sizes, strides, requires_grad, hooks). The storage is a
  /// persistent id that names the zip entry data/<number>.
  void put(const torch::Tensor& tensor) {
    out_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    put(std::string("storage"));
    out_ += "ctorch\n";
    out_ += storage_name(tensor.scalar_type());
    out_ += '\n';
    put(std::to_string(encoded_.tensors.size()));
    put(std::string("cpu"));
    put(static_cast<std::int64_t>(tensor.numel()));
    out_ += "tQ";
    put(std::int64_t{0});
    put_tuple(tensor.sizes());
    put_tuple(kept_strides(tensor));
    out_ += '\x89';
    out_ += kOrderedDict;
    out_ += "tR";
    encoded_.tensors.push_back(tensor.detach());
  }
  void put_tuple(torch::IntArrayRef numbers) {
    out_ += '(';
    for (const std::int64_t number : numbers) put(number);
    out_ += 't';
  }
  void put_bytes(std::uint64_t v, int count) {
    for (int i = 0; i < count; ++i) out_ += static_cast<char>(v >> (8 * i));
  }
  static std::string_view storage_name(torch::ScalarType type) {
    for (const StorageClass& storage : kStorageClasses) {
      if (storage.type == type) return storage.name;
    }
    throw std::runtime_error(std::string("tensors of type ") + torch::toString(type) + " cannot be saved");
  }

  Encoded encoded_;
  std::string& out_ = encoded_.pickle;
};

}  // namespace

Encoded encode(const Value& value) { return Writer().encode(value); }

std::vector<std::int64_t> kept_strides(const torch::Tensor& tensor) {
  if (tensor.is_non_overlapping_and_dense()) return tensor.strides().vec();
  const auto strides = c10::contiguous_strides(tensor.sizes());
  return {strides.begin(), strides.end()};
}

void save(const Value& value, const std::string& path) {
  Snapshot snapshot(torch::kCPU);
  try {
    snapshot.take(value);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(path + ": " + error.what());
  }
  (void)value_or_throw(snapshot.write(path));
}

}  // namespace det::pickle
