// A decoder-only transformer that predicts the next byte of a text: Vaswani et al., "Attention Is All You
// Need" (2017), with the pre-normalization of GPT-2.
#pragma once

#include <torch/torch.h>
#include <torch/version.h>

#include <cmath>

/// softmax(q kᵀ / √d) v with a causal mask. q, k, v: [B, heads, T, d].
inline torch::Tensor causal_attention(const torch::Tensor& q, const torch::Tensor& k,
                                      const torch::Tensor& v) {
#if TORCH_VERSION_MAJOR >= 2
  return at::scaled_dot_product_attention(q, k, v, {}, /*dropout_p=*/0,
                                          /*is_causal=*/true);  // flash attention on GPUs
#else
  const int64_t length = q.size(2);
  const torch::Tensor later = torch::ones({length, length}, q.options().dtype(torch::kBool)).triu(1);
  const torch::Tensor scores =
      torch::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  return torch::matmul(scores.masked_fill(later, -INFINITY).softmax(-1).to(v.dtype()), v);
#endif
}

/// Layer normalization in full precision, also under autocast.
struct NormImpl : torch::nn::Module {
  explicit NormImpl(int64_t width)
      : weight(register_parameter("weight", torch::ones(width))),
        bias(register_parameter("bias", torch::zeros(width))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::layer_norm(x.to(weight.dtype()), weight.sizes(), weight, bias);
  }
  torch::Tensor weight, bias;
};
TORCH_MODULE(Norm);

/// Transformer block: x + attention(norm1(x)), then x + mlp(norm2(x)).
struct LayerImpl : torch::nn::Module {
  LayerImpl(int64_t width, int64_t heads, double dropout)
      : heads(heads),
        norm1(register_module("norm1", Norm(width))),
        norm2(register_module("norm2", Norm(width))),
        qkv(register_module("qkv", torch::nn::Linear(width, 3 * width))),
        out(register_module("out", torch::nn::Linear(width, width))),
        fc1(register_module("fc1", torch::nn::Linear(width, 4 * width))),
        fc2(register_module("fc2", torch::nn::Linear(4 * width, width))),
        drop(register_module("drop", torch::nn::Dropout(dropout))) {}

  torch::Tensor forward(torch::Tensor x) {  // [B, T, width]
    const auto heads_first =
        qkv(norm1(x)).view({x.size(0), x.size(1), 3, heads, -1}).permute({2, 0, 3, 1, 4});
    const torch::Tensor seen = causal_attention(heads_first[0], heads_first[1], heads_first[2]);
    x = x + drop(out(seen.transpose(1, 2).reshape(x.sizes())));
    return x + drop(fc2(torch::gelu(fc1(norm2(x)))));
  }

  int64_t heads;
  Norm norm1, norm2;
  torch::nn::Linear qkv, out, fc1, fc2;
  torch::nn::Dropout drop;
};
TORCH_MODULE(Layer);

inline constexpr int64_t kBytes = 256;

/// `layers` blocks between a byte embedding with learned positions and a linear head.
struct GptImpl : torch::nn::Module {
  GptImpl(int64_t layers, int64_t width, int64_t heads, int64_t context, double dropout)
      : context(context),
        token(register_module("token", torch::nn::Embedding(kBytes, width))),
        position(register_module("position", torch::nn::Embedding(context, width))),
        last(register_module("last", Norm(width))),
        head(register_module("head", torch::nn::Linear(width, kBytes))) {
    for (int64_t i = 0; i < layers; ++i) body->push_back(Layer(width, heads, dropout));
    register_module("body", body);
    // Initialization of GPT-2: projections back to the residual stream are scaled by 1 / sqrt(2 layers).
    torch::NoGradGuard no_grad;
    for (auto& [name, parameter] : named_parameters().pairs()) {
      const bool ends_branch = name.ends_with("out.weight") || name.ends_with("fc2.weight");
      if (parameter.dim() == 2) parameter.normal_(0, ends_branch ? 0.02 / std::sqrt(2.0 * layers) : 0.02);
      if (name.ends_with("bias")) parameter.zero_();
    }
  }

  /// bytes: int64 [B, T], T <= context. Returns the logits of the next byte, [B, T, 256].
  torch::Tensor forward(const torch::Tensor& bytes) {
    const torch::Tensor places = torch::arange(bytes.size(1), bytes.options());
    return head(last(body->forward(token(bytes) + position(places))));
  }

  int64_t context;
  torch::nn::Embedding token, position;
  torch::nn::Sequential body;
  Norm last;
  torch::nn::Linear head;
};
TORCH_MODULE(Gpt);
