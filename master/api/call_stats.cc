#include "master/api/call_stats.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>

#include "master/api/auth/access.h"

namespace det::api {

CallStats::CallStats() {
  for (const auto* service : services()) {
    // operator[] creates the entry: atomics cannot be copied into the map.
    for (int i = 0; i < service->method_count(); ++i)
      methods_["/" + service->full_name() + "/" + service->method(i)->name()];
  }
}

void CallStats::took(std::string_view method, Duration duration, bool ok) {
  auto found = methods_.find(method);
  if (found == methods_.end()) return;
  const double seconds = std::chrono::duration<double>(duration).count();
  const auto bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++found->second.buckets[static_cast<std::size_t>(bound - kBounds.begin())];
  // A total that shrinks would look like a restart to Prometheus.
  found->second.micros += static_cast<std::uint64_t>(std::max<std::int64_t>(0, duration.count()));
  if (!ok) ++found->second.failed;
}

}  // namespace det::api
