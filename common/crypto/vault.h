// Encryption of secrets at rest (XChaCha20-Poly1305) with the keys of one file. Immutable, so thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace det {

/// A list of keys. The first one encrypts; each of them decrypts what it has encrypted.
class Vault {
 public:
  /// Reads the keys of `file`, or creates it (mode 0600) with one random key. A line "rotate" as the first
  /// line is replaced by a new key, which is stored before the call returns. Errors: those of files;
  /// kDataLoss (the file holds something else).
  static Result<Vault> open(const std::string& file);

  /// Name of the key that encrypts.
  const std::string& key_id() const { return keys_.front().id; }
  /// Encrypts a text as "sealed:1:KEY:...". The nonce is derived from the text: equal texts are equal when
  /// sealed by the same key, so that rows remain comparable. Who reads the rows learns which secrets are
  /// equal.
  std::string seal(std::string_view text) const;
  /// Decrypts. Errors: kDataLoss (not sealed, altered, or sealed by a key that the file no longer has).
  Result<std::string> unseal(std::string_view sealed) const;
  /// Whether a text has the form of seal().
  static bool is_sealed(std::string_view text);

 private:
  struct Key {
    std::string id;     ///< 16 hexadecimal digits of its digest
    std::string bytes;  ///< 32 bytes
  };
  Vault(std::string file, std::vector<Key> keys) : file_(std::move(file)), keys_(std::move(keys)) {}
  static Key make_key(const std::string& bytes);
  std::string file_;
  std::vector<Key> keys_;  ///< never empty
};

}  // namespace det
