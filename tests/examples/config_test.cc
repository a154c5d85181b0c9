// The configurations and hooks of the examples. Each configuration must pass the cluster's validation. Its
// searcher metric must be one that the example reports, with the right direction.
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/expconf/parse.h"
#include "test_paths.h"

namespace det {
namespace {

const std::map<std::string, std::vector<std::string>> kConfigurations{
    {"compiled_step", {"const", "search"}},
    {"core_api",
     {"1_start", "2_metrics", "3_checkpoints", "4_search", "5_distributed", "over_http",
      "over_http_distributed"}},
    {"gpt", {"const", "distributed"}},
    {"imagenet", {"const", "cifar10"}},
    {"mnist", {"const", "distributed", "dist_random", "adaptive"}},
    {"mnist_managed", {"const"}},
    {"shiftvit",
     {"const_mnist", "distributed_mnist", "adaptive_mnist", "const_cifar10", "distributed_cifar10",
      "adaptive_cifar10", "distributed_imagenet"}},
};

TEST_CASE("the configurations of the examples are valid, and their metrics have the right direction") {
  std::size_t there = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("/examples"))) {
    there += entry.path().extension() == ".yaml";
  }
  std::size_t count = 0;
  for (const auto& [example, names] : kConfigurations) {
    for (const std::string& name : names) {
      ++count;
      const std::string path = source_path("/examples/") + example + "/" + name + ".yaml";
      INFO(path);
      const expconf::Defaults defaults{
          .checkpoint_storage = {{"type", "directory"}, {"container_path", "/tmp"}},
          .experiment_seed = 1,
          .name = "x"};
      const auto parsed = expconf::parse(read_file(path).value(), path, defaults);
      INFO((parsed ? std::string() : parsed.error().message));
      REQUIRE(parsed.has_value());
      CHECK(parsed->warnings.empty());
      const std::string& metric = parsed->config.searcher.metric;
      const bool is_loss =
          metric.find("loss") != std::string::npos || metric.find("error") != std::string::npos;
      CHECK((is_loss || metric == "accuracy" || metric == "top1"));
      CHECK(parsed->config.searcher.smaller_is_better == is_loss);
    }
  }
  CHECK(count == there);
}

/// Runs ShiftViT's startup hook in an empty folder, with MNIST in the cache and no network. Returns its
/// status and whether it made data/mnist.
std::pair<int, bool> run_hook(const std::string& config) {
  const auto folder = TemporaryDirectory::create().value();
  std::filesystem::create_directories(folder.path() + "/cache/determinant/shiftvit/mnist");
  const ProcessResult result =
      run_process(
          {.argv = {"/bin/sh", source_path("/examples/shiftvit/startup-hook.sh")},
           .env = environment_with({"XDG_CACHE_HOME=" + folder.path() + "/cache",
                                    "DET_EXPERIMENT_CONFIG=" + config, "https_proxy=http://127.0.0.1:9"}),
           .cwd = folder.path()})
          .value();
  INFO(result.err);
  return {result.status.shell_code(), path_exists(folder.path() + "/data/mnist")};
}

TEST_CASE("the startup hook of ShiftViT fetches a data set only for its own folder") {
  CHECK(run_hook(R"({"data":{"dir":"data/mnist"}})") == std::pair{0, true});
  CHECK(run_hook(R"({"data":{"dir":"/shared/data/mnist"}})") == std::pair{0, false});
  CHECK(run_hook(R"({"data":{"dir":"/shared/data/cifar10"}})") == std::pair{0, false});
}

}  // namespace
}  // namespace det
