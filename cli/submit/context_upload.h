// Submits an experiment with its context, and sends only files that the master does not have.
#pragma once

#include <string>

#include "cli/submit/context.h"
#include "common/client/client.h"
#include "det/v1/experiment.pb.h"

namespace det::cli {

/// The context that was last sent from one directory.
struct SentContext {
  std::string digest;  ///< SHA-256 of the archive, hexadecimal; "" when nothing was sent
  std::map<std::string, std::string> fingerprints;  ///< as in Context
};

/// Paths that are new or modified, and paths that no longer exist.
struct ContextChanges {
  std::vector<std::string> changed, removed;
};
/// Compares the fingerprints of two contexts. Pure.
ContextChanges changes_since(const SentContext& before, const Context& now);

/// Record of the contexts that were sent, in a cache file. A missing or damaged file counts as empty; at
/// worst the next upload is a full one.
class SentContexts {
 public:
  explicit SentContexts(std::string path) : path_(std::move(path)) {}
  /// ${XDG_CACHE_HOME:-~/.cache}/determined/contexts.json; "" when the environment has neither XDG_CACHE_HOME
  /// nor HOME, which disables the cache.
  static std::string default_path();
  /// Returns the context sent under `key` (master and directory); an empty one when there is none.
  SentContext find(const std::string& key) const;
  /// Stores `sent` and keeps the 16 newest entries. Skips contexts of more than 5,000 files. Ignores write
  /// errors.
  void remember(const std::string& key, const SentContext& sent) const;

 private:
  const std::string path_;
};

/// Creates the experiment. Sends the digest of the context, with the changes since the last context sent from
/// `directory` to this master when they are small. Uploads the whole archive when that is not enough for the
/// master. Idempotent: `create` has a request id. Errors: those of Client::call().
Result<v1::CreateExperimentResponse> submit_with_context(Client& client,
                                                         const v1::CreateExperimentRequest& create,
                                                         const Context& context,
                                                         const std::string& directory);

}  // namespace det::cli
