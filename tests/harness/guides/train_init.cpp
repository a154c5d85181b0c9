// Trains the skeleton from a hand-written main.
#include <iostream>

#include "skeleton.h"

int main() {
  det::TrialContext context = det::init({.hparams = det::Json{{"global_batch_size", 8}}});
  MyTrial trial(context);
  const det::FitResult result = det::Trainer(trial, context).fit({.max_length = det::Epochs(1)});
  std::cout << "validation loss " << result.validation_metrics.at("validation_loss") << " in "
            << result.checkpoint << std::endl;
  return 0;
}
