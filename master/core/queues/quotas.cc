#include "master/core/queues/quotas.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "master/core/owners.h"

namespace det::core {
namespace {

using Scope = scheduler::QuotaKey::Scope;

// In the order of QuotaResource and of Scope.
constexpr std::array<std::string_view, 5> kResourceNames = {"slots", "experiments", "metric_series",
                                                            "log_bytes", "checkpoint_bytes"};
constexpr std::array<std::string_view, 2> kScopeNames = {"user", "workspace"};

template <typename Value, std::size_t count>
std::optional<Value> parse_name(const std::array<std::string_view, count>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

}  // namespace

std::string_view resource_name(QuotaResource resource) {
  return kResourceNames[static_cast<std::size_t>(resource)];
}
std::optional<QuotaResource> parse_resource(std::string_view name) {
  return parse_name<QuotaResource>(kResourceNames, name);
}
std::string_view scope_name(Scope scope) { return kScopeNames[static_cast<std::size_t>(scope)]; }
std::optional<Scope> parse_scope(std::string_view name) { return parse_name<Scope>(kScopeNames, name); }

Result<ReplyValue> Quotas::handle(Step& step, const SetQuota& input) {
  if (input.limit && *input.limit < 0)
    return fail(Code::kInvalidArgument, "limit: must not be negative, not " + std::to_string(*input.limit));
  if (input.limit) {
    quotas_[{input.of, input.resource}] = *input.limit;
  } else {
    quotas_.erase({input.of, input.resource});
  }
  if (input.resource == QuotaResource::kSlots) apply(input.of, input.limit);
  step.insert(PutQuota{{input.of, input.resource, input.limit.value_or(0)}, !input.limit});
  return Done{};
}

void Quotas::apply(const scheduler::QuotaKey& of, std::optional<std::int64_t> limit) {
  if (owners_.is(Mutant::kQuotaIgnored)) return;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  if (limit) return owners_.queues.put_quota(of, static_cast<int>(std::min(*limit, kMax)));
  owners_.queues.put_quota(of, std::nullopt);
}

Result<ReplyValue> Quotas::handle(Step&, const PlaceExperiments& input) {
  for (const ExperimentId id : input.experiments) {
    if (Experiment* const experiment = owners_.experiments.find(id))
      owners_.experiments.place(*experiment, input.workspace);
  }
  return Done{};
}

Status Quotas::check_experiment(UserId owner, std::int64_t workspace) const {
  if (quotas_.empty()) return {};
  for (const scheduler::QuotaKey& of :
       {scheduler::QuotaKey{Scope::kUser, owner.value}, scheduler::QuotaKey{Scope::kWorkspace, workspace}}) {
    const auto quota = quotas_.find({of, QuotaResource::kExperiments});
    if (quota == quotas_.end()) continue;
    const auto& live = owners_.experiments.all();
    const auto count = std::count_if(live.begin(), live.end(), [&](const auto& entry) {
      const Experiment& one = entry.second;
      if (is_terminal(one.state)) return false;
      return of.scope == Scope::kUser ? one.owner == owner : one.workspace == workspace;
    });
    if (count < quota->second) continue;
    return fail(Code::kResourceExhausted,
                "the " + std::string(scope_name(of.scope)) + " has " + std::to_string(count) +
                    " active experiments, and its quota is " + std::to_string(quota->second) +
                    "; end one, or let an administrator raise the quota");
  }
  return {};
}

void Quotas::restore(const std::vector<Quota>& rows) {
  if (owners_.is(Mutant::kQuotaForgotten)) return;
  for (const Quota& row : rows) {
    quotas_[{row.of, row.resource}] = row.limit;
    if (row.resource == QuotaResource::kSlots) apply(row.of, row.limit);
  }
}

}  // namespace det::core
