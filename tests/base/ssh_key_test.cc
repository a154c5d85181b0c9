// Keys of SSH clients, read by OpenSSH.
#include "common/crypto/ssh_key.h"

#include <catch2/catch.hpp>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det {
namespace {

TEST_CASE("OpenSSH reads the private key and derives the same public key") {
  const auto key = make_ssh_key();
  REQUIRE(key);
  CHECK(key->starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
  const auto directory = TemporaryDirectory::create();
  REQUIRE(directory);
  const std::string path = directory->path() + "/key";
  REQUIRE(write_file_atomic(path, *key, 0600));
  const auto read = run_process({.argv = {"ssh-keygen", "-y", "-f", path}});
  REQUIRE(read);
  INFO(read->err);
  REQUIRE(read->ok());
  const auto line = ssh_public_key(*key);
  REQUIRE(line);
  CHECK(std::string(trim(read->out)) == *line);
}

TEST_CASE("each SSH key is another one, and other texts are refused") {
  CHECK(make_ssh_key().value() != make_ssh_key().value());
  CHECK(ssh_public_key("").error().code == Code::kInternal);
  CHECK(ssh_public_key("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n").error().code ==
        Code::kInternal);
}

}  // namespace
}  // namespace det
