// Manifests of compiled steps: what is accepted, and every problem of one that is not.
#include "harness/src/compiled/step_manifest.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/json.h"

namespace det {
namespace {

Json valid_manifest() {
  return Json::parse(R"({
    "format": 1, "torch": "2.6.0", "package_sha256": "ab12", "device": "cpu",
    "state": {"step": {"dtype": "int64", "shape": []},
              "model.weight": {"dtype": "float32", "shape": [3, 6]},
              "model.bias": {"dtype": "bfloat16", "shape": [3]}},
    "gradients": {"weight": {"dtype": "float32", "shape": [3, 6]}},
    "batch": {"data": {"dtype": "float32", "shape": [8, 6]}, "target": {"dtype": "int64", "shape": [8]}},
    "hyperparameters": ["lr"], "metrics": ["loss", "accuracy"],
    "evaluation": {"batch": {"data": {"dtype": "float32", "shape": [10, 6]},
                             "target": {"dtype": "int64", "shape": [10]}},
                   "metrics": ["loss"]}})");
}

/// The problems of a manifest, as "path: message".
std::vector<std::string> problems_of(const std::string& text) {
  const auto manifest = parse_step_manifest(text, "step.json");
  if (manifest) return {};
  std::vector<std::string> problems;
  for (const Problem& problem : manifest.error().problems) {
    CHECK(problem.file == "step.json");
    problems.push_back(problem.path + ": " + problem.message);
  }
  return problems;
}

/// The problems after one change.
template <typename Change>
std::vector<std::string> problems_after(const Change& change) {
  Json manifest = valid_manifest();
  change(manifest);
  return problems_of(manifest.dump());
}

using Texts = std::vector<std::string>;

TEST_CASE("a manifest gives the signature of the functions in the order of the file") {
  const StepManifest manifest = parse_step_manifest(valid_manifest().dump(), "step.json").value();
  CHECK(names_of(manifest.state) == Texts{"step", "model.weight", "model.bias"});
  CHECK(manifest.state[0].dtype == torch::kLong);
  CHECK(manifest.state[1].shape == std::vector<std::int64_t>{3, 6});
  CHECK(manifest.state[2].dtype == torch::kBFloat16);
  CHECK(names_of(manifest.batch) == Texts{"data", "target"});
  CHECK(manifest.batch_size() == 8);
  CHECK(manifest.evaluation_batch_size() == 10);
  CHECK(manifest.hyperparameters == Texts{"lr"});
  CHECK(manifest.metrics == Texts{"loss", "accuracy"});
  CHECK(manifest.evaluation_metrics == Texts{"loss"});
  CHECK(manifest.package_sha256 == "ab12");
  CHECK(manifest.device == torch::kCPU);
  CHECK(problems_after([](Json& json) { json["device"] = "cuda"; }).empty());
  CHECK(problems_after([](Json& json) { json["hyperparameters"] = Json::array(); }).empty());
}

TEST_CASE("every problem of a manifest is reported at once") {
  CHECK(problems_after([](Json& json) {
          json["metric"] = 1;
          json["format"] = 2;
          json.erase("hyperparameters");
          json["state"]["model.bias"]["dtype"] = "float8";
          json["gradients"]["weight"]["dtype"] = "int64";
          json["evaluation"].erase("batch");
        }) == Texts{"metric: unknown key; did you mean \"metrics\"?",
                    "format: must be 1, got 2; export the step with the exporter of this release",
                    "state.model.bias.dtype: \"float8\" is no supported element type",
                    "gradients.weight: must be of a floating-point type", "hyperparameters: is missing",
                    "evaluation.batch: is missing"});
}

TEST_CASE("a manifest with an inconsistent signature is refused") {
  const auto one = [](const auto& change) {
    const Texts problems = problems_after(change);
    REQUIRE(problems.size() == 1);
    return problems[0];
  };
  CHECK(one([](Json& json) { json["state"]["step.x"] = json["state"]["step"]; }) ==
        "state.step.x: excludes the tensor step");
  CHECK(one([](Json& json) { json["state"]["a..b"] = json["state"]["step"]; }) ==
        "state.a..b: is no name of a tensor");
  CHECK(one([](Json& json) { json["state"] = Json::object(); }) ==
        "state: must be an object with at least one tensor");
  CHECK(one([](Json& json) { json["batch"]["target"]["shape"] = {9}; }) ==
        "batch.target: its first size must be the number of records, the same for all tensors of the batch");
  CHECK(one([](Json& json) { json["state"]["step"]["shape"] = {-1}; }) ==
        "state.step.shape: must be a list of sizes, got [-1]");
  CHECK(one([](Json& json) {
          json["state"]["step"]["shape"] = {1u << 31, 1u << 31, 1u << 31};
        }).starts_with("state.step.shape: must be a list of sizes"));
  CHECK(one([](Json& json) { json["metrics"] = {"accuracy"}; }) == "metrics: must contain \"loss\"");
  CHECK(one([](Json& json) {
          json["hyperparameters"] = {"lr", "lr"};
        }) == "hyperparameters: lr occurs twice");
  CHECK(one([](Json& json) {
          json["hyperparameters"] = {"lr", 3};
        }) == "hyperparameters: must be a list of names");
  CHECK(one([](Json& json) { json["evaluation"]["batch"].erase("target"); }) ==
        "evaluation.batch: must have the names of batch, in the same order");
  CHECK(one([](Json& json) { json["device"] = "tpu"; }) ==
        "device: must be \"cpu\" or \"cuda\", got \"tpu\"");
}

TEST_CASE("a file that is no manifest is refused") {
  CHECK(problems_of("[]") == Texts{": must be an object"});
  REQUIRE(problems_of("{\"format\": 1").size() == 1);
  CHECK(parse_step_manifest("{\"state\": {}, \"state\": {}}", "step.json").error().problems[0].code ==
        "E-STEP-SYNTAX");
}

}  // namespace
}  // namespace det
