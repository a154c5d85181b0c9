// Caches of an agent and of builds, and the data directory.
#include "common/build/cache.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "agent/data_dir.h"
#include "common/base/fd.h"
#include "common/base/files.h"
#include "need.h"

using namespace det;
using namespace det::agent;

namespace {

/// Returns the names in the events of an inotify descriptor.
std::vector<std::string> names_of(const UniqueFd& events) {
  std::vector<std::string> names;
  alignas(inotify_event) char buffer[16 << 10];
  for (ssize_t got = 0; (got = ::read(events.get(), buffer, sizeof buffer)) > 0;) {
    for (ssize_t at = 0; at < got;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      names.emplace_back(event->name);
      at += static_cast<ssize_t>(sizeof *event + event->len);
    }
  }
  REQUIRE_FALSE(names.empty());
  return names;
}

}  // namespace

TEST_CASE("the cache evicts the least recently used entries and keeps fresh ones", "[cache]") {
  const TemporaryDirectory dir = need(TemporaryDirectory::create());
  auto make = [&](const std::string& name, int age_minutes) {
    const std::string path = dir.path() + "/" + name;
    need(make_directories(path));
    need(write_file_atomic(path + "/data", std::string(1000, 'x')));
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(age_minutes));
  };
  make("oldest", 300);
  make("older", 200);
  make("old", 100);
  make("fresh", 0);
  make("building-x", 400);
  make("building-y", 2000);
  const UniqueFd events(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  REQUIRE(::inotify_add_watch(events.get(), dir.path().c_str(), IN_DELETE) >= 0);
  build::trim_cache({dir.path()}, 2500);
  auto there = [&](const char* name) { return path_exists(dir.path() + "/" + name); };
  CHECK_FALSE(there("oldest"));
  CHECK_FALSE(there("older"));
  CHECK(there("old"));
  build::trim_cache({dir.path()}, 0);
  CHECK_FALSE(there("old"));
  CHECK(there("fresh"));
  CHECK(there("building-x"));
  CHECK_FALSE(there("building-y"));
  // An entry leaves its name as a whole.
  for (const std::string& name : names_of(events)) CHECK(name.starts_with("building-removed-"));
}

TEST_CASE("a data directory admits one agent and keeps its instance id", "[data]") {
  const TemporaryDirectory dir = need(TemporaryDirectory::create());
  std::string instance;
  {
    const DataDir first = need(DataDir::open(dir.path() + "/data"));
    instance = first.instance();
    CHECK(instance.size() == 36);
    CHECK(DataDir::open(dir.path() + "/data").error().code == Code::kFailedPrecondition);
    CHECK(first.allocation(AllocationId("../x")).error().code == Code::kInvalidArgument);
    CHECK(first.allocation(AllocationId("a/b")).error().code == Code::kInvalidArgument);
  }
  CHECK(need(DataDir::open(dir.path() + "/data")).instance() == instance);
}

TEST_CASE("a data directory keeps the newest lease of the master", "[data]") {
  const TemporaryDirectory dir = need(TemporaryDirectory::create());
  {
    const DataDir first = need(DataDir::open(dir.path()));
    CHECK(first.lease() == std::nullopt);
    for (const int minutes : {10, 3}) need(first.store_lease(std::chrono::minutes(minutes)));
  }
  const DataDir next = need(DataDir::open(dir.path()));
  CHECK(next.lease() == Duration(std::chrono::minutes(3)));
  need(write_file_atomic(dir.path() + "/lease", "x"));
  CHECK(next.lease() == std::nullopt);
}

TEST_CASE("an agent removes what an earlier one has not finished", "[data]") {
  const TemporaryDirectory dir = need(TemporaryDirectory::create());
  for (const char* path : {"/images/building-image-1/root", "/images/0a/root", "/models/building-1"})
    need(make_directories(dir.path() + path));
  const DataDir data = need(DataDir::open(dir.path()));
  CHECK_FALSE(path_exists(data.images() + "/building-image-1"));
  CHECK_FALSE(path_exists(data.models() + "/building-1"));
  CHECK(path_exists(data.images() + "/0a/root"));
}
