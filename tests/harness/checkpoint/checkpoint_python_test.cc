// State exchange with PyTorch in Python: each side reads the other's files and continues training with the
// same numbers.
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <torch/nn/modules/conv.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <catch2/catch.hpp>

#include "checkpoint_fixture.h"
#include "common/base/process.h"
#include "det/checkpoint.h"
#include "det/optim.h"
#include "test_paths.h"

namespace det {
namespace {

constexpr char kPython[] = "/usr/bin/python3";  // Debian's Python, for which PyTorch is packaged

std::string python(const std::vector<std::string>& arguments) {
  ProcessOptions options{.argv = {kPython, source_path("/tests/harness/checkpoint/torch_interop.py")}};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env = environment_with({"OMP_NUM_THREADS=1"});
  const ProcessResult result = run_process(options, {.timeout = std::chrono::seconds(120)}).value();
  INFO(result.err);
  REQUIRE(result.ok());
  return result.out;
}

/// The network of torch_interop.py. The convolution has no bias: before a normalization its gradient would
/// consist of rounding errors, which Adam scales up.
torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3).bias(false)),
                               torch::nn::BatchNorm2d(2), torch::nn::Flatten(), torch::nn::Linear(8, 3));
}

struct Trial {
  explicit Trial(const std::string& kind) {
    namespace optim = torch::optim;
    wrapped.models.push_back(model.ptr());
    const auto use = [&](auto optimizer) {
      wrapped.optimizers.push_back(std::make_unique<decltype(optimizer)>(std::move(optimizer)));
    };
    const auto parameters = model->parameters();
    if (kind == "sgd") use(optim::SGD(parameters, 0.1));
    if (kind == "momentum") use(optim::SGD(parameters, optim::SGDOptions(0.5).momentum(0.1)));
    if (kind == "adam") use(optim::Adam(parameters, optim::AdamOptions(0.5)));
    if (kind == "amsgrad") use(optim::Adam(parameters, optim::AdamOptions(0.5).amsgrad(true)));
    if (kind == "adamw") use(optim::AdamW(parameters, optim::AdamWOptions(0.5)));
    if (kind == "rmsprop") use(optim::RMSprop(parameters, optim::RMSpropOptions(0.5)));
    if (kind == "adagrad") use(optim::Adagrad(parameters, optim::AdagradOptions(0.5)));
    if (kind == "lbfgs") use(optim::LBFGS(parameters, optim::LBFGSOptions(0.5)));
    if (kind == "adadelta") use(det::optim::Adadelta(parameters));
    if (kind == "adamax") use(det::optim::Adamax(parameters));
    if (kind == "nadam") use(det::optim::NAdam(parameters));
    if (kind == "radam") use(det::optim::RAdam(parameters));
    if (kind == "asgd") use(det::optim::ASGD(parameters));
    if (kind == "rprop") use(det::optim::Rprop(parameters));
  }
  void step() {
    const torch::Tensor images = at::arange(2 * 16).reshape({2, 1, 4, 4}).to(torch::kFloat).mul(0.7).sin();
    wrapped.optimizers[0]->step([&] {
      wrapped.optimizers[0]->zero_grad();
      torch::Tensor loss = model->forward(images).square().mean();
      loss.backward();
      return loss;
    });
  }
  torch::nn::Sequential model = network();
  RunInfo run;
  WrappedObjects wrapped;
};

void check_close(const torch::nn::Module& model, const std::string& file) {
  const pickle::Value expected = pickle::load(file);
  const pickle::Value state = collect_model(model);
  for (const auto& [name, value] : state.as<pickle::Dict>()->items) {
    INFO(name);
    const auto* other = expected.as<pickle::Dict>()->find(name);
    REQUIRE(other != nullptr);
    CHECK(at::allclose(*value.as<torch::Tensor>(), *other->as<torch::Tensor>(), 1e-5, 1e-6));
  }
}

const std::vector<std::string> kKinds{"sgd",     "momentum", "adam",     "amsgrad", "adamw",
                                      "rmsprop", "adagrad",  "adadelta", "adamax",  "nadam",
                                      "radam",   "asgd",     "rprop",    "lbfgs"};

TEST_CASE("training continues in C++ from a Python state, with Python's options") {
  auto directory = TemporaryDirectory::create().value();
  python({"write", directory.path()});
  for (const std::string& kind : kKinds) {
    INFO(kind);
    Trial trial(kind);
    apply_state(trial.wrapped, pickle::load(directory.path() + "/" + kind + ".pth"));
    trial.step();
    check_close(*trial.model, directory.path() + "/" + kind + ".next.pth");
  }
}

TEST_CASE("training continues in Python from a det state") {
  auto directory = TemporaryDirectory::create().value();
  const std::string ours = directory.path() + "/ours.pth", next = directory.path() + "/next.pth";
  python({"write", directory.path()});
  for (const std::string& kind : kKinds) {
    if (kind == "sgd") continue;  // it has no state
    INFO(kind);
    Trial trial(kind);
    apply_state(trial.wrapped, pickle::load(directory.path() + "/" + kind + ".pth"));
    trial.step();
    pickle::save(collect_state(trial.wrapped, {generator_bytes(trial.run.device)}), ours);
    python({"continue", ours, next, kind});
    trial.step();
    check_close(*trial.model, next);
  }
}

