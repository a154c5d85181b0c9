// `entrypoint: step.pt2`: packages are exported by Python and trained by det-harness. Where LibTorch is older
// than 2.6, the refusal alone is tested.
#include <ATen/ops/equal.h>
#include <torch/types.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/process.h"
#include "harness/src/checkpoint/pickle.h"
#include "harness/src/checkpoint/safetensors.h"
#include "harness/src/compiled/compiled_function.h"
#include "test_paths.h"

namespace det {
namespace {

namespace fs = std::filesystem;

constexpr char kPython[] = "/usr/bin/python3";  // Debian's Python, for which PyTorch is packaged
constexpr int kExitFinalCode = 81;

/// Settings of a run.
struct Run {
  std::string package = "step.pt2", training = "many.safetensors", validation = "test.safetensors";
  Json hparams = {{"global_batch_size", 8}, {"learning_rate", 0.02}, {"epsilon", 1e-8}};
  int batches = 30, processes = 1;
  bool resume = false;
  Json more = Json::object();  ///< other fields of the configuration
};

/// Runs det-harness in `folder`, which holds the packages. Checkpoints go to `storage`.
ProcessResult train(const std::string& folder, const std::string& storage, const Run& run) {
  Json config = {{"hyperparameters", run.hparams},
                 {"data", {{"training", run.training}, {"validation", run.validation}}},
                 {"searcher", {{"name", "single"}, {"metric", "loss"}}},
                 {"entrypoint", run.package}};
  config["searcher"]["max_length"]["batches"] = run.batches;
  config.update(run.more);
  std::ofstream(storage + ".yaml") << config.dump();
  std::vector<std::string> argv{DET_HARNESS_PROGRAM, "--config", storage + ".yaml", "--checkpoint-dir",
                                storage};
  if (run.processes > 1)
    argv.insert(argv.begin(), {DET_LAUNCH, "--nproc-per-node", std::to_string(run.processes), "--"});
  if (run.resume) argv.push_back("--resume");
  argv.push_back(folder + "/" + run.package);
  return run_process({.argv = argv, .env = environment_with({"OMP_NUM_THREADS=1"}), .cwd = folder},
                     {.timeout = std::chrono::seconds(300)})
      .value();
}

/// The last "loss" in the summary of a run.
double loss_in(const std::string& output) {
  const std::size_t at = output.rfind("  loss ");
  REQUIRE(at != output.npos);
  return std::stod(output.substr(at + 7));
}

/// The state in the newest checkpoint.
pickle::Value state_in(const std::string& storage) {
  fs::path newest;
  for (const auto& entry : fs::directory_iterator(storage)) {
    const fs::path file = entry.path() / "state_dict.pth";
    if (fs::exists(file) && (newest.empty() || fs::last_write_time(file) > fs::last_write_time(newest)))
      newest = file;
  }
  REQUIRE_FALSE(newest.empty());
  const pickle::Value state = pickle::load(newest.string());
  return pickle::expect<pickle::List>(pickle::member(state, "models_state_dict"), "models").at(0);
}

/// The packages of packages.py. Without PyTorch 2.6 for both languages `losses` is null.
struct Packages {
  Packages() {
    if (!can_run_compiled_functions()) return;
    const char kCheck[] =
        "import setuptools, torch\nassert tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 6)";
    if (!run_process({.argv = {kPython, "-c", kCheck}}).value().ok()) return;
    const ProcessResult result =
        run_process({.argv = {kPython, source_path("/tests/harness/compiled/packages.py"),
                              source_path("/examples/compiled_step"), folder},
                     .env = environment_with({"TORCHINDUCTOR_CACHE_DIR=" + folder + "/cache"})},
                    {.timeout = std::chrono::seconds(1800)})
            .value();
    INFO(result.err);
    REQUIRE(result.ok());
    losses = parse_json(result.out.substr(result.out.rfind('{'))).value();
  }
  std::string storage() const { return folder + "/storage" + std::to_string(++runs); }

