#include "common/base/options.h"

#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "need.h"

using namespace det;
using namespace std::chrono_literals;

namespace {
using Kind = OptionKey::Kind;
const OptionTable kTable{"det-test",
                         "a daemon of tests",
                         "DET_",
                         {{"listen", Kind::kString, "127.0.0.1:8080", "address to serve on"},
                          {"data_dir", Kind::kString, "", "directory of all state"},
                          {"verbose", Kind::kBool, "false", "say more"},
                          {"cpu_slots", Kind::kInt, "0", "slots on the CPU"},
                          {"db.host", Kind::kString, "", "host of the database"},
                          {"db.password", Kind::kString, "", "its password", true},
                          {"cache.size", Kind::kBytes, "512 MiB", "most bytes kept"},
                          {"cache.time", Kind::kDuration, "5m", "how long they are kept"},
                          {"resource_pools", Kind::kTree, "", "list of pools"}}};

Result<Options> load(const std::vector<std::string>& arguments,
                     const std::vector<std::string>& environment = {}) {
  return Options::load(kTable, arguments, environment);
}

struct ConfigFile {
  TemporaryDirectory directory = need(TemporaryDirectory::create());
  std::string path = directory.path() + "/config.yaml";
  explicit ConfigFile(const std::string& text) { need(write_file_atomic(path, text)); }
};
}  // namespace

TEST_CASE("defaults apply without any setting", "[options]") {
  const Options options = need(load({}));
  CHECK(options.text("listen") == "127.0.0.1:8080");
  CHECK(options.integer("cpu_slots") == 0);
  CHECK_FALSE(options.boolean("verbose"));
  CHECK(options.bytes("cache.size") == 512 << 20);
  CHECK(options.duration("cache.time") == 5min);
  CHECK(options.tree("resource_pools") == nullptr);
  CHECK_FALSE(options.is_set("listen"));
}

TEST_CASE("flags override the environment, the environment the file, and the file the defaults",
          "[options]") {
  const ConfigFile file(
      "listen: file\ndata_dir: file\ndb:\n  host: file\ncache: {size: 1k}\nresource_pools: [{pool_name: "
      "a}]\n");
  const Options options =
      need(load({"--config", file.path, "--listen=flag"},
                {"DET_LISTEN=env", "DET_DB_HOST=env", "DET_OTHER=ignored", "HOME=/root"}));
  CHECK(options.text("listen") == "flag");
  CHECK(options.text("db.host") == "env");
  CHECK(options.text("data_dir") == "file");
  CHECK(options.bytes("cache.size") == 1024);
  CHECK(options.is_set("data_dir"));
  REQUIRE(options.tree("resource_pools") != nullptr);
  CHECK(options.tree("resource_pools")->items.at(0).find("pool_name")->text == "a");
}

TEST_CASE("flags accept both forms, and boolean flags need no value", "[options]") {
  const Options options =
      need(load({"--cpu-slots", "4", "--verbose", "--db-host=a=b", "--cache-time", "30s"}));
  CHECK(options.integer("cpu_slots") == 4);
  CHECK(options.boolean("verbose"));
  CHECK(options.text("db.host") == "a=b");
  CHECK(options.duration("cache.time") == 30s);
  CHECK_FALSE(need(load({"--verbose=false"})).boolean("verbose"));
}

TEST_CASE("all errors are reported at once, each with its place and a remedy", "[options]") {
  const ConfigFile file("lisen: x\ncpu_slots: many\ndb:\n  hots: y\ncache: 5\ndata_dir: [a]\n");
  const Result<Options> result = load(
      {"--config", file.path, "--datadir", "x", "--cache-time=5 apples", "stray"}, {"DET_VERBOSE=maybe"});
  REQUIRE_FALSE(result);
  std::vector<std::string> lines;
  for (Problem problem : result.error().problems) {
    if (!problem.file.empty()) problem.file = "f";
    lines.push_back(to_string(problem));
  }
  CHECK(lines ==
        std::vector<std::string>{
            "--datadir  E-CFG-UNKNOWN  unknown argument; did you mean \"--data-dir\"?",
            "stray  E-CFG-UNKNOWN  unknown argument",
            "f:1:1  lisen  E-CFG-UNKNOWN  unknown key; did you mean \"listen\"?",
            "f:2:12  cpu_slots  E-CFG-TYPE  must be an integer, got \"many\"",
            "f:4:3  db.hots  E-CFG-UNKNOWN  unknown key; did you mean \"host\"?",
            "f:5:8  cache  E-CFG-TYPE  must be a map, found an integer",
            "f:6:11  data_dir  E-CFG-TYPE  must be one value, found a list",
            "DET_VERBOSE  E-CFG-TYPE  must be true or false, got \"maybe\"",
            "--cache-time  E-CFG-TYPE  \"5 apples\" is no duration; write it like 30s, 5m, 1h30m, 250ms"});
}

TEST_CASE("a flag without its value and a missing file are errors", "[options]") {
  CHECK_THAT(load({"--listen"}).error().message, Catch::Contains("--listen  E-CFG-MISSING  needs a value"));
  CHECK(load({"--config", "/no/such/file"}).error().code == Code::kNotFound);
  CHECK_THAT(load({"--resource-pools", "x"}).error().message, Catch::Contains("unknown argument"));
}

TEST_CASE("integers beyond 64 bits and trailing characters are refused", "[options]") {
  for (const char* bad : {"", " 1", "1x", "1.5", "99999999999999999999"}) {
    CHECK_FALSE(load({std::string("--cpu-slots=") + bad}));
  }
  CHECK(need(load({"--cpu-slots=-3"})).integer("cpu_slots") == -3);
}

TEST_CASE("help lists every flag with its default, without secrets", "[options]") {
  CHECK(need(load({"--help", "--nonsense"})).help());
  CHECK(need(load({"--version"})).version());
  CHECK(need(load({"--sample-config"})).sample());
  const std::string help = help_text(kTable);
  for (const char* piece : {"--listen TEXT", "[127.0.0.1:8080]", "--cpu-slots N", "--cache-size SIZE",
                            "resource_pools YAML", "--config FILE", "DET_<KEY>"}) {
    CHECK_THAT(help, Catch::Contains(piece));
  }
}

TEST_CASE("the sample file is a valid configuration equal to the defaults", "[options]") {
  const std::string sample = sample_config(kTable);
  const ConfigFile file(sample);
  const Options options = need(load({"--config", file.path}));
  CHECK(options.is_set("cache.size"));
  CHECK(options.bytes("cache.size") == 512 << 20);
  for (const OptionKey& key : kTable.keys) CHECK_THAT(sample, Catch::Contains("# " + key.doc));
}

TEST_CASE("the settings in force are shown in the file's format, without secrets", "[options]") {
  const ConfigFile file("db: {password: hunter2}\ncache: {time: 90s}\nresource_pools: [{pool_name: a}]\n");
  const Options options = need(load({"--config", file.path, "--verbose", "--cpu-slots=3"}));
  CHECK(dump_json(settings_json(kTable, options)) ==
        R"({"listen":"127.0.0.1:8080","data_dir":"","verbose":true,"cpu_slots":3,)"
        R"("db":{"host":"","password":"****"},"cache":{"size":"512 MiB","time":"90s"},)"
        R"("resource_pools":[{"pool_name":"a"}]})");
  // An unset secret is shown as unset.
  CHECK(settings_json(kTable, need(load({})))["db"]["password"] == "");
}
