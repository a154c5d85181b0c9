// Names of images, and the refusals that need no container engine. tests/adversary/test_images.py has a real
// one.
#include "agent/images.h"

#include <unistd.h>

#include "agent/gpu/driver_files.h"
#include "common/base/files.h"
#include "common/sandbox/sandbox.h"
#include "need.h"

using namespace det;
using namespace det::agent;

namespace {

Error refusal(const ImageRequest& request, const Settings& settings) {
  const TemporaryDirectory cache = need(TemporaryDirectory::create());
  bool is_new = false;
  const auto image = get_image(request, settings, cache.path(), {}, is_new);
  REQUIRE_FALSE(image);
  CHECK_FALSE(is_new);
  return image.error();
}

/// Position of consecutive words in a command; nothing if they are not there.
std::optional<std::ptrdiff_t> find_words(const std::vector<std::string>& command,
                                         const std::vector<std::string>& words) {
  const auto at = std::search(command.begin(), command.end(), words.begin(), words.end());
  if (at == command.end()) return std::nullopt;
  return at - command.begin();
}

}  // namespace

TEST_CASE("a name of an image has the registry, the path and the tag that Docker adds", "[images]") {
  CHECK(full_image_name("busybox") == "docker.io/library/busybox:latest");
  CHECK(full_image_name("pytorch/pytorch:2.1") == "docker.io/pytorch/pytorch:2.1");
  CHECK(full_image_name("localhost/own") == "localhost/own:latest");
  CHECK(full_image_name("registry:5000/team/a:b") == "registry:5000/team/a:b");
  CHECK(full_image_name("r.example.org/a@sha256:00") == "r.example.org/a@sha256:00");
}

TEST_CASE("the image of a task depends on its devices", "[images]") {
  const std::string config =
      R"({"environment": {"image": {"cpu": "a", "cuda": "b"}, "force_pull_image": true,
          "registry_auth": {"username": "u"}}})";
  CHECK(image_request(config, false).name == "a");
  CHECK(image_request(config, true).name == "b");
  CHECK(image_request(config, true).pull);
  CHECK(image_request(config, true).registry_auth == R"({"username":"u"})");
  CHECK(image_request(R"({"environment": {"image": null}})", true).name.empty());
  CHECK(image_request("", true).name.empty());
}

TEST_CASE("an agent without a container engine refuses images and names the setting", "[images]") {
  Settings settings;
  settings.id = "a1";
  const Error error = refusal({.name = "busybox"}, settings);
  CHECK(error.code == Code::kNotFound);
  CHECK_THAT(error.message, Catch::Contains("agent a1 runs no images (container_engine is not set)"));
}

TEST_CASE("a name that is no name of an image never becomes a part of a call", "[images]") {
  Settings settings;
  settings.container_engine = "/no/such/socket";
  for (const std::string name : {"../containers", "a b", "a?x=y", "/a", "a\n", "a#b", "a%2e"}) {
    INFO(name);
    CHECK(refusal({.name = name}, settings).code == Code::kInvalidArgument);
  }
  CHECK(refusal({.name = "busybox"}, settings).code == Code::kUnavailable);
}

TEST_CASE("the libraries of a GPU driver are those beside libcuda.so.1", "[images]") {
  const TemporaryDirectory machine = need(TemporaryDirectory::create());
  const std::string bare = machine.path() + "/bare", driver = machine.path() + "/driver";
  for (const std::string& path : {bare, driver}) need(make_directories(path));
  need(write_file_atomic(bare + "/libnvidia-ml.so.1", ""));
  for (const char* name :
       {"libcuda.so.550.1", "libnvidia-ml.so.550.1", "libc.so.6", "libcudart.so.12", "libnvidia-ml.txt"})
    need(write_file_atomic(driver + "/" + name, ""));
  REQUIRE(::symlink("libcuda.so.550.1", (driver + "/libcuda.so.1").c_str()) == 0);
  REQUIRE(::symlink("libcuda.so.1", (driver + "/libcuda.so").c_str()) == 0);
  REQUIRE(::symlink("libnvidia-ml.so.550.1", (driver + "/libnvidia-ml.so.1").c_str()) == 0);
  REQUIRE(::symlink("missing", (driver + "/libnvidia-gone.so.1").c_str()) == 0);
  std::string found;
  for (const DriverFile& file : driver_files({machine.path() + "/none", bare, driver, "/usr/lib"}))
    found += file.name + "=" + file.path.substr(driver.size()) + " ";
  CHECK(found ==
        "libcuda.so.1=/libcuda.so.550.1 libcuda.so.550.1=/libcuda.so.550.1 "
        "libnvidia-ml.so.1=/libnvidia-ml.so.550.1 libnvidia-ml.so.550.1=/libnvidia-ml.so.550.1 ");
  CHECK(driver_files({bare}).empty());
}

TEST_CASE("a sandbox shows the directories of an image, and no link of it on the way to a mount",
          "[images]") {
  const TemporaryDirectory image = need(TemporaryDirectory::create());
  const std::string root = image.path();
  for (const char* const path : {"/usr/bin", "/etc", "/home/a", "/run/hidden", "/data"})
    need(make_directories(root + path));
  need(write_file_atomic(root + "/etc/hosts", "127.0.0.1 image"));
  need(write_file_atomic(root + "/etc/own", ""));
  REQUIRE(::symlink("usr/bin", (root + "/bin").c_str()) == 0);
  REQUIRE(::symlink("/etc", (root + "/scratch").c_str()) == 0);
  const Sandbox sandbox{.root = root,
                        .tmp = "/t",
                        .mounts = {{"/m", "/data/sets", SandboxMount::Access::kRead},
                                   {"/s", "/scratch/x", SandboxMount::Access::kWrite}}};
  const auto command = sandbox_command(sandbox, {"/p/bin/det-task-init", "run", "/d"});
  CHECK(find_words(command, {"--ro-bind", root + "/usr", "/usr"}));
  CHECK(find_words(command, {"--symlink", "usr/bin", "/bin"}));
  CHECK(find_words(command, {"--ro-bind", root + "/etc/own", "/etc/own"}));
  CHECK(find_words(command, {"--ro-bind", root + "/home", "/home"}));
  CHECK_FALSE(find_words(command, {root + "/etc/hosts"}));
  CHECK_FALSE(find_words(command, {root + "/run"}));
  CHECK_FALSE(find_words(command, {"--ro-bind", "/usr", "/usr"}));
  CHECK_FALSE(find_words(command, {"--symlink", "/etc", "/scratch"}));
  CHECK(find_words(command, {"--dir", "/scratch"}));
  CHECK(find_words(command, {"--ro-bind", "/p/bin/det-task-init", "/run/programs/det-task-init"}));
  const auto program = find_words(command, {"/run/programs/det-task-init", "run", "/d"});
  REQUIRE(program);
  CHECK(*program + 3 == static_cast<std::ptrdiff_t>(command.size()));
}
