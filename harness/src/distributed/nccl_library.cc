#include "harness/src/distributed/nccl_library.h"

#include <stdexcept>

#include "common/base/shared_library.h"

namespace det::nccl {

const Library& Library::get() {
  static const Library functions = [] {
    auto library = SharedLibrary::open("libnccl.so.2");
    if (!library) throw std::runtime_error("nccl: " + library.error().message + "; install libnccl2");
    Library nccl{};
    library->find(nccl.get_unique_id, "ncclGetUniqueId")
        .find(nccl.init_rank, "ncclCommInitRank")
        .find(nccl.destroy, "ncclCommDestroy")
        .find(nccl.abort, "ncclCommAbort")
        .find(nccl.async_error, "ncclCommGetAsyncError")
        .find(nccl.all_reduce, "ncclAllReduce")
        .find(nccl.all_gather, "ncclAllGather")
        .find(nccl.broadcast, "ncclBroadcast")
        .find(nccl.error_string, "ncclGetErrorString");
    if (auto complete = library->complete(); !complete)
      throw std::runtime_error("nccl: " + complete.error().message);
    return nccl;
  }();
  return functions;
}

void check(Result result) {
  if (result != kSuccess)
    throw std::runtime_error(std::string("nccl: ") + Library::get().error_string(result));
}

}  // namespace det::nccl
