// Shared memory for collectives between the ranks of one machine, with the counters that synchronize access.
//
// Each rank has kSlots slots of two chunks: one for the data it gives, one for the sums it computes. Chunks
// are numbered across all collectives; chunk i uses slot i % kSlots. Three counters per rank hold the number
// of chunks it has given, summed and taken. A slot is reused only after all ranks have used its content, so a
// fast rank is at most kSlots chunks ahead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// One mapping of the shared memory. One thread of each process uses it.
class ShmRing {
 public:
  static constexpr int kSlots = 4;
  /// The steps of a chunk; each has a counter per rank.
  enum class Step { kGiven, kSummed, kTaken };

  /// Allocates memory for `ranks` under a random name; accessible to this user
  /// only. Errors: no space in /dev/shm.
  static Result<ShmRing> create(int ranks, std::size_t chunk_bytes);
  /// Maps the memory that another process created.
  static Result<ShmRing> open(const std::string& name, int ranks, std::size_t chunk_bytes);
  ShmRing(ShmRing&& other) noexcept;
  ShmRing& operator=(ShmRing&&) = delete;
  ~ShmRing();

  const std::string& name() const { return name_; }
  /// Removes the name once all ranks have opened the memory; it is freed with its last mapping. Idempotent.
  void unlink();

  std::size_t chunk_bytes() const { return chunk_bytes_; }
  /// The buffer with the data that `rank` gives for chunk `chunk`.
  char* given(int rank, std::uint32_t chunk) const;
  /// The buffer with the sums that `rank` computed of chunk `chunk`.
  char* summed(int rank, std::uint32_t chunk) const;
  /// The collective that chunk `chunk` of `rank` belongs to. Detects ranks that are in different collectives.
  std::uint64_t& tag(int rank, std::uint32_t chunk) const;

  /// Marks `step` as complete for all chunks of `rank` below `chunks`; wakes the waiting ranks.
  void publish(int rank, Step step, std::uint32_t chunks) const;
  /// Blocks until `rank` has published `chunks` for `step`. Counters may wrap; a target below 0 is always
  /// reached. Spins for a few microseconds, then sleeps. Every 50 ms it calls `hopeless`, and throws
  /// std::runtime_error with the text returned unless that is "".
  void await(int rank, Step step, std::uint32_t chunks, const std::function<std::string()>& hopeless) const;

 private:
  /// A futex word and the number of threads that sleep on it.
  struct Counter {
    std::atomic<std::uint32_t> value;
    std::atomic<std::uint32_t> sleepers;
  };
  /// The counters of one rank, written by that rank only (except `sleepers`). Cache lines are not shared.
  struct Board {
    alignas(64) Counter counters[3];
    alignas(64) std::uint64_t tags[kSlots];
  };

  ShmRing(std::string name, int ranks, std::size_t chunk_bytes);
  Status map(UniqueFd fd);
  std::size_t total_bytes() const;
  Board& board(int rank) const;
  char* slot(int rank, std::uint32_t chunk) const;

  std::string name_;
  int ranks_;
  std::size_t chunk_bytes_;
  char* memory_ = nullptr;
  bool linked_ = false;  ///< the name exists and is to be removed
};

}  // namespace det
