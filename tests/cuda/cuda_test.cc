// A build for CUDA on a machine without a GPU: declarations of NCCL, messages, and training on the CPU.
#include <nccl.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <type_traits>

#include "harness/src/distributed/nccl_library.h"
#include "harness/src/distributed/side_queue.h"
#include "harness/src/observability/system_metrics.h"

namespace det {
namespace {

static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId) &&
              alignof(nccl::UniqueId) == alignof(ncclUniqueId));
static_assert(sizeof(nccl::Result) == sizeof(ncclResult_t) && sizeof(int) == sizeof(ncclDataType_t) &&
              sizeof(int) == sizeof(ncclRedOp_t));
static_assert(nccl::kSuccess == ncclSuccess && nccl::kInProgress == ncclInProgress);
static_assert(nccl::kUint8 == ncclUint8 && nccl::kInt64 == ncclInt64 && nccl::kHalf == ncclFloat16 &&
              nccl::kFloat == ncclFloat32 && nccl::kDouble == ncclFloat64 && nccl::kBFloat16 == ncclBfloat16);
static_assert(nccl::kSum == ncclSum && nccl::kAverage == ncclAvg);

/// The functions of the toolkit's header with the types of its declarations.
static_assert(
    std::is_same_v<decltype(&ncclAllReduce), ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t,
                                                              ncclRedOp_t, ncclComm_t, cudaStream_t)>);
static_assert(
    std::is_same_v<decltype(&ncclAllGather),
                   ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, ncclComm_t, cudaStream_t)>);
static_assert(
    std::is_same_v<decltype(&ncclBroadcast), ncclResult_t (*)(const void*, void*, size_t, ncclDataType_t, int,
                                                              ncclComm_t, cudaStream_t)>);
static_assert(
    std::is_same_v<decltype(&ncclCommInitRank), ncclResult_t (*)(ncclComm_t*, int, ncclUniqueId, int)>);
static_assert(std::is_same_v<decltype(&ncclCommGetAsyncError), ncclResult_t (*)(ncclComm_t, ncclResult_t*)>);

TEST_CASE("libnccl.so.2 has the functions in use") {
  const nccl::Library& library = nccl::Library::get();
  CHECK(std::strcmp(library.error_string(nccl::kSuccess), "no error") == 0);
  CHECK_THROWS_WITH(nccl::check(ncclInvalidUsage), Catch::StartsWith("nccl: invalid usage"));
}

TEST_CASE("NCCL refuses a communicator without a GPU") {
  if (torch::cuda::is_available()) return;
  const nccl::Library& library = nccl::Library::get();
  nccl::UniqueId id{};
  nccl::check(library.get_unique_id(&id));
  nccl::Comm comm = nullptr;
  CHECK_THROWS_WITH(nccl::check(library.init_rank(&comm, 1, id, 0)),
                    Catch::StartsWith("nccl: unhandled cuda error"));
}

TEST_CASE("a CUDA queue exists in this build and needs a device") {
  CHECK(built_with_cuda());
  if (torch::cuda::is_available()) {
    const auto queue = make_cuda_queue(torch::Device(torch::kCUDA, 0));
    queue->enter({torch::ones({10}, torch::kCUDA)});
    queue->mark()->block();
    CHECK(queue->handle() != nullptr);
    return;
  }
  std::string message;
  try {
    (void)make_cuda_queue(torch::Device(torch::kCUDA, 0));
  } catch (const c10::Error& error) {
    message = error.what_without_backtrace();
  }
  CHECK_THAT(message, Catch::Contains("NVIDIA driver") || Catch::Contains("CUDA"));
}

TEST_CASE("NVML of the package reports no device without a driver") {
  if (torch::cuda::is_available()) return;
  CHECK(Nvml::load(nullptr) == nullptr);
}

}  // namespace
}  // namespace det
