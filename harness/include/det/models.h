// Image classifiers with the architectures and parameter names of torchvision.models, so that its weights
// load by name: det::load_state_dict for .pth files, det::load_safetensors.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace det::models {

class Net;

/// Options of a model.
struct Options {
  std::int64_t classes = 1000;
  /// Side of the images; only the vision transformers depend on it.
  std::int64_t image_size = 224;
};

/// A network from images [B, 3, H, W] to logits [B, classes]. Initialized as in torchvision, from LibTorch's
/// generator. Dropout and stochastic depth draw from it in training mode.
class ClassifierImpl : public torch::nn::Module {
 public:
  /// Takes over the modules and parameters of `net`. Library only: models come from make().
  explicit ClassifierImpl(std::shared_ptr<Net> net);
  torch::Tensor forward(const torch::Tensor& images);
  /// Replaces the last layer by a new one for `classes`, to fine-tune loaded weights. Call it before
  /// wrap_model.
  void replace_head(std::int64_t classes);

 private:
  std::shared_ptr<Net> net_;
};
TORCH_MODULE(Classifier);

/// Builds the model of that name, such as "resnet50". Throws std::invalid_argument with all names for an
/// unknown one, and for options out of range.
Classifier make(const std::string& name, const Options& options = {});
/// The names that make() knows.
std::vector<std::string> names();

/// He et al., Deep Residual Learning for Image Recognition, CVPR 2016, with the stride in the 3 × 3
/// convolution.
inline Classifier resnet18(const Options& options = {}) { return make("resnet18", options); }
inline Classifier resnet34(const Options& options = {}) { return make("resnet34", options); }
inline Classifier resnet50(const Options& options = {}) { return make("resnet50", options); }
inline Classifier resnet101(const Options& options = {}) { return make("resnet101", options); }
inline Classifier resnet152(const Options& options = {}) { return make("resnet152", options); }
/// Xie et al., Aggregated Residual Transformations for Deep Neural Networks, CVPR 2017.
inline Classifier resnext50_32x4d(const Options& options = {}) { return make("resnext50_32x4d", options); }
/// Zagoruyko and Komodakis, Wide Residual Networks, BMVC 2016.
inline Classifier wide_resnet50_2(const Options& options = {}) { return make("wide_resnet50_2", options); }
/// Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, CVPR 2018.
inline Classifier mobilenet_v2(const Options& options = {}) { return make("mobilenet_v2", options); }
/// Howard et al., Searching for MobileNetV3, ICCV 2019.
inline Classifier mobilenet_v3_large(const Options& options = {}) {
  return make("mobilenet_v3_large", options);
}
inline Classifier mobilenet_v3_small(const Options& options = {}) {
  return make("mobilenet_v3_small", options);
}
/// Tan and Le, EfficientNet: Rethinking Model Scaling for Convolutional Neural Networks, ICML 2019.
inline Classifier efficientnet_b0(const Options& options = {}) { return make("efficientnet_b0", options); }
inline Classifier efficientnet_b1(const Options& options = {}) { return make("efficientnet_b1", options); }
inline Classifier efficientnet_b2(const Options& options = {}) { return make("efficientnet_b2", options); }
inline Classifier efficientnet_b3(const Options& options = {}) { return make("efficientnet_b3", options); }
inline Classifier efficientnet_b4(const Options& options = {}) { return make("efficientnet_b4", options); }
inline Classifier efficientnet_b5(const Options& options = {}) { return make("efficientnet_b5", options); }
inline Classifier efficientnet_b6(const Options& options = {}) { return make("efficientnet_b6", options); }
inline Classifier efficientnet_b7(const Options& options = {}) { return make("efficientnet_b7", options); }
/// Liu et al., A ConvNet for the 2020s, CVPR 2022.
inline Classifier convnext_tiny(const Options& options = {}) { return make("convnext_tiny", options); }
inline Classifier convnext_small(const Options& options = {}) { return make("convnext_small", options); }
inline Classifier convnext_base(const Options& options = {}) { return make("convnext_base", options); }
inline Classifier convnext_large(const Options& options = {}) { return make("convnext_large", options); }
/// Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021.
inline Classifier vit_b_16(const Options& options = {}) { return make("vit_b_16", options); }
inline Classifier vit_b_32(const Options& options = {}) { return make("vit_b_32", options); }
inline Classifier vit_l_16(const Options& options = {}) { return make("vit_l_16", options); }

}  // namespace det::models
