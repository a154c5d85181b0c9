// ResNet-18 and ResNet-50 (He et al., "Deep Residual Learning for Image Recognition", 2015). Parameters have
// torchvision's names, so its weights can be loaded.
#pragma once

#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <vector>

/// Residual block with convolutions of size 3, 3 (basic) or 1, 3, 1 (bottleneck).
struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t in, int64_t width, int64_t stride, bool bottleneck) {
    const std::vector<int64_t> sizes =
        bottleneck ? std::vector<int64_t>{1, 3, 1} : std::vector<int64_t>{3, 3};
    const int64_t out = bottleneck ? 4 * width : width;
    int64_t channels = in;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const bool strided = sizes[i] == 3 && (bottleneck || i == 0), is_last = i + 1 == sizes.size();
      add(channels, is_last ? out : width, sizes[i], strided ? stride : 1);
      channels = is_last ? out : width;
    }
    if (stride != 1 || in != out) {
      downsample = register_module(
          "downsample",
          torch::nn::Sequential(
              torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride).bias(false)),
              torch::nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = input;
    for (std::size_t i = 0; i < convs.size(); ++i) {
      x = bns[i](convs[i](x));
      if (i + 1 < convs.size()) x = x.relu_();
    }
    return (x + (downsample ? downsample->forward(input) : input)).relu_();
  }

  std::vector<torch::nn::Conv2d> convs;
  std::vector<torch::nn::BatchNorm2d> bns;
  torch::nn::Sequential downsample{nullptr};

 private:
  void add(int64_t in, int64_t out, int64_t size, int64_t stride) {
    const std::string number = std::to_string(convs.size() + 1);
    torch::nn::Conv2dOptions options(in, out, size);
    convs.push_back(register_module("conv" + number,
                                    torch::nn::Conv2d(options.stride(stride).padding(size / 2).bias(false))));
    bns.push_back(register_module("bn" + number, torch::nn::BatchNorm2d(out)));
  }
};
TORCH_MODULE(Block);

/// `arch` is "resnet18" or "resnet50". Input [B, 3, H, W], output logits [B, classes].
struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(const std::string& arch, int64_t classes = 1000) {
    if (arch != "resnet18" && arch != "resnet50")
      throw std::invalid_argument("arch is resnet18 or resnet50, not " + arch);
    const bool bottleneck = arch == "resnet50";
    const std::vector<int64_t> depths =
        bottleneck ? std::vector<int64_t>{3, 4, 6, 3} : std::vector<int64_t>{2, 2, 2, 2};
    conv1 = register_module(
        "conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 64, 7).stride(2).padding(3).bias(false)));
    bn1 = register_module("bn1", torch::nn::BatchNorm2d(64));
    int64_t channels = 64;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      torch::nn::Sequential layer;
      const int64_t width = int64_t{64} << stage;
      for (int64_t i = 0; i < depths[stage]; ++i) {
        layer->push_back(Block(channels, width, stage > 0 && i == 0 ? 2 : 1, bottleneck));
        channels = bottleneck ? 4 * width : width;
      }
      layers.push_back(register_module("layer" + std::to_string(stage + 1), layer));
    }
    fc = register_module("fc", torch::nn::Linear(channels, classes));

    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* conv = module->as<torch::nn::Conv2d>()) {
        torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      }
    }
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(bn1(conv1(x)).relu_(), /*kernel_size=*/3, /*stride=*/2, /*padding=*/1);
    for (auto& layer : layers) x = layer->forward(x);
    return fc(x.mean({2, 3}));
  }

  torch::nn::Conv2d conv1{nullptr};
  torch::nn::BatchNorm2d bn1{nullptr};
  std::vector<torch::nn::Sequential> layers;
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet);
