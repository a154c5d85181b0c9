#include "harness/src/programs/harness_program.h"

#include <dlfcn.h>
#include <getopt.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "det/trainer.h"
#include "harness/src/client/trial_info.h"
#include "harness/src/compiled/compiled_step_trial.h"
#include "harness/src/programs/check_device.h"

namespace {

constexpr char kUsage[] =
    "usage: det-harness [options] MODULE.so:Class\n"
    "       det-harness [options] STEP.pt2\n"
    "Trains the trial `Class` of a shared object that DET_TRIAL(Class) is compiled into, or a compiled "
    "step.\n"
    "  --config FILE          experiment configuration (on a cluster: the cluster's)\n"
    "  --model-dir DIR        kept in checkpoints as code/\n"
    "  --checkpoint-dir DIR   default: checkpoint_storage of the configuration, else ./checkpoints\n"
    "  --resume               continue from the newest complete checkpoint there\n"
    "  --test-mode            train, validate and save one batch\n"
    "  --check-device TYPE    check the first device of this type, cuda or cpu: multiply and copy, and exit\n"
    "  --version, --help\n";

/// Parsed command line.
struct Arguments {
  det::InitOptions init;
  std::string library, trial_class;  ///< trial_class is "" for a compiled step
  bool resume = false, test_mode = false;
};

/// Parses the command line. Exits for --help, --version and errors.
Arguments read_arguments(int argc, char** argv) {
  const option options[] = {{"config", required_argument, nullptr, 'c'},
                            {"model-dir", required_argument, nullptr, 'm'},
                            {"checkpoint-dir", required_argument, nullptr, 'd'},
                            {"resume", no_argument, nullptr, 'r'},
                            {"test-mode", no_argument, nullptr, 't'},
                            {"check-device", required_argument, nullptr, 'C'},
                            {"version", no_argument, nullptr, 'v'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  Arguments arguments;
  for (int key; (key = ::getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (key) {
      case 'c':
        arguments.init.config_file = optarg;
        break;
      case 'm':
        arguments.init.model_dir = optarg;
        break;
      case 'd':
        arguments.init.checkpoint_dir = optarg;
        break;
      case 'r':
        arguments.resume = true;
        break;
      case 't':
        arguments.test_mode = true;
        break;
      case 'C':
        std::exit(det::check_device(optarg));
      case 'v':
        std::cout << "det-harness " DET_VERSION " (" DET_LIBTORCH ")\n";
        std::exit(0);
      case 'h':
        std::cout << kUsage;
        std::exit(0);
      default:
        std::cerr << kUsage;
        std::exit(2);
    }
  }
  const std::string target = optind + 1 == argc ? argv[optind] : "";
  if (target.ends_with(".pt2")) {
    arguments.library = std::filesystem::absolute(target).string();
    return arguments;
  }
  const std::size_t colon = target.find(".so:");
  if (colon == std::string::npos) {
    std::cerr << kUsage;
    std::exit(2);
  }
  arguments.library = std::filesystem::absolute(target.substr(0, colon + 3)).string();
  arguments.trial_class = target.substr(colon + 4);
  return arguments;
}

/// Looks up an entry point that DET_TRIAL defines. Throws when it is missing.
template <typename Function>
Function* symbol(void* library, const std::string& path, const char* name) {
  void* address = ::dlsym(library, name);
  if (address == nullptr) {
    throw std::runtime_error(path + " holds no trial; compile DET_TRIAL(Class) into it");
  }
  return reinterpret_cast<Function*>(address);
}

std::unique_ptr<det::Trial> make_trial(const Arguments& arguments, det::TrialContext& context) {
  if (arguments.trial_class.empty())
    return std::make_unique<det::CompiledStepTrial>(context, arguments.library);
  // The library is never unloaded: the trial's code may be in use until the process ends.
  void* library = ::dlopen(arguments.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(std::string("cannot load the trial: ") + ::dlerror());
  const std::string held = symbol<const char*()>(library, arguments.library, "det_trial_name")();
  // A shared object holds one class; the name in the argument must match it.
  if (held != arguments.trial_class) {
    throw std::runtime_error(arguments.library + " holds the trial " + held + ", not " +
                             arguments.trial_class);
  }
  void* trial = symbol<void*(det::TrialContext*)>(library, arguments.library, "det_make_trial")(&context);
  return std::unique_ptr<det::Trial>(static_cast<det::Trial*>(trial));
}

void print_summary(const det::FitResult& result) {
  std::printf("%s after %lld batches",
              result.reason == det::FitResult::Reason::kPreempted ? "paused" : "trained",
              static_cast<long long>(result.batches_trained));
  for (const auto& [name, value] : result.validation_metrics) std::printf("  %s %.6g", name.c_str(), value);
  std::printf("\n");
  // The identifier, as in other lines of the log; `det checkpoint describe` prints the path.
  const std::string id = std::filesystem::path(result.checkpoint).filename().string();
  if (!id.empty()) std::printf("checkpoint %s\n", id.c_str());
  std::fflush(stdout);
}

}  // namespace

int det::run_harness(int argc, char** argv) {
  const Arguments arguments = read_arguments(argc, argv);
  return det::run(
      [&](det::TrialContext& context) {
        const std::unique_ptr<det::Trial> trial = make_trial(arguments, context);
        det::FitOptions options = det::fit_options(context.get_experiment_config());
        options.test_mode = arguments.test_mode;
        if (arguments.resume) options.latest_checkpoint = "latest";
        print_summary(det::Trainer(*trial, context).fit(options));
      },
      arguments.init);
}

void det::preload_harness() { preload_cluster_client(); }
