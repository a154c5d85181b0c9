// The trial as a standalone program: `gpt_train const.yaml`, also under det-launch.
#include <iostream>

#include "model_def.cpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: gpt_train CONFIGURATION.yaml" << std::endl;
    return 2;
  }
  return det::run(
      [](det::TrialContext& context) {
        GptTrial trial(context);
        det::Trainer(trial, context).fit(det::fit_options(context.get_experiment_config()));
      },
      {.config_file = argv[1]});
}
