// A program that runs locally, under a launcher, and on a cluster.
#include "skeleton.h"

int main() {
  return det::run(
      [](det::TrialContext& context) {
        MyTrial trial(context);
        det::FitOptions options{.max_length = det::Epochs(2), .validation_period = det::Epochs(1)};
        const bool local = context.get_trial_id() == 0;
        if (local) options.latest_checkpoint = "latest";
        det::Trainer(trial, context).fit(options);
      },
      {.config_file = "const.yaml"});
}
