#include "harness/src/base/crash_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "harness/src/base/crash_text.h"
#include "harness/src/base/symbolize.h"

namespace det {
namespace {

constexpr unsigned kPatienceSeconds = 20;  // a report that hangs ends with SIGALRM
constexpr std::size_t kHandlerStack = 256 << 10;

std::atomic<const Activity*> crash_activity{nullptr};
std::atomic<bool> records_throws{false};

// ---- records ----

constexpr std::size_t kShownRecords = 8;

/// The records of the batch in progress.
struct CrashRecords {
  std::atomic<std::size_t> count{0};
  std::atomic<std::int64_t> epoch{0};
  std::array<std::atomic<std::int64_t>, kShownRecords> first{};
};
CrashRecords crash_records;

/// The records that a thread reads; count 0: none. The model makes a first access in a signal handler safe.
struct ThreadRecords {
  std::int64_t epoch;
  const std::int64_t* first;
  std::size_t count;
};
thread_local ThreadRecords thread_records __attribute__((tls_model("initial-exec"))) = {0, nullptr, 0};

/// Adds the line of crash_records_text(). Async-signal-safe.
template <std::size_t capacity>
void add_records(CrashText<capacity>& text, const Activity* activity) {
  std::size_t count = thread_records.count;
  std::int64_t epoch = thread_records.epoch;
  const bool own = count > 0;
  if (!own) {
    if (activity == nullptr || activity->kind != Activity::Kind::kComputation || activity->batch < 0) return;
    count = crash_records.count.load();
    epoch = crash_records.epoch.load();
  }
  if (count == 0) return;
  text << (count == 1 ? "  record" : "  records");
  for (std::size_t i = 0; i < count && i < kShownRecords; ++i)
    text << (i > 0 ? ", " : " ") << (own ? thread_records.first[i] : crash_records.first[i].load());
  if (count > kShownRecords) text << ", … (" << static_cast<std::int64_t>(count) << " in all)";
  text << " of epoch " << epoch << "\n";
}

// ---- exceptions ----

/// Stacks of the last throws, newest overwriting oldest. A flag guards it: a throw takes microseconds.
class Throws {
 public:
  void record(const void* object) {
    void* frames[kMaxFrames];
    const int count = ::backtrace(frames, kMaxFrames);
    if (taken_.test_and_set(std::memory_order_acquire)) return;  // another thread throws: one of them is lost
    Throw& slot = slots_[next_++ % slots_.size()];
    slot.object = object;
    slot.count = count;
    std::copy_n(frames, count, slot.frames);
    taken_.clear(std::memory_order_release);
  }
  /// Copies the newest stack of this object. Returns the number of frames, 0 when there is none.
  int find(const void* object, void** frames) {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
    int count = 0;
    for (std::size_t i = 1; i <= slots_.size() && count == 0; ++i) {
      const Throw& slot = slots_[(next_ - i) % slots_.size()];
      if (slot.object != object) continue;
      count = slot.count;
      std::copy_n(slot.frames, count, frames);
    }
    taken_.clear(std::memory_order_release);
    return count;
  }

