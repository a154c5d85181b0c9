#include "harness/src/distributed/shm_ring.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <climits>
#include <ctime>
#include <stdexcept>
#include <utility>

#include "common/base/files.h"
#include "common/base/secret.h"

namespace det {
namespace {

constexpr int kSpins = 40;                       // about 40 to 140 cycles each
constexpr timespec kCheckPeriod{0, 50'000'000};  // 50 ms

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// The futexes are shared between processes, so FUTEX_PRIVATE must not be set.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &kCheckPeriod, nullptr, 0);
}

void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Compares counters that wrap around: true when `value` is not behind `target`.
bool reached(std::uint32_t value, std::uint32_t target) {
  return static_cast<std::int32_t>(value - target) >= 0;
}

}  // namespace

ShmRing::ShmRing(std::string name, int ranks, std::size_t chunk_bytes)
    : name_(std::move(name)), ranks_(ranks), chunk_bytes_(chunk_bytes) {
  static_assert(std::atomic<std::uint32_t>::is_always_lock_free && sizeof(std::atomic<std::uint32_t>) == 4);
}

ShmRing::ShmRing(ShmRing&& other) noexcept
    : name_(std::move(other.name_)),
      ranks_(other.ranks_),
      chunk_bytes_(other.chunk_bytes_),
      memory_(std::exchange(other.memory_, nullptr)),
      linked_(std::exchange(other.linked_, false)) {}

ShmRing::~ShmRing() {
  unlink();
  if (memory_ != nullptr) ::munmap(memory_, total_bytes());
}

Result<ShmRing> ShmRing::create(int ranks, std::size_t chunk_bytes) {
  ShmRing ring("/det-" + to_hex(random_bytes(16)), ranks, chunk_bytes);
  UniqueFd fd(::shm_open(ring.name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return fail_errno("cannot make shared memory");
  ring.linked_ = true;
  // Allocates the pages now: a full /dev/shm is an error here instead of a SIGBUS later.
  if (const int problem = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(ring.total_bytes()));
      problem != 0) {
    errno = problem;
    return fail_errno("cannot take " + std::to_string(ring.total_bytes() >> 10) +
                      " KiB of /dev/shm (in a container: raise its --shm-size)");
  }
  TRY(ring.map(std::move(fd)));
  return ring;
}

Result<ShmRing> ShmRing::open(const std::string& name, int ranks, std::size_t chunk_bytes) {
  ShmRing ring(name, ranks, chunk_bytes);
  UniqueFd fd(::shm_open(name.c_str(), O_RDWR | O_CLOEXEC, 0));
  if (!fd) return fail_errno("cannot open the shared memory of rank 0 (are all ranks in one container?)");
  TRY(ring.map(std::move(fd)));
  return ring;
}

Status ShmRing::map(UniqueFd fd) {
  void* memory =
      ::mmap(nullptr, total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("cannot map shared memory");
  memory_ = static_cast<char*>(memory);
  return {};
}

void ShmRing::unlink() {
  if (std::exchange(linked_, false)) ::shm_unlink(name_.c_str());
}

std::size_t ShmRing::total_bytes() const {
  return static_cast<std::size_t>(ranks_) * (sizeof(Board) + 2 * kSlots * chunk_bytes_);
}

ShmRing::Board& ShmRing::board(int rank) const { return reinterpret_cast<Board*>(memory_)[rank]; }

/// Layout: the boards of all ranks, then per rank kSlots slots of two chunks (given, summed).
char* ShmRing::slot(int rank, std::uint32_t chunk) const {
  const std::size_t number = static_cast<std::size_t>(rank) * kSlots + chunk % kSlots;
  return memory_ + static_cast<std::size_t>(ranks_) * sizeof(Board) + number * 2 * chunk_bytes_;
}

char* ShmRing::given(int rank, std::uint32_t chunk) const { return slot(rank, chunk); }
char* ShmRing::summed(int rank, std::uint32_t chunk) const { return slot(rank, chunk) + chunk_bytes_; }
std::uint64_t& ShmRing::tag(int rank, std::uint32_t chunk) const { return board(rank).tags[chunk % kSlots]; }

void ShmRing::publish(int rank, Step step, std::uint32_t chunks) const {
  Counter& counter = board(rank).counters[static_cast<int>(step)];
  counter.value.store(chunks);
  // Sequentially consistent like await(): either this thread sees the sleeper, or
  // the sleeper sees the new value.
  if (counter.sleepers.load() != 0) wake_all(counter.value);
}

void ShmRing::await(int rank, Step step, std::uint32_t chunks,
                    const std::function<std::string()>& hopeless) const {
  Counter& counter = board(rank).counters[static_cast<int>(step)];
  for (int spin = 0; spin < kSpins; ++spin) {
    if (reached(counter.value.load(std::memory_order_acquire), chunks)) return;
    relax();
  }
  for (;;) {
    counter.sleepers.fetch_add(1);
    const std::uint32_t seen = counter.value.load();
    if (!reached(seen, chunks)) sleep_on(counter.value, seen);
    counter.sleepers.fetch_sub(1);
    if (reached(counter.value.load(), chunks)) return;
    const std::string why = hopeless();
    // A rank may publish its last step and then leave, so the counter is checked once more.
    if (!why.empty() && !reached(counter.value.load(), chunks)) throw std::runtime_error(why);
  }
}

}  // namespace det
