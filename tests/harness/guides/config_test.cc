#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"
#include "common/expconf/parse.h"
#include "test_paths.h"

namespace det {
namespace {

TEST_CASE("the configurations of the guides are valid") {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_path("/tests/harness/guides"))) {
    if (entry.path().extension() != ".yaml") continue;
    ++count;
    INFO(entry.path());
    const expconf::Defaults defaults{
        .checkpoint_storage = {{"type", "directory"}, {"container_path", "/tmp"}},
        .experiment_seed = 1,
        .name = "x"};
    const auto parsed =
        expconf::parse(read_file(entry.path().string()).value(), entry.path().string(), defaults);
    INFO((parsed ? std::string() : parsed.error().message));
    CHECK(parsed.has_value());
    if (parsed) CHECK(parsed->warnings.empty());
  }
  CHECK(count == 6);
}

}  // namespace
}  // namespace det
