// Checkpoints in a bucket. A checkpoint is complete or absent, as in a directory
// (harness/src/checkpoint/checkpoint_dir.h).
//
//   <prefix>/<uuid>.partial         owner; exists from before the first file until after the manifest
//   <prefix>/<uuid>/<file>...
//   <prefix>/<uuid>/manifest.json   written last, removed first; without it there is no checkpoint
//
// All functions block. Errors are those of Bucket unless stated.
#pragma once

#include "common/storage/bucket.h"
#include "common/storage/work.h"

namespace det::storage {

/// Marks the start of an upload by writing `<uuid>.partial` with its owner.
Status begin_upload(const Bucket& bucket, const std::string& uuid, const Owner& owner);
/// Uploads `files` (paths relative to `directory`).
Status upload_files(const Bucket& bucket, const std::string& uuid, const std::string& directory,
                    const std::vector<std::string>& files);
/// Publishes the checkpoint: writes the manifest, then removes the mark.
Status finish_upload(const Bucket& bucket, const std::string& uuid, std::string_view manifest);

/// Downloads a checkpoint into the directory `into`, which must be absent or empty and appears only when the
/// download is complete. Verifies every size and SHA-256 of the manifest; CRC-64 sums of large files are
/// verified by their readers. With a manifest, fetches exactly its files; without one (written by another
/// program), all objects below `<uuid>/`. Errors: kFailedPrecondition (`into` is not empty), kNotFound (no
/// objects), kDataLoss (unfinished, or a file is missing or has another size or digest), kUnavailable (the
/// storage is empty, which suggests a wrong bucket or prefix).
Status fetch(const Bucket& bucket, const std::string& uuid, const std::string& into);

/// Returns the names of all complete checkpoints.
Result<std::vector<std::string>> list_checkpoints(const Bucket& bucket);

/// Removes and lists checkpoints like perform(const Work&) for directories. `list` also finds unfinished
/// uploads.
Done perform(const Bucket& bucket, const std::vector<std::string>& remove, bool list);

}  // namespace det::storage
