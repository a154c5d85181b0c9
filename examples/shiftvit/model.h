// ShiftViT (Wang et al., "When Shift Operation Meets Vision Transformer", AAAI 2022, arXiv 2201.10801): a
// hierarchical vision transformer with a shift of channels in place of attention.
#pragma once

#include <torch/torch.h>

#include <vector>

/// Defaults: Shift-T on ImageNet.
struct ShiftViTOptions {
  int64_t channels = 3, classes = 1000;
  int64_t patch_size = 4;
  int64_t embed_dim = 96;                       // channels of the first stage; doubled in each further one
  std::vector<int64_t> depths = {6, 8, 18, 6};  // blocks per stage
  double mlp_ratio = 2;
  int64_t n_div = 12;      // 4 / n_div of the channels are shifted
  double drop_path = 0;    // of the last block; increases linearly from 0
  double layer_scale = 0;  // initial scale of each block's branch; 0: no LayerScale
};

/// The paper's shift operation: shifts 1 / n_div of the channels by one pixel to the left, right, top and
/// bottom each, with zero padding; the other channels stay.
inline torch::Tensor shift(const torch::Tensor& x, int64_t n_div) {
  const int64_t g = x.size(1) / n_div;
  const auto moved = [&](int64_t group, std::vector<int64_t> padding) {
    return torch::constant_pad_nd(x.narrow(1, group * g, g), padding);
  };
  return torch::cat({moved(0, {-1, 1}), moved(1, {1, -1}), moved(2, {0, 0, -1, 1}), moved(3, {0, 0, 1, -1}),
                     x.narrow(1, 4 * g, x.size(1) - 4 * g)},
                    /*dim=*/1);
}

/// Normalization over all channels and pixels of an image (GroupNorm with one group), in full precision also
/// under autocast.
struct NormImpl : torch::nn::Module {
  explicit NormImpl(int64_t channels)
      : weight(register_parameter("weight", torch::ones(channels))),
        bias(register_parameter("bias", torch::zeros(channels))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::group_norm(x.to(weight.dtype()), 1, weight, bias);
  }
  torch::Tensor weight, bias;
};
TORCH_MODULE(Norm);

inline torch::nn::Conv2d conv(int64_t in, int64_t out, int64_t size, bool bias = true) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, size).stride(size).bias(bias));
}

/// Shift, then x + mlp(norm(x)). In training, drops the branch of an image with probability `drop_path`
/// (stochastic depth, Huang et al., 2016).
struct ShiftBlockImpl : torch::nn::Module {
  ShiftBlockImpl(int64_t channels, const ShiftViTOptions& options, double drop_path)
      : n_div(options.n_div),
        drop_path(drop_path),
        norm(register_module("norm", Norm(channels))),
        fc1(register_module("fc1", conv(channels, static_cast<int64_t>(channels * options.mlp_ratio), 1))),
        fc2(register_module("fc2", conv(static_cast<int64_t>(channels * options.mlp_ratio), channels, 1))) {
    if (options.layer_scale > 0) {
      gamma = register_parameter("gamma", torch::full({channels, 1, 1}, options.layer_scale));
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    const torch::Tensor x = shift(input, n_div);
    torch::Tensor branch = fc2(torch::gelu(fc1(norm(x))));
    if (gamma.defined()) branch = gamma * branch;
    if (is_training() && drop_path > 0) {
      branch = branch * torch::rand({x.size(0), 1, 1, 1}, x.options()).ge(drop_path).to(x.dtype()) /
               (1 - drop_path);
    }
    return x + branch;
  }

  int64_t n_div;
  double drop_path;
  Norm norm;
  torch::nn::Conv2d fc1, fc2;
  torch::Tensor gamma;
};
TORCH_MODULE(ShiftBlock);

struct ShiftViTImpl : torch::nn::Module {
  explicit ShiftViTImpl(const ShiftViTOptions& options) {
    const std::vector<int64_t>& depths = options.depths;
    int64_t channels = options.embed_dim, block = 0;
    const int64_t blocks = std::accumulate(depths.begin(), depths.end(), int64_t{0});

    // Patch embedding: a strided convolution.
    embed->push_back(conv(options.channels, channels, options.patch_size));
    embed->push_back(Norm(channels));
    for (std::size_t stage = 0; stage < depths.size(); ++stage) {
      for (int64_t i = 0; i < depths[stage]; ++i, ++block) {
        const double part = blocks > 1 ? static_cast<double>(block) / (blocks - 1) : 0;
        stages->push_back(ShiftBlock(channels, options, options.drop_path * part));
      }
      if (stage + 1 < depths.size()) {  // patch merging: half the height and width, twice the channels
        stages->push_back(Norm(channels));
        stages->push_back(conv(channels, 2 * channels, 2, /*bias=*/false));
        channels *= 2;
      }
    }
    last = Norm(channels);
    head = torch::nn::Linear(channels, options.classes);
    register_module("embed", embed);
    register_module("stages", stages);
    register_module("last", last);
    register_module("head", head);

    for (auto& [name, parameter] : named_parameters().pairs()) {
      torch::NoGradGuard no_grad;
      if (parameter.dim() > 1 && name.find("gamma") == std::string::npos) parameter.normal_(0, 0.02);
      if (name.ends_with("bias")) parameter.zero_();
    }
  }

  /// Images [B, channels, H, W] to logits [B, classes].
  torch::Tensor forward(const torch::Tensor& images) {
    return head(last(stages->forward(embed->forward(images))).mean({2, 3}));
  }

  torch::nn::Sequential embed, stages;
  Norm last{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(ShiftViT);