  TemporaryDirectory directory = TemporaryDirectory::create("det-compiled").value();
  std::string folder = directory.path();
  Json losses;  ///< of the eager training, by name of the data
  mutable int runs = 0;
};

/// The packages, made at the first call. Null where they cannot be made; a warning gives the reason.
const Packages* packages() {
  static const Packages made;
  if (made.losses.is_null())
    WARN("skipped: needs LibTorch 2.6, and PyTorch 2.6 and setuptools for " + std::string(kPython));
  return made.losses.is_null() ? nullptr : &made;
}

/// Copies the three files of a package.
void copy_package(const std::string& folder, const std::string& from, const std::string& to) {
  for (const char* extension : {".pt2", ".json", ".safetensors"})
    fs::copy_file(folder + "/" + from + extension, folder + "/" + to + extension,
                  fs::copy_options::overwrite_existing);
}

TEST_CASE("LibTorch before 2.6 refuses a compiled step with the version that is needed") {
  if (can_run_compiled_functions()) return;
  const auto place = TemporaryDirectory::create().value();
  const ProcessResult result = train(place.path(), place.path() + "/storage", {});
  CHECK(result.status.shell_code() == kExitFinalCode);
  CHECK_THAT(result.err, Catch::Contains("compiled steps need LibTorch 2.6 or newer"));
}

/// Trains a package that is refused. Returns the message.
std::string refused(const Packages& made, const Run& run) {
  const ProcessResult result = train(made.folder, made.storage(), run);
  CHECK(result.status.shell_code() == kExitFinalCode);
  return result.err;
}

TEST_CASE("a compiled step trains as the eager step does, on one process and on two") {
  const Packages* made = packages();
  if (made == nullptr) return;
  const ProcessResult one = train(made->folder, made->storage(), {.training = "one.safetensors"});
  INFO(one.err);
  REQUIRE(one.ok());
  CHECK(loss_in(one.out) == Approx(made->losses["one"].get<double>()).epsilon(1e-4));
  const Json hparams = {{"global_batch_size", 16}, {"learning_rate", 0.02}, {"epsilon", 1e-8}};
  const ProcessResult two = train(made->folder, made->storage(),
                                  {.training = "two.safetensors", .hparams = hparams, .processes = 2});
  INFO(two.err);
  REQUIRE(two.ok());
  CHECK(loss_in(two.out) == Approx(made->losses["two"].get<double>()).epsilon(1e-4));
}

TEST_CASE("a compiled step that was stopped and resumed has the bits of an undisturbed one") {
  const Packages* made = packages();
  if (made == nullptr) return;
  const std::string whole = made->storage(), resumed = made->storage();
  REQUIRE(train(made->folder, whole, {}).ok());
  REQUIRE(train(made->folder, resumed, {.batches = 17}).ok());
  REQUIRE(train(made->folder, resumed, {.resume = true}).ok());
  const pickle::Value expected = state_in(whole), got = state_in(resumed);
  const auto& items = pickle::expect<pickle::Dict>(expected, "state").items;
  CHECK(items.size() == 13);
  for (const auto& [name, value] : items) {
    INFO(name);
    CHECK(at::equal(*value.as<torch::Tensor>(), *pickle::member(got, name.c_str()).as<torch::Tensor>()));
  }
  CHECK(pickle::member(got, "step").as<torch::Tensor>()->item<std::int64_t>() == 30);
}

TEST_CASE("a package that computes another step is always refused") {
  const Packages* made = packages();
  if (made == nullptr) return;
  const std::string& folder = made->folder;
  // Two names of the state are one tensor: training would go on, with a wrong optimizer.
  const std::string merged = refused(*made, {.package = "merged.pt2"});
  CHECK_THAT(merged, Catch::Contains("does not compute the step that was recorded"));
  CHECK_THAT(merged, Catch::Contains("state/model.hidden.weight has an error of"));
  // Hyperparameters are constants.
  const std::string constant = refused(*made, {.package = "constant.pt2"});
  CHECK_THAT(constant, Catch::Contains("state/model.output.bias has an error of"));
  CHECK_THAT(constant, !Catch::Contains("state/mean."));
  // The order of the inputs is another one.
  copy_package(folder, "step", "wrong");
  const Json manifest = parse_json(read_file(folder + "/step.json").value()).value();
  Json swapped = manifest;
  swapped["state"] = Json::object();
  for (const auto& [name, spec] : manifest["state"].items()) {
    const bool mean = name.starts_with("mean."), square = name.starts_with("square.");
    swapped["state"][mean ? "square." + name.substr(5) : square ? "mean." + name.substr(7) : name] = spec;
  }
  std::ofstream(folder + "/wrong.json") << swapped.dump();
  CHECK_THAT(refused(*made, {.package = "wrong.pt2"}), Catch::Contains("does not compute the step"));
  // The recorded step is another one.
  copy_package(folder, "step", "wrong");
  pickle::Dict tensors = safetensors::load(folder + "/step.safetensors");
  for (auto& [name, value] : tensors.items)
    if (name == "after/square.hidden.bias") value = value.as<torch::Tensor>()->mul(1.01);
  safetensors::save(tensors, folder + "/wrong.safetensors");
  const std::string recorded = refused(*made, {.package = "wrong.pt2"});
  CHECK_THAT(recorded, Catch::Contains("state/square.hidden.bias has an error of"));
  CHECK_THAT(recorded, !Catch::Contains("state/square.hidden.weight"));
}

TEST_CASE("a package with files that are missing or inconsistent is refused") {
  const Packages* made = packages();
  if (made == nullptr) return;
  const std::string& folder = made->folder;
  copy_package(folder, "step", "odd");
  Json manifest = parse_json(read_file(folder + "/step.json").value()).value();
  manifest["state"].erase("mean.output.bias");
  manifest["state"]["mean.more"] = manifest["state"]["step"];
  std::ofstream(folder + "/odd.json") << manifest.dump();
  const std::string problems = refused(*made, {.package = "odd.pt2"});
  for (const char* name :
       {"initial/mean.more", "before/mean.more", "after/mean.more", "before/mean.output.bias"})
    CHECK_THAT(problems, Catch::Contains(name));
  copy_package(folder, "step", "odd");
  std::ofstream(folder + "/odd.pt2") << "no package";
  CHECK_THAT(refused(*made, {.package = "odd.pt2"}), Catch::Contains("is not the file that"));
  fs::remove(folder + "/odd.safetensors");
  CHECK_THAT(refused(*made, {.package = "odd.pt2"}),
             Catch::Contains("missing") && Catch::Contains("odd.safetensors"));
}

TEST_CASE("a configuration that does not fit a compiled step is refused with all problems") {
  const Packages* made = packages();
  if (made == nullptr) return;
  Run run{.training = "step.safetensors", .validation = "one.safetensors"};
  run.hparams = {{"global_batch_size", 9}, {"learning_rat", 0.02}, {"epsilon", "small"}};
  run.more["optimizations"]["aggregation_frequency"] = 2;
  const std::string problems = refused(*made, run);
  for (const char* problem :
       {"global_batch_size  E-STEP-CONFIG  must be 8",
        "learning_rat  E-STEP-CONFIG  the compiled step has no such input",
        "learning_rate  E-STEP-CONFIG  must be a number", "hyperparameters.epsilon",
        "data.training  E-STEP-CONFIG  the file has no tensor data",
        "data.validation  E-STEP-CONFIG  has 8 records", "optimizations.aggregation_frequency"})
    CHECK_THAT(problems, Catch::Contains(problem));
}

}  // namespace
}  // namespace det
