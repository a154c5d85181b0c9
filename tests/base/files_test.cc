#include "common/base/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "common/base/process.h"
#include "common/base/wait.h"
#include "need.h"

using namespace det;
namespace fs = std::filesystem;

TEST_CASE("an atomic write replaces the file, sets its mode and leaves no temporary file", "[files]") {
  const auto write = GENERATE(write_file_atomic, replace_file);
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/file";
  need(write(path, "one", 0644));
  need(write(path, "two", 0600));
  CHECK(need(read_file(path)) == "two");
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator{}) == 1);
}

TEST_CASE("a reader never sees a partial atomic write", "[files]") {
  const auto write = GENERATE(write_file_atomic, replace_file);
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/file";
  const std::string a(100'000, 'a'), b(200'000, 'b');
  need(write(path, a, 0644));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) (void)write(path, i % 2 == 0 ? b : a, 0644);
    done = true;
  });
  bool whole = true;
  while (!done) {
    const Result<std::string> seen = read_file(path);
    whole = whole && seen && (*seen == a || *seen == b);
  }
  writer.join();
  CHECK(whole);
}

TEST_CASE("a failed atomic write keeps the old file and leaves no temporary file", "[files]") {
  const auto write = GENERATE(write_file_atomic, replace_file);
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/name";
  need(make_directories(path + "/child"));  // a file cannot replace a directory
  CHECK_FALSE(write(path, "x", 0644));
  CHECK(fs::is_directory(path + "/child"));
  CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator{}) == 1);
  CHECK(write(directory.path() + "/no/such/file", "x", 0644).error().code == Code::kNotFound);
}

TEST_CASE("reading is bounded, and errors name the file", "[files]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/file";
  need(write_file_atomic(path, "12345"));
  CHECK(need(read_file(path, 5)) == "12345");
  CHECK(read_file(path, 4).error().code == Code::kResourceExhausted);
  CHECK(read_file(path + "x").error().code == Code::kNotFound);
  CHECK(read_file(path + "x").error().message == path + "x: No such file or directory");
  CHECK_FALSE(read_file(directory.path()));
  CHECK_FALSE(need(read_file("/proc/self/status")).empty());
}

TEST_CASE("directories are created with parents, and trees are removed without following links", "[files]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string deep = directory.path() + "/a/b/c", outside = directory.path() + "/outside";
  need(make_directories(deep));
  need(make_directories(deep));
  need(make_directories(outside));
  need(write_file_atomic(outside + "/kept", "x"));
  fs::create_directory_symlink(outside, deep + "/link");
  CHECK(make_directories(outside + "/kept/x").error().code == Code::kNotFound);
  need(remove_tree(directory.path() + "/a"));
  CHECK_FALSE(path_exists(directory.path() + "/a"));
  CHECK(path_exists(outside + "/kept"));
  need(remove_tree(directory.path() + "/a"));
  CHECK(need(free_space(directory.path())) > 0);
  CHECK(fs::path(program_path()).filename() == "base_test");
}

TEST_CASE("a tree with directories that their owner may not write is removed, and no link is followed",
          "[files]") {
  constexpr uid_t kNobody = 65534;
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string outside = directory.path() + "/outside", tree = directory.path() + "/tree";
  need(make_directories(outside));
  need(make_directories(tree + "/a/b"));
  need(write_file_atomic(tree + "/a/b/file", "x"));
  fs::create_directory_symlink(outside, tree + "/a/link");
  const std::pair<std::string, mode_t> modes[] = {
      {tree + "/a/b", 0}, {tree + "/a", 0555}, {tree, 0555}, {outside, 0555}, {directory.path(), 0700}};
  for (const auto& [path, mode] : modes) {
    // Root may write everywhere.
    if (::geteuid() == 0) REQUIRE(::chown(path.c_str(), kNobody, kNobody) == 0);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    // Directories above the temporary one may be closed to the user.
    if (::chdir(directory.path().c_str()) != 0) ::_exit(2);
    if (::geteuid() == 0 && ::setresuid(kNobody, kNobody, kNobody) != 0) ::_exit(2);
    ::_exit(remove_tree("tree") ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_FALSE(path_exists(tree));
  struct stat info {};
  REQUIRE(::stat(outside.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0555);
}

TEST_CASE("a directory is vacant if it is absent or empty", "[files]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/a";
  CHECK(need(vacant_directory(path + "//")) == path);
  need(make_directories(path));
  fs::create_directory_symlink(path, directory.path() + "/link");
  for (const std::string& empty : {path + "/", directory.path() + "/link"})
    CHECK(need(vacant_directory(empty)) == fs::canonical(path).string());
  need(write_file_atomic(path + "/file", ""));
  for (const std::string& taken : {path, path + "/file"})
    CHECK(vacant_directory(taken).error().code == Code::kFailedPrecondition);
}

TEST_CASE("a temporary directory is private and removed by its destructor", "[files]") {
  std::string path;
  {
    TemporaryDirectory first = need(TemporaryDirectory::create("x"));
    path = first.path();
    struct stat info {};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 0777) == 0700);
    const TemporaryDirectory second = std::move(first);
    CHECK(path_exists(path));
  }
  CHECK_FALSE(path_exists(path));
  TemporaryDirectory kept = need(TemporaryDirectory::create());
  path = kept.release();
  kept = need(TemporaryDirectory::create());
  CHECK(path_exists(path));
  need(remove_tree(path));
}

TEST_CASE("a lock has one holder and is released when its process ends", "[files]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string path = directory.path() + "/lock";
  {
    const FileLock mine = need(FileLock::try_lock(path));
    CHECK(FileLock::try_lock(path).error().code == Code::kFailedPrecondition);
  }
  Child holder = need(Child::spawn(
      {.argv = {"flock", path, "sh", "-c", "echo held; exec sleep 100"}, .out = Stream::pipe()}));
  char byte;
  REQUIRE(::read(holder.out().get(), &byte, 1) == 1);
  CHECK_FALSE(FileLock::try_lock(path));
  need(holder.signal_group(SIGKILL));
  need(FileLock::lock(path));
}

TEST_CASE("waiting ends with the predicate or the deadline", "[wait]") {
  int asked = 0;
  CHECK(wait_until([&] { return ++asked == 3; }, std::chrono::seconds(10)));
  CHECK(asked == 3);
  asked = 0;
  CHECK_FALSE(wait_until([&] { return ++asked < 0; }, Duration(0)));
  CHECK(asked == 1);
}
