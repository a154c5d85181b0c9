// Any step of the tutorial as a standalone program: `imagenet_train cifar10.yaml [--test]`.
#ifndef STEP
#define STEP "model_def.cpp"
#endif
#include STEP

#include <iostream>

int main(int argc, char** argv) {
  const bool test = argc == 3 && std::string(argv[2]) == "--test";
  if (argc != 2 && !test) {
    std::cerr << "usage: imagenet_train CONFIGURATION.yaml [--test]" << std::endl;
    return 2;
  }
  return det::run(
      [&](det::TrialContext& context) {
        ImageNetTrial trial(context);
        det::FitOptions options = det::fit_options(context.get_experiment_config());
        options.test_mode = test;  // one batch of training, validation and checkpoint
        det::Trainer(trial, context).fit(options);
      },
      {.config_file = argv[1]});
}
