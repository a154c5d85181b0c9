// Stand-in of NCCL for ranks on one machine without a device. Collectives run on a HostStream and exchange
// data through a file in shared memory. DET_FAKE_NCCL is a script: "ANSWER FUNCTION COUNT [RANK]":
//   fail all_reduce 3     the third call returns an error
//   lost all_reduce 3 1   the third call of rank 1 succeeds, never completes, and is reported as an
//   asynchronous error hang all_reduce 3     the third call succeeds and completes only when the communicator
//   is aborted
// FUNCTION is init, all_reduce, all_gather or broadcast.
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <thread>

#include "tests/standins/host_stream.h"

namespace {

constexpr int kRemoteError = 6, kSystemError = 2, kInternalError = 3;
constexpr int kMaxRanks = 8;
constexpr std::size_t kChunk = 1 << 20;

/// Mapped by all ranks of a communicator.
struct Exchange {
  std::atomic<int> arrived, generation;
  alignas(64) char data[kMaxRanks][kChunk];
};

struct Communicator {
  Exchange* exchange;
  int size, rank;
  std::atomic<bool> aborted;
  std::atomic<int> async_error;
};

struct Script {
  std::string answer, function;
  int count = 0, rank = -1;
};

const Script& script() {
  static const Script parsed = [] {
    Script out;
    const char* text = std::getenv("DET_FAKE_NCCL");
    std::istringstream words(text != nullptr ? text : "");
    words >> out.answer >> out.function >> out.count;
    if (!(words >> out.rank)) out.rank = -1;
    return out;
  }();
  return parsed;
}

/// The scripted answer of this call, or "".
std::string answer(const std::string& function, int rank) {
  static int calls = 0;
  const Script& planned = script();
  if (function != planned.function || (planned.rank >= 0 && rank != planned.rank)) return "";
  return ++calls == planned.count ? planned.answer : "";
}

/// Waits for all ranks. Returns false once the communicator is aborted.
bool meet(Communicator& comm) {
  Exchange& exchange = *comm.exchange;
  const int generation = exchange.generation;
  if (++exchange.arrived == comm.size) {
    exchange.arrived = 0;
    ++exchange.generation;
    return true;
  }
  while (exchange.generation == generation) {
    if (comm.aborted) return false;
    std::this_thread::yield();
  }
  return true;
}

template <typename T, typename Sum>
void add(Communicator& comm, void* output, std::size_t count, bool average) {
  for (std::size_t i = 0; i < count; ++i) {
    Sum sum = 0;
    for (int rank = 0; rank < comm.size; ++rank) {
      T value;
      std::memcpy(&value, comm.exchange->data[rank] + i * sizeof(T), sizeof value);
      sum += static_cast<Sum>(value);
    }
    if (average) sum = static_cast<Sum>(sum / static_cast<Sum>(comm.size));
    static_cast<T*>(output)[i] = static_cast<T>(sum);
  }
}

std::size_t size_of(int type) {
  switch (type) {
    case 1:
      return 1;
    case 6:
    case 9:
      return 2;
    case 7:
      return 4;
    default:
      return 8;
  }
}

void add_chunk(Communicator& comm, void* output, std::size_t count, int type, bool average) {
  switch (type) {
    case 4:
      return add<std::int64_t, std::int64_t>(comm, output, count, average);
    case 6:
      return add<c10::Half, float>(comm, output, count, average);
    case 7:
      return add<float, float>(comm, output, count, average);
    case 8:
      return add<double, double>(comm, output, count, average);
    case 9:
      return add<c10::BFloat16, float>(comm, output, count, average);
    default:
      std::abort();
  }
}

struct Job {
  Communicator* comm;
  char kind;  ///< 'r' reduce, 'g' gather, 'b' broadcast, 'h' hang
  const char* input;
  char* output;
  std::size_t count;
  int type;
  bool average;
};

void run_job(const Job& job) {
  Communicator& comm = *job.comm;
  while (job.kind == 'h' && !comm.aborted) std::this_thread::yield();
  const std::size_t width = size_of(job.type), bytes = job.count * width;
  for (std::size_t at = 0; at < bytes && !comm.aborted; at += kChunk) {
    const std::size_t part = std::min(kChunk, bytes - at);
    std::memcpy(comm.exchange->data[comm.rank], job.input + at, part);
    if (!meet(comm)) return;
    if (job.kind == 'r') add_chunk(comm, job.output + at, part / width, job.type, job.average);
    if (job.kind == 'b') std::memcpy(job.output + at, comm.exchange->data[0], part);
    for (int rank = 0; job.kind == 'g' && rank < comm.size; ++rank) {
      std::memcpy(job.output + static_cast<std::size_t>(rank) * bytes + at, comm.exchange->data[rank], part);
    }
    if (!meet(comm)) return;
  }
}

int submit(const char* function, Job job, void* stream) {
  const std::string planned = answer(function, job.comm->rank);
  if (planned == "fail") return kInternalError;
  if (planned == "lost") job.comm->async_error = kRemoteError;
  if (!planned.empty()) job.kind = 'h';
  auto* host = static_cast<det::testing::HostStream*>(stream);
  host->enqueue(
      host,
      [](void* context) {
        run_job(*static_cast<Job*>(context));
        delete static_cast<Job*>(context);
      },
      new Job(job));
  return 0;
}

}  // namespace

extern "C" {

struct FakeUniqueId {
  char internal[128];
};

int ncclGetUniqueId(FakeUniqueId* id) {
  static int number = 0;
  std::snprintf(id->internal, sizeof id->internal, "/det-fake-nccl-%d-%d", ::getpid(), number++);
  return 0;
}

int ncclCommInitRank(void** out, int size, FakeUniqueId id, int rank) {
  if (answer("init", rank) == "fail" || size > kMaxRanks) return kSystemError;
  const int file = ::shm_open(id.internal, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(Exchange)) != 0) return kSystemError;
  void* memory = ::mmap(nullptr, sizeof(Exchange), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  auto* comm = new Communicator{static_cast<Exchange*>(memory), size, rank, false, 0};
  meet(*comm);
  if (rank == 0) ::shm_unlink(id.internal);
  *out = comm;
  return 0;
}

int ncclCommDestroy(void*) { return 0; }

int ncclCommAbort(void* comm) {
  static_cast<Communicator*>(comm)->aborted = true;
  return 0;
}

int ncclCommGetAsyncError(void* comm, int* error) {
  *error = static_cast<Communicator*>(comm)->async_error;
  return 0;
}

int ncclAllReduce(const void* input, void* output, std::size_t count, int type, int operation, void* comm,
                  void* stream) {
  return submit("all_reduce",
                {static_cast<Communicator*>(comm), 'r', static_cast<const char*>(input),
                 static_cast<char*>(output), count, type, operation == 4},
                stream);
}

int ncclAllGather(const void* input, void* output, std::size_t count, int type, void* comm, void* stream) {
  return submit("all_gather",
                {static_cast<Communicator*>(comm), 'g', static_cast<const char*>(input),
                 static_cast<char*>(output), count, type, false},
                stream);
}

int ncclBroadcast(const void* input, void* output, std::size_t count, int type, int, void* comm,
                  void* stream) {
  return submit("broadcast",
                {static_cast<Communicator*>(comm), 'b', static_cast<const char*>(input),
                 static_cast<char*>(output), count, type, false},
                stream);
}

const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSystemError:
      return "unhandled system error";
    case kInternalError:
      return "internal error";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "no error";
  }
}
}
