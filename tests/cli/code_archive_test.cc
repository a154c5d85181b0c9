#include "cli/submit/code_archive.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det::cli::test {
namespace {

std::vector<std::string> paths(const CodeArchive& archive) {
  const auto items = check_archive(archive.bytes);
  REQUIRE(items);
  std::vector<std::string> list;
  for (const ArchiveItem& item : *items) list.push_back(item.path);
  return list;
}

}  // namespace

TEST_CASE("a code archive holds the directory and the includes, without files matched by .detignore") {
  auto home = TemporaryDirectory::create();
  REQUIRE(home);
  const std::string model = home->path() + "/model", extra = home->path() + "/extra";
  REQUIRE(make_directories(model + "/sub"));
  REQUIRE(make_directories(extra));
  REQUIRE(write_file_atomic(model + "/a.cpp", "12345"));
  REQUIRE(write_file_atomic(model + "/sub/b.h", "1"));
  REQUIRE(write_file_atomic(model + "/big.bin", "no"));
  REQUIRE(write_file_atomic(model + "/.detignore", "*.bin\n"));
  REQUIRE(write_file_atomic(extra + "/c.txt", "123"));
  const auto archive = pack_code_archive(model, {extra, extra + "/c.txt"});
  REQUIRE(archive);
  CHECK(archive->files.size() == 5);
  CHECK(archive->content_bytes == 5 + 1 + 6 + 3 + 3);
  CHECK(paths(*archive) ==
        std::vector<std::string>{".detignore", "a.cpp", "c.txt", "extra", "extra/c.txt", "sub", "sub/b.h"});
  CHECK(!pack_code_archive(model, {model + "/a.cpp"}));
  CHECK(!pack_code_archive(model, {home->path() + "/nothing"}));
}

TEST_CASE("no directory gives an empty code archive, and a file is refused") {
  const auto none = pack_code_archive("", {});
  REQUIRE(none);
  CHECK(none->files.empty());
  CHECK(paths(*none).empty());
  const auto file = pack_code_archive("/etc/passwd", {});
  REQUIRE(!file);
  CHECK(file.error().message.find("is no directory") != std::string::npos);
  CHECK(!pack_code_archive("/no/such/place", {}));
}

TEST_CASE("the directory is shown in the format of Determined's CLI") {
  const std::string here = std::filesystem::current_path().filename().string();
  CHECK(shown_directory(".") == "../" + here);
  CHECK(shown_directory("./") == "../" + here);
  CHECK(shown_directory("models/mnist") == "models/mnist");
  CHECK(shown_directory("/abs") == "/abs");
}

}  // namespace det::cli::test
