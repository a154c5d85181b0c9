// Archives built by hand, one for each known attack. Each is refused with its code and the name of the entry,
// and nothing is written.
#include <sys/stat.h>

#include <filesystem>

#include "common/archive/archive.h"
#include "common/archive/gzip.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "need.h"
#include "tar_builder.h"

using namespace det;
namespace tb = tar_builder;
namespace fs = std::filesystem;

namespace {

struct Attack {
  const char* name;
  std::string bytes;
  std::string code;
  std::string entry;
};

std::string repeated_path(const std::string& part, int count) {
  std::string path = part;
  for (int i = 1; i < count; ++i) path += "/" + part;
  return path;
}

std::string many_entries(int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += tb::entry({"f" + std::to_string(i), ""});
  return bytes + tb::end();
}

std::vector<Attack> escapes_and_kinds() {
  return {{"parent", tb::file("../x") + tb::end(), "E-CTX-PATH", "../x"},
          {"absolute", tb::file("/etc/x") + tb::end(), "E-CTX-PATH", "/etc/x"},
          {"climb inside", tb::file("a/../../x") + tb::end(), "E-CTX-PATH", "a/../../x"},
          {"parent as directory", tb::entry({"..", "", '5'}) + tb::end(), "E-CTX-PATH", ".."},
          {"dot then parent", tb::file("./../x") + tb::end(), "E-CTX-PATH", "../x"},
          {"backslash", tb::file("..\\x") + tb::end(), "E-CTX-PATH", "..\\x"},
          {"double slash", tb::file("a//b") + tb::end(), "E-CTX-PATH", "a//b"},
          {"hidden absolute", tb::file(".//etc/x") + tb::end(), "E-CTX-PATH", "/etc/x"},
          {"symbolic link to the root", tb::entry({"l", "", '2', 0777, "/"}) + tb::end(), "E-CTX-TYPE", "l"},
          {"symbolic link, then a file through it",
           tb::entry({"l", "", '2', 0777, "/tmp"}) + tb::file("l/x") + tb::end(), "E-CTX-TYPE", "l"},
          {"hard link", tb::entry({"h", "", '1', 0644, "/etc/passwd"}) + tb::end(), "E-CTX-TYPE", "h"},
          {"character device", tb::entry({"d", "", '3'}) + tb::end(), "E-CTX-TYPE", "d"},
          {"block device", tb::entry({"d", "", '4'}) + tb::end(), "E-CTX-TYPE", "d"},
          {"pipe", tb::entry({"p", "", '6'}) + tb::end(), "E-CTX-TYPE", "p"},
          {"socket of some tar", tb::entry({"s", "", 's'}) + tb::end(), "E-CTX-TYPE", "s"}};
}

std::vector<Attack> sizes_and_extensions() {
  const std::string base256_8EiB =
      std::string("\x80\0\0\0", 4) + std::string("\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
  return {
      {"GNU sparse", tb::entry({"s", "", 'S'}) + tb::end(), "E-CTX-TYPE", "s"},
      {"pax sparse", tb::pax("GNU.sparse.major", "1") + tb::file("s") + tb::end(), "E-CTX-TYPE", "s"},
      {"GNU long link name",
       tb::entry({"././@LongLink", "/etc/passwd", 'K'}) + tb::entry({"l", "", '2'}) + tb::end(), "E-CTX-TYPE",
       "l"},
      {"8 EiB in base 256", tb::entry({"big", "", '0', 0644, "", "", base256_8EiB}) + tb::end(),
       "E-CTX-LIMIT", "big"},
      {"8 GiB in octal", tb::entry({"big", "", '0', 0644, "", "", "77777777777"}) + tb::end(), "E-CTX-LIMIT",
       "big"},
      {"negative size", tb::entry({"neg", "", '0', 0644, "", "", std::string(12, '\xFF')}) + tb::end(),
       "E-CTX-FORMAT", ""},
      {"pax size beyond the end", tb::pax("size", "100000") + tb::file("s") + tb::end(), "E-CTX-FORMAT", "s"},
      {"pax size negative", tb::pax("size", "-5") + tb::file("s") + tb::end(), "E-CTX-FORMAT", ""},
      {"pax path override", tb::pax("path", "../../x") + tb::file("harmless") + tb::end(), "E-CTX-PATH",
       "../../x"},
      {"pax path with NUL", tb::pax("path", std::string("a\0b", 3)) + tb::file("a") + tb::end(), "E-CTX-PATH",
       "a\xE2\x90\x80"
       "b"},
      {"pax path for all entries", tb::pax("path", "x", 'g') + tb::file("a") + tb::end(), "E-CTX-FORMAT", ""},
      {"pax record of a wrong length", tb::entry({"p", "99 path=x\n", 'x'}) + tb::file("a") + tb::end(),
       "E-CTX-FORMAT", ""},
      {"huge extended header", tb::entry({"p", std::string(70'000, 'x'), 'x'}) + tb::file("a") + tb::end(),
       "E-CTX-FORMAT", ""},
      {"GNU long name that climbs", tb::entry({"././@LongLink", "../x", 'L'}) + tb::file("a") + tb::end(),
       "E-CTX-PATH", "../x"},
      {"prefix that climbs", tb::entry({"x", "x", '0', 0644, "", ".."}) + tb::end(), "E-CTX-PATH", "../x"}};
}

std::vector<Attack> names_and_limits() {
  return {
      {"the same name twice", tb::file("a") + tb::file("a") + tb::end(), "E-CTX-DUPLICATE", "a"},
      {"the same name, spelled otherwise", tb::file("a") + tb::file("./a") + tb::end(), "E-CTX-DUPLICATE",
       "a"},
      {"names that differ by case", tb::file("Model.py") + tb::file("model.py") + tb::end(),
       "E-CTX-DUPLICATE", "model.py"},
      {"directories that differ by case", tb::file("A/x") + tb::file("a/y") + tb::end(), "E-CTX-DUPLICATE",
       "a/y"},
      {"a file that is also a directory", tb::file("a") + tb::file("a/b") + tb::end(), "E-CTX-PATH", "a/b"},
      {"a directory that is also a file", tb::file("a/b") + tb::file("a") + tb::end(), "E-CTX-PATH", "a"},
      {"empty name", tb::file("") + tb::end(), "E-CTX-PATH", ""},
      {"name with a line end", tb::file("a\nb") + tb::end(), "E-CTX-PATH", "a?b"},
      {"name with an escape", tb::file("\x1B[2J") + tb::end(), "E-CTX-PATH", "?[2J"},
      {"name with a bidi override",
       tb::file("a\xE2\x80\xAE"
                "b") +
           tb::end(),
       "E-CTX-PATH",
       "a\xE2\x80\xAE"
       "b"},
      {"name that is no UTF-8", tb::file("a\xFF") + tb::end(), "E-CTX-PATH", "a\xEF\xBF\xBD"},
      {"path of 513 bytes", tb::pax("path", repeated_path("1234567", 64) + "/1") + tb::file("x") + tb::end(),
       "E-CTX-PATH", repeated_path("1234567", 64) + "/1"},
      {"name of 256 bytes", tb::pax("path", std::string(256, 'n')) + tb::file("x") + tb::end(), "E-CTX-PATH",
       std::string(256, 'n')},
      {"33 levels", tb::file(repeated_path("d", 33)) + tb::end(), "E-CTX-PATH", repeated_path("d", 33)},
      {"50,001 entries", many_entries(50'001), "E-CTX-LIMIT", "f50000"},
      {"gzip bomb", gzip(tb::file("zeros", std::string(8 << 20, '\0')) + tb::end()), "E-CTX-LIMIT", "zeros"},
      {"gzip bomb after the end", gzip(tb::file("a") + std::string(8 << 20, '\0')), "E-CTX-LIMIT", "a"}};
}

std::vector<Attack> damage() {
  const std::string good = tb::file("a") + tb::end();
  std::string broken_sum = good;
  broken_sum[0] = 'b';
  std::string cut_gzip = gzip(good), bad_gzip = gzip(good);
  cut_gzip.resize(cut_gzip.size() - 9);
  bad_gzip[bad_gzip.size() - 6] ^= 1;
  return {{"directory with content", tb::entry({"d/", "x", '5'}) + tb::end(), "E-CTX-FORMAT", "d/"},
          {"cut in the content", tb::file("a", std::string(2000, 'x')).substr(0, 1000), "E-CTX-FORMAT", "a"},
          {"cut before the end mark", tb::file("a"), "E-CTX-FORMAT", "a"},
          {"cut in a header", tb::file("a") + tb::file("b").substr(0, 100), "E-CTX-FORMAT", "a"},
          {"nothing at all", "", "E-CTX-FORMAT", ""},
          {"no tar", "hello, world", "E-CTX-FORMAT", ""},
          {"wrong checksum", broken_sum, "E-CTX-FORMAT", ""},
          {"trailing bytes", good + "x", "E-CTX-FORMAT", "a"},
          {"two archives", good + good, "E-CTX-FORMAT", "a"},
          {"trailing bytes after gzip", gzip(good) + "x", "E-CTX-FORMAT", "a"},
          {"two gzip members", gzip(good) + gzip(good), "E-CTX-FORMAT", "a"},
          {"gzip cut", cut_gzip, "E-CTX-FORMAT", "a"},
          {"gzip with a wrong checksum", bad_gzip, "E-CTX-FORMAT", ""}};
}

std::vector<Attack> attacks() {
  std::vector<Attack> all;
  for (const auto& part : {escapes_and_kinds(), sizes_and_extensions(), names_and_limits(), damage()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

TEST_CASE("every attack is refused with its code and entry, and nothing is written", "[archive]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string target = directory.path() + "/target";
  need(make_directories(target));
  CHECK(attacks().size() == 60);
  for (const Attack& attack : attacks()) {
    INFO(attack.name);
    const Status refused = unpack(attack.bytes, target);
    REQUIRE_FALSE(refused);
    INFO(refused.error().message);
    CHECK(refused.error().code == Code::kInvalidArgument);
    REQUIRE(refused.error().problems.size() == 1);
    CHECK(refused.error().problems[0].code == attack.code);
    CHECK(refused.error().problems[0].path == attack.entry);
    CHECK_FALSE(check_archive(attack.bytes));
    CHECK_FALSE(read_archive(attack.bytes));
    CHECK(fs::is_empty(target));
    CHECK(std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator{}) == 1);
  }
}

TEST_CASE("an attack after valid entries leaves none of them on disk", "[archive]") {
  const TemporaryDirectory target = need(TemporaryDirectory::create());
  CHECK_FALSE(unpack(tb::file("good") + tb::entry({"l", "", '2', 0777, "/"}) + tb::end(), target.path()));
  CHECK(fs::is_empty(target.path()));
}

TEST_CASE("unusual but valid archives are accepted", "[archive]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  std::string v7 = tb::entry({"old/", "", '\0', 0755, "", "", "", std::string(8, '\0')});
  const std::string bytes = tb::pax("comment", "made by git", 'g') + tb::entry({"./", "", '5', 0755}) + v7 +
                            tb::pax("mtime", "1.5") + tb::entry({"./run.sh", "#!/bin/sh\n", '0', 06755}) +
                            tb::entry({"data.bin", std::string(1000, '\0'), '0', 0666}) +
                            tb::entry({"name", "long", '0', 0600, "", "a/prefix"}) +
                            tb::entry({"././@LongLink", std::string(200, 'n') + '\0', 'L'}) +
                            tb::file("cut") + tb::end() + std::string(10'240, '\0');
  const std::string target = directory.path() + "/new/target";
  need(unpack(bytes, target));
  struct stat info {};
  REQUIRE(::stat((target + "/run.sh").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0755);  // setuid is dropped
  REQUIRE(::stat((target + "/data.bin").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0644);
  CHECK(info.st_size == 1000);
  CHECK(need(read_file(target + "/a/prefix/name")) == "long");
  CHECK(need(read_file(target + "/" + std::string(200, 'n'))) == "x");
  CHECK(fs::is_directory(target + "/old"));
}

TEST_CASE("unpacking requires an empty directory and follows no existing symlink", "[archive]") {
  const TemporaryDirectory directory = need(TemporaryDirectory::create());
  const std::string target = directory.path() + "/target", outside = directory.path() + "/outside";
  need(make_directories(target));
  need(make_directories(outside));
  fs::create_directory_symlink(outside, target + "/l");
  CHECK(unpack(tb::file("l/x") + tb::end(), target).error().code == Code::kFailedPrecondition);
  CHECK(fs::is_empty(outside));
  CHECK(fs::is_symlink(target + "/l"));
}

TEST_CASE("limits are exact", "[archive]") {
  ArchiveLimits limits;
  limits.unpacked_bytes = 1000;
  limits.entries = 3;
  limits.packed_bytes = 5000;
  CHECK(check_archive(tb::file("a", std::string(1000, 'x')) + tb::end(), limits));
  CHECK_FALSE(check_archive(tb::file("a", std::string(1001, 'x')) + tb::end(), limits));
  CHECK_FALSE(check_archive(
      tb::file("a", std::string(600, 'x')) + tb::file("b", std::string(600, 'x')) + tb::end(), limits));
  CHECK(check_archive(many_entries(3), limits));
  CHECK_FALSE(check_archive(many_entries(4), limits));
  CHECK(check_archive(tb::file("a/b/c") + tb::end(), limits));
  CHECK_FALSE(check_archive(tb::file("a/b/c/d") + tb::end(), limits));  // implies three parents
  CHECK_FALSE(check_archive(many_entries(3) + std::string(5000, '\0'), limits));
  CHECK(check_archive(tb::file(repeated_path("d", 32)) + tb::end()));
  CHECK(check_archive(tb::pax("path", std::string(255, 'n')) + tb::file("x") + tb::end()));
}
