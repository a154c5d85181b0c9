// NCCL's C interface, declared here: a build needs no nccl.h. Its binary interface is stable in all versions
// 2.x; tests/cuda compares these declarations with the header of the toolkit.
#pragma once

#include <cstddef>
#include <string>

namespace det::nccl {

/// ncclUniqueId: the address of a communicator, made by one rank and sent to the others.
struct UniqueId {
  char internal[128];
};
/// ncclComm_t.
using Comm = struct CommTag*;
/// cudaStream_t.
using Stream = void*;
/// ncclResult_t, ncclDataType_t and ncclRedOp_t are enumerations of the size of int.
using Result = int;
constexpr Result kSuccess = 0, kInProgress = 7;
constexpr int kUint8 = 1, kInt64 = 4, kHalf = 6, kFloat = 7, kDouble = 8, kBFloat16 = 9;
constexpr int kSum = 0, kAverage = 4;  // averages since NCCL 2.10

/// The functions in use.
struct Library {
  Result (*get_unique_id)(UniqueId*);
  Result (*init_rank)(Comm*, int size, UniqueId, int rank);
  Result (*destroy)(Comm);
  /// Ends the communicator's kernels on this rank. Any thread.
  Result (*abort)(Comm);
  /// Reads an error that occurred after a call returned, such as a lost connection. Any thread.
  Result (*async_error)(Comm, Result*);
  Result (*all_reduce)(const void* input, void* output, std::size_t count, int type, int operation, Comm,
                       Stream);
  Result (*all_gather)(const void* input, void* output, std::size_t count, int type, Comm, Stream);
  Result (*broadcast)(const void* input, void* output, std::size_t count, int type, int root, Comm, Stream);
  const char* (*error_string)(Result);

  /// Loads libnccl.so.2 at the first call. Thread-safe. Throws std::runtime_error when it is missing or
  /// incomplete.
  static const Library& get();
};

/// Throws std::runtime_error("nccl: …") for a failed call.
void check(Result result);

}  // namespace det::nccl
