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

  // A change of the key that is one transaction with a database: propose a key, encrypt everything with it
  // and store its name in one transaction, then settle. A process that dies in between settles at its next
  // start.

  /// Adds a random key as the line "next KEY", in place of an earlier one. It decrypts and does not encrypt.
  /// Returns a vault that encrypts with it. Errors: those of open().
  static Result<Vault> propose(const std::string& file);
  /// Makes the proposed key the first one if its name is `current`, else removes it. No effect without one,
  /// or without the file. Errors: those of open().
  static Status settle(const std::string& file, const std::string& current);

  /// Name of the key that encrypts.
  const std::string& key_id() const { return keys_.front().id; }
  /// Encrypts a text as "sealed:1:KEY:...". The nonce is derived from the text: equal texts are equal when
  /// sealed by the same key, so that rows remain comparable. A reader of the rows learns which secrets are
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
  /// The keys of a file, and the proposed one.
  struct Contents {
    std::vector<std::string> keys;  ///< base64, never empty
    std::string next;               ///< "" without one
  };
  Vault(std::string file, std::vector<Key> keys) : file_(std::move(file)), keys_(std::move(keys)) {}
  static Result<Contents> read(const std::string& file);
  static Status write(const std::string& file, const Contents& contents);
  static Vault make(const std::string& file, const std::vector<std::string>& keys);
  static Key make_key(const std::string& bytes);
  std::string file_;
  std::vector<Key> keys_;  ///< never empty
};

}  // namespace det
