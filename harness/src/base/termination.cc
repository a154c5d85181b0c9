// Time of the termination request, as an atomic.
#include "harness/src/base/termination.h"

#include <signal.h>

#include <atomic>
#include <cstdint>

#include "common/base/stop_signal.h"

namespace det {
namespace {

std::atomic<std::int64_t> since{0};  // microseconds of MonoTime; 0: no request
pid_t supervisor = 0;

void on_sigterm(int signal, siginfo_t* info, void*) {
  if (!obeys_stop(info->si_pid, supervisor)) return;
  // The signal is blocked here; its default action follows when the handler returns.
  ::signal(signal, SIG_DFL);
  (void)::raise(signal);
}

}  // namespace

void begin_termination() {
  // Only the first call has an effect: the grace period starts with the first request.
  std::int64_t not_yet = 0;
  since.compare_exchange_strong(not_yet, mono_now().micros);
}

std::optional<MonoTime> termination_since() {
  const std::int64_t micros = since;
  return micros == 0 ? std::nullopt : std::optional(MonoTime{micros});
}

void ignore_foreign_sigterm() {
  supervisor = supervisor_pid();
  struct sigaction before {};
  if (supervisor == 0 || ::sigaction(SIGTERM, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = on_sigterm;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  (void)::sigaction(SIGTERM, &action, nullptr);
}

}  // namespace det
