// Strict YAML reading: types, positions, limits, and the refusals C01 to C15.
#include "common/yaml/yaml.h"

#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/random.h"
#include "need.h"

using namespace det;
using NodeKind = YamlNode::Kind;

namespace {

YamlNode parse(const std::string& text) { return need(parse_yaml(text, "f")); }
std::string as_json(const std::string& text) { return dump_json(to_json(parse(text))); }

/// The problems of a text, one per line; "" if there are none.
std::string problems(const std::string& text) {
  const Result<YamlNode> result = parse_yaml(text, "f");
  if (result) return "";
  CHECK(result.error().code == Code::kInvalidArgument);
  return result.error().message;
}

std::string repeat(const std::string& text, int count) {
  std::string result;
  for (int i = 0; i < count; ++i) result += text;
  return result;
}

std::string alias_bomb() {
  std::string text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string use = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + use + repeat("," + use, 8) + "]\n";
  }
  return text;
}

}  // namespace

TEST_CASE("plain scalars are typed by YAML 1.2's core schema", "[yaml]") {
  struct Row {
    const char* text;
    NodeKind kind;
    const char* json;
  };
  const std::vector<Row> rows{{"1", NodeKind::kInt, "1"},
                              {"-7", NodeKind::kInt, "-7"},
                              {"+7", NodeKind::kInt, "7"},
                              {"017", NodeKind::kInt, "17"},
                              {"0x1F", NodeKind::kInt, "31"},
                              {"0o17", NodeKind::kInt, "15"},
                              {"9223372036854775807", NodeKind::kInt, "9223372036854775807"},
                              {"9223372036854775808", NodeKind::kDouble, "9.223372036854775808e+18"},
                              {"1.5", NodeKind::kDouble, "1.5"},
                              {".5", NodeKind::kDouble, "0.5"},
                              {"1.", NodeKind::kDouble, "1.0"},
                              {"1e3", NodeKind::kDouble, "1000.0"},
                              {"1e309", NodeKind::kDouble, "\"Infinity\""},
                              {".inf", NodeKind::kDouble, "\"Infinity\""},
                              {"-.INF", NodeKind::kDouble, "\"-Infinity\""},
                              {".nan", NodeKind::kDouble, "\"NaN\""},
                              {"true", NodeKind::kBool, "true"},
                              {"FALSE", NodeKind::kBool, "false"},
                              {"yes", NodeKind::kString, "\"yes\""},
                              {"on", NodeKind::kString, "\"on\""},
                              {"null", NodeKind::kNull, "null"},
                              {"~", NodeKind::kNull, "null"},
                              {"", NodeKind::kNull, "null"},
                              {"1_000", NodeKind::kString, "\"1_000\""},
                              {"0b1", NodeKind::kString, "\"0b1\""},
                              {"1.2.3", NodeKind::kString, "\"1.2.3\""},
                              {"0x", NodeKind::kString, "\"0x\""},
                              {"0x-1", NodeKind::kString, "\"0x-1\""},
                              {"e5", NodeKind::kString, "\"e5\""},
                              {".", NodeKind::kString, "\".\""},
                              {"tRUE", NodeKind::kString, "\"tRUE\""},
                              {"nan", NodeKind::kString, "\"nan\""},
                              {"\"1\"", NodeKind::kString, "\"1\""},
                              {"'true'", NodeKind::kString, "\"true\""},
                              {"!!str 5", NodeKind::kString, "\"5\""},
                              {"!!float 5", NodeKind::kDouble, "5.0"},
                              {"!!int 5", NodeKind::kInt, "5"},
                              {"2020-01-01", NodeKind::kString, "\"2020-01-01\""}};
  for (const Row& row : rows) {
    INFO(row.text);
    const YamlNode node = parse(std::string("k: ") + row.text);
    REQUIRE(node.find("k") != nullptr);
    CHECK(node.find("k")->kind == row.kind);
    CHECK(dump_json(to_json(*node.find("k"))) == dump_json(need(parse_json(row.json))));
  }
}

