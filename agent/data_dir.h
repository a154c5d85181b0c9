// Directory of an agent: exclusive lock, identity and layout.
//
//   lock, instance          held by one agent at a time; its identity
//   lease                   the master's newest lease in seconds
//   allocations/ID/         see common/task/task_dir.h
//   contexts/DIGEST.tar.gz  cache of contexts
//   images/ID/              cache of container images; their files are in `root`
//   models/KEY/             cache of built models, if the agent's user has no cache directory
//   mps/                    pipes and log of the MPS daemon, if slots share GPUs
//   tls/                    certificates
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/ids.h"
#include "common/base/result.h"
#include "common/task/task_dir.h"

namespace det::agent {

/// An open data directory. Holds its lock for its lifetime. Reads are thread-safe.
class DataDir {
 public:
  /// Opens the directory; creates it with mode 0700 if absent. Errors: kFailedPrecondition if another agent
  /// holds it, file system errors.
  static Result<DataDir> open(const std::string& path);

  /// UUID that stays with the directory: the identity of the machine, whatever the name of the agent.
  const std::string& instance() const { return instance_; }
  const std::string& path() const { return path_; }
  std::string contexts() const { return path_ + "/contexts"; }
  std::string images() const { return path_ + "/images"; }
  std::string models() const { return path_ + "/models"; }
  std::string tls() const { return path_ + "/tls"; }
  /// Returns the stored lease; nothing before the first store_lease().
  std::optional<Duration> lease() const;
  /// Stores the lease of the master for the next start. Errors: those of replace_file().
  Status store_lease(Duration lease) const;
  /// Returns the directory of an allocation, which need not exist. Errors: kInvalidArgument if the id is no
  /// valid file name.
  Result<TaskDir> allocation(const AllocationId& id) const;
  /// Returns the allocations that have a directory, sorted.
  std::vector<AllocationId> allocations() const;

 private:
  DataDir(std::string path, FileLock lock, std::string instance)
      : path_(std::move(path)), lock_(std::move(lock)), instance_(std::move(instance)) {}
  std::string path_;
  FileLock lock_;
  std::string instance_;
};

}  // namespace det::agent
