// Net: a module that is a list of steps, and the layers that the families of models have in common.
#pragma once

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "det/models.h"

namespace det::models {

using torch::Tensor;

/// Functions on a tensor in the order of execution. Registered modules have torchvision's names; activations
/// and other functions have none. Steps refer to this object and its children.
class Net : public torch::nn::Module {
 public:
  using Step = std::function<Tensor(Tensor)>;

  Tensor forward(Tensor x) const {
    for (const Step& step : steps_) x = step(std::move(x));
    return x;
  }
  /// Appends a function.
  Net& then(Step step) {
    steps_.push_back(std::move(step));
    return *this;
  }
  /// Registers a module and appends its application.
  template <typename Holder>
  Net& add(const std::string& name, Holder module) {
    auto* layer = register_module(name, std::move(module)).get();
    return then([layer](const Tensor& x) { return layer->forward(x); });
  }
  /// Registers an empty Net and appends its application. Returns the new one.
  Net& nest(const std::string& name) {
    Net& child = nest_aside(name);
    then([&child](Tensor x) { return child.forward(std::move(x)); });
    return child;
  }
  /// Registers an empty Net that is not a step.
  Net& nest_aside(const std::string& name) { return *register_module(name, std::make_shared<Net>()); }
  /// Appends LayerNorm over the last dimension, or over the channels of images.
  Net& add_norm(const std::string& name, std::int64_t channels, bool images);
  Net& add_dropout(double p);
  /// Appends the last layer. `net` remembers it for replace_head().
  void add_head(Net& net, const std::string& name, std::int64_t features, std::int64_t classes);
  void replace_head(std::int64_t classes);

  /// Number of steps so far, for combine().
  std::size_t size() const { return steps_.size(); }
  /// Replaces the steps from `first` on by one: how(x, result of these steps).
  void combine(std::size_t first, std::function<Tensor(const Tensor&, Tensor)> how);
  /// The same with x + result. In training, a share `drop` of the records gets x alone (Huang et al., Deep
  /// Networks with Stochastic Depth, ECCV 2016).
  void residual(std::size_t first, double drop = 0);

  Tensor parameter(const std::string& name, Tensor value) {
    return register_parameter(name, std::move(value));
  }

 private:
  std::vector<Step> steps_;
  struct {
    Net* owner = nullptr;
    std::string name;
    std::shared_ptr<torch::nn::LinearImpl> layer;
  } head_;
};

/// An activation, in place.
using Activation = Tensor& (*)(Tensor&);
Tensor& relu(Tensor& x);
Tensor& relu6(Tensor& x);
Tensor& hardswish(Tensor& x);
Tensor& silu(Tensor& x);
Net::Step step_of(Activation activation);

/// A batch normalization's constants.
struct Norm {
  double eps = 1e-5, momentum = 0.1;
};

/// A convolution that keeps the size up to the stride.
struct Conv {
  std::int64_t in, out, kernel = 1, stride = 1, groups = 1;
  bool bias = false;
};
torch::nn::Conv2d make_conv(const Conv& conv);
torch::nn::BatchNorm2d make_norm(std::int64_t channels, const Norm& norm = {});
/// Appends convolution, normalization and activation (null: none) as "0" and "1" of a child `name`.
void add_conv_norm(Net& net, const std::string& name, const Conv& conv, const Norm& norm,
                   Activation activation);
/// Appends squeeze and excitation (Hu et al., CVPR 2018): channels are scaled by gate(fc2(inner(fc1(mean)))).
void add_squeeze(Net& net, const std::string& name, std::int64_t channels, std::int64_t squeezed,
                 Activation inner, Activation gate);
/// Appends the mean over all pixels, [B, C, 1, 1] or [B, C].
void add_pool(Net& net, bool flatten = true);

/// The multiple of 8 that is nearest to `channels`, at least 90 % of it.
std::int64_t round_channels(double channels);

/// Initializes convolutions with kaiming_normal (fan out), linear layers with `linear(weight)`; biases are 0.
void init_convolutions(Net& net, const std::function<void(Tensor&)>& linear = nullptr);
/// Normal values of the given deviation, limited to 2 (as torchvision: values, not deviations).
void truncated_normal(Tensor& weight, double deviation);

// One builder a family. Null for a name of another family.
std::shared_ptr<Net> make_resnet(const std::string& name, const Options& options);
std::shared_ptr<Net> make_mobilenet(const std::string& name, const Options& options);
std::shared_ptr<Net> make_efficientnet(const std::string& name, const Options& options);
std::shared_ptr<Net> make_convnext(const std::string& name, const Options& options);
std::shared_ptr<Net> make_vit(const std::string& name, const Options& options);

}  // namespace det::models
