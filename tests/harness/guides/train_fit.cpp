// Trains the skeleton locally, without a configuration file.
#include "skeleton.h"

int main() {
  return det::run(
      [](det::TrialContext& context) {
        MyTrial trial(context);
        det::Trainer trainer(trial, context);
        trainer.fit({.max_length = det::Epochs(2),
                     .checkpoint_period = det::Batches(10),
                     .validation_period = det::Batches(5),
                     .checkpoint_policy = det::CheckpointPolicy::kAll});
      },
      {.hparams = det::Json{{"global_batch_size", 8}}});
}
