// Owns the agent's directory: one agent at a time, its identity, where things lie, and the bound on its
// caches.
//   lock, instance · allocations/ID/ · contexts/DIGEST.tar.gz · models/KEY/ · tls/
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/task/task_dir.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/result.h"

namespace det::agent {

class DataDir {
 public:
  /// Makes it (mode 0700) when absent. kFailedPrecondition when another agent has it.
  static Result<DataDir> open(const std::string& path);

  /// A uuid, the same for the directory's life: the machine's identity behind the agent's name.
  const std::string& instance() const { return instance_; }
  std::string contexts() const { return path_ + "/contexts"; }
  std::string models() const { return path_ + "/models"; }
  std::string tls() const { return path_ + "/tls"; }
  /// kInvalidArgument when the id could not be a file name.
  Result<TaskDir> allocation(const AllocationId& id) const;
  std::vector<AllocationId> allocations() const;

 private:
  DataDir(std::string path, FileLock lock, std::string instance)
      : path_(std::move(path)), lock_(std::move(lock)), instance_(std::move(instance)) {}
  std::string path_;
  FileLock lock_;
  std::string instance_;
};

/// Marks a cache entry (file or directory) as used now.
void touch_entry(const std::string& path);
/// Removes the entries of the directories that were unused longest until their sum is within `bytes`; entries
/// used in the last ten minutes stay. Entries are files and directories; names "*.lock" and "building-*" are
/// not entries.
void trim_cache(const std::vector<std::string>& directories, std::int64_t bytes);

}  // namespace det::agent
