// ConvNeXt and the vision transformer.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>

#include <array>
#include <cmath>
#include <map>

#include "harness/src/models/net.h"

namespace det::models {
namespace {

Tensor gelu(const Tensor& x) { return at::gelu(x); }

/// A convolution of non-overlapping patches.
torch::nn::Conv2d patches(std::int64_t in, std::int64_t out, std::int64_t size) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(size));
}

struct ConvNextPlan {
  std::array<std::int64_t, 4> channels, blocks;
  double drop;
};

ConvNextPlan convnext_plan(const std::string& name) {
  static const std::map<std::string, ConvNextPlan> plans{
      {"convnext_tiny", {{96, 192, 384, 768}, {3, 3, 9, 3}, 0.1}},
      {"convnext_small", {{96, 192, 384, 768}, {3, 3, 27, 3}, 0.4}},
      {"convnext_base", {{128, 256, 512, 1024}, {3, 3, 27, 3}, 0.5}},
      {"convnext_large", {{192, 384, 768, 1536}, {3, 3, 27, 3}, 0.5}}};
  return plans.at(name);
}

void add_convnext_block(Net& stage, const std::string& name, std::int64_t channels, double drop) {
  Net& block = stage.nest(name);
  const Tensor scale = block.parameter("layer_scale", at::full({channels, 1, 1}, 1e-6));
  Net& parts = block.nest("block");
  parts.add("0", make_conv({channels, channels, 7, 1, channels, /*bias=*/true}));
  parts.then([](const Tensor& x) { return x.permute({0, 2, 3, 1}); });
  parts.add_norm("2", channels, /*images=*/false);
  parts.add("3", torch::nn::Linear(channels, 4 * channels)).then(gelu);
  parts.add("5", torch::nn::Linear(4 * channels, channels));
  parts.then([](const Tensor& x) { return x.permute({0, 3, 1, 2}); });
  block.then([scale](const Tensor& x) { return scale * x; });
  block.residual(0, drop);
}

struct VitPlan {
  std::int64_t patch, layers, heads, width;
};

VitPlan vit_plan(const std::string& name) {
  static const std::map<std::string, VitPlan> plans{{"vit_b_16", {16, 12, 12, 768}},
                                                    {"vit_b_32", {32, 12, 12, 768}},
                                                    {"vit_l_16", {16, 24, 16, 1024}},
                                                    {"vit_l_32", {32, 24, 16, 1024}}};
  return plans.at(name);
}

/// Self-attention of [B, tokens, width] (Vaswani et al., Attention Is All You Need, 2017, section 3.2).
void add_attention(Net& net, const std::string& name, std::int64_t width, std::int64_t heads) {
  Net& child = net.nest(name);
  const Tensor weight = child.parameter("in_proj_weight", at::empty({3 * width, width}));
  const Tensor bias = child.parameter("in_proj_bias", at::zeros({3 * width}));
  torch::nn::init::xavier_uniform_(weight);
  child.then([=](const Tensor& x) {
    const std::int64_t size = width / heads;
    // [3, B, heads, tokens, size]
    const Tensor all =
        at::linear(x, weight, bias).view({x.size(0), x.size(1), 3, heads, size}).permute({2, 0, 3, 1, 4});
    const Tensor scores = all[0].div(std::sqrt(static_cast<double>(size))).matmul(all[1].transpose(2, 3));
    return scores.softmax(-1).matmul(all[2]).transpose(1, 2).reshape({x.size(0), x.size(1), width});
  });
  child.add("out_proj", torch::nn::Linear(width, width));
}

void add_encoder_layer(Net& layers, const std::string& name, const VitPlan& plan) {
  Net& layer = layers.nest(name);
  layer.add_norm("ln_1", plan.width, /*images=*/false);
  add_attention(layer, "self_attention", plan.width, plan.heads);
  layer.residual(0);
  const std::size_t first = layer.size();
  layer.add_norm("ln_2", plan.width, /*images=*/false);
  Net& mlp = layer.nest("mlp");
  mlp.add("0", torch::nn::Linear(plan.width, 4 * plan.width)).then(gelu);
  mlp.add("3", torch::nn::Linear(4 * plan.width, plan.width));
  layer.residual(first);
}

