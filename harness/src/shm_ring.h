// Owns the memory that the ranks of one machine share for collectives, and the counters by which they take
// turns in it.
//
// Each rank has kSlots slots of two chunks: one holds what it gives, one what it has summed. Chunks are
// numbered through all collectives; chunk i lies in slot i % kSlots. Per rank three counters tell how many
// chunks it has given, summed and taken. A slot is written again only when everyone has used what was in it,
// so a fast rank is at most kSlots ahead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace det {

class ShmRing {
 public:
  static constexpr int kSlots = 4;
  enum class Step { kGiven, kSummed, kTaken };

  /// New memory for `ranks`, with a name nobody can guess; seen by this user alone.
  static Result<ShmRing> create(int ranks, std::size_t chunk_bytes);
  /// The memory another process made.
  static Result<ShmRing> open(const std::string& name, int ranks, std::size_t chunk_bytes);
  ShmRing(ShmRing&& other) noexcept;
  ShmRing& operator=(ShmRing&&) = delete;
  ~ShmRing();

  const std::string& name() const { return name_; }
  /// After all have opened it: it goes with the last process that uses it.
  void unlink();

  std::size_t chunk_bytes() const { return chunk_bytes_; }
  /// Where `rank` puts chunk `chunk` for others, and what it has summed of it.
  char* given(int rank, std::uint32_t chunk) const;
  char* summed(int rank, std::uint32_t chunk) const;
  /// What `rank` says chunk `chunk` is part of, for finding ranks that are in different collectives.
  std::uint64_t& tag(int rank, std::uint32_t chunk) const;

  /// `rank` has come to the end of `step` for all chunks below `chunks`.
  void publish(int rank, Step step, std::uint32_t chunks) const;
  /// Waits until `rank` has. Numbers may wrap: below 0 is always reached. Spins for a few microseconds, then
  /// sleeps; every 50 ms asks `hopeless` why there is no more waiting, and throws std::runtime_error with
  /// that unless it is "".
  void await(int rank, Step step, std::uint32_t chunks, const std::function<std::string()>& hopeless) const;

 private:
  struct Counter {
    std::atomic<std::uint32_t> value;
    std::atomic<std::uint32_t> sleepers;
  };
  struct Board {  ///< one rank's; written by it alone, but for the sleepers
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
  bool linked_ = false;
};

}  // namespace det
