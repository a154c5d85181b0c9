#include "master/api/cluster/quota_meter.h"

#include "common/base/log.h"
#include "common/base/units.h"

namespace det::api {
namespace {

using core::QuotaResource;

bool is_data(QuotaResource resource) {
  return resource != QuotaResource::kSlots && resource != QuotaResource::kExperiments;
}

std::string amount_text(QuotaResource resource, std::int64_t amount) {
  return resource == QuotaResource::kMetricSeries ? std::to_string(amount) : format_bytes(amount);
}

/// The error of a quota without room, and the remedy.
std::string exhausted_text(const db::QuotaRow& row) {
  const QuotaResource resource = row.quota.resource;
  const char* what = resource == QuotaResource::kMetricSeries ? "metric series"
                     : resource == QuotaResource::kLogBytes   ? "of logs"
                                                              : "of checkpoints";
  const char* remedy =
      resource == QuotaResource::kCheckpointBytes ? "delete checkpoints" : "delete experiments";
  return "quota of " + std::string(core::scope_name(row.quota.of.scope)) + " " + row.name + ": " +
         amount_text(resource, row.used) + " " + what + " are stored, and the limit is " +
         amount_text(resource, row.quota.limit) + "; " + remedy + ", or let an administrator raise the quota";
}

}  // namespace

Status QuotaMeter::measure() {
  TRY_ASSIGN(const auto rows, db::list_quotas(pool_));
  auto exhausted = std::make_shared<Exhausted>();
  bool limited = false;
  for (const db::QuotaRow& row : rows) {
    if (!is_data(row.quota.resource)) continue;
    limited = true;
    if (row.used >= row.quota.limit)
      exhausted->emplace(std::pair(row.quota.resource, row.quota.of), exhausted_text(row));
  }
  exhausted_.set(std::move(exhausted));
  limited_ = limited;
  return {};
}

void QuotaMeter::tick(loop::Workers& workers) {
  if (!limited_ || mono_now() < next_ || measuring_.exchange(true)) return;
  next_ = mono_now() + kInterval;
  const bool taken = workers.try_post([this] {
    if (const Status status = measure(); !status)
      log::warn("quotas were not measured; trying again", {{"error", status.error().message}});
    measuring_ = false;
  });
  if (!taken) measuring_ = false;
}

bool QuotaMeter::is_first_drop(const AllocationId& allocation) {
  constexpr std::size_t kMaxAllocations = 10'000;
  const auto known = dropped_.get();
  if (known && known->contains(allocation)) return false;
  auto next = std::make_shared<std::set<AllocationId>>();
  if (known && known->size() < kMaxAllocations) *next = *known;
  next->insert(allocation);
  dropped_.set(std::move(next));
  return true;
}

bool QuotaMeter::has_room(QuotaResource resource) const {
  const auto exhausted = exhausted_.get();
  if (!exhausted) return true;
  const auto first = exhausted->lower_bound({resource, scheduler::QuotaKey{}});
  return first == exhausted->end() || first->first.first != resource;
}

Status QuotaMeter::check(QuotaResource resource, const db::TaskOwner& owner) const {
  using Scope = scheduler::QuotaKey::Scope;
  const auto exhausted = exhausted_.get();
  if (!exhausted || exhausted->empty()) return {};
  for (const scheduler::QuotaKey& of : {scheduler::QuotaKey{Scope::kUser, owner.user.value},
                                        scheduler::QuotaKey{Scope::kWorkspace, owner.workspace}}) {
    const auto found = exhausted->find({resource, of});
    if (found != exhausted->end()) return fail(Code::kResourceExhausted, found->second);
  }
  return {};
}

}  // namespace det::api
