// The same trial as a standalone program. `train --test` tries one batch of everything.
#include "model_def.cpp"

int main(int argc, char** argv) {
  const bool test_mode = argc > 1 && std::string(argv[1]) == "--test";
  return det::run(
      [&](det::TrialContext& context) {
        ImagesTrial trial(context);
        det::Trainer(trial, context)
            .fit({.max_length = det::Epochs(5), .validation_period = det::Epochs(1), .test_mode = test_mode});
      },
      {.config_file = "const.yaml"});
}
