// Build of a trial's C++ source into a shared object, with a cache keyed by everything that the result
// depends on. Concurrent requests for one build, also from several processes, compile once.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/result.h"
#include "common/build/compiler.h"
#include "common/build/recipe.h"

namespace det::build {

/// An entrypoint "module:Class": dotted names without spaces.
struct TrialName {
  /// "pkg/model_def": path of the source without ".cpp".
  std::string module;
  /// C++ name of the class: "MNistTrial", "ns::Trial".
  std::string trial_class;
};
/// Returns nothing if the entrypoint has another form.
std::optional<TrialName> parse_trial_name(const std::string& entrypoint);

/// Turns the command of the compiler into one that runs it in a sandbox. The compiler reads the current
/// directory and `header` (path of a precompiled header, or ""), and writes to `work`.
using Enclose = std::function<Result<std::vector<std::string>>(
    const std::vector<std::string>& argv, const std::string& work, const std::string& header)>;

/// Returns a library that was built elsewhere for a cache key, verified by the caller. An error: none.
using FindElsewhere = std::function<Result<std::string>(const std::string& key)>;

/// Inputs of build_model().
struct BuildRequest {
  Recipe recipe;
  TrialName trial;
  std::string source_dir;  ///< the unpacked context
  std::string models_dir;  ///< the cache
  Enclose enclose = {};    ///< empty: the compiler runs as this process
  Duration timeout = std::chrono::minutes(15);
  FindElsewhere find_elsewhere = {};  ///< asked before the source is compiled; may be null
  LineSink on_line;  ///< receives the compiler's messages, also those of a cached outcome; may be null
};

/// Result of a build, successful or not.
struct BuildOutcome {
  /// Path of the shared object; "" if the source does not compile.
  std::string library;
  /// Compiler messages; paths are relative to the context.
  std::string output;
  bool cached = false;          ///< nothing was compiled by this call
  bool elsewhere = false;       ///< BuildRequest::find_elsewhere has returned it
  bool without_header = false;  ///< make_precompiled_header() makes later builds faster
};

/// Returns the cache key: a digest over paths and contents of the sources, the recipe and the compiler
/// version.
Result<std::string> build_key(const BuildRequest& request);

/// Returns the outcome of a build, from the cache if possible. A source that does not compile is an outcome,
/// which is cached too; a cached library with another digest than the built one is built again. The source is
/// compiled with the recipe's precompiled header, or with its text while it does not exist, where that works,
/// else by the recipe's compiler; an error that may come from a gap of the former is decided by the latter
/// if that is another compiler. Errors: kDeadlineExceeded (timeout), kCancelled (`stop` requested),
/// kUnavailable (the compiler was killed, or files cannot be written). Blocks for minutes. Safe to call
/// concurrently.
Result<BuildOutcome> build_model(const BuildRequest& request, const std::stop_token& stop);

}  // namespace det::build
