// The trial as a standalone program: `shiftvit_train const_mnist.yaml`, also under det-launch.
#include <iostream>

#include "model_def.cpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: shiftvit_train CONFIGURATION.yaml" << std::endl;
    return 2;
  }
  return det::run(
      [](det::TrialContext& context) {
        ShiftViTTrial trial(context);
        det::Trainer(trial, context).fit(det::fit_options(context.get_experiment_config()));
      },
      {.config_file = argv[1]});
}