/// Linear layers: Xavier with small biases in an MLP, zero biases after attention.
void init_vit(Net& net, const VitPlan& plan) {
  const at::NoGradGuard no_grad;
  for (const auto& item : net.named_modules("", /*include_self=*/false)) {
    auto* linear = item.value()->as<torch::nn::Linear>();
    if (linear == nullptr) continue;
    if (item.key().find("mlp") != std::string::npos) {
      torch::nn::init::xavier_uniform_(linear->weight);
      linear->bias.normal_(0, 1e-6);
    } else {
      linear->bias.zero_();
      if (item.key() == "heads.head") linear->weight.zero_();
    }
  }
  auto parameters = net.named_parameters();
  const auto inputs = static_cast<double>(3 * plan.patch * plan.patch);
  truncated_normal(parameters["conv_proj.weight"], std::sqrt(1 / inputs));
  parameters["conv_proj.bias"].zero_();
}

}  // namespace

std::shared_ptr<Net> make_convnext(const std::string& name, const Options& options) {
  const ConvNextPlan plan = convnext_plan(name);
  std::int64_t total = 0, block = 0, number = 0;
  for (const std::int64_t blocks : plan.blocks) total += blocks;
  auto net = std::make_shared<Net>();
  Net& features = net->nest("features");
  Net& stem = features.nest(std::to_string(number++));
  stem.add("0", patches(3, plan.channels[0], 4)).add_norm("1", plan.channels[0], /*images=*/true);
  for (std::size_t stage = 0; stage < plan.channels.size(); ++stage) {
    const std::int64_t channels = plan.channels[stage];
    if (stage > 0) {
      Net& smaller = features.nest(std::to_string(number++));
      smaller.add_norm("0", plan.channels[stage - 1], /*images=*/true);
      smaller.add("1", patches(plan.channels[stage - 1], channels, 2));
    }
    Net& blocks = features.nest(std::to_string(number++));
    for (std::int64_t i = 0; i < plan.blocks[stage]; ++i) {
      const double drop = plan.drop * static_cast<double>(block++) / static_cast<double>(total - 1);
      add_convnext_block(blocks, std::to_string(i), channels, drop);
    }
  }
  add_pool(*net, /*flatten=*/false);
  Net& classifier = net->nest("classifier");
  classifier.add_norm("0", plan.channels[3], /*images=*/true);
  classifier.then([](const Tensor& x) { return x.flatten(1); });
  net->add_head(classifier, "2", plan.channels[3], options.classes);
  const at::NoGradGuard no_grad;
  for (auto& item : net->named_parameters()) {
    const bool is_bias = item.key().ends_with("bias");
    if (item.value().dim() >= 2 && item.key().ends_with("weight")) truncated_normal(item.value(), 0.02);
    if (is_bias) item.value().zero_();
  }
  return net;
}

std::shared_ptr<Net> make_vit(const std::string& name, const Options& options) {
  const VitPlan plan = vit_plan(name);
  const std::int64_t side = options.image_size / plan.patch;
  if (options.image_size < plan.patch || options.image_size % plan.patch != 0) {
    throw std::invalid_argument("models: image_size is " + std::to_string(options.image_size) +
                                ", not a multiple of the patches of " + std::to_string(plan.patch) +
                                " pixels");
  }
  auto net = std::make_shared<Net>();
  const Tensor token = net->parameter("class_token", at::zeros({1, 1, plan.width}));
  net->add("conv_proj", patches(3, plan.width, plan.patch));
  net->then([token](const Tensor& x) {
    return at::cat({token.expand({x.size(0), 1, x.size(1)}), x.flatten(2).transpose(1, 2)}, 1);
  });
  Net& encoder = net->nest("encoder");
  const Tensor positions =
      encoder.parameter("pos_embedding", at::zeros({1, side * side + 1, plan.width}).normal_(0, 0.02));
  encoder.then([positions](const Tensor& x) {
    if (x.size(1) != positions.size(1)) {
      throw std::invalid_argument("models: the images have " + std::to_string(x.size(1) - 1) +
                                  " patches, the model " + std::to_string(positions.size(1) - 1) +
                                  "; build it with their image_size");
    }
    return x + positions;
  });
  Net& layers = encoder.nest("layers");
  for (std::int64_t i = 0; i < plan.layers; ++i) {
    add_encoder_layer(layers, "encoder_layer_" + std::to_string(i), plan);
  }
  encoder.add_norm("ln", plan.width, /*images=*/false);
  net->then([](const Tensor& x) { return x.select(1, 0); });
  net->add_head(net->nest("heads"), "head", plan.width, options.classes);
  init_vit(*net, plan);
  return net;
}

}  // namespace det::models
