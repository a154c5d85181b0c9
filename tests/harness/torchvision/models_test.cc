// Models against torchvision's: names, shapes, and outputs for the same weights.
#include "det/models.h"

#include <torch/types.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "det/checkpoint.h"
#include "harness/src/checkpoint/pickle.h"
#include "torchvision.h"

namespace det {
namespace {

constexpr std::int64_t kClasses = 7, kSide = 64;

Json shapes_of(const torch::nn::Module& module) {
  Json shapes = Json::object();
  for (const auto& item : module.named_parameters()) shapes[item.key()] = item.value().sizes().vec();
  for (const auto& item : module.named_buffers()) shapes[item.key()] = item.value().sizes().vec();
  return shapes;
}

TEST_CASE("every model has torchvision's parameters and buffers") {
  std::string all;
  for (const std::string& name : models::names()) all += name + "\n";
  const auto out = testing::torchvision({"shapes"}, all);
  if (!out) {
    WARN("no torchvision for Python on this machine (python3-torchvision): nothing compared");
    return;
  }
  const Json expected = parse_json(*out, {.bytes = 16 << 20}).value();
  REQUIRE(expected.size() == models::names().size());
  for (const auto& [name, shapes] : expected.items()) {
    INFO(name);
    const Json ours = shapes_of(*models::make(name));
    CHECK(ours.size() == shapes.size());
    for (const auto& [key, shape] : shapes.items()) {
      INFO(key);
      CHECK(ours.value(key, Json()) == shape);
    }
  }
}

TEST_CASE("models compute torchvision's output from its weights within 1e-5") {
  for (const std::string name : {"resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v2",
                                 "mobilenet_v3_large", "mobilenet_v3_small", "efficientnet_b0",
                                 "efficientnet_b5", "convnext_tiny", "vit_b_16", "vit_b_32"}) {
    INFO(name);
    auto directory = TemporaryDirectory::create().value();
    if (!testing::torchvision({"model", name, directory.path()})) {
      WARN("no torchvision for Python on this machine (python3-torchvision): nothing compared");
      return;
    }
    models::Classifier model = models::make(name, {.classes = kClasses, .image_size = kSide});
    load_state_dict(directory.path() + "/weights.pth", *model);
    model->eval();
    const torch::NoGradGuard no_grad;
    const pickle::Value saved = pickle::load(directory.path() + "/case.pth");
    const auto& images = pickle::expect<torch::Tensor>(pickle::member(saved, "images"), "images");
    const auto& logits = pickle::expect<torch::Tensor>(pickle::member(saved, "logits"), "logits");
    const double scale = logits.abs().max().item<double>();
    CHECK(scale > 0.01);
    CHECK((model(images) - logits).abs().max().item<double>() <= 1e-5 * std::max(1.0, scale));
  }
}

TEST_CASE("a model of every family learns, and is in evaluation mode without randomness") {
  for (const std::string name :
       {"resnet18", "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny", "vit_b_32"}) {
    INFO(name);
    torch::manual_seed(1);
    models::Classifier model = models::make(name, {.classes = 3, .image_size = 32});
    const torch::Tensor images = torch::randn({4, 3, 32, 32});
    torch::Tensor loss = torch::cross_entropy_loss(model(images), torch::tensor({0, 1, 2, 0}));
    loss.backward();
    for (const auto& item : model->named_parameters()) {
      INFO(item.key());
      CHECK(item.value().grad().defined());
      CHECK(item.value().isfinite().all().item<bool>());
    }
    model->eval();
    CHECK(model(images).equal(model(images)));
  }
}

TEST_CASE("a replaced head has new classes and keeps the other weights") {
  torch::manual_seed(1);
  for (const std::string name : {"resnet18", "mobilenet_v3_small"}) {
    INFO(name);
    models::Classifier model = models::make(name, {.classes = 5});
    const torch::Tensor first = model->parameters()[0].clone();
    model->replace_head(3);
    model->eval();
    CHECK(model(torch::randn({1, 3, 32, 32})).sizes() == torch::IntArrayRef({1, 3}));
    CHECK(model->parameters()[0].equal(first));
    CHECK(model->parameters().back().sizes() == torch::IntArrayRef({3}));
    CHECK_THROWS_WITH(model->replace_head(0), Catch::Contains("at least 1"));
  }
}

TEST_CASE("unknown models, options out of range and images of another size are refused") {
  CHECK_THROWS_WITH(models::make("resnet19"),
                    Catch::Contains("no \"resnet19\"; there are: resnet18, resnet34"));
  CHECK_THROWS_WITH(models::make("resnet18", {.classes = 0}), Catch::Contains("classes must be at least 1"));
  CHECK_THROWS_WITH(models::make("vit_b_16", {.image_size = 100}), Catch::Contains("image_size is 100"));
  models::Classifier vit = models::make("vit_b_32", {.classes = 2, .image_size = 64});
  CHECK_THROWS_WITH(vit(torch::zeros({1, 3, 96, 96})), Catch::Contains("9 patches, the model 4"));
}

TEST_CASE("a file that holds other tensors than the model is refused by name") {
  auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/x.pth";
  pickle::Dict tensors;
  tensors.add("weight", pickle::Value(torch::ones({2, 3})));
  pickle::save(tensors, file);
  CHECK_THROWS_WITH(load_state_dict(file, *torch::nn::Linear(3, 2)),
                    Catch::Contains(file) && Catch::Contains("model.bias is missing"));
  torch::nn::Linear linear(torch::nn::LinearOptions(3, 2).bias(false));
  load_state_dict(file, *linear);
  CHECK(linear->weight.equal(torch::ones({2, 3})));
}

/// The MLP of a vision transformer.
struct Mlp : torch::nn::Module {
  Mlp() {
    register_module("0", torch::nn::Linear(2, 3));
    register_module("3", torch::nn::Linear(3, 2));
  }
};
struct EncoderLayer : torch::nn::Module {
  EncoderLayer() { register_module("mlp", std::make_shared<Mlp>()); }
};

TEST_CASE("a file with torchvision's earlier names of a transformer's layers is read") {
  auto directory = TemporaryDirectory::create().value();
  const std::string file = directory.path() + "/x.pth";
  const auto from = std::make_shared<EncoderLayer>(), to = std::make_shared<EncoderLayer>();
  pickle::Dict tensors;
  for (const auto& item : from->named_parameters()) {
    const std::string layer = item.key().find(".0.") != std::string::npos ? "mlp.linear_1" : "mlp.linear_2";
    tensors.add(layer + item.key().substr(item.key().rfind('.')), pickle::Value(item.value()));
  }
  pickle::save(tensors, file);
  load_state_dict(file, *to);
  for (const auto& item : from->named_parameters())
    CHECK(to->named_parameters()[item.key()].equal(item.value()));
}

}  // namespace
}  // namespace det
