// The trial as a standalone program, with or without a cluster: `mnist_train [CONFIGURATION.yaml]`.
#include "model_def.cpp"

int main(int argc, char** argv) {
  return det::run(
      [](det::TrialContext& context) {
        MNistTrial trial(context);
        det::Trainer(trial, context).fit(det::fit_options(context.get_experiment_config()));
      },
      {.config_file = argc > 1 ? argv[1] : "const.yaml"});
}
