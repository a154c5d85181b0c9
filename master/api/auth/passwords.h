// Hashing and verification of passwords, rules for new ones, and the throttle of login attempts.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/result.h"

namespace det::api {

/// Normalizes a password to what clients of Determined AI send with is_hashed: sha512("GubPEmmotfiK9TMD6Zdw"
/// + password) in hex. Errors: a Problem of the field "password" for an empty password, one of more than
/// 1,024 bytes, or text that is not such a hash.
Result<std::string> password_form(std::string_view password, bool is_hashed);
/// Checks the rules for new passwords. Errors: a Problem of the field "password" for fewer than 8 characters,
/// for fewer than 12 with less than three of lower case, upper case, digits and others, for a common
/// password, and for the user's name. For a hashed password only the last two can be checked.
Status check_password(std::string_view password, bool is_hashed, const std::string& user);
/// Hashes a normalized password with Argon2id (19 MiB, 2 passes) and a random salt. About 20 ms of CPU.
/// Aborts the process when memory runs out.
std::string hash_password(const std::string& form);
/// Whether a normalized password matches a hash of hash_password(), or of Determined AI (bcrypt). As
/// expensive as hash_password().
bool verify_password(const std::string& hash, const std::string& form);
/// A hash that no password matches. Verifying it makes a login with an unknown name take as long as others.
const std::string& decoy_hash();

/// Counts failed logins per (user, address) and per address. A device with a valid session has its session in
/// place of an address. Not thread-safe. Memory is bounded: beyond 100,000 entries those that do not delay
/// anyone are dropped first, the longest idle ones before the others.
class Throttle {
 public:
  /// Errors: kResourceExhausted with the seconds to wait. From the fifth failure of a pair on, the wait
  /// doubles from 1 s to 15 min. An address may fail 60 times a minute.
  Status allow(const std::string& user, const std::string& address, MonoTime now);
  /// Records a failed attempt.
  void failed(const std::string& user, const std::string& address, MonoTime now);
  /// Resets the pair. The count of the address stays: it protects the other users.
  void succeeded(const std::string& user, const std::string& address);

 private:
  struct Guesses {
    int failures = 0;
    MonoTime next;  ///< earliest next attempt
  };
  // Failures of an address within a minute.
  struct Minute {
    MonoTime start;
    int guesses = 0;
  };
  void forget_old(MonoTime now);
  // By lower-case user name and address.
  std::map<std::string, Guesses> pairs_;
  std::map<std::string, Minute> addresses_;
};

}  // namespace det::api
