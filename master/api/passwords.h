// Owns what a password is turned into, and how often one may be guessed.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace det::api {

/// What upstream's clients send with is_hashed: sha512("GubPEmmotfiK9TMD6Zdw" + password) in hex. Plain
/// passwords are brought to it first. kInvalidArgument: empty, longer than 1,024 bytes, or no such hash.
Result<std::string> password_form(std::string_view password, bool is_hashed);
/// May it be somebody's password? kInvalidArgument: shorter than 8 characters, shorter than 12 and of fewer
/// than three kinds (lower case, upper case, digits, others), one of those that everybody tries, or the
/// user's name. Of a hashed one only the last two can be told.
Status check_password(std::string_view password, bool is_hashed, const std::string& user);
/// Argon2id (19 MiB, 2 passes) of a form, with a random salt; about 20 ms of CPU.
std::string hash_password(const std::string& form);
bool verify_password(const std::string& hash, const std::string& form);
/// A hash that no password has, to spend the same time on names that do not exist.
const std::string& decoy_hash();

/// Counts failed guesses per (user, address) and per address. Used by one thread. Memory is bounded: beyond
/// 100,000 entries the oldest of those that make nobody wait are forgotten, then any.
class Throttle {
 public:
  /// kResourceExhausted with the seconds to wait: after 5 failures of the pair the wait doubles from 1 s to
  /// 15 min; an address gets 60 guesses a minute.
  Status allow(const std::string& user, const std::string& address, MonoTime now);
  void failed(const std::string& user, const std::string& address, MonoTime now);
  void succeeded(const std::string& user, const std::string& address);

 private:
  struct Guesses {
    int failures = 0;
    MonoTime next;  ///< no guess before
  };
  struct Minute {
    MonoTime start;
    int guesses = 0;
  };
  void forget_old(MonoTime now);
  std::map<std::string, Guesses> pairs_;
  std::map<std::string, Minute> addresses_;
};

}  // namespace det::api
