#include "cli/submit/context.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/archive/archive.h"
#include "common/base/files.h"
#include "common/base/text.h"

namespace det::cli::test {
namespace {

std::vector<std::string> paths(const Context& context) {
  const auto items = check_archive(context.bytes);
  REQUIRE(items);
  std::vector<std::string> list;
  for (const ArchiveItem& item : *items) list.push_back(item.path);
  return list;
}

}  // namespace

TEST_CASE("a context holds the directory and the includes, without files matched by .detignore") {
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
  const auto context = pack_context(model, {extra, extra + "/c.txt"});
  REQUIRE(context);
  CHECK(context->file_count == 5);
  CHECK(context->content_bytes == 5 + 1 + 6 + 3 + 3);
  CHECK(paths(*context) ==
        std::vector<std::string>{".detignore", "a.cpp", "c.txt", "extra", "extra/c.txt", "sub", "sub/b.h"});
  CHECK(!pack_context(model, {model + "/a.cpp"}));
  CHECK(!pack_context(model, {home->path() + "/nothing"}));
}

TEST_CASE("no directory gives an empty context, and a file is refused") {
  const auto none = pack_context("", {});
  REQUIRE(none);
  CHECK(none->file_count == 0);
  CHECK(paths(*none).empty());
  const auto file = pack_context("/etc/passwd", {});
  REQUIRE(!file);
  CHECK(file.error().message.find("is no directory") != std::string::npos);
  CHECK(!pack_context("/no/such/place", {}));
}

TEST_CASE("the directory is shown in the format of Determined's CLI") {
  const std::string here = std::filesystem::current_path().filename().string();
  CHECK(shown_directory(".") == "../" + here);
  CHECK(shown_directory("./") == "../" + here);
  CHECK(shown_directory("models/mnist") == "models/mnist");
  CHECK(shown_directory("/abs") == "/abs");
}

}  // namespace det::cli::test
