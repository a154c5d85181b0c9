// Owns SHA-256. (Target det_crypto, or det_archive, which brings it.)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace det {

/// Fed piece by piece; one result.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();
  void update(std::string_view bytes);
  /// 64 lower-case hexadecimal digits. The object must not be used afterwards.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view bytes);
/// Reads the file in pieces.
Result<std::string> sha256_file(const std::string& path);

}  // namespace det
