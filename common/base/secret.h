// Cryptographic randomness from the kernel, constant-time comparison, base64 and hexadecimal. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// Stands for a secret that is set, wherever settings and configurations are shown.
inline constexpr std::string_view kSecretMask = "****";

/// Returns bytes of getrandom(2). Aborts the process if the kernel has no randomness.
std::string random_bytes(std::size_t count);
/// Returns 256 random bits as 43 characters of base64url, for session tokens and generated passwords.
std::string random_token();
/// Returns an unpredictable version 4 UUID.
std::string uuid4();

/// Compares in constant time: the duration depends only on the lengths.
bool equal_secret(std::string_view a, std::string_view b);

/// Encodes as RFC 4648 base64 with padding.
std::string to_base64(std::string_view bytes);
/// Encodes as RFC 4648 section 5 (URL-safe alphabet) without padding.
std::string to_base64url(std::string_view bytes);
/// Decodes either alphabet, with or without padding. Errors: kInvalidArgument (any other character or
/// length).
Result<std::string> from_base64(std::string_view text);
/// Encodes as lower-case hexadecimal.
std::string to_hex(std::string_view bytes);

}  // namespace det
