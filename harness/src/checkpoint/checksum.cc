// CRC-32 and CRC-64, by ISA-L or else by zlib and a table.
#include "harness/src/checkpoint/checksum.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "common/base/fd.h"
#include "common/base/files.h"

#ifdef DET_HAVE_ISAL
#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#else
#include <zlib.h>
#endif

namespace det {
namespace {

const unsigned char* data_of(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

// ISA-L is optional. The table produces the same values, byte by byte.
#ifndef DET_HAVE_ISAL
constexpr std::array<std::uint64_t, 256> make_table() {
  // The polynomial of ECMA-182 with its bits reversed.
  constexpr std::uint64_t kReflected = 0xc96c5795d7870f42;
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t i = 0; i < table.size(); ++i) {
    std::uint64_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kReflected : 0);
    table[i] = value;
  }
  return table;
}
constexpr std::array<std::uint64_t, 256> kTable = make_table();
#endif

}  // namespace

std::uint32_t crc32_of(std::string_view bytes, std::uint32_t before) {
#ifdef DET_HAVE_ISAL
  return ::crc32_gzip_refl(before, data_of(bytes), bytes.size());
#else
  return static_cast<std::uint32_t>(::crc32_z(before, data_of(bytes), bytes.size()));
#endif
}

std::uint64_t crc64_of(std::string_view bytes, std::uint64_t before) {
#ifdef DET_HAVE_ISAL
  return ::crc64_ecma_refl(before, data_of(bytes), bytes.size());
#else
  std::uint64_t crc = ~before;
  const unsigned char* data = data_of(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) crc = kTable[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
  return ~crc;
#endif
}

std::string crc64_hex(std::uint64_t crc) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, crc >>= 4) text[i] = "0123456789abcdef"[crc & 15];
  return text;
}

Result<std::string> crc64_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(path);
  // Read-ahead: the file is read once, from start to end.
  (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  std::vector<char> buffer(1 << 20);
  std::uint64_t crc = 0;
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got == 0) return crc64_hex(crc);
    if (got < 0 && errno != EINTR) return fail_errno(path);
    if (got > 0) crc = crc64_of({buffer.data(), static_cast<std::size_t>(got)}, crc);
  }
}

}  // namespace det
