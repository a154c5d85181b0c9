// Networks of inverted residuals: MobileNetV2, MobileNetV3 and EfficientNet.
#include <ATen/ops/hardsigmoid.h>
#include <ATen/ops/sigmoid.h>

#include <array>
#include <cmath>

#include "harness/src/models/net.h"

namespace det::models {
namespace {

Tensor& hardsigmoid(Tensor& x) { return at::hardsigmoid_(x); }
Tensor& sigmoid(Tensor& x) { return x.sigmoid_(); }

/// An inverted residual: expansion, depthwise convolution, squeeze and excitation, projection.
struct Inverted {
  std::int64_t in, expanded, out, kernel, stride;
  std::int64_t squeezed = 0;  ///< 0: without squeeze and excitation
  Activation activation = relu, squeeze_inner = relu, squeeze_gate = hardsigmoid;
  Norm norm;
  double drop = 0;  ///< of stochastic depth
};

/// Appends the block `name` with its parts in a child "block", numbered from 0.
void add_inverted(Net& features, const std::string& name, const Inverted& b) {
  Net& block = features.nest(name);
  Net& parts = block.nest("block");
  int number = 0;
  const auto next = [&] { return std::to_string(number++); };
  if (b.expanded != b.in) add_conv_norm(parts, next(), {.in = b.in, .out = b.expanded}, b.norm, b.activation);
  add_conv_norm(parts, next(), {b.expanded, b.expanded, b.kernel, b.stride, b.expanded}, b.norm,
                b.activation);
  if (b.squeezed > 0) add_squeeze(parts, next(), b.expanded, b.squeezed, b.squeeze_inner, b.squeeze_gate);
  add_conv_norm(parts, next(), {.in = b.expanded, .out = b.out}, b.norm, nullptr);
  if (b.stride == 1 && b.in == b.out) block.residual(0, b.drop);
}

void small_normal(Tensor& weight) { weight.normal_(0, 0.01); }

/// MobileNetV2's block: its parts are a child "conv", without squeeze, and the projection is not nested.
void add_inverted_v2(Net& features, const std::string& name, std::int64_t in, std::int64_t out,
                     std::int64_t stride, std::int64_t factor) {
  Net& block = features.nest(name);
  Net& parts = block.nest("conv");
  const std::int64_t expanded = in * factor;
  int number = 0;
  const auto next = [&] { return std::to_string(number++); };
  if (factor != 1) add_conv_norm(parts, next(), {.in = in, .out = expanded}, {}, relu6);
  add_conv_norm(parts, next(), {expanded, expanded, 3, stride, expanded}, {}, relu6);
  parts.add(next(), make_conv({.in = expanded, .out = out}));
  parts.add(next(), make_norm(out));
  if (stride == 1 && in == out) block.residual(0);
}

std::shared_ptr<Net> make_mobilenet_v2(const Options& options) {
  struct Stage {
    std::int64_t factor, channels, blocks, stride;
  };
  constexpr std::array<Stage, 7> kStages{{{1, 16, 1, 1},
                                          {6, 24, 2, 2},
                                          {6, 32, 3, 2},
                                          {6, 64, 4, 2},
                                          {6, 96, 3, 1},
                                          {6, 160, 3, 2},
                                          {6, 320, 1, 1}}};
  auto net = std::make_shared<Net>();
  Net& features = net->nest("features");
  int number = 0;
  const auto next = [&] { return std::to_string(number++); };
  add_conv_norm(features, next(), {3, 32, 3, 2}, {}, relu6);
  std::int64_t channels = 32;
  for (const Stage& stage : kStages) {
    for (std::int64_t i = 0; i < stage.blocks; ++i) {
      add_inverted_v2(features, next(), channels, stage.channels, i == 0 ? stage.stride : 1, stage.factor);
      channels = stage.channels;
    }
  }
  add_conv_norm(features, next(), {.in = channels, .out = 1280}, {}, relu6);
  add_pool(*net);
  Net& classifier = net->nest("classifier");
  classifier.add_dropout(0.2);
  net->add_head(classifier, "1", 1280, options.classes);
  init_convolutions(*net, small_normal);
  return net;
}

/// A block of MobileNetV3: `hard` selects hardswish.
struct V3Block {
  std::int64_t kernel, expanded, out;
  bool squeeze, hard;
  std::int64_t stride;
};
constexpr std::array<V3Block, 15> kLarge{{{3, 16, 16, false, false, 1},
                                          {3, 64, 24, false, false, 2},
                                          {3, 72, 24, false, false, 1},
                                          {5, 72, 40, true, false, 2},
                                          {5, 120, 40, true, false, 1},
                                          {5, 120, 40, true, false, 1},
                                          {3, 240, 80, false, true, 2},
                                          {3, 200, 80, false, true, 1},
                                          {3, 184, 80, false, true, 1},
                                          {3, 184, 80, false, true, 1},
                                          {3, 480, 112, true, true, 1},
                                          {3, 672, 112, true, true, 1},
                                          {5, 672, 160, true, true, 2},
                                          {5, 960, 160, true, true, 1},
                                          {5, 960, 160, true, true, 1}}};
constexpr std::array<V3Block, 11> kSmall{{{3, 16, 16, true, false, 2},
                                          {3, 72, 24, false, false, 2},
                                          {3, 88, 24, false, false, 1},
                                          {5, 96, 40, true, true, 2},
                                          {5, 240, 40, true, true, 1},
                                          {5, 240, 40, true, true, 1},
                                          {5, 120, 48, true, true, 1},
                                          {5, 144, 48, true, true, 1},
                                          {5, 288, 96, true, true, 2},
                                          {5, 576, 96, true, true, 1},
                                          {5, 576, 96, true, true, 1}}};

template <typename Blocks>
std::shared_ptr<Net> make_mobilenet_v3(const Blocks& blocks, std::int64_t last, const Options& options) {
  constexpr Norm kNorm{.eps = 1e-3, .momentum = 0.01};
  auto net = std::make_shared<Net>();
  Net& features = net->nest("features");
  int number = 0;
  const auto next = [&] { return std::to_string(number++); };
  add_conv_norm(features, next(), {3, 16, 3, 2}, kNorm, hardswish);
  std::int64_t channels = 16;
  for (const V3Block& block : blocks) {
    const std::int64_t quarter = block.expanded / 4;
    add_inverted(features, next(),
                 {.in = channels,
                  .expanded = block.expanded,
                  .out = block.out,
                  .kernel = block.kernel,
                  .stride = block.stride,
                  .squeezed = block.squeeze ? round_channels(static_cast<double>(quarter)) : 0,
                  .activation = block.hard ? hardswish : relu,
                  .norm = kNorm});
    channels = block.out;
  }
  add_conv_norm(features, next(), {.in = channels, .out = 6 * channels}, kNorm, hardswish);
  add_pool(*net);
  Net& classifier = net->nest("classifier");
  classifier.add("0", torch::nn::Linear(6 * channels, last)).then(step_of(hardswish)).add_dropout(0.2);
  net->add_head(classifier, "3", last, options.classes);
  init_convolutions(*net, small_normal);
  return net;
}

/// Scales of width and depth, and dropout.
struct Scaling {
  double width, depth, dropout;
};
constexpr std::array<Scaling, 8> kScalings{{{1.0, 1.0, 0.2},
                                            {1.0, 1.1, 0.2},
                                            {1.1, 1.2, 0.3},
                                            {1.2, 1.4, 0.3},
                                            {1.4, 1.8, 0.4},
                                            {1.6, 2.2, 0.4},
                                            {1.8, 2.6, 0.5},
                                            {2.0, 3.1, 0.5}}};

/// A stage of EfficientNet-B0.
struct EfficientStage {
  std::int64_t factor, kernel, stride, in, out, blocks;
};
constexpr std::array<EfficientStage, 7> kEfficientStages{{{1, 3, 1, 32, 16, 1},
                                                          {6, 3, 2, 16, 24, 2},
                                                          {6, 5, 2, 24, 40, 2},
                                                          {6, 3, 2, 40, 80, 3},
                                                          {6, 5, 1, 80, 112, 3},
                                                          {6, 5, 2, 112, 192, 4},
                                                          {6, 3, 1, 192, 320, 1}}};

}  // namespace

std::shared_ptr<Net> make_mobilenet(const std::string& name, const Options& options) {
  if (name == "mobilenet_v2") return make_mobilenet_v2(options);
  return name == "mobilenet_v3_large" ? make_mobilenet_v3(kLarge, 1280, options)
                                      : make_mobilenet_v3(kSmall, 1024, options);
}

std::shared_ptr<Net> make_efficientnet(const std::string& name, const Options& options) {
  const auto size = static_cast<std::size_t>(name.back() - '0');
  const Scaling& scaling = kScalings.at(size);
  const Norm norm = size >= 5 ? Norm{.eps = 1e-3, .momentum = 0.01} : Norm{};
  const auto channels_of = [&](std::int64_t base) {
    return round_channels(static_cast<double>(base) * scaling.width);
  };
  const auto blocks_of = [&](const EfficientStage& stage) {
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(stage.blocks) * scaling.depth));
  };
  std::int64_t total = 0, block = 0, number = 0;
  for (const EfficientStage& stage : kEfficientStages) total += blocks_of(stage);
  auto net = std::make_shared<Net>();
  Net& features = net->nest("features");
  std::int64_t channels = channels_of(32);
  add_conv_norm(features, std::to_string(number++), {3, channels, 3, 2}, norm, silu);
  for (const EfficientStage& stage : kEfficientStages) {
    Net& blocks = features.nest(std::to_string(number++));
    const std::int64_t out = channels_of(stage.out);
    for (std::int64_t i = 0; i < blocks_of(stage); ++i) {
      add_inverted(blocks, std::to_string(i),
                   {.in = channels,
                    .expanded = round_channels(static_cast<double>(channels * stage.factor)),
                    .out = out,
                    .kernel = stage.kernel,
                    .stride = i == 0 ? stage.stride : 1,
                    .squeezed = std::max<std::int64_t>(1, channels / 4),
                    .activation = silu,
                    .squeeze_inner = silu,
                    .squeeze_gate = sigmoid,
                    .norm = norm,
                    // The share of dropped records grows with the depth, up to 0.2.
                    .drop = 0.2 * static_cast<double>(block++) / static_cast<double>(total)});
      channels = out;
    }
  }
  add_conv_norm(features, std::to_string(number++), {.in = channels, .out = 4 * channels}, norm, silu);
  add_pool(*net);
  Net& classifier = net->nest("classifier");
  classifier.add_dropout(scaling.dropout);
  net->add_head(classifier, "1", 4 * channels, options.classes);
  init_convolutions(*net, [](Tensor& weight) {
    const double range = 1 / std::sqrt(static_cast<double>(weight.size(0)));
    weight.uniform_(-range, range);
  });
  return net;
}

}  // namespace det::models