/// The entry of a dictionary, or the first of a list.
pickle::Value& entry(pickle::Value& value, const std::string& name) {
  if (auto* list = std::get_if<pickle::List>(&value.data)) return list->at(0);
  for (auto& [key, item] : std::get<pickle::Dict>(value.data).items)
    if (key == name) return item;
  FAIL(name << " is missing");
  return value;
}

TEST_CASE("Python's decoupled weight decay is AdamW's, and refused by other optimizers") {
  auto directory = TemporaryDirectory::create().value();
  python({"write", directory.path()});
  const auto state_with = [&](const char* kind, bool is_decoupled) {
    pickle::Value state = pickle::load(directory.path() + "/" + kind + ".pth");
    pickle::Value& groups = entry(entry(entry(state, "optimizers_state_dict"), ""), "param_groups");
    auto& group = std::get<pickle::Dict>(entry(groups, "").data);
    std::erase_if(group.items, [](const auto& item) { return item.first == "decoupled_weight_decay"; });
    group.add("decoupled_weight_decay", is_decoupled);
    return state;
  };
  for (const auto& [kind, is_decoupled, is_taken] :
       std::vector<std::tuple<const char*, bool, bool>>{{"adamw", true, true},
                                                        {"adamw", false, false},
                                                        {"adam", false, true},
                                                        {"adam", true, false},
                                                        {"nadam", true, false}}) {
    INFO(kind << " " << is_decoupled);
    Trial trial(kind);
    const auto apply = [&] { apply_state(trial.wrapped, state_with(kind, is_decoupled)); };
    if (is_taken)
      CHECK_NOTHROW(apply());
    else
      CHECK_THROWS_WITH(apply(), Catch::Contains("optimizer_0.decoupled_weight_decay is "));
  }
}

Json plain(const pickle::Value& value) {
  if (const auto* tensor = value.as<torch::Tensor>()) {
    const torch::Tensor flat = tensor->to(torch::kDouble).flatten().contiguous();
    const char* type = tensor->scalar_type() == torch::kFloat  ? "torch.float32"
                       : tensor->scalar_type() == torch::kByte ? "torch.uint8"
                                                               : "torch.int64";
    return {{"dtype", type},
            {"shape", tensor->sizes().vec()},
            {"values", std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel())}};
  }
  if (const auto* list = value.as<pickle::List>()) {
    Json json = Json::array();
    for (const auto& item : *list) json.push_back(plain(item));
    return json;
  }
  if (const auto* dict = value.as<pickle::Dict>()) {
    Json json = Json::object();
    for (const auto& [key, item] : dict->items) json[key] = plain(item);
    return json;
  }
  return pickle::from_value(value, "value");
}

TEST_CASE("Python's torch.load reads a det state, also with weights_only") {
  auto directory = TemporaryDirectory::create().value();
  testing::Fixture fixture(1, directory.path() + "/checkpoints");
  fixture.add_all();
  fixture.wrapped.callbacks[0].second->load_state_dict({{"count", 3}});
  fixture.train(2);
  const std::string saved = testing::save_whole(fixture.run, fixture.wrapped, 2);
  const Json read = Json::parse(python({"read", saved + "/state_dict.pth"}));
  const Json expected = plain(fixture.state());
  std::vector<std::string> keys;
  for (const auto& [key, value] : expected.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"models_state_dict", "optimizers_state_dict",
                                         "lr_schedulers_state_dict", "callbacks", "rng_state",
                                         "rng_states_by_rank", "scaler_state_dict"});
  CHECK((read[0] == expected));
  CHECK((read[1] == expected));
}

TEST_CASE("a Python pickle that runs a command is refused without running it") {
  auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/state_dict.pth", witness = directory.path() + "/witness";
  python({"malicious", file, witness});
  torch::nn::Linear model(1, 1);
  CHECK_THROWS_WITH(load_model(directory.path(), *model),
                    Catch::Contains(file) && Catch::Contains("posix.system") && Catch::Contains("refused"));
  CHECK_FALSE(path_exists(witness));
}

TEST_CASE("other objects in Python states are read, and NumPy numbers are refused on use") {
  auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/x.pth";
  python({"foreign", file});
  const pickle::Value value = pickle::load(file);
  const auto& dict = *value.as<pickle::Dict>();
  CHECK(pickle::from_value(*dict.find("size"), "size") == Json({2, 3}));
  CHECK(pickle::from_value(*dict.find("type"), "type") == "torch.bfloat16");
  CHECK(pickle::from_value(*dict.find("device"), "device") == "cpu");
  CHECK(dict.find("parameter")->as<torch::Tensor>()->sum().item<double>() == 2);
  CHECK(dict.find("half")->as<torch::Tensor>()->scalar_type() == torch::kBFloat16);
  CHECK(dict.find("flags")->as<torch::Tensor>()->scalar_type() == torch::kBool);
  CHECK_THROWS_WITH(pickle::from_value(*dict.find("lr"), "optimizer_0.lr"),
                    Catch::Contains("optimizer_0.lr is an object of Python's numpy"));
}

}  // namespace
}  // namespace det
