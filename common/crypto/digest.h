// SHA-256. Target det_crypto; det_archive links it too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/result.h"

namespace det {

/// Incremental SHA-256. One object computes one digest. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();
  /// Appends bytes to the input. May be called repeatedly.
  void update(std::string_view bytes);
  /// Finishes and returns 64 lower-case hexadecimal digits. The object must not be used afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Digest of a string as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);
/// Digest of a file, which is read in pieces of 256 KiB. Errors: those of fail_errno (common/base/files.h).
Result<std::string> sha256_file(const std::string& path);

}  // namespace det
