// State of the disk that holds the private database. A full disk is a state: changes are refused with its
// reason, writes wait, and everything goes on when there is space again.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "common/base/result.h"

namespace det::db {

/// Thread-safe, except that look() belongs to one thread.
class DiskWatch {
 public:
  /// Free bytes below which the disk counts as full, and from which on it does not any more. PostgreSQL
  /// creates files of 16 MiB for its log, and stops when it cannot.
  static constexpr std::int64_t kFull = 32 << 20, kEnough = 48 << 20;

  /// `directory` exists and does not move.
  explicit DiskWatch(std::string directory) : directory_(std::move(directory)) {}

  /// Measures the free space. Logs a change of the state. Call it about each second.
  void look();
  bool full() const { return full_; }
  /// kUnavailable with the directory while the disk is full.
  Status check() const;

 private:
  const std::string directory_;
  std::atomic<bool> full_{false};
};

/// Whether a write failed because a disk or a quota is full.
bool is_disk_full(const Error& error);

}  // namespace det::db
