// The trial of const.yaml as a standalone program.
#include "model_def.cpp"

int main() {
  return det::run(
      [](det::TrialContext& context) {
        MNistTrial trial(context);
        det::Trainer(trial, context).fit(det::fit_options(context.get_experiment_config()));
      },
      {.config_file = "const.yaml"});
}
