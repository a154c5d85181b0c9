// Owns sending an experiment with its files: what the master has already is not sent again.
#pragma once

#include <string>

#include "cli/client.h"
#include "cli/context.h"
#include "det/v1/experiment.pb.h"

namespace det::cli {

/// What was sent of a directory, as it was the last time.
struct SentContext {
  std::string digest;                               ///< "" when nothing is known
  std::map<std::string, std::string> fingerprints;  ///< as in Context
};

/// Paths of `now` that are new or other than before, and those that are gone.
struct ContextChanges {
  std::vector<std::string> changed, removed;
};
ContextChanges changes_since(const SentContext& before, const Context& now);

/// The notes about what was sent: a cache, in which nothing is missed when it is lost.
class SentContexts {
 public:
  explicit SentContexts(std::string path) : path_(std::move(path)) {}
  /// ${XDG_CACHE_HOME:-~/.cache}/determined/contexts.json; "" when the environment names no home.
  static std::string default_path();
  SentContext find(const std::string& key) const;
  /// Keeps the newest few.
  void remember(const std::string& key, const SentContext& sent) const;

 private:
  const std::string path_;
};

/// Creates the experiment. By digest when the master has the files, else with what has changed since the last
/// time that `directory` was sent to it, else with all. Repeats safely: the request has its id.
Result<v1::CreateExperimentResponse> submit_with_context(Client& client,
                                                         const v1::CreateExperimentRequest& create,
                                                         const Context& context,
                                                         const std::string& directory);

}  // namespace det::cli
