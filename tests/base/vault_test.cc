#include "common/crypto/vault.h"

#include <sys/stat.h>

#include "common/base/files.h"
#include "need.h"

using namespace det;

namespace {

struct Keys {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string file = directory.path() + "/secrets.key";
  Vault open() const { return need(Vault::open(file)); }
};

}  // namespace

TEST_CASE("a sealed text comes back, also after the file is read again") {
  const Keys keys;
  const Vault vault = keys.open();
  for (const std::string& text : {std::string(), std::string("secret"), std::string(100'000, 'x')}) {
    const std::string sealed = vault.seal(text);
    CHECK(Vault::is_sealed(sealed));
    CHECK((text.empty() || sealed.find(text) == std::string::npos));
    CHECK(need(keys.open().unseal(sealed)) == text);
  }
  struct ::stat facts {};
  REQUIRE(::stat(keys.file.c_str(), &facts) == 0);
  CHECK((facts.st_mode & 0777) == 0600);
}

TEST_CASE("equal texts are equal when sealed, and equal under one key only") {
  const Keys keys, others;
  CHECK(keys.open().seal("secret") == keys.open().seal("secret"));
  CHECK(keys.open().seal("secret") != keys.open().seal("secreT"));
  CHECK(keys.open().seal("secret") != others.open().seal("secret"));
}

TEST_CASE("an altered text, a text of another key and a plain text are not unsealed") {
  const Keys keys, others;
  const Vault vault = keys.open();
  const std::string sealed = vault.seal("secret");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string altered = sealed;
    altered[i] = altered[i] == 'A' ? 'B' : 'A';
    CHECK(vault.unseal(altered).error().code == Code::kDataLoss);
  }
  CHECK(vault.unseal("secret").error().code == Code::kDataLoss);
  const auto foreign = others.open().unseal(sealed);
  REQUIRE_FALSE(foreign);
  CHECK(foreign.error().message.find(others.file) != std::string::npos);
}

TEST_CASE("rotation adds a key that seals, and the old one still unseals") {
  const Keys keys;
  const Vault before = keys.open();
  need(write_file_atomic(keys.file, "rotate\n" + need(read_file(keys.file, 4096)), 0600));
  const Vault after = keys.open();
  CHECK(after.key_id() != before.key_id());
  CHECK(keys.open().key_id() == after.key_id());
  CHECK(need(after.unseal(before.seal("secret"))) == "secret");
  CHECK(before.unseal(after.seal("secret")).error().code == Code::kDataLoss);
}

TEST_CASE("a file of keys that is damaged or empty is refused, not replaced") {
  const Keys keys;
  for (const char* text : {"", "rotate me", "c2hvcnQ=", "rotate\nx"}) {
    need(write_file_atomic(keys.file, text, 0600));
    CHECK(Vault::open(keys.file).error().code == Code::kDataLoss);
    CHECK(need(read_file(keys.file, 4096)) == text);
  }
}

TEST_CASE("a proposed key seals only once it is settled as the current one") {
  const Keys keys;
  const Vault before = keys.open();
  const Vault proposed = need(Vault::propose(keys.file));
  CHECK(proposed.key_id() != before.key_id());
  CHECK(need(proposed.unseal(before.seal("secret"))) == "secret");
  // A process that starts in between continues with the old key and reads both.
  CHECK(keys.open().key_id() == before.key_id());
  CHECK(need(keys.open().unseal(proposed.seal("secret"))) == "secret");
  SECTION("settled as current") {
    need(Vault::settle(keys.file, proposed.key_id()));
    CHECK(keys.open().key_id() == proposed.key_id());
    CHECK(need(keys.open().unseal(before.seal("secret"))) == "secret");
  }
  SECTION("dropped") {
    need(Vault::settle(keys.file, before.key_id()));
    CHECK(keys.open().key_id() == before.key_id());
    CHECK(keys.open().unseal(proposed.seal("secret")).error().code == Code::kDataLoss);
  }
  const std::string settled = need(read_file(keys.file, 4096));
  need(Vault::settle(keys.file, proposed.key_id()));
  CHECK(need(read_file(keys.file, 4096)) == settled);
}

TEST_CASE("settling without a file creates none") {
  const Keys keys;
  need(Vault::settle(keys.file, "0123456789abcdef"));
  CHECK_FALSE(path_exists(keys.file));
}
