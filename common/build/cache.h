// The caches that builds and agents keep on disk: directory, entries, size limit.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/result.h"

namespace det::build {

/// Returns the build cache that all programs of this user share,
/// ${XDG_CACHE_HOME:-~/.cache}/determinant/models. Creates it with mode 0700. Returns `otherwise` if the
/// environment names no home, or the directory belongs to another user or cannot be written.
std::string models_directory(const std::string& otherwise);

/// Acquires the lock of an entry that does not exist yet. Blocks until its holder, possibly another process,
/// has made the entry or failed. Errors: kCancelled (`stop` requested), kUnavailable (`deadline` has
/// passed).
Result<FileLock> lock_entry(const std::string& entry, MonoTime deadline, const std::stop_token& stop);
/// Publishes a directory as an entry, atomically. Errors: kUnavailable.
Status publish_entry(TemporaryDirectory& work, const std::string& entry);

/// Renames an entry to "building-removed-*" and removes it. An interrupted call leaves no part of the entry
/// under its name. Idempotent. Errors: those of remove_tree().
Status remove_entry(const std::string& path);

/// Default limit of the cache of builds: that of the agent's `cache_size`.
constexpr std::int64_t kDefaultCacheBytes = 20LL << 30;

/// Marks a cache entry (file or directory) as used now.
void touch_entry(const std::string& path);
/// Removes the least recently used entries of the directories until their total size is at most `bytes`.
/// Entries used in the last ten minutes stay. Files "*.lock" and, for a day, directories "building-*" are not
/// entries.
void trim_cache(const std::vector<std::string>& directories, std::int64_t bytes);

}  // namespace det::build
