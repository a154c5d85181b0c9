#include "harness/src/models/net.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>

namespace det::models {

Net& Net::add_norm(const std::string& name, std::int64_t channels, bool images) {
  auto* norm =
      register_module(name, torch::nn::LayerNorm(torch::nn::LayerNormOptions({channels}).eps(1e-6))).get();
  return then([norm, images](const Tensor& x) {
    return images ? norm->forward(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2}) : norm->forward(x);
  });
}

Net& Net::add_dropout(double p) {
  return then([this, p](const Tensor& x) { return at::dropout(x, p, is_training()); });
}

void Net::add_head(Net& net, const std::string& name, std::int64_t features, std::int64_t classes) {
  head_ = {&net, name, net.register_module(name, torch::nn::Linear(features, classes))};
  net.then([this](const Tensor& x) { return head_.layer->forward(x); });
}

void Net::replace_head(std::int64_t classes) {
  auto layer = torch::nn::Linear(head_.layer->options.in_features(), classes).ptr();
  layer->to(head_.layer->weight.device());
  head_.owner->replace_module(head_.name, layer);
  head_.layer = std::move(layer);
}

void Net::combine(std::size_t first, std::function<Tensor(const Tensor&, Tensor)> how) {
  std::vector<Step> body(std::make_move_iterator(steps_.begin() + static_cast<std::ptrdiff_t>(first)),
                         std::make_move_iterator(steps_.end()));
  steps_.resize(first);
  then([body = std::move(body), how = std::move(how)](const Tensor& x) {
    Tensor result = x;
    for (const Step& step : body) result = step(std::move(result));
    return how(x, std::move(result));
  });
}

void Net::residual(std::size_t first, double drop) {
  combine(first, [this, drop](const Tensor& x, Tensor result) {
    if (drop > 0 && is_training()) {
      std::vector<std::int64_t> shape(static_cast<std::size_t>(result.dim()), 1);
      shape[0] = result.size(0);
      // A share of 1 leaves no record; its scale would be infinite.
      const Tensor kept = at::empty(shape, result.options()).bernoulli_(1 - drop);
      result = result * (drop < 1 ? kept.div_(1 - drop) : kept);
    }
    return result + x;
  });
}

Tensor& relu(Tensor& x) { return x.relu_(); }
Tensor& relu6(Tensor& x) { return x.clamp_(0, 6); }
Tensor& hardswish(Tensor& x) { return at::hardswish_(x); }
Tensor& silu(Tensor& x) { return at::silu_(x); }

Net::Step step_of(Activation activation) {
  return [activation](Tensor x) { return activation(x); };
}

torch::nn::Conv2d make_conv(const Conv& conv) {
  return torch::nn::Conv2d(torch::nn::Conv2dOptions(conv.in, conv.out, conv.kernel)
                               .stride(conv.stride)
                               .padding(conv.kernel / 2)
                               .groups(conv.groups)
                               .bias(conv.bias));
}

torch::nn::BatchNorm2d make_norm(std::int64_t channels, const Norm& norm) {
  return torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(channels).eps(norm.eps).momentum(norm.momentum));
}

void add_conv_norm(Net& net, const std::string& name, const Conv& conv, const Norm& norm,
                   Activation activation) {
  Net& child = net.nest(name);
  child.add("0", make_conv(conv)).add("1", make_norm(conv.out, norm));
  if (activation != nullptr) child.then(step_of(activation));
}

void add_squeeze(Net& net, const std::string& name, std::int64_t channels, std::int64_t squeezed,
                 Activation inner, Activation gate) {
  Net& child = net.nest(name);
  add_pool(child, /*flatten=*/false);
  child.add("fc1", make_conv({.in = channels, .out = squeezed, .bias = true})).then(step_of(inner));
  child.add("fc2", make_conv({.in = squeezed, .out = channels, .bias = true})).then(step_of(gate));
  child.combine(0, [](const Tensor& x, const Tensor& scale) { return scale * x; });
}

void add_pool(Net& net, bool flatten) {
  net.then([flatten](const Tensor& x) {
    const Tensor mean = at::adaptive_avg_pool2d(x, {1, 1});
    return flatten ? mean.flatten(1) : mean;
  });
}

std::int64_t round_channels(double channels) {
  const std::int64_t rounded = std::max<std::int64_t>(8, static_cast<std::int64_t>(channels + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + 8 : rounded;
}

void init_convolutions(Net& net, const std::function<void(Tensor&)>& linear) {
  const at::NoGradGuard no_grad;
  for (const auto& module : net.modules(/*include_self=*/false)) {
    if (auto* conv = module->as<torch::nn::Conv2d>()) {
      torch::nn::init::kaiming_normal_(conv->weight, 0, torch::kFanOut, torch::kReLU);
      if (conv->bias.defined()) conv->bias.zero_();
    } else if (auto* layer = module->as<torch::nn::Linear>(); layer != nullptr && linear != nullptr) {
      linear(layer->weight);
      layer->bias.zero_();
    }
  }
}

void truncated_normal(Tensor& weight, double deviation) {
  // The quantile function of uniform values between the quantiles of -2 and 2.
  const at::NoGradGuard no_grad;
  const double edge = std::erf(2 / deviation / std::sqrt(2.0));
  weight.uniform_(-edge, edge).erfinv_().mul_(deviation * std::sqrt(2.0)).clamp_(-2, 2);
}

ClassifierImpl::ClassifierImpl(std::shared_ptr<Net> net) : net_(std::move(net)) {
  for (const auto& item : net_->named_parameters(/*recurse=*/false))
    register_parameter(item.key(), item.value());
  for (const auto& item : net_->named_children()) register_module(item.key(), item.value());
}

Tensor ClassifierImpl::forward(const Tensor& images) { return net_->forward(images); }

void ClassifierImpl::replace_head(std::int64_t classes) {
  if (classes < 1) throw std::invalid_argument("replace_head: classes must be at least 1");
  net_->replace_head(classes);
  for (const auto& item : net_->named_children()) replace_module(item.key(), item.value());
}

namespace {

using Builder = std::shared_ptr<Net> (*)(const std::string&, const Options&);
/// The families, with all their names.
struct Family {
  Builder build;
  std::vector<std::string> names;
};
const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {make_resnet,
       {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext101_32x8d",
        "wide_resnet50_2", "wide_resnet101_2"}},
      {make_mobilenet, {"mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"}},
      {make_efficientnet,
       {"efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
        "efficientnet_b5", "efficientnet_b6", "efficientnet_b7"}},
      {make_convnext, {"convnext_tiny", "convnext_small", "convnext_base", "convnext_large"}},
      {make_vit, {"vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32"}},
  };
  return all;
}

}  // namespace

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Family& family : families()) all.insert(all.end(), family.names.begin(), family.names.end());
  return all;
}

Classifier make(const std::string& name, const Options& options) {
  if (options.classes < 1) throw std::invalid_argument("models: classes must be at least 1");
  for (const Family& family : families()) {
    if (std::find(family.names.begin(), family.names.end(), name) == family.names.end()) continue;
    return Classifier(std::make_shared<ClassifierImpl>(family.build(name, options)));
  }
  std::string all;
  for (const std::string& known : names()) all += (all.empty() ? "" : ", ") + known;
  throw std::invalid_argument("models: there is no \"" + name + "\"; there are: " + all);
}

}  // namespace det::models
