// ResNet, ResNeXt and Wide ResNet.
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <map>

#include "harness/src/models/net.h"

namespace det::models {
namespace {

/// Blocks of the four stages, groups and width of a bottleneck's inner convolution (0: basic blocks).
struct ResNetPlan {
  std::array<std::int64_t, 4> blocks;
  std::int64_t groups = 1, group_width = 64;
  bool bottleneck = true;
};

ResNetPlan resnet_plan(const std::string& name) {
  static const std::map<std::string, ResNetPlan> plans{{"resnet18", {{2, 2, 2, 2}, 1, 64, false}},
                                                       {"resnet34", {{3, 4, 6, 3}, 1, 64, false}},
                                                       {"resnet50", {{3, 4, 6, 3}}},
                                                       {"resnet101", {{3, 4, 23, 3}}},
                                                       {"resnet152", {{3, 8, 36, 3}}},
                                                       {"resnext50_32x4d", {{3, 4, 6, 3}, 32, 4}},
                                                       {"resnext101_32x8d", {{3, 4, 23, 3}, 32, 8}},
                                                       {"wide_resnet50_2", {{3, 4, 6, 3}, 1, 128}},
                                                       {"wide_resnet101_2", {{3, 4, 23, 3}, 1, 128}}};
  return plans.at(name);
}

/// Appends a block; returns its number of output channels.
std::int64_t add_block(Net& stage, const std::string& name, const ResNetPlan& plan, std::int64_t in,
                       std::int64_t width, std::int64_t stride) {
  Net& block = stage.nest(name);
  const std::int64_t inner = width * plan.group_width / 64 * plan.groups;
  const std::int64_t out = plan.bottleneck ? 4 * width : width;
  const std::vector<Conv> convs =
      plan.bottleneck ? std::vector<Conv>{{in, inner}, {inner, inner, 3, stride, plan.groups}, {inner, out}}
                      : std::vector<Conv>{{in, out, 3, stride}, {out, out, 3}};
  for (std::size_t i = 0; i < convs.size(); ++i) {
    if (i > 0) block.then(step_of(relu));
    const std::string number = std::to_string(i + 1);
    block.add("conv" + number, make_conv(convs[i])).add("bn" + number, make_norm(convs[i].out));
  }
  Net* shortcut = nullptr;
  if (stride != 1 || in != out) {
    shortcut = &block.nest_aside("downsample");
    shortcut->add("0", make_conv({in, out, 1, stride})).add("1", make_norm(out));
  }
  block.combine(0, [shortcut](const Tensor& x, const Tensor& result) {
    return result.add_(shortcut == nullptr ? x : shortcut->forward(x)).relu_();
  });
  return out;
}

}  // namespace

std::shared_ptr<Net> make_resnet(const std::string& name, const Options& options) {
  const ResNetPlan plan = resnet_plan(name);
  auto net = std::make_shared<Net>();
  net->add("conv1", make_conv({3, 64, 7, 2})).add("bn1", make_norm(64)).then(step_of(relu));
  net->then([](const Tensor& x) { return at::max_pool2d(x, 3, 2, 1); });
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < plan.blocks.size(); ++stage) {
    Net& layer = net->nest("layer" + std::to_string(stage + 1));
    for (std::int64_t i = 0; i < plan.blocks[stage]; ++i) {
      channels = add_block(layer, std::to_string(i), plan, channels, std::int64_t{64} << stage,
                           stage > 0 && i == 0 ? 2 : 1);
    }
  }
  add_pool(*net);
  net->add_head(*net, "fc", channels, options.classes);
  init_convolutions(*net);
  return net;
}

}  // namespace det::models
