// Layout of the shared memory in which a process of a trial records its collective calls. The training
// library writes it (harness/src/base/collective_log.h); after a hang, the supervisor of the agent reads it
// (agent/task/hang_report.h). It is a memfd with the name kMemoryName, found in /proc/PID/fd. The
// reader trusts none of its values.
#pragma once

#include <cstddef>
#include <cstdint>

namespace det::collective {

inline constexpr char kMemoryName[] = "det-collectives";
inline constexpr std::uint64_t kMagic = 0x4c4c4f4354454400;  ///< "\0DETCOLL"
/// Changes with every change of the layout. A reader refuses other versions.
inline constexpr std::uint32_t kVersion = 1;
/// Calls in the ring. The oldest is overwritten.
inline constexpr std::uint32_t kCapacity = 1000;
inline constexpr std::size_t kMaxStackBytes = 4096;

/// Calls of a channel are numbered from 1, with equal numbers on all ranks.
enum class Channel : std::uint8_t {
  kTensors,  ///< Communicator: gradients, buffers, votes
  kValues,   ///< DistributedContext: JSON and bytes
};
inline constexpr std::size_t kChannels = 2;

enum class Operation : std::uint8_t { kNone, kAllReduce, kAllGather, kBroadcast, kGather, kBarrier };

enum class State : std::uint8_t {
  kNone,     ///< never used, or being overwritten
  kRunning,  ///< this rank is in the call
  kDone,
  kFailed,
};

/// One call. `state` is stored last, with release order.
struct Record {
  std::uint64_t number;  ///< on its channel
  std::uint64_t bytes;   ///< data of this rank
  std::int64_t started;  ///< monotonic clock, in microseconds
  std::int64_t ended;    ///< the same; 0 while running
  Channel channel;
  Operation operation;
  State state;
  std::uint8_t unused[29];
};
static_assert(sizeof(Record) == 64 && offsetof(Record, state) == 34);

/// Progress of a requested stack.
enum class StackState : std::uint32_t { kNone, kWriting, kComplete };

struct Memory {
  std::uint64_t magic;
  std::uint32_t version, capacity;
  std::uint32_t rank, ranks;
  /// Signal on which the process writes the stack of the thread that gets it; 0 when it has no handler.
  std::uint32_t stack_signal;
  StackState stack_state;  ///< stored with release order
  std::uint64_t calls;     ///< begun so far on all channels; call i is in records[i % capacity]
  std::uint64_t calls_of[kChannels];
  std::uint32_t stack_bytes;
  /// "in train_batch (batch 7)\n", then lines "  at FUNCTION (FILE:LINE)\n", innermost first.
  char stack[kMaxStackBytes];
  alignas(64) Record records[kCapacity];
};
static_assert(offsetof(Memory, calls) == 32 && offsetof(Memory, stack) == 60);

}  // namespace det::collective
