// Time of the termination request, as an atomic.
#include "harness/src/base/termination.h"

#include <atomic>
#include <cstdint>

namespace det {
namespace {

std::atomic<std::int64_t> since{0};  // microseconds of MonoTime; 0: no request

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

}  // namespace det
