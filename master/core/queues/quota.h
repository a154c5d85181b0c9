// Quotas: limits on what a user, or a workspace, has at a time. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "master/scheduler/scheduler.h"

namespace det::core {

/// Resources with quotas. The core enforces the first two; master/api enforces the others where data arrives.
enum class QuotaResource {
  kSlots,            ///< slots of all allocations; a request beyond the quota waits
  kExperiments,      ///< experiments that have not ended; a further one is refused
  kMetricSeries,     ///< metrics by trial, group and name
  kLogBytes,         ///< text of the log lines of trials and commands
  kCheckpointBytes,  ///< files of checkpoints that are not deleted
};
inline constexpr QuotaResource kQuotaResources[] = {QuotaResource::kSlots, QuotaResource::kExperiments,
                                                    QuotaResource::kMetricSeries, QuotaResource::kLogBytes,
                                                    QuotaResource::kCheckpointBytes};
/// Returns "slots", "experiments", "metric_series", "log_bytes" or "checkpoint_bytes".
std::string_view resource_name(QuotaResource resource);
std::optional<QuotaResource> parse_resource(std::string_view name);
/// Returns "user" or "workspace".
std::string_view scope_name(scheduler::QuotaKey::Scope scope);
std::optional<scheduler::QuotaKey::Scope> parse_scope(std::string_view name);

/// A limit of one resource for one user or one workspace.
struct Quota {
  scheduler::QuotaKey of;
  QuotaResource resource = QuotaResource::kSlots;
  std::int64_t limit = 0;
  bool operator==(const Quota&) const = default;
};
/// Limits by owner and resource.
using QuotaTable = std::map<std::pair<scheduler::QuotaKey, QuotaResource>, std::int64_t>;

}  // namespace det::core
