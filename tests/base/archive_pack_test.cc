#include <sys/stat.h>

#include <filesystem>

#include "common/archive/archive.h"
#include "common/archive/gzip.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/random.h"
#include "common/crypto/digest.h"
#include "need.h"

using namespace det;
namespace fs = std::filesystem;

namespace {

struct Model {
  TemporaryDirectory directory = need(TemporaryDirectory::create("model"));
  std::string path(const std::string& name) const { return directory.path() + "/" + name; }
  void write(const std::string& name, const std::string& content, mode_t mode = 0644) const {
    need(make_directories(fs::path(path(name)).parent_path().string()));
    need(write_file_atomic(path(name), content, mode));
  }
};

Result<std::string> pack_directory(const std::string& path, const ArchiveLimits& limits = {}) {
  TRY_ASSIGN(std::vector<ArchiveEntry> entries, read_directory(path, limits));
  return pack_entries(std::move(entries), limits);
}

std::vector<std::string> names(const std::vector<ArchiveItem>& items) {
  std::vector<std::string> result;
  for (const ArchiveItem& item : items) result.push_back(item.path);
  return result;
}

}  // namespace

TEST_CASE("a packed directory unpacks with the same content and modes", "[archive]") {
  const Model model;
  Random random{4, 0};
  std::string noise;
  for (int i = 0; i < 300'000; ++i) noise += static_cast<char>(random.next());
  const std::string long_name = std::string(120, 'l') + "/" + std::string(200, 'm') + ".txt";
  model.write("model_def.cpp", "int main() {}\n");
  model.write("startup-hook.sh", "#!/bin/sh\n", 0700);
  model.write("data/noise.bin", noise, 0400);
  model.write("caf\xC3\xA9", "");
  model.write(long_name, "deep");
  need(make_directories(model.path("empty")));
  const std::string packed = need(pack_directory(model.directory.path()));

  const TemporaryDirectory out = need(TemporaryDirectory::create());
  need(unpack(packed, out.path()));
  CHECK(need(read_file(out.path() + "/data/noise.bin")) == noise);
  CHECK(need(read_file(out.path() + "/caf\xC3\xA9")).empty());
  CHECK(need(read_file(out.path() + "/" + long_name)) == "deep");
  CHECK(fs::is_directory(out.path() + "/empty"));
  struct stat info {};
  REQUIRE(::stat((out.path() + "/startup-hook.sh").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0755);
  REQUIRE(::stat((out.path() + "/data/noise.bin").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
  CHECK(need(check_archive(packed)).size() == 8);
}

TEST_CASE("equal content packs to equal bytes, independent of order and times", "[archive]") {
  const Model first, second;
  for (const char* name : {"b", "a", "c/d"}) first.write(name, name);
  for (const char* name : {"c/d", "a", "b"}) second.write(name, name);
  fs::last_write_time(second.path("a"), fs::file_time_type{});
  CHECK(need(pack_directory(first.directory.path())) == need(pack_directory(second.directory.path())));
  CHECK(need(pack_entries({{"a", "1"}, {"b", "2"}})) == need(pack_entries({{"b", "2"}, {"a", "1"}})));
  CHECK(need(pack_entries({{"a", "1"}})) != need(pack_entries({{"a", "2"}})));
}

TEST_CASE("the layout of packed archives never changes", "[archive]") {
  // Stored archives are found by their digest: another layout would store every directory again.
  const std::string packed = need(pack_entries(
      {{"a", "", true}, {"a/b.txt", "text"}, {std::string(150, 'n'), "long"}, {"run", "x", false, 0755}}));
  CHECK(packed.starts_with(std::string("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10)));  // no time, no file name
  std::string tar;
  ByteSource source(packed);
  for (std::string_view piece = need(source.next()); !piece.empty(); piece = need(source.next()))
    tar += piece;
  CHECK(tar.size() == 5632);
  CHECK(sha256_hex(tar) == "6ab999630eeef522da404ea51e97778e75626472e3652bffbd77563d0f3909d6");
}

TEST_CASE("ignored files are not packed", "[archive]") {
  const Model model;
  for (const char* name : {"model.cpp", "x.pyc", ".git/config", "logs/a.log", "logs/keep.log", "build/out",
                           "shared_fs/f", "src/shared_fs"}) {
    model.write(name, "x");
  }
  model.write(".detignore", "*.log\n!keep.log\n/build/\n");
  CHECK(names(need(check_archive(need(pack_directory(model.directory.path()))))) ==
        std::vector<std::string>{".detignore", "logs", "logs/keep.log", "model.cpp", "src", "src/shared_fs"});
}

TEST_CASE("links to files inside are packed as files, others are refused by name", "[archive]") {
  const Model model;
  model.write("real", "content");
  fs::create_symlink("real", model.path("link"));
  const std::vector<ArchiveEntry> entries = need(read_directory(model.directory.path()));
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].path == "link");
  CHECK(entries[0].content == "content");
  for (const char* target : {"/etc/passwd", "/", "nowhere", "../outside"}) {
    fs::create_symlink(target, model.path("bad"));
    const auto refused = pack_directory(model.directory.path());
    REQUIRE_FALSE(refused);
    CHECK(refused.error().problems.at(0).code == "E-CTX-TYPE");
    CHECK(refused.error().problems.at(0).path == "bad");
    fs::remove(model.path("bad"));
  }
  REQUIRE(::mkfifo(model.path("pipe").c_str(), 0600) == 0);
  CHECK(pack_directory(model.directory.path()).error().problems.at(0).path == "pipe");
  CHECK(pack_directory(model.path("none")).error().code == Code::kNotFound);
}

TEST_CASE("entries that could not be unpacked are refused", "[archive]") {
  const auto code = [](std::vector<ArchiveEntry> entries, const ArchiveLimits& limits = {}) {
    const auto refused = pack_entries(std::move(entries), limits);
    return refused ? std::string("packed") : refused.error().problems.at(0).code;
  };
  CHECK(code({{"../x", ""}}) == "E-CTX-PATH");
  CHECK(code({{"a", ""}, {"a", ""}}) == "E-CTX-DUPLICATE");
  CHECK(code({{"a", ""}, {"a/b", ""}}) == "E-CTX-PATH");
  ArchiveLimits limits;
  limits.unpacked_bytes = 10;
  CHECK(code({{"a", "12345678901"}}, limits) == "E-CTX-LIMIT");
  limits = {};
  limits.packed_bytes = 50;
  CHECK(code({{"a", "x"}}, limits) == "E-CTX-LIMIT");
  CHECK(code({{"zeros", std::string(8 << 20, '\0')}}) == "E-CTX-LIMIT");
  const Model model;
  model.write("big", std::string(100, 'x'));
  limits = {};
  limits.unpacked_bytes = 99;
  CHECK(pack_directory(model.directory.path(), limits).error().problems.at(0).path == "big");
}

TEST_CASE("archives are compatible with the system's tar in both directions", "[archive]") {
  const Model model;
  model.write("a/b.txt", "text");
  model.write("run", "x", 0755);
  model.write(std::string(150, 'n'), "long");
  const std::string packed = need(pack_directory(model.directory.path()));
  const ProcessResult listed = need(run_process({.argv = {"tar", "tzf", "-"}}, {}, packed));
  CHECK(listed.err == "");
  CHECK(listed.out == "a/\na/b.txt\n" + std::string(150, 'n') + "\nrun\n");
  for (const char* format : {"gnu", "pax", "ustar"}) {
    INFO(format);
    for (const char* compress : {"--gzip", "--no-auto-compress"}) {
      const ProcessResult made = need(
          run_process({.argv = {"tar", "c", compress, "--format", format, "-C", model.directory.path(), "a",
                                "run", std::string(format) == "ustar" ? "a/b.txt" : std::string(150, 'n')}}));
      if (std::string(format) == "ustar") {
        CHECK(read_archive(made.out).error().problems.at(0).code ==
              "E-CTX-TYPE");  // tar stored the repeated file as a hard link
        continue;
      }
      const std::vector<ArchiveEntry> entries = need(read_archive(made.out));
      REQUIRE(entries.size() == 4);
      CHECK(entries[0].directory);
      CHECK(entries[1].content == "text");
      CHECK(entries[2].mode == 0755);
      CHECK(entries[3].path == std::string(150, 'n'));
    }
  }
}
