// Owns turning a trial's source into a shared object, once: a cache of builds keyed by all that a build
// depends on. Whoever asks for a build that is under way waits for it, across processes.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace det::agent {

/// How to compile against the installed training library.
struct Recipe {
  std::string sdk_id;
  std::string compiler;
  std::vector<std::string> cxx_flags, include_dirs, link_flags;
  std::string
      wrapper;  ///< the source that includes the trial's: "{module}" and "{class}" stand for its names
};
/// Reads <prefix>/share/det/model_build.json; "{prefix}" in flags and directories becomes that prefix.
Result<Recipe> read_recipe(const std::string& path);

/// An entrypoint of the form "module:Class": dotted names, no spaces.
struct TrialName {
  std::string module;       ///< "pkg/model_def": path of the source without ".cpp"
  std::string trial_class;  ///< "MNistTrial"; a class in a namespace as in C++: "ns::Trial"
};
std::optional<TrialName> parse_trial_name(const std::string& entrypoint);

struct BuildRequest {
  Recipe recipe;
  TrialName trial;
  std::string source_dir;  ///< the unpacked context
  std::string models_dir;  ///< the cache
  Duration timeout = std::chrono::minutes(15);
};

struct BuildOutcome {
  std::string library;  ///< path of the shared object; "" when the source does not compile
  std::string output;   ///< of the compiler, paths relative to the context
  bool cached = false;  ///< nothing was compiled now
};

/// The digest of all that the build depends on: sources by path and content, recipe, compiler.
Result<std::string> build_key(const BuildRequest& request);

/// A source that does not compile is an outcome (and cached as such), not a failure. kDeadlineExceeded: too
/// slow; kCancelled: `stop` was asked for; kUnavailable: the compiler died of something else.
Result<BuildOutcome> build_model(const BuildRequest& request, std::stop_token stop);

}  // namespace det::agent
