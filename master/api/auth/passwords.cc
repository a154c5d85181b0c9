// Password functions on top of libsodium.
#include "master/api/auth/passwords.h"

#include <crypt.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "common/base/secret.h"
#include "common/base/text.h"

namespace det::api {
namespace {

// The fixed salt of Determined AI's clients. It is part of their protocol; the stored hash has its own salt.
constexpr std::string_view kSalt = "GubPEmmotfiK9TMD6Zdw";
constexpr std::size_t kMaxPassword = 1024;
constexpr int kFreeGuesses = 5;
constexpr int kPerMinute = 60;
constexpr Duration kMaxLoginWait = std::chrono::minutes(15);
constexpr std::size_t kMaxThrottledLogins = 100'000;

std::string pair_key(const std::string& user, const std::string& address) {
  return to_lower(user) + '\0' + address;
}

/// Verifies a hash of Determined AI (bcrypt), which imported users have. bcrypt reads the first 72 bytes.
bool verify_bcrypt(const std::string& hash, const std::string& form) {
  const auto work = std::make_unique<crypt_data>();
  const char* found = ::crypt_r(form.c_str(), hash.c_str(), work.get());
  return found != nullptr && hash.size() == std::string_view(found).size() &&
         sodium_memcmp(found, hash.data(), hash.size()) == 0;
}

tl::unexpected<Error> refuse(const char* reason) {
  return fail({{.code = "E-USER", .path = "password", .message = reason}});
}

}  // namespace

Result<std::string> password_form(std::string_view password, bool is_hashed) {
  if (password.empty()) return refuse("is empty");
  if (password.size() > kMaxPassword) return refuse("is longer than 1024 bytes");
  if (is_hashed) {
    const std::string form = to_lower(password);
    if (form.size() != 2 * crypto_hash_sha512_BYTES ||
        form.find_first_not_of("0123456789abcdef") != form.npos) {
      return refuse("is said to be hashed but is no SHA-512 in hexadecimal");
    }
    return form;
  }
  const std::string salted = std::string(kSalt) + std::string(password);
  std::string digest(crypto_hash_sha512_BYTES, '\0');
  crypto_hash_sha512(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(salted.data()), salted.size());
  return to_hex(digest);
}

Status check_password(std::string_view password, bool is_hashed, const std::string& user) {
  // Common first guesses, in lower case.
  static constexpr std::array kTried = {
      "password",      "password1",        "password12",     "password123", "password1234", "passw0rd",
      "p@ssw0rd",      "p@ssword1",        "changeme",       "changeme1",   "changeme123",  "change_me",
      "determined",    "determined1",      "determined123",  "admin",       "admin123",     "admin1234",
      "administrator", "letmein1",         "welcome1",       "welcome123",  "12345678",     "123456789",
      "1234567890",    "123456789012",     "qwertyuiop",     "qwerty123",   "1q2w3e4r",     "1q2w3e4r5t",
      "iloveyou1",     "abc12345",         "abcd1234",       "secret123",   "default1",     "testtest1",
      "test1234",      "passwordpassword", "adminadminadmin"};
  TRY_ASSIGN(const std::string form, password_form(password, is_hashed));
  const std::string name = to_lower(user);
  for (const std::string& tried : {name, name + name, name + "1", name + "123"})
    if (form == *password_form(tried.empty() ? "x" : tried, false) || to_lower(password) == tried)
      return refuse("is the user's name; choose another");
  for (const char* tried : kTried)
    if (form == *password_form(tried, false) || to_lower(password) == tried)
      return refuse("is a common first guess; choose another");
  // The characters of a hashed password cannot be inspected.
  if (is_hashed) return {};
  bool lower = false, upper = false, digit = false, other = false;
  for (const unsigned char c : password) {
    if (std::islower(c))
      lower = true;
    else if (std::isupper(c))
      upper = true;
    else if (std::isdigit(c))
      digit = true;
    else
      other = true;
  }
  if (password.size() >= 12 || (password.size() >= 8 && lower + upper + digit + other >= 3)) return {};
  return refuse(
      "is too easy: at least 12 characters, or 8 with three of lower case, upper case, digits and others");
}

std::string hash_password(const std::string& form) {
  char out[crypto_pwhash_STRBYTES];
  // Fails only when memory cannot be allocated.
  if (sodium_init() < 0 ||
      crypto_pwhash_str_alg(out, form.data(), form.size(), 2, 19 << 20, crypto_pwhash_ALG_ARGON2ID13) != 0) {
    std::abort();
  }
  return out;
}

bool verify_password(const std::string& hash, const std::string& form) {
  if (sodium_init() < 0 || hash.size() >= crypto_pwhash_STRBYTES) return false;
  if (hash.starts_with("$2")) return verify_bcrypt(hash, form);
  // The hash contains its parameters and salt.
  return crypto_pwhash_str_verify(hash.c_str(), form.data(), form.size()) == 0;
}

const std::string& decoy_hash() {
  static const std::string hash = hash_password(random_token());
  return hash;
}

Status Throttle::allow(const std::string& user, const std::string& address, MonoTime now) {
  forget_old(now);
  auto wait = [](Duration time) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
    return fail(Code::kResourceExhausted,
                "too many failed logins; try again in " + std::to_string(seconds) + " s");
  };
  auto pair = pairs_.find(pair_key(user, address));
  if (pair != pairs_.end() && pair->second.next > now) return wait(pair->second.next - now);
  Minute& minute = addresses_[address];
  if (minute.guesses == 0 || now - minute.start >= std::chrono::minutes(1)) minute = {now, 0};
  if (minute.guesses >= kPerMinute) return wait(minute.start + std::chrono::minutes(1) - now);
  return {};
}

void Throttle::failed(const std::string& user, const std::string& address, MonoTime now) {
  Guesses& guesses = pairs_[pair_key(user, address)];
  ++guesses.failures;
  ++addresses_[address].guesses;
  if (guesses.failures >= kFreeGuesses) {
    // Bounds the shift; the wait itself is bounded by kMaxLoginWait.
    const int doublings = std::min(guesses.failures - kFreeGuesses, 10);
    guesses.next = now + std::min<Duration>(std::chrono::seconds(1 << doublings), kMaxLoginWait);
  } else {
    guesses.next = now;
  }
}

void Throttle::succeeded(const std::string& user, const std::string& address) {
  pairs_.erase(pair_key(user, address));
}

void Throttle::forget_old(MonoTime now) {
  // In three steps: entries idle for 15 min, then all that cause no wait, then any.
  if (pairs_.size() > kMaxThrottledLogins) {
    std::erase_if(pairs_, [&](const auto& entry) { return entry.second.next + kMaxLoginWait <= now; });
    if (pairs_.size() > kMaxThrottledLogins)
      std::erase_if(pairs_, [&](const auto& entry) { return entry.second.next <= now; });
    while (pairs_.size() > kMaxThrottledLogins) pairs_.erase(pairs_.begin());
  }
  if (addresses_.size() > kMaxThrottledLogins) {
    std::erase_if(addresses_,
                  [&](const auto& entry) { return now - entry.second.start >= std::chrono::minutes(1); });
    while (addresses_.size() > kMaxThrottledLogins) addresses_.erase(addresses_.begin());
  }
}

}  // namespace det::api
