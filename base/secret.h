// Owns what must not be guessed, and the text forms of bytes. Randomness comes from the kernel.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// From getrandom(2); ends the process when the kernel has none to give.
std::string random_bytes(std::size_t count);
/// 256 bits as 43 characters of base64url: session tokens, passwords made for users.
std::string random_token();
/// A random (version 4) UUID that nobody can guess.
std::string uuid4();

/// Equal, in time that depends on the lengths alone.
bool equal_secret(std::string_view a, std::string_view b);

/// RFC 4648 with padding.
std::string to_base64(std::string_view bytes);
/// RFC 4648 §5 without padding.
std::string to_base64url(std::string_view bytes);
/// Reads both alphabets; padding may be absent, nothing else may be.
Result<std::string> from_base64(std::string_view text);
/// Lower-case hexadecimal.
std::string to_hex(std::string_view bytes);

}  // namespace det
