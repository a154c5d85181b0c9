// Owns checkpoints in a bucket: whole or not there, as in a directory (harness/src/checkpoint_dir.h).
//
//   <prefix>/<uuid>.partial         who is writing it: there from before the first file until after the
//   manifest <prefix>/<uuid>/<file>… <prefix>/<uuid>/manifest.json   written last, removed first: without it
//   there is no checkpoint
#pragma once

#include "storage/bucket.h"
#include "storage/work.h"

namespace det::storage {

/// Says that an upload begins, and whose it is.
Status begin_upload(const Bucket& bucket, const std::string& uuid, const Owner& owner);
/// `files` (relative paths) of `directory`.
Status upload_files(const Bucket& bucket, const std::string& uuid, const std::string& directory,
                    const std::vector<std::string>& files);
/// Makes it visible.
Status finish_upload(const Bucket& bucket, const std::string& uuid, std::string_view manifest);

/// Fetches what is below `<uuid>/` into `directory`, which must not be there or be empty; it appears when all
/// is there. Every size and SHA-256 is checked, the CRC-64 of large files is for who reads them. With a
/// manifest: exactly its files; without one, as another program may have left it, all that is there.
/// kNotFound when nothing is there; kDataLoss when it was never finished, or a file of the manifest is
/// missing or has another size or digest; kUnavailable when nothing is in the storage at all, as if it were
/// another one.
Status fetch(const Bucket& bucket, const std::string& uuid, const std::string& directory);

/// Complete checkpoints.
Result<std::vector<std::string>> list_checkpoints(const Bucket& bucket);

/// As perform() does for directories. With `list` it finds also what was begun and never finished.
Done perform(const Bucket& bucket, const std::vector<std::string>& remove, bool list);

}  // namespace det::storage
