#include "common/client/tokens.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "common/base/files.h"

namespace det::cli::test {
namespace {

std::string user_at(const TokenFile& file, const std::string& master, const std::string& user = "") {
  const auto login = file.find(master, user);
  REQUIRE(login);
  return *login ? (*login)->user + "=" + (*login)->token : "nobody";
}

}  // namespace

TEST_CASE("logins are stored per master and user, and the last one is the default") {
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  TokenFile file(home->path() + "/a/b/auth.json");
  CHECK(user_at(file, "http://one:1") == "nobody");
  REQUIRE(file.save("http://one:1", {"ann", "t1"}));
  REQUIRE(file.save("http://one:1", {"bob", "t2"}));
  REQUIRE(file.save("http://two:1", {"ann", "t3"}));
  CHECK(user_at(file, "http://one:1") == "bob=t2");
  CHECK(user_at(file, "http://one:1", "ann") == "ann=t1");
  CHECK(user_at(file, "http://two:1") == "ann=t3");
  CHECK(user_at(file, "http://two:1", "bob") == "nobody");
  REQUIRE(file.forget("http://one:1", "bob"));
  CHECK(user_at(file, "http://one:1") == "nobody");
  CHECK(user_at(file, "http://one:1", "ann") == "ann=t1");
  REQUIRE(file.forget("http://one:1", ""));
  CHECK(user_at(file, "http://one:1", "ann") == "nobody");
  CHECK(user_at(file, "http://two:1") == "ann=t3");
}

TEST_CASE("the token file is readable by its owner only") {
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string path = home->path() + "/auth.json";
  REQUIRE(TokenFile(path).save("http://one:1", {"ann", "t1"}));
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a malformed token file counts as empty, and the next login moves it aside") {
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string path = home->path() + "/auth.json";
  for (const char* text : {"", "{", "[]", "{\"version\": 2}", "{\"version\": 1, \"masters\": 3}"}) {
    REQUIRE(write_file_atomic(path, text));
    TokenFile file(path);
    CHECK(user_at(file, "http://one:1") == "nobody");
    CHECK(read_file(path).value() == text);
    REQUIRE(file.save("http://one:1", {"ann", "t1"}));
    CHECK(user_at(file, "http://one:1") == "ann=t1");
    CHECK(read_file(path + ".unreadable").value() == text);
  }
}

TEST_CASE("without a home directory there is no login, and saving reports the reason") {
  TokenFile file("");
  CHECK(user_at(file, "http://one:1") == "nobody");
  const auto saved = file.save("http://one:1", {"ann", "t1"});
  REQUIRE(!saved);
  CHECK(saved.error().message.find("HOME") != std::string::npos);
}

}  // namespace det::cli::test
