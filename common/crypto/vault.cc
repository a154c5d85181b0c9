#include "common/crypto/vault.h"

#include <sodium.h>

#include <algorithm>

#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"

namespace det {
namespace {

constexpr std::string_view kSealedPrefix = "sealed:1:";
constexpr std::size_t kKeyId = 16, kKeyBytes = crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
                      kNonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
                      kTag = crypto_aead_xchacha20poly1305_ietf_ABYTES;
constexpr std::int64_t kMaxKeyFile = 1 << 16;
// First word of the line with a proposed key.
constexpr std::string_view kNext = "next ";

const unsigned char* raw(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* raw(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

/// Keyed BLAKE2b.
std::string keyed_digest(std::string_view key, std::string_view text, std::size_t size) {
  std::string out(size, '\0');
  crypto_generichash(raw(out), size, raw(text), text.size(), raw(key), key.size());
  return out;
}

}  // namespace

Vault::Key Vault::make_key(const std::string& bytes) {
  return {.id = sha256_hex("determinant key " + bytes).substr(0, kKeyId), .bytes = bytes};
}

Result<Vault::Contents> Vault::read(const std::string& file) {
  TRY_ASSIGN(const std::string text,
             path_exists(file) ? read_file(file, kMaxKeyFile) : std::string("rotate\n"));
  Contents contents;
  bool changed = false;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    std::string word(trim(line));
    if (word.empty()) continue;
    const bool next = word.starts_with(kNext);
    if (next) word = trim(std::string_view(word).substr(kNext.size()));
    if (word == "rotate" && contents.keys.empty()) {
      word = to_base64(random_bytes(kKeyBytes));
      changed = true;
    }
    const auto bytes = from_base64(word);
    if (!bytes || bytes->size() != kKeyBytes || (next && !contents.next.empty()))
      return fail(Code::kDataLoss, file + " is not a file of keys: line " + std::to_string(number) +
                                       " is not 32 bytes in base64; restore it from a backup");
    if (next) {
      contents.next = word;
    } else {
      contents.keys.push_back(word);
    }
  }
  if (contents.keys.empty()) return fail(Code::kDataLoss, file + " has no key; restore it from a backup");
  if (changed) TRY(write(file, contents));
  return contents;
}

Status Vault::write(const std::string& file, const Contents& contents) {
  std::string text;
  for (const std::string& key : contents.keys) text += key + "\n";
  if (!contents.next.empty()) text += std::string(kNext) + contents.next + "\n";
  return write_file_atomic(file, text, 0600);
}

Vault Vault::make(const std::string& file, const std::vector<std::string>& keys) {
  std::vector<Key> all;
  for (const std::string& key : keys) all.push_back(make_key(*from_base64(key)));
  return {file, std::move(all)};
}

Result<Vault> Vault::open(const std::string& file) {
  TRY_ASSIGN(Contents contents, read(file));
  if (!contents.next.empty()) contents.keys.push_back(contents.next);
  return make(file, contents.keys);
}

Result<Vault> Vault::propose(const std::string& file) {
  TRY_ASSIGN(Contents contents, read(file));
  contents.next = to_base64(random_bytes(kKeyBytes));
  TRY(write(file, contents));
  contents.keys.insert(contents.keys.begin(), contents.next);
  return make(file, contents.keys);
}

Status Vault::settle(const std::string& file, const std::string& current) {
  if (!path_exists(file)) return {};
  TRY_ASSIGN(Contents contents, read(file));
  if (contents.next.empty()) return {};
  if (make_key(*from_base64(contents.next)).id == current)
    contents.keys.insert(contents.keys.begin(), contents.next);
  contents.next.clear();
  return write(file, contents);
}

std::string Vault::seal(std::string_view text) const {
  const Key& key = keys_.front();
  const std::string prefix = std::string(kSealedPrefix) + key.id + ":";
  // Separate keys for the nonce and for the cipher.
  std::string nonce = keyed_digest(keyed_digest(key.bytes, "nonce", kKeyBytes), text, kNonce);
  const std::string cipher_key = keyed_digest(key.bytes, "cipher", kKeyBytes);
  std::string cipher(text.size() + kTag, '\0');
  crypto_aead_xchacha20poly1305_ietf_encrypt(raw(cipher), nullptr, raw(text), text.size(), raw(prefix),
                                             prefix.size(), nullptr, raw(nonce), raw(cipher_key));
  return prefix + to_base64url(nonce + cipher);
}

Result<std::string> Vault::unseal(std::string_view sealed) const {
  const auto broken = [](const std::string& why) {
    return fail(Code::kDataLoss, "a stored secret cannot be decrypted: " + why);
  };
  if (!is_sealed(sealed)) return broken("it is not sealed");
  const std::string prefix(sealed.substr(0, kSealedPrefix.size() + kKeyId + 1));
  const std::string id = prefix.substr(kSealedPrefix.size(), kKeyId);
  const auto key = std::find_if(keys_.begin(), keys_.end(), [&](const Key& one) { return one.id == id; });
  if (key == keys_.end())
    return broken(file_ + " does not have its key " + id + "; restore the file from a backup");
  const auto bytes = from_base64(sealed.substr(prefix.size()));
  if (!bytes || bytes->size() < kNonce + kTag) return broken("it was altered");
  const std::string nonce = bytes->substr(0, kNonce), cipher = bytes->substr(kNonce);
  const std::string cipher_key = keyed_digest(key->bytes, "cipher", kKeyBytes);
  std::string text(cipher.size() - kTag, '\0');
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(raw(text), nullptr, nullptr, raw(cipher), cipher.size(),
                                                 raw(prefix), prefix.size(), raw(nonce),
                                                 raw(cipher_key)) != 0)
    return broken("it was altered");
  return text;
}

bool Vault::is_sealed(std::string_view text) {
  return text.starts_with(kSealedPrefix) && text.size() > kSealedPrefix.size() + kKeyId &&
         text[kSealedPrefix.size() + kKeyId] == ':';
}

}  // namespace det
