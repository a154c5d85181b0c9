#include "common/crypto/digest.h"

#include "common/base/files.h"
#include "need.h"

using namespace det;

TEST_CASE("SHA-256 matches the examples of FIPS 180-4, in one piece and in several", "[digest]") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 digest;
  for (const char* piece : {"a", "", "bc"}) digest.update(piece);
  Sha256 moved = std::move(digest);
  CHECK(moved.hex() == sha256_hex("abc"));
}

TEST_CASE("a file's digest is the digest of its content", "[digest]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string content(1'000'000, 'a');
  need(write_file_atomic(directory.path() + "/f", content));
  CHECK(need(sha256_file(directory.path() + "/f")) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  CHECK(sha256_file(directory.path() + "/none").error().code == Code::kNotFound);
}
