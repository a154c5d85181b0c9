#include "harness/src/checkpoint/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tuple>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/base/json.h"

namespace det::safetensors {
namespace {

/// Bytes; the limit of the reference implementation.
constexpr std::uint64_t kHeaderLimit = 100'000'000;

struct ElementType {
  std::string_view name;
  torch::ScalarType type;
};
constexpr std::array<ElementType, 10> kTypes{{
    {"F64", torch::kDouble},
    {"F32", torch::kFloat},
    {"F16", torch::kHalf},
    {"BF16", torch::kBFloat16},
    {"I64", torch::kLong},
    {"I32", torch::kInt},
    {"I16", torch::kShort},
    {"I8", torch::kChar},
    {"U8", torch::kByte},
    {"BOOL", torch::kBool},
}};

/// Position and type of one tensor; offsets are relative to the end of the header.
struct Place {
  std::uint64_t begin, end;
  std::string name;
  torch::ScalarType type;
  std::vector<std::int64_t> shape;
};

/// Reads one file. All header fields are untrusted and checked before memory is allocated for a tensor.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  pickle::Dict load() {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path_, error);
    if (!file_ || error) throw std::runtime_error(fail_errno(path_).value().message);
    std::array<unsigned char, 8> prefix{};
    if (size < prefix.size()) bad("is too short");
    read(prefix.data(), prefix.size(), 0);
    std::uint64_t length = 0;
    for (int i = 7; i >= 0; --i) length = length << 8 | prefix[i];
    if (length > kHeaderLimit) bad("has a header over 100 MB");
    if (length > size - prefix.size()) bad("is cut short");
    std::string header(length, '\0');
    read(header.data(), length, prefix.size());
    const std::uint64_t data = prefix.size() + length;
    pickle::Dict dict;
    for (const Place& place : places(header, size - data)) {
      torch::Tensor tensor = torch::empty(place.shape, place.type);
      read(tensor.data_ptr(), place.end - place.begin, data + place.begin);
      dict.add(place.name, tensor);
    }
    return dict;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const { throw std::runtime_error(path_ + ": " + what); }
  void read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
    auto* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(file_.get(), at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw std::runtime_error(fail_errno(path_).value().message);
      if (got == 0) bad("is cut short");
      at += got, bytes -= got, offset += got;
    }
  }

  /// Parses the header. Returns the tensors in the order of their data, which must fill `bytes` exactly.
  std::vector<Place> places(const std::string& header, std::uint64_t bytes) const {
    if (!header.starts_with('{')) bad("is no safetensors file");
    const auto json = parse_json(header, {.bytes = header.size(), .depth = 8});
    if (!json) bad("header: " + json.error().message);
    std::vector<Place> places;
    for (const auto& [name, entry] : json->items()) {
      if (name != "__metadata__") places.push_back(place(name, entry));
    }
    std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
      return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
    });
    std::uint64_t at = 0;
    for (const Place& place : places) {
      if (place.begin < at) bad(place.name + " overlaps another tensor");
      if (place.begin > at) bad(place.name + " leaves a gap before it");
      at = place.end;
    }
    if (at != bytes)
      bad("holds " + std::to_string(bytes) + " bytes of data, its tensors " + std::to_string(at));
    return places;
  }

  Place place(const std::string& name, const Json& entry) const {
    // Unsigned only: a negative number is invalid.
    const auto number = [&](const Json& value) {
      if (!value.is_number_unsigned()) bad(name + ": a size or an offset is no number");
      return value.get<std::uint64_t>();
    };
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") ||
        !entry.contains("data_offsets") || !entry["dtype"].is_string() || !entry["shape"].is_array() ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      bad(name + ": expected dtype, shape and data_offsets");
    }
    const auto type_name = entry["dtype"].get<std::string>();
    const auto type =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.name == type_name; });
    if (type == kTypes.end()) bad(name + ": elements of type " + type_name + " are not supported");
    Place place{number(entry["data_offsets"][0]), number(entry["data_offsets"][1]), name, type->type, {}};
    std::uint64_t expected = torch::elementSize(type->type);
    for (const Json& size : entry["shape"]) {
      place.shape.push_back(static_cast<std::int64_t>(number(size)));
      // The product is checked for overflow: a hostile shape must not wrap around to a small size.
      if (place.shape.back() < 0 || __builtin_mul_overflow(expected, number(size), &expected)) {
        bad(name + ": its shape is too large");
      }
    }
    if (place.end < place.begin || place.end - place.begin != expected) {
      bad(name + ": its shape needs " + std::to_string(expected) +
          " bytes, data_offsets give another number");
    }
    return place;
  }

  const std::string& path_;
  UniqueFd file_;
};

std::string_view type_name(torch::ScalarType type, const std::string& tensor, const std::string& path) {
  const auto found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& t) { return t.type == type; });
  if (found != kTypes.end()) return found->name;
  throw std::runtime_error(path + ": " + tensor + " has elements of type " + torch::toString(type) +
                           ", which safetensors cannot hold");
}

}  // namespace

void save(const pickle::Dict& tensors, const std::string& path) {
  std::vector<std::pair<std::string, torch::Tensor>> sorted;
  for (const auto& [name, value] : tensors.items) {
    sorted.emplace_back(name, pickle::expect<torch::Tensor>(value, name).detach());
  }
  // Widest elements first keeps every tensor aligned without padding, which the format forbids.
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : sorted) {
    header[name] = {{"dtype", type_name(tensor.scalar_type(), name, path)},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, at + tensor.nbytes()}}};
    at += tensor.nbytes();
  }
  std::string text = dump_json(header);
  // The header is padded with spaces so that the data starts at a multiple of 8.
  text.append((8 - text.size() % 8) % 8, ' ');
  std::string prefix(8, '\0');
  for (int i = 0; i < 8; ++i) prefix[i] = static_cast<char>(text.size() >> (8 * i));

  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const auto put = [&](std::string_view bytes) {
    const Status written = file ? write_all(file.get(), bytes) : Status(fail_errno(path));
    if (!written) throw std::runtime_error(path + ": " + written.error().message);
  };
  put(prefix + text);
  for (const auto& [name, tensor] : sorted) {
    const torch::Tensor plain = tensor.to(torch::kCPU).contiguous();
    put({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  }
  if (::fsync(file.get()) != 0) throw std::runtime_error(fail_errno(path).value().message);
}

pickle::Dict load(const std::string& path) { return Reader(path).load(); }

}  // namespace det::safetensors