TEST_CASE("nodes carry their position in characters, counted from 1", "[yaml]") {
  const YamlNode node =
      parse("# caf\xC3\xA9\n\xC3\xA9t\xC3\xA9: {a: 1, \xE2\x82\xAC: 2}\nlist:\n  - x\n  -  y\n");
  REQUIRE(node.entries.size() == 2);
  CHECK(node.entries[0].key == "\xC3\xA9t\xC3\xA9");
  CHECK(node.entries[0].line == 2);
  CHECK(node.entries[0].column == 1);
  CHECK(node.entries[0].value.entries[1].column == 13);
  CHECK(node.entries[0].value.entries[1].value.column == 16);
  CHECK(node.entries[1].value.items[1].line == 5);
  CHECK(node.entries[1].value.items[1].column == 6);
}

TEST_CASE("an empty file, a file of comments and an empty document read as a null node", "[yaml]") {
  for (const char* text : {"", "\n\n", "# nothing\n", "---\n", "---\n...\n"}) {
    INFO(text);
    CHECK(parse(text).is_null());
  }
}

TEST_CASE("C02 C03: prose and lists are refused by their kind", "[yaml]") {
  CHECK(kind_name(parse("just some prose").kind) == "a string");
  CHECK(kind_name(parse("- a\n- b\n").kind) == "a list");
}

