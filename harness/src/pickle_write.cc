// Owns writing state_dict.pth: pickle protocol 2, of which weights_only readers know every opcode used here.
#include <bit>
#include <stdexcept>

#include "pickle.h"
#include "pickle_types.h"
#include "zip.h"

namespace det::pickle {

void Dict::add(std::string key, Value value) { items.emplace_back(std::move(key), std::move(value)); }

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : items) {
    if (name == key) return &value;
  }
  return nullptr;
}

namespace {

constexpr std::string_view kOrderedDict = "ccollections\nOrderedDict\n)R";

class Writer {
 public:
  explicit Writer(std::string path) : path_(std::move(path)), zip_(path_) {}

  void save(const Value& value) {
    out_ = "\x80\x02";
    std::visit([this](const auto& v) { put(v); }, value.data);
    out_ += '.';
    zip_.add("archive/data.pkl", out_);
    zip_.add("archive/byteorder", "little");
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      zip_.add("archive/data/" + std::to_string(i),
               {static_cast<const char*>(tensors_[i].data_ptr()), tensors_[i].nbytes()});
    }
    zip_.add("archive/version", "3\n");
    zip_.finish();
  }

 private:
  void put(std::monostate) { out_ += 'N'; }
  void put(bool v) { out_ += v ? '\x88' : '\x89'; }
  void put(std::int64_t v) {
    const bool small = v == static_cast<std::int32_t>(v);
    out_ += small ? "J" : "\x8a\x08";
    put_bytes(static_cast<std::uint64_t>(v), small ? 4 : 8);
  }
  void put(double v) {
    out_ += 'G';
    const auto bits = std::bit_cast<std::uint64_t>(v);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift);
  }
  void put(const std::string& v) {
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
  void put(const torch::Tensor& tensor) {
    const torch::Tensor plain = tensor.detach().to(torch::kCPU).contiguous();
    out_ += "ctorch._utils\n_rebuild_tensor_v2\n((";
    put(std::string("storage"));
    out_ += "ctorch\n";
    out_ += storage_name(plain.scalar_type());
    out_ += '\n';
    put(std::to_string(tensors_.size()));
    put(std::string("cpu"));
    put(static_cast<std::int64_t>(plain.numel()));
    out_ += "tQ";
    put(std::int64_t{0});
    put_tuple(plain.sizes());
    put_tuple(plain.strides());
    out_ += '\x89';
    out_ += kOrderedDict;
    out_ += "tR";
    tensors_.push_back(plain);
  }
  void put_tuple(torch::IntArrayRef numbers) {
    out_ += '(';
    for (const std::int64_t number : numbers) put(number);
    out_ += 't';
  }
  void put_bytes(std::uint64_t v, int count) {
    for (int i = 0; i < count; ++i) out_ += static_cast<char>(v >> (8 * i));
  }
  std::string_view storage_name(torch::ScalarType type) const {
    for (const StorageClass& storage : kStorageClasses) {
      if (storage.type == type) return storage.name;
    }
    throw std::runtime_error(path_ + ": tensors of type " + torch::toString(type) + " cannot be saved");
  }

  std::string path_;
  ZipWriter zip_;
  std::string out_;
  std::vector<torch::Tensor> tensors_;
};

}  // namespace

void save(const Value& value, const std::string& path) { Writer(path).save(value); }

}  // namespace det::pickle
