// Shared memory of collective calls, and the signal handler that writes a stack into it.
#include "harness/src/base/collective_log.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "harness/src/base/crash_report.h"
#include "harness/src/base/symbolize.h"

namespace det {
namespace {

using collective::Memory;
using collective::Record;
using collective::StackState;
using collective::State;

int number_in_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}

void set_state(Record& record, State state) {
  std::atomic_ref<State>(record.state).store(state, std::memory_order_release);
}

using StackText = CrashText<collective::kMaxStackBytes>;

/// Memory of the handler; set once, before the handler is installed.
Memory* stack_memory = nullptr;

/// Adds the functions of all libraries by their symbols, for a stack without lines of the program.
void add_symbols(void* const* frames, int count, StackText& text) {
  constexpr int kMaxLines = 10;
  // The first two frames are those of the handler.
  for (int i = 2; i < count && i < 2 + kMaxLines; ++i) {
    Dl_info place{};
    if (::dladdr(frames[i], &place) == 0 || place.dli_fname == nullptr) continue;
    const std::string_view file = place.dli_fname;
    text << "  at " << (place.dli_sname != nullptr ? place.dli_sname : "?") << " ("
         << file.substr(file.rfind('/') + 1) << ")\n";
  }
}

/// Writes the activity and the stack of the interrupted thread. Lines come from another process, see
/// symbolize.h.
void on_stack_request(int) {
  const int before = errno;
  std::atomic_ref<StackState> state(stack_memory->stack_state);
  StackState none = StackState::kNone;
  if (state.compare_exchange_strong(none, StackState::kWriting)) {
    void* frames[kMaxFrames];
    const int count = ::backtrace(frames, kMaxFrames);
    static Places places;
    static StackText text;
    if (const Activity* const activity = crash_activity_now()) {
      text << "in " << activity->name;
      if (activity->batch >= 0) text << " (batch " << activity->batch << ")";
      text << "\n";
    }
    symbolize(frames, count, places);
    text << places.stack.view();
    if (places.stack.empty()) add_symbols(frames, count, text);
    std::memcpy(stack_memory->stack, text.view().data(), text.view().size());
    stack_memory->stack_bytes = static_cast<std::uint32_t>(text.view().size());
    state.store(StackState::kComplete, std::memory_order_release);
  }
  errno = before;
}

}  // namespace

CollectiveLog* CollectiveLog::of_process() {
  static CollectiveLog* const log = [] {
    const char* directory = std::getenv("DET_RUN_DIR");
    return directory == nullptr || *directory == '\0'
               ? nullptr
               : create(number_in_environment("RANK", 0), number_in_environment("WORLD_SIZE", 1));
  }();
  return log;
}

CollectiveLog* CollectiveLog::create(int rank, int ranks) {
  // The descriptor stays open: the supervisor finds the memory by it.
  UniqueFd fd(::memfd_create(collective::kMemoryName, MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), sizeof(Memory)) != 0) return nullptr;
  void* const at = ::mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const memory = static_cast<Memory*>(at);
  memory->version = collective::kVersion;
  memory->capacity = collective::kCapacity;
  memory->rank = static_cast<std::uint32_t>(rank);
  memory->ranks = static_cast<std::uint32_t>(ranks);
  std::atomic_ref(memory->magic).store(collective::kMagic, std::memory_order_release);
  (void)fd.release();
  return new CollectiveLog(memory);
}

CollectiveLog::Call CollectiveLog::begin(collective::Channel channel, collective::Operation operation,
                                         std::uint64_t bytes) {
  std::uint64_t& of_channel = memory_->calls_of[static_cast<std::size_t>(channel)];
  const std::uint64_t number = of_channel + 1;
  const std::uint64_t index = std::atomic_ref(memory_->calls).fetch_add(1, std::memory_order_relaxed);
  Record& record = memory_->records[index % collective::kCapacity];
  set_state(record, State::kNone);
  record.number = number;
  record.bytes = bytes;
  record.started = mono_now().micros;
  record.ended = 0;
  record.channel = channel;
  record.operation = operation;
  set_state(record, State::kRunning);
  std::atomic_ref(of_channel).store(number, std::memory_order_relaxed);
  return {&record, number};
}

void CollectiveLog::end(const Call& call, bool succeeded) {
  if (call.record == nullptr || call.record->number != call.number) return;
  call.record->ended = mono_now().micros;
  set_state(*call.record, succeeded ? State::kDone : State::kFailed);
}

void CollectiveLog::handle_stack_requests() {
  const int number = SIGRTMIN + 3;
  struct sigaction before {};
  if (::sigaction(number, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  stack_memory = memory_;
  struct sigaction action {};
  action.sa_handler = on_stack_request;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (::sigaction(number, &action, nullptr) == 0) memory_->stack_signal = static_cast<std::uint32_t>(number);
}

CollectiveScope::CollectiveScope(collective::Channel channel, collective::Operation operation,
                                 std::uint64_t bytes)
    : exceptions_(std::uncaught_exceptions()) {
  if (CollectiveLog* const log = CollectiveLog::of_process()) call_ = log->begin(channel, operation, bytes);
}

CollectiveScope::~CollectiveScope() { CollectiveLog::end(call_, std::uncaught_exceptions() == exceptions_); }

}  // namespace det
