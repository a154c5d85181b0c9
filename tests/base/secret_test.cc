#include "common/base/secret.h"

#include <set>

#include "common/base/random.h"
#include "need.h"

using namespace det;

TEST_CASE("base64 matches RFC 4648's vectors", "[secret]") {
  const std::vector<std::pair<std::string, std::string>> rows{{"", ""},
                                                              {"f", "Zg=="},
                                                              {"fo", "Zm8="},
                                                              {"foo", "Zm9v"},
                                                              {"foob", "Zm9vYg=="},
                                                              {"fooba", "Zm9vYmE="},
                                                              {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : rows) {
    CHECK(to_base64(bytes) == text);
    CHECK(need(from_base64(text)) == bytes);
  }
  CHECK(to_base64url("\xFB\xFF\xFE") == "-__-");
  CHECK(need(from_base64("-__-")) == "\xFB\xFF\xFE");
  CHECK(need(from_base64("Zg")) == "f");
}

TEST_CASE("invalid base64 is refused", "[secret]") {
  for (const char* bad :
       {"Z", "Zg=", "Zg===", "Z===", "Zh==", "Zm9=x", "Zm 9v", "Zm9v\n", "====", "Zg==Zg=="}) {
    INFO(bad);
    CHECK_FALSE(from_base64(bad));
  }
}

TEST_CASE("base64 of any bytes decodes to the same bytes", "[secret]") {
  Random random{1, 0};
  for (std::size_t length = 0; length < 100; ++length) {
    std::string bytes;
    for (std::size_t i = 0; i < length; ++i) bytes += static_cast<char>(random.next());
    CHECK(need(from_base64(to_base64(bytes))) == bytes);
    CHECK(need(from_base64(to_base64url(bytes))) == bytes);
  }
}

TEST_CASE("tokens and uuids have their documented form and do not repeat", "[secret]") {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = random_token(), uuid = uuid4();
    CHECK(token.size() == 43);
    CHECK(need(from_base64(token)).size() == 32);
    REQUIRE(uuid.size() == 36);
    CHECK(uuid[14] == '4');
    CHECK(std::string("89ab").find(uuid[19]) != std::string::npos);
    seen.insert(token);
    seen.insert(uuid);
  }
  CHECK(seen.size() == 2000);
  CHECK(random_bytes(0).empty());
}

TEST_CASE("secrets compare by content", "[secret]") {
  CHECK(equal_secret("", ""));
  CHECK(equal_secret("abc", "abc"));
  CHECK_FALSE(equal_secret("abc", "abd"));
  CHECK_FALSE(equal_secret("abc", "abcd"));
  CHECK(to_hex(std::string_view("\x00\xAB\xFF", 3)) == "00abff");
}
