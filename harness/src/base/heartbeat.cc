// Heartbeat file of a trial's process.
#include "harness/src/base/heartbeat.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "common/base/clock.h"
#include "common/base/fd.h"

namespace det {
namespace {

/// Minimum time between two updates of the file.
constexpr std::int64_t kApartMicros = 1'000'000;

std::string path_of_heartbeat() {
  const char* directory = std::getenv("DET_RUN_DIR");
  return directory == nullptr || *directory == '\0' ? "" : std::string(directory) + "/heartbeat";
}

}  // namespace

void beat() {
  static const std::string path = path_of_heartbeat();
  static std::atomic<std::int64_t> next{0};
  if (path.empty()) return;
  const std::int64_t now = mono_now().micros;
  // Only the thread that advances the deadline touches the file.
  std::int64_t due = next.load(std::memory_order_relaxed);
  if (now < due || !next.compare_exchange_strong(due, now + kApartMicros, std::memory_order_relaxed)) return;
  // Failures are ignored: the file exists since the first heartbeat, and touching it needs no space.
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (file) (void)::futimens(file.get(), nullptr);
}

}  // namespace det
