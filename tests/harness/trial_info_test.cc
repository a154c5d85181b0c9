// Trial info from the cluster's environment or from a configuration file.
#include "harness/src/client/trial_info.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "harness/src/client/setting.h"

namespace det {
namespace {

/// Sets environment variables for one test.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) {
      ::setenv(name.c_str(), value.c_str(), 1);
      names_.push_back(name);
    }
  }
  ~Environment() {
    for (const std::string& name : names_) ::unsetenv(name.c_str());
  }

 private:
  std::vector<std::string> names_;
};

std::map<std::string, std::string> cluster() {
  return {{"DET_EXPERIMENT_ID", "3"},
          {"DET_TRIAL_ID", "12"},
          {"DET_TRIAL_RUN_ID", "2"},
          {"DET_TRIAL_SEED", "99"},
          {"DET_HPARAMS", R"({"lr": 0.5})"},
          {"DET_LATEST_CHECKPOINT", "uuid"},
          {"DET_EXPERIMENT_CONFIG",
           R"({"checkpoint_storage": {"type": "shared_fs", "host_path": "/s", "storage_path": "sub"}})"}};
}

Result<TrialInfo> local(const std::string& yaml) {
  const auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/c.yaml";
  std::ofstream(file) << yaml;
  return local_trial_info(file, "");
}

TEST_CASE("a cluster's environment provides every field") {
  const Environment environment(cluster());
  const TrialInfo info = cluster_trial_info().value();
  CHECK(info.experiment_id == 3);
  CHECK(info.trial_id == 12);
  CHECK(info.run == 2);
  CHECK(info.seed == 99);
  CHECK(info.hparams["lr"] == 0.5);
  CHECK(info.latest_checkpoint == "uuid");
  CHECK(info.checkpoint_dir == "/s/sub");
}

TEST_CASE("the master's address determines TLS") {
  auto values = cluster();
  for (const auto& [given, shown] :
       std::map<std::string, std::string>{{"http://m:8080", "m:8080"},
                                          {"https://m:8443", "https://m:8443"},
                                          {"m:1", "m:1"},
                                          {"https://[::1]:1", "https://[::1]:1"}}) {
    values["DET_MASTER"] = given;
    const Environment environment(values);
    CHECK(cluster_trial_info().value().master == shown);
  }
}

TEST_CASE("an invalid variable is named") {
  auto values = cluster();
  values["DET_TRIAL_ID"] = "twelve";
  const Environment environment(values);
  CHECK(cluster_trial_info().error().message == "DET_TRIAL_ID: expected a number, got \"twelve\"");
}

TEST_CASE("a local configuration provides constants, also nested ones") {
  const TrialInfo info = local(
                             "hyperparameters:\n  lr: 0.1\n  net: {depth: {type: const, val: 3}}\n"
                             "reproducibility: {experiment_seed: 5}\n")
                             .value();
  CHECK(info.hparams["lr"] == 0.1);
  CHECK(info.hparams["net"]["depth"] == 3);
  CHECK(info.seed == 5);
  CHECK(info.checkpoint_dir == "checkpoints");
  CHECK_FALSE(info.on_cluster);
}

TEST_CASE("an unset or null setting has the default of the field table") {
  const Json config{{"optimizations", {{"precision", "bf16"}, {"aggregation_frequency", nullptr}}},
                    {"scheduling_unit", "often"}};
  CHECK(setting<std::string>(config, "optimizations.precision") == "bf16");
  CHECK(setting<std::int64_t>(config, "optimizations.aggregation_frequency") == 1);
  CHECK(setting<double>(config, "searcher.divisor") == 4);
  CHECK(setting<bool>(Json::object(), "searcher.smaller_is_better"));
  CHECK_FALSE(optional_setting<std::string>(config, "searcher.metric").has_value());
  CHECK_FALSE(optional_setting<std::string>(config, "no.such.field").has_value());
  CHECK_THROWS_WITH(setting<std::int64_t>(config, "scheduling_unit"),
                    "scheduling_unit: \"often\" is of the wrong kind");
}

TEST_CASE("a hyperparameter range needs a search") {
  CHECK_THAT(local("hyperparameters: {lr: {type: log, minval: -4, maxval: -1}}\n").error().message,
             Catch::Contains("hyperparameters.lr: a range of type \"log\""));
}

}  // namespace
}  // namespace det
