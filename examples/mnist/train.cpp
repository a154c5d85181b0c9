// The same trial as a program of its own: with and without a cluster.
#include "model_def.cpp"

int main() {
  return det::run(
      [](det::TrialContext& context) {
        MNistTrial trial(context);
        det::Trainer(trial, context).fit({.max_length = det::Epochs(1), .checkpoint_period = det::Batches(500)});
      },
      {.config_file = "const.yaml"});
}
