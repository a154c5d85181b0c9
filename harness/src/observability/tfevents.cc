#include "harness/src/observability/tfevents.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/secret.h"

namespace det {
namespace {

/// Bytes buffered before add_scalar() flushes.
constexpr std::size_t kMaxUnwritten = 64 << 10;

/// The table for the reflected polynomial 0x82f63b78.
constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr auto kCrcTable = crc_table();

template <typename Unsigned>
void put_little_endian(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

// Protobuf wire format: a key is field number * 8 + wire type (0 varint, 1 eight bytes, 2
// length-delimited, 5 four bytes).
void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) * 8 + 2);
  put_varint(out, bytes.size());
  out.append(bytes);
}
void put_double(std::string& out, int field, double value) {
  put_varint(out, static_cast<std::uint64_t>(field) * 8 + 1);
  put_little_endian(out, std::bit_cast<std::uint64_t>(value));
}
void put_float(std::string& out, int field, float value) {
  put_varint(out, static_cast<std::uint64_t>(field) * 8 + 5);
  put_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

/// An Event message with its wall_time.
std::string event_now() {
  std::string event;
  put_double(event, 1, static_cast<double>(wall_now().micros) * 1e-6);  // wall_time
  return event;
}

/// Appends one TFRecord.
void put_record(std::string& out, const std::string& content) {
  std::string length;
  put_little_endian(length, static_cast<std::uint64_t>(content.size()));
  out += length;
  put_little_endian(out, masked_crc32c(length));
  out += content;
  put_little_endian(out, masked_crc32c(content));
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

Result<TensorBoardWriter> TensorBoardWriter::create(const std::string& directory) {
  TRY(make_directories(directory));
  const std::string seconds = std::to_string(wall_now().micros / 1'000'000);
  // TensorBoard finds files by "tfevents" in the name. In the sandbox every run has the same process id.
  std::string path =
      directory + "/events.out.tfevents." + seconds + "." + host_name() + "." + to_hex(random_bytes(8));
  UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644));
  if (!file) return fail_errno(path);
  TensorBoardWriter writer(std::move(file), std::move(path));
  std::string event = event_now();
  put_bytes(event, 3, "brain.Event:2");  // file_version
  put_record(writer.unwritten_, event);
  TRY(writer.flush());
  return writer;
}

TensorBoardWriter::~TensorBoardWriter() {
  if (file_) (void)flush();
}

Status TensorBoardWriter::add_scalar(std::string_view tag, double value, std::int64_t step) {
  std::string scalar;  // Summary.Value
  put_bytes(scalar, 1, tag);
  put_float(scalar, 2, static_cast<float>(value));  // simple_value
  std::string summary;
  put_bytes(summary, 1, scalar);
  std::string event = event_now();
  put_varint(event, 2 * 8);
  put_varint(event, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);
  put_record(unwritten_, event);
  return unwritten_.size() < kMaxUnwritten ? Status() : flush();
}

Status TensorBoardWriter::flush() {
  const std::string bytes = std::exchange(unwritten_, {});
  return bytes.empty() ? Status() : write_all(file_.get(), bytes);
}

}  // namespace det
