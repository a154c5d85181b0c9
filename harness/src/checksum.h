// Owns the two checksums of a checkpoint's large file: CRC-32, which ZIP asks for, and CRC-64, which the
// manifest keeps. Both at the speed of memory where ISA-L is (the CPU's carry-less multiplication), else by
// zlib and a table. Standard library only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// CRC-32/ISO-HDLC (that of zip, gzip and PNG). Pieces chain: `crc32(b, crc32(a)) == crc32(a + b)`.
std::uint32_t crc32_of(std::string_view bytes, std::uint32_t before = 0);

/// CRC-64/XZ (ECMA-182's polynomial, reflected). Chains in the same way.
std::uint64_t crc64_of(std::string_view bytes, std::uint64_t before = 0);

/// 16 lower-case hexadecimal digits.
std::string crc64_hex(std::uint64_t crc);
/// crc64_hex of a file's content.
Result<std::string> crc64_file(const std::string& path);

}  // namespace det
