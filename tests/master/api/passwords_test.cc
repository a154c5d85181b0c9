// Password forms, hashes, and the login throttle.
#include "master/api/auth/passwords.h"

#include <catch2/catch.hpp>

namespace det::api {
namespace {

TEST_CASE("a plain password becomes the form that Determined's clients send") {
  // sha512("GubPEmmotfiK9TMD6Zdw" + "correct horse"), from an independent tool.
  const std::string form =
      "2447a141acc80af004f38355177c3e93343720d9dbb20a21365b074f2a12abed5cc9b027d8d9c4f818d392b90add277818c816"
      "6fb6385b79e548a05492c2a66f";
  CHECK(password_form("correct horse", false) == form);
  CHECK(password_form(form, true) == form);
}

TEST_CASE("invalid passwords have no form") {
  CHECK_FALSE(password_form("", false));
  CHECK_FALSE(password_form("", true));
  CHECK_FALSE(password_form(std::string(1025, 'x'), false));
  CHECK_FALSE(password_form("not a hash", true));
  CHECK_FALSE(password_form(std::string(127, 'a'), true));
  CHECK(password_form(std::string(1024, 'x'), false));
}

TEST_CASE("a hash matches its password and no other, and is salted") {
  const std::string form = *password_form("correct horse", false);
  const std::string hash = hash_password(form);
  CHECK(hash.starts_with("$argon2id$"));
  CHECK(verify_password(hash, form));
  CHECK_FALSE(verify_password(hash, *password_form("correct horsf", false)));
  CHECK(hash_password(form) != hash);
  CHECK_FALSE(verify_password("", form));
  CHECK_FALSE(verify_password(decoy_hash(), form));
}

MonoTime at(std::int64_t seconds) { return {seconds * 1'000'000}; }

TEST_CASE("a password of an imported user matches its bcrypt hash") {
  // Cost 10; made with Python's crypt() from the form of "lovelace-1843".
  const std::string hash = "$2a$10$abcdefghijklmnopqrstuueqSyVQLAitN0oOXB7CJEo71nM23tq96";
  CHECK(verify_password(hash, *password_form("lovelace-1843", false)));
  CHECK_FALSE(verify_password(hash, *password_form("lovelace-1844", false)));
  CHECK_FALSE(verify_password("$2a$10$short", *password_form("lovelace-1843", false)));
}

TEST_CASE("after five failures the wait doubles up to fifteen minutes") {
  Throttle throttle;
  for (int i = 0; i < 4; ++i) {
    CHECK(throttle.allow("admin", "10.0.0.1", at(0)));
    throttle.failed("admin", "10.0.0.1", at(0));
  }
  CHECK(throttle.allow("admin", "10.0.0.1", at(0)));
  throttle.failed("admin", "10.0.0.1", at(0));
  const Status early = throttle.allow("Admin", "10.0.0.1", at(0));
  REQUIRE_FALSE(early);
  CHECK(early.error().code == Code::kResourceExhausted);
  CHECK(throttle.allow("admin", "10.0.0.1", at(1)));
  throttle.failed("admin", "10.0.0.1", at(1));
  CHECK_FALSE(throttle.allow("admin", "10.0.0.1", at(2)));
  CHECK(throttle.allow("admin", "10.0.0.1", at(3)));
  std::int64_t now = 3;
  for (int i = 0; i < 40; ++i) {
    throttle.failed("admin", "10.0.0.1", at(now));
    now += 900;
    CHECK(throttle.allow("admin", "10.0.0.1", at(now)));
  }
}

TEST_CASE("failures of one user do not delay others, and success clears them") {
  Throttle throttle;
  for (int i = 0; i < 10; ++i) throttle.failed("admin", "10.0.0.1", at(0));
  CHECK_FALSE(throttle.allow("admin", "10.0.0.1", at(0)));
  CHECK(throttle.allow("admin", "10.0.0.2", at(0)));
  CHECK(throttle.allow("eve", "10.0.0.1", at(0)));
  throttle.succeeded("admin", "10.0.0.1");
  CHECK(throttle.allow("admin", "10.0.0.1", at(0)));
}

TEST_CASE("an address is limited to sixty guesses a minute over all names") {
  Throttle throttle;
  for (int i = 0; i < 60; ++i) {
    const std::string name = "user" + std::to_string(i);
    CHECK(throttle.allow(name, "10.0.0.1", at(0)));
    throttle.failed(name, "10.0.0.1", at(0));
  }
  CHECK_FALSE(throttle.allow("another", "10.0.0.1", at(1)));
  CHECK(throttle.allow("another", "10.0.0.1", at(61)));
}

}  // namespace
}  // namespace det::api
