// The two checksums of a checkpoint's large file: CRC-32, required by ZIP, and CRC-64, for the manifest. With
// ISA-L (carry-less multiplication) both run at memory speed, otherwise zlib and a table are used.
// Thread-safe. Standard library only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// CRC-32/ISO-HDLC, as in zip, gzip and PNG. `before` is the CRC of the preceding bytes: `crc32_of(b,
/// crc32_of(a)) == crc32_of(a + b)`.
std::uint32_t crc32_of(std::string_view bytes, std::uint32_t before = 0);

/// CRC-64/XZ (polynomial of ECMA-182, reflected). Chained as crc32_of().
std::uint64_t crc64_of(std::string_view bytes, std::uint64_t before = 0);

/// The CRC as 16 lower-case hexadecimal digits.
std::string crc64_hex(std::uint64_t crc);
/// crc64_hex() of a file's content. Errors: those of reading it.
Result<std::string> crc64_file(const std::string& path);

}  // namespace det
