#include "common/base/text.h"

#include "need.h"

using namespace det;

TEST_CASE("split keeps empty pieces, and join reverses it", "[text]") {
  CHECK(split("a,,b", ',') == std::vector<std::string>{"a", "", "b"});
  CHECK(split("", ',') == std::vector<std::string>{""});
  CHECK(join(split("x.y.", '.'), ".") == "x.y.");
  CHECK(trim(" \t x y\r\n") == "x y");
  CHECK(trim(" \n") == "");
}

TEST_CASE("ill-formed UTF-8 is found at its first byte", "[text]") {
  CHECK_FALSE(find_bad_utf8("plain, caf\xC3\xA9, \xE2\x82\xAC, \xF0\x9F\x98\x80"));
  CHECK(find_bad_utf8("ab\xFF") == 2u);
  CHECK(find_bad_utf8("a\xC0\xAF") == 1u);         // overlong
  CHECK(find_bad_utf8("\xE0\x80\xAF") == 0u);      // overlong
  CHECK(find_bad_utf8("\xED\xA0\x80") == 0u);      // surrogate
  CHECK(find_bad_utf8("\xF4\x90\x80\x80") == 0u);  // beyond U+10FFFF
  CHECK(find_bad_utf8("x\xE2\x82") == 1u);         // truncated
  CHECK(find_bad_utf8("\x80") == 0u);
}

TEST_CASE("any bytes become UTF-8 without NUL", "[text]") {
  CHECK(make_utf8(std::string_view("a\xFF\0b", 4)) ==
        "a\xEF\xBF\xBD\xE2\x90\x80"
        "b");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK_FALSE(find_bad_utf8(make_utf8(all)));
  CHECK(make_utf8(all).find('\0') == std::string::npos);
}

TEST_CASE("control characters and bidi overrides are detected", "[text]") {
  for (const char* bad : {"a\nb", "\x1B[31m", "\x7F", "\xC2\x85", "\xE2\x80\xAE", "\xE2\x81\xA6",
                          "\xE2\x80\x8F", "a\xE2\x80\x8B", "\xE2\x81\xA0", "\xEF\xBB\xBF"}) {
    CHECK(has_control_characters(bad));
  }
  for (const char* good :
       {"", "name with spaces", "caf\xC3\xA9", "\xE2\x82\xAC", "\xE2\x80\x93", "\xE2\x80\x8D"}) {
    CHECK_FALSE(has_control_characters(good));
  }
}

TEST_CASE("the nearest name is at most two edits away", "[text]") {
  const std::vector<std::string> names{"hyperparameters", "searcher", "resources", "min"};
  CHECK(nearest_name("hyperparameterz", names) == "hyperparameters");
  CHECK(nearest_name("serchr", names) == "searcher");
  CHECK(nearest_name("resorce", names) == "resources");
  CHECK(nearest_name("entrypoint", names) == "");
  CHECK(nearest_name("x", names) == "");
  CHECK(nearest_name("", names) == "");
  CHECK(did_you_mean("serchr", names) == "; did you mean \"searcher\"?");
  CHECK(did_you_mean("entrypoint", names) == "");
  CHECK(edit_distance("kitten", "sitting") == 3);
}
