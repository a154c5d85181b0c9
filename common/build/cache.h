// Size limit of the caches that builds and agents keep on disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace det::build {

/// Marks a cache entry (file or directory) as used now.
void touch_entry(const std::string& path);
/// Removes the least recently used entries of the directories until their total size is at most `bytes`.
/// Entries used in the last ten minutes stay. Files "*.lock" and "building-*" are not entries.
void trim_cache(const std::vector<std::string>& directories, std::int64_t bytes);

}  // namespace det::build
