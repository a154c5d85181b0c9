// Runs s3_server.py as a child process in a temporary directory.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "common/storage/bucket.h"
#include "common/storage/http.h"
#include "test_paths.h"

namespace det::test {

class Store {
 public:
  Store() {
    auto child = Child::spawn({.argv = {"python3", source_path("/tests/storage/s3_server.py"), place_.path()},
                               .env = std::nullopt,
                               .cwd = "",
                               .in = Stream::pipe(),
                               .out = Stream::pipe(),
                               .err = Stream::inherit(),
                               .uid = {},
                               .gid = {},
                               .dies_with_us = true});
    REQUIRE(child);
    child_.emplace(std::move(*child));
    std::string line;
    for (char c = 0; c != '\n';) {
      REQUIRE(::read(child_->out().get(), &c, 1) == 1);
      line += c;
    }
    endpoint_ = "http://127.0.0.1:" + std::to_string(std::stoi(line.substr(5)));
  }
  ~Store() { child_->stop(std::chrono::milliseconds(0)); }

  Json config() const {
    return {{"type", "s3"},
            {"bucket", "checkpoints"},
            {"prefix", "of tests"},
            {"endpoint_url", endpoint_},
            {"access_key", "AKIDTEST"},
            {"secret_key", "test/secret+key"}};
  }
  storage::Location location() const { return storage::read_location(config()).value(); }
  /// Small parts and short pauses keep tests fast.
  storage::Bucket bucket() const { return bucket(location()); }
  static storage::Bucket bucket(storage::Location location) {
    return storage::Bucket(std::move(location), {.part = 1 << 16,
                                                 .attempts = 4,
                                                 .pause = std::chrono::milliseconds(1),
                                                 .connect_timeout = std::chrono::seconds(5),
                                                 .stall_timeout = std::chrono::seconds(5)});
  }
  const std::string& endpoint() const { return endpoint_; }

  /// Path of the file that holds an object. The name is the percent-encoded key.
  std::string file(const std::string& key) const {
    std::string name;
    for (const char c : "of tests/" + key) name += c == '/' ? "%2F" : c == ' ' ? "%20" : std::string(1, c);
    return place_.path() + "/checkpoints/" + name;
  }
  std::size_t count() const {
    std::size_t objects = 0;
    for (const auto& entry : std::filesystem::directory_iterator(place_.path() + "/checkpoints"))
      objects += entry.exists();
    return objects;
  }

  /// Replaces the injected faults; the format is in s3_server.py.
  void order(const Json& faults) const { tell("/_faults", faults.dump()); }
  /// Requests since the last forget().
  std::vector<std::string> log() const { return tell("/_log", "").at("log").get<std::vector<std::string>>(); }
  std::size_t open_uploads() const { return tell("/_log", "").at("uploads").get<std::size_t>(); }
  void forget() const { tell("/_forget", ""); }

 private:
  Json tell(const std::string& path, const std::string& body) const {
    const auto answer =
        storage::exchange({.method = "POST", .url = endpoint_ + path, .headers = {}, .body = body});
    REQUIRE(answer);
    return parse_json(answer->body).value();
  }

  TemporaryDirectory place_ = TemporaryDirectory::create("store").value();
  std::optional<Child> child_;
  std::string endpoint_;
};

}  // namespace det::test