TEST_CASE("invalid YAML is refused with code, line and column", "[yaml]") {
  struct Row {
    const char* name;
    std::string text;
    std::string problem;
  };
  const std::vector<Row> rows{
      {"C04 unclosed quote", "a: \"x\nb: 1\n",
       "f:1:4  a  E-YAML-SYNTAX  the quoted text that starts here is not closed"},
      {"C04 unclosed single quote", "a: &x 'it''s\n",
       "f:1:4  a  E-YAML-SYNTAX  the quoted text that starts here is not closed"},
      {"C04 unclosed quote at the very end", "a: \"x", "E-YAML-SYNTAX"},
      {"C04 unclosed bracket", "a: [1, 2\nb: 1\n", "f:2:2  E-YAML-SYNTAX"},
      {"C04 bad indent", "a:\n  b: 1\n c: 2\n", "f:3:2  E-YAML-SYNTAX"},
      {"C04 tab indent", "a:\n\tb: 1\n", "f:2:2  a  E-YAML-SYNTAX  a tab indents this line; use spaces"},
      {"C05 duplicate key", "name: a\nx: 1\nname: b\n",
       "f:3:1  name  E-YAML-DUP  \"name\" is already set at line 1"},
      {"C05 nested", "s: {m: 1, m: 2}\n", "f:1:11  s.m  E-YAML-DUP  \"m\" is already set at line 1"},
      {"C06 two documents", "a: 1\n---\nb: 2\n", "f:2:1  E-YAML-MULTI  only one document is allowed"},
      {"C07 alias bomb", alias_bomb(), "E-YAML-ALIAS  "},
      {"C08 alias to itself", "&x [*x]\n", "f:1:5  [0]  E-YAML-ALIAS  the alias refers to itself"},
      {"C08 as an item", "&x\n- *x\n", "f:2:3  [0]  E-YAML-ALIAS  the alias refers to itself"},
      {"C09 unknown anchor", "a: *nope\n", "f:1:4  E-YAML-SYNTAX  anchor \"nope\" is not defined"},
      {"C10 nesting 33", repeat("[", 33) + repeat("]", 33), "E-YAML-LIMIT  nested deeper than 32"},
      {"C11 257 KiB", "a: " + std::string(257 * 1024, 'x'), "f:1:1  E-YAML-LIMIT  256 KiB is the maximum"},
      {"C12 invalid UTF-8", "a: b\nc: \xFF\n", "f:2:4  E-YAML-ENCODING  invalid UTF-8 at byte offset 8"},
      {"C12 UTF-16",
       std::string("\xFF\xFE"
                   "a\0:\0",
                   6),
       "f:1:1  E-YAML-ENCODING  UTF-16 byte order mark at byte offset 0"},
      {"C12 UTF-16 without mark", std::string("a\0:\0", 4),
       "f:1:2  E-YAML-ENCODING  NUL byte (is the file UTF-16?) at byte offset 1"},
      {"C12 NUL", std::string("a: \0", 4),
       "f:1:4  E-YAML-ENCODING  NUL byte (is the file UTF-16?) at byte offset 3"},
      {"C12 byte order mark",
       "\xEF\xBB\xBF"
       "a: 1\n",
       "f:1:1  E-YAML-ENCODING  byte order mark at byte offset 0"},
      {"C12 control character", "a: \x1B\n", "f:1:4  E-YAML-ENCODING  control character at byte offset 3"},
      {"C12 NUL by escape", "a: \"x\\0\"\n", "f:1:4  a  E-YAML-ENCODING  the text holds a NUL character"},
      {"escape yaml-cpp gets wrong", "a: \"\\N\"\n",
       "f:1:4  a  E-YAML-SYNTAX  the escape \\N is not supported"},
      {"C13 tag", "a: !!python/object/apply:os.system [x]\n",
       "f:1:4  a  E-YAML-SYNTAX  tags are not supported: !!python/object/apply:os.system"},
      {"C13 local tag", "- !thing x\n", "f:1:3  [0]  E-YAML-SYNTAX  tags are not supported: !thing"},
      {"C13 tag that lies", "a: !!int abc\n", "f:1:4  a  E-YAML-SYNTAX  tags are not supported: !!int"},
      {"C14 list as key", "a:\n  ? [x]\n  : 1\n", "f:2:5  a  E-CFG-TYPE  keys must be strings, found a list"},
      {"C14 map as key", "{a: 1}: 1\n", "f:1:1  E-CFG-TYPE  keys must be strings, found a map"},
      {"C14 null as key", "~: 1\n",
       "f:1:1  E-CFG-TYPE  keys must be strings of at most 1,024 characters, found nothing"},
      {"C15 merge key", "b: &b {x: 1}\nc:\n  <<: *b\n",
       "f:3:3  c  E-YAML-SYNTAX  merge keys (<<) are not supported"},
      {"stray text", "a: 1\n]\n", "E-YAML-SYNTAX"},
      {"too many nodes", "[" + repeat("1,", 20'001) + "]", "E-YAML-LIMIT  more than 20,000 nodes"},
      {"too many aliases", "a: &a 1\nb: [" + repeat("*a,", 65) + "]\n",
       "b[64]  E-YAML-ALIAS  more than 64 aliases"},
      {"long texts by aliases", "a: &a " + std::string(100'000, 'x') + "\nb: [" + repeat("*a,", 64) + "]\n",
       "E-YAML-ALIAS  expands"},
      {"depth by aliases",
       "a: &a " + repeat("[", 20) + repeat("]", 20) + "\nb: " + repeat("[", 15) + "*a" + repeat("]", 15) +
           "\n",
       "E-YAML-LIMIT  nested deeper than 32"}};
  for (const Row& row : rows) {
    INFO(row.name);
    CHECK_THAT(problems(row.text), Catch::Contains(row.problem));
  }
}

TEST_CASE("recoverable errors are reported together", "[yaml]") {
  CHECK(problems("a: 1\na: 2\nb: !x 1\n[k]: 2\n") ==
        "f:2:1  a  E-YAML-DUP  \"a\" is already set at line 1\n"
        "f:3:4  b  E-YAML-SYNTAX  tags are not supported: !x\n"
        "f:4:1  E-CFG-TYPE  keys must be strings, found a list");
  const Result<YamlNode> many = parse_yaml(repeat("a: 1\n", 100), "f");
  CHECK(many.error().problems.size() == 20);
}

TEST_CASE("documents just within the limits are read", "[yaml]") {
  CHECK(problems(repeat("[", 32) + repeat("]", 32)) == "");
  CHECK(problems("a: " + std::string(256 * 1024 - 3, 'x')) == "");
  CHECK(problems("[" + repeat("1,", 19'999) + "]") == "");
  CHECK(problems("a: &a 1\nb: [" + repeat("*a,", 64) + "]\n") == "");
}

TEST_CASE("hostile texts are parsed quickly", "[yaml]") {
  const std::vector<std::pair<const char*, std::string>> texts{
      {"brackets", std::string(64 * 1024, '[')},
      {"braces", std::string(256 * 1024, '{')},
      {"dashes", repeat("- ", 32 * 1024)},
      {"question marks", repeat("? ", 32 * 1024)},
      {"alias bomb", alias_bomb()},
      {"anchors in anchors", "&a " + repeat("[&b ", 30) + repeat("]", 30)},
      {"many anchors", repeat("- &a x\n", 20'000)},
      {"one long scalar", std::string(256 * 1024, 'x')},
      {"one long quoted scalar", "\"" + std::string(250 * 1024, 'x')},
      {"many keys",
       [] {
         std::string text;
         for (int i = 0; i < 9'000; ++i) text += "key" + std::to_string(i) + ": 1\n";
         return text;
       }()},
      {"colons", repeat("a: ", 64 * 1024)},
      {"percents", repeat("%x\n", 64 * 1024)},
      {"tabs", std::string(256 * 1024, '\t')},
      {"open quotes", repeat("'", 200'001)}};
  for (const auto& [name, text] : texts) {
    INFO(name);
    const std::clock_t start = std::clock();
    (void)parse_yaml(text, "f");
    // CPU time, which other load does not distort. The bound is generous for sanitizers.
    CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 2);
  }
}

TEST_CASE("aliases are copies with the position of their use", "[yaml]") {
  CHECK(as_json("base: &b {x: 1, y: [2]}\nuse: *b\nagain: [*b]\n") ==
        R"({"base":{"x":1,"y":[2]},"use":{"x":1,"y":[2]},"again":[{"x":1,"y":[2]}]})");
  CHECK(parse("a: &a 1\nb: *a\n").find("b")->line == 2);
  CHECK(as_json("- &a 1\n- &a 2\n- *a\n") == "[1,2,2]");
}

TEST_CASE("quotes and escapes inside quoted text do not terminate it", "[yaml]") {
  CHECK(as_json("a: \"x\\\"y\\\\\"\nb: 'it''s'\nc: &q \"multi\n  line\"\n") ==
        R"({"a":"x\"y\\","b":"it's","c":"multi line"})");
}

TEST_CASE("block scalars, folding and line ends follow YAML 1.2", "[yaml]") {
  CHECK(as_json("a: |\n  x\n  y\nb: >-\n  x\n  y\n") == R"({"a":"x\ny\n","b":"x y"})");
  CHECK(as_json("a: 1\r\nb: [x,\r\n  y]\r\n") == R"({"a":1,"b":["x","y"]})");
  CHECK(as_json("a: |\n  \ttabs inside a block are text\n") == R"({"a":"\ttabs inside a block are text\n"})");
}

TEST_CASE("printed YAML reads back as the same value", "[yaml]") {
  const Json value =
      need(parse_json(R"({"name":"a b","empty":{},"none":[],"list":[1,-2.5,[3,[]],{"k":"v","m":{"n":null}}],
    "odd":["", "yes","1","1e3","null","- x","a: b","a #b","#","x\ny","'","\"","é"," lead","trail ","true","017","2020-01-01",
           "12:30",".5","*a","&a","!t","<<","@x","=","...","a:"],"deep":{"a":{"b":[{"c":[1]}]}},"<":1,"1":2,"":3})"));
  const std::string text = to_yaml(value);
  INFO(text);
  CHECK(to_json(parse(text)) == value);
  CHECK(to_yaml(need(parse_json(R"({"a":{"b":[1,{"c":"x","d":true}]},"e":[]})"))) ==
        "a:\n  b:\n    - 1\n    - c: x\n      d: true\ne: []\n");
  CHECK(to_yaml("x") == "x\n");
  CHECK(to_yaml(Json::array({std::nan(""), -std::numeric_limits<double>::infinity()})) ==
        "- .nan\n- -.inf\n");
}

TEST_CASE("random strings survive a YAML round trip", "[yaml]") {
  Random random{11, 0};
  const std::string alphabet = "ab01 :#-?[]{},&*!|>'\"%@`.\\\n\t~=<+_/eE\xC3\xA9";
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(8); n > 0; --n) {
      const char c = alphabet[random.below(alphabet.size() - 2)];
      text += c;
    }
    const Json value = Json::array({text, Json{{text == "<<" ? "x" : text, text}}});
    INFO(dump_json(value));
    REQUIRE(to_json(parse(to_yaml(value))) == value);
  }
}
