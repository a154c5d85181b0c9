// The model that a configuration describes. Hyperparameters:
//
//   arch        a name of det::models: resnet18, resnet50, …
//   classes     default 1000
//   pretrained  default false: random initialization. true: the file ARCH.pth in the data folder. A path:
//   that
//               file. Files have torchvision's parameter names; other files than .pth are safetensors.
#pragma once

#include <det/det.h>

#include <string>

/// The folder with the data: data.dir of the configuration, else the hyperparameter `data`.
inline std::string data_dir(const det::TrialContext& context) {
  const det::Json& config = context.get_data_config();
  if (config.contains("dir")) return config.at("dir").get<std::string>();
  return context.get_hparam<std::string>("data");
}

inline det::models::Classifier make_model(const det::TrialContext& context) {
  const std::string arch = context.get_hparam<std::string>("arch");
  const det::Json& hparams = context.get_hparams();
  const det::Json pretrained = hparams.value("pretrained", det::Json(false));
  std::string weights = pretrained.is_string() ? pretrained.get<std::string>() : "";
  if (pretrained == true) weights = data_dir(context) + "/" + arch + ".pth";

  const int64_t classes = hparams.value("classes", int64_t{1000});
  // Published weights are those of 1000 classes; another number of classes gets a new last layer.
  const bool replaces_head = pretrained == true && classes != 1000;
  det::models::Classifier model = det::models::make(arch, {.classes = replaces_head ? 1000 : classes});
  if (weights.ends_with(".pth")) {
    det::load_state_dict(weights, *model);
  } else if (!weights.empty()) {
    det::load_safetensors(weights, *model);
  }
  if (replaces_head) model->replace_head(classes);
  return model;
}