 private:
  struct Throw {
    const void* object = nullptr;
    int count = 0;
    void* frames[kMaxFrames];
  };
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
  std::array<Throw, 8> slots_;
  std::size_t next_ = 8;
};
Throws throws;

// ---- signals ----

alignas(16) char handler_stack[kHandlerStack];

const char* name_of_crash(int signal, const siginfo_t& info, std::uintptr_t stack_pointer) {
  switch (signal) {
    case SIGSEGV: {
      // An overflow touches the guard page just below the stack pointer.
      constexpr std::uintptr_t kNear = 64 << 10;
      const auto address = reinterpret_cast<std::uintptr_t>(info.si_addr);
      const bool overflow = address + kNear > stack_pointer && address < stack_pointer + kNear;
      return overflow ? "stack overflow (is a recursion endless?)" : "segmentation fault";
    }
    case SIGBUS:
      return "bus error (is a mapped file truncated?)";
    case SIGFPE:
      return "arithmetic error (integer division by zero?)";
    case SIGILL:
      return "illegal instruction";
    default:
      return "abort";
  }
}

void report_crash(int signal, const siginfo_t& info, const ucontext_t& context) {
  void* frames[kMaxFrames];
  int count = ::backtrace(frames, kMaxFrames), first = 0;
#if defined(__x86_64__)
  const auto counter = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto stack_pointer = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  const auto counter = static_cast<std::uintptr_t>(context.uc_mcontext.pc);
  const auto stack_pointer = static_cast<std::uintptr_t>(context.uc_mcontext.sp);
#else
  const std::uintptr_t counter = 0, stack_pointer = 0;
#endif
  // The frames of this handler come first.
  for (int i = 0; i < count && first == 0; ++i)
    if (reinterpret_cast<std::uintptr_t>(frames[i]) == counter) first = i;
  static Places places;
  static CrashText<1024> line;
  // The line is complete before addr2line starts, which may fail in a process without memory.
  const Activity* const activity = crash_activity.load();
  line << "error: " << (activity != nullptr ? activity->name : "the program");
  if (activity != nullptr && activity->batch >= 0) line << " (batch " << activity->batch << ")";
  line << ": " << name_of_crash(signal, info, stack_pointer);
  if (signal == SIGSEGV || signal == SIGBUS)
    (line << " at address ").hex(reinterpret_cast<std::uintptr_t>(info.si_addr));
  // The faulting instruction is no call: symbolize() looks up the byte before a return address.
  if (first > 0) frames[first] = reinterpret_cast<void*>(counter + 1);
  symbolize(frames + first, count - first, places);
  if (!places.place.empty()) line << " (" << places.place.view() << ")";
  line << "\n";
  static CrashText<512> records;
  add_records(records, activity);
  places.stack.write_to(STDERR_FILENO);
  records.write_to(STDERR_FILENO);
  line.write_to(STDERR_FILENO);
}

/// sigaction() of libc. UCX, which LibTorch of Debian 13 loads, defines a function of this name that keeps
/// its own handlers of crashes.
using SetAction = int (*)(int, const struct sigaction*, struct sigaction*);
SetAction set_action = ::sigaction;

void find_set_action() {
  void* const libc = ::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  void* const found = libc != nullptr ? ::dlsym(libc, "sigaction") : nullptr;
  if (found != nullptr) set_action = reinterpret_cast<SetAction>(found);
}

/// Whether a handler may be replaced: there is none, or it is that of UCX, which names no line of the trial.
bool is_replaceable(const struct sigaction& action) {
  if (action.sa_handler == SIG_DFL) return true;
  Dl_info module{};
  return ::dladdr(reinterpret_cast<void*>(action.sa_handler), &module) != 0 && module.dli_fname != nullptr &&
         std::strstr(module.dli_fname, "/libucs.") != nullptr;
}

void on_crash(int signal, siginfo_t* info, void* context) {
  static std::atomic<long> reporter{0};
  const long self = ::syscall(SYS_gettid);
  long none = 0;
  if (reporter.compare_exchange_strong(none, self)) {
    ::signal(SIGALRM, SIG_DFL);
    ::alarm(kPatienceSeconds);
    report_crash(signal, *info, *static_cast<ucontext_t*>(context));
  } else if (reporter.load() != self) {
    // Another thread writes its report and ends the process.
    for (;;) ::pause();
  }
  // The default action follows when the handler returns and the instruction runs again, or at once for a
  // signal that was sent.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  (void)set_action(signal, &action, nullptr);
  (void)::raise(signal);
}

/// The handler of UCX for SIGHUP stops the process for a debugger; a trial that is told to end would stay.
void restore_hangup() {
  struct sigaction action {};
  if (set_action(SIGHUP, nullptr, &action) != 0 || !is_replaceable(action)) return;
  action = {};
  action.sa_handler = SIG_DFL;
  (void)set_action(SIGHUP, &action, nullptr);
}

void install_handlers() {
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  if (::sigaltstack(&stack, nullptr) != 0) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction before {};
    if (set_action(signal, nullptr, &before) != 0 || !is_replaceable(before)) continue;
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    (void)set_action(signal, &action, nullptr);
  }
  restore_hangup();
}

}  // namespace

std::string to_string(const Activity& activity) {
  return activity.batch < 0 ? activity.name
                            : std::string(activity.name) + " (batch " + std::to_string(activity.batch) + ")";
}

void install_crash_report() {
  if (records_throws.load()) return;
  prepare_symbolize();
  // The first call loads libgcc, which a signal handler could not.
  void* frame = nullptr;
  (void)::backtrace(&frame, 1);
  find_set_action();
  install_handlers();
  records_throws.store(true);
}

void set_crash_activity(const Activity* activity) { crash_activity.store(activity); }
const Activity* crash_activity_now() { return crash_activity.load(); }

void set_crash_records(std::int64_t epoch, const std::int64_t* records, std::size_t count) {
  crash_records.count = 0;
  for (std::size_t i = 0; i < count && i < kShownRecords; ++i)
    crash_records.first[i].store(records[i], std::memory_order_relaxed);
  crash_records.epoch.store(epoch, std::memory_order_relaxed);
  crash_records.count = count;
}

ReadingRecords::ReadingRecords(std::int64_t epoch, const std::vector<std::int64_t>& records) {
  thread_records = {epoch, records.data(), records.size()};
}
ReadingRecords::~ReadingRecords() { thread_records.count = 0; }

std::string crash_records_text(const Activity& activity) {
  CrashText<512> text;
  add_records(text, &activity);
  return std::string(text.view());
}

ThrowSite throw_site(const void* object) {
  void* frames[kMaxFrames];
  const int count = throws.find(object, frames);
  Places places;
  if (count > 0) symbolize(frames, count, places);
  return {std::string(places.place.view()), std::string(places.stack.view())};
}

}  // namespace det

/// Takes the place of the C++ library's __cxa_throw, records the stack and calls it. The label gives the
/// symbol its name: compilers know a declaration of their own.
extern "C" __attribute__((visibility("default"), noreturn)) void det_throw(
    void* object, void* type, void (*destructor)(void*)) __asm__("__cxa_throw");

void det_throw(void* object, void* type, void (*destructor)(void*)) {
  using Throw = void (*)(void*, void*, void (*)(void*));
  static const auto next = reinterpret_cast<Throw>(::dlsym(RTLD_NEXT, "__cxa_throw"));
  if (det::records_throws.load()) det::throws.record(object);
  next(object, type, destructor);
  __builtin_unreachable();
}
