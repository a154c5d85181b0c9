#include "common/base/json.h"

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/base/random.h"
#include "common/base/text.h"
#include "need.h"

using namespace det;

TEST_CASE("every double is read back bit for bit", "[json]") {
  Random random{2026, 0};
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<double>(random.next());
    const auto back = read_double(need(parse_json(dump_json(json_double(value)))));
    REQUIRE(back);
    if (std::isnan(value)) {
      REQUIRE(std::isnan(*back));
    } else {
      REQUIRE(std::bit_cast<std::uint64_t>(*back) == std::bit_cast<std::uint64_t>(value));
    }
  }
}

TEST_CASE("special doubles have their written forms", "[json]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  CHECK(dump_json(json_double(kInfinity)) == "\"Infinity\"");
  CHECK(dump_json(json_double(-kInfinity)) == "\"-Infinity\"");
  CHECK(dump_json(json_double(std::nan(""))) == "\"NaN\"");
  CHECK(dump_json(-0.0) == "-0.0");
  CHECK(dump_json(0.1) == "0.1");
  CHECK(dump_json(Json{{"a", {1.0, kInfinity}}}) == R"({"a":[1.0,"Infinity"]})");
  CHECK_FALSE(read_double("infinity"));
  CHECK_FALSE(read_double(true));
  CHECK(read_double(3) == 3.0);
}

TEST_CASE("invalid JSON is refused with the reason", "[json]") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"", "line 1, column 1"},
      {"{", "unexpected end"},
      {"[1,]", "line 1, column 4"},
      {"{\"a\":1,\"a\":2}", "\"a\" is set twice"},
      {"[{\"b\":{\"x\":1,\"x\":2}}]", "\"x\" is set twice"},
      {"1 2", "syntax error"},
      {"// no\n1", "syntax error"},
      {"nul", "syntax error"},
      {"NaN", "syntax error"},
      {"1e999", "number overflow"},
      {"\"\xFF\"", "invalid UTF-8 at byte 1"},
      {"{'a':1}", "syntax error"}};
  for (const auto& [text, message] : rows) {
    INFO(text);
    const Result<Json> result = parse_json(text);
    REQUIRE_FALSE(result);
    CHECK_THAT(result.error().message, Catch::Contains(message));
    CHECK(result.error().code == Code::kInvalidArgument);
  }
}

TEST_CASE("the same key may occur in two objects", "[json]") {
  CHECK(need(parse_json(R"([{"a":1},{"a":{"a":2}}])"))[1]["a"]["a"] == 2);
}

TEST_CASE("depth and size are bounded", "[json]") {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  CHECK(parse_json(nested(32)));
  CHECK_FALSE(parse_json(nested(33)));
  CHECK_FALSE(parse_json(std::string(500'000, '[')));
  CHECK(parse_json("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[\""));
  CHECK(parse_json("[1]", {3, 32}));
  CHECK_FALSE(parse_json("[12]", {3, 32}));
}

TEST_CASE("objects keep the order of their keys", "[json]") {
  CHECK(dump_json(need(parse_json(R"({"b":1,"a":2})"))) == R"({"b":1,"a":2})");
}

TEST_CASE("a dotted path sets and finds values", "[json]") {
  Json root = need(parse_json(R"({"searcher":{"name":"single"},"n":1})"));
  need(set_path(root, "searcher.max_trials", 4));
  need(set_path(root, "a.b.c", "x"));
  need(set_path(root, "n", true));
  CHECK(dump_json(root) == R"({"searcher":{"name":"single","max_trials":4},"n":true,"a":{"b":{"c":"x"}}})");
  REQUIRE(find_path(root, "a.b.c") != nullptr);
  CHECK(*find_path(root, "a.b.c") == "x");
  CHECK(find_path(root, "a.x") == nullptr);
  CHECK(find_path(root, "n.x") == nullptr);
  for (const char* bad : {"", ".a", "a..b", "a."}) CHECK_FALSE(set_path(root, bad, 1));
  CHECK(set_path(root, "searcher.name.x", 1).error().message ==
        "cannot set \"searcher.name.x\": \"searcher.name\" is a string, not a map");
}

TEST_CASE("an error message stays valid UTF-8 when the text ends inside a character") {
  for (const char* text :
       {"{\"a\": tr\xc3\xa9}", "{\"a\": \"\xc3\xa9\x01\"}", "\xc3\xa9", "[1, n\xe2\x82\xac]"}) {
    const auto read = parse_json(text);
    REQUIRE_FALSE(read);
    CHECK_FALSE(read.error().message.empty());
    CHECK_FALSE(find_bad_utf8(read.error().message));
  }
}
