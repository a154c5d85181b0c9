#include "common/base/wait.h"

#include <poll.h>

#include <algorithm>

namespace det {

bool wait_until(const std::function<bool()>& predicate, Duration timeout) {
  const MonoTime deadline = mono_now() + timeout;
  for (int nap_ms = 1;; nap_ms = std::min(nap_ms * 2, 50)) {
    if (predicate()) return true;
    if (mono_now() >= deadline) return false;
    ::poll(nullptr, 0, nap_ms);  // sleeps without touching any descriptor
  }
}

}  // namespace det
