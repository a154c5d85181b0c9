// Media that trials report. Written by the API only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "master/db/queries/page.h"

namespace det::db {

/// One entry. Trial, name and step identify it.
struct MediaRow {
  TrialId trial;
  std::string name;
  std::int64_t steps_completed = 0;
  std::string kind;  ///< IMAGE, HISTOGRAM, TEXT, TABLE or FILE.
  std::string caption;
  std::string digest;     ///< SHA-256 of the content, hexadecimal.
  std::int64_t size = 0;  ///< Of the content, in bytes.
  std::string file_name;  ///< In downloads.
  WallTime reported;
};

/// Number of entries and bytes of their contents.
struct MediaUsage {
  std::int64_t entries = 0, bytes = 0;
};
/// Changes of the storage that belong to a change of rows. Idempotent, and called in the transaction.
struct MediaContents {
  std::function<Status()> write;                   ///< stores the content of the entry
  std::function<void(const std::string&)> remove;  ///< deletes the content with a digest
};
/// Inserts or replaces an entry; `reported` becomes now. Writes its content first, and deletes the content
/// that no entry of the trial uses any more. Calls for one trial run one after another. Holds a connection
/// while `contents` blocks. Idempotent. Errors: kResourceExhausted (the trial would exceed `quota`), those of
/// `contents.write`.
Status put_media(Pool& pool, const MediaRow& row, const MediaUsage& quota, const MediaContents& contents);
/// Lists the entries of trials by trial, name and step.
Result<Page<MediaRow>> list_media(Pool& pool, const std::vector<TrialId>& trials, const Window& window);
/// Returns the newest entry with this content. kNotFound.
Result<MediaRow> find_media(Pool& pool, TrialId trial, const std::string& digest);
/// Returns the newest entry with this name; nullopt without one.
Result<std::optional<MediaRow>> find_media_named(Pool& pool, TrialId trial, const std::string& name);
/// A stored content.
struct MediaContent {
  ExperimentId experiment;
  std::int64_t size = 0;  ///< In bytes.
};
/// Finds the contents of trials by digest, in the order of `digests`, one trial for each. kNotFound when a
/// trial has no such content.
Result<std::vector<MediaContent>> find_contents(Pool& pool, const std::vector<TrialId>& trials,
                                                const std::vector<std::string>& digests);
/// Returns the experiment of a trial. kNotFound.
Result<ExperimentId> experiment_of_trial(Pool& pool, TrialId trial);
/// Returns whether a trial of the experiment has media.
Result<bool> has_media(Pool& pool, ExperimentId experiment);

}  // namespace det::db
