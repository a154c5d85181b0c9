// Owner of quotas: stores all of them, and enforces those of slots and experiments. The limits of slots are
// kept by the schedulers (Queues::put_quota).
#pragma once

#include <optional>
#include <vector>

#include "master/core/core.h"

namespace det::core {

struct Owners;
struct Step;

class Quotas {
 public:
  explicit Quotas(Owners& owners) : owners_(owners) {}

  // Inputs; see input.h for their contracts.
  Result<ReplyValue> handle(Step& step, const SetQuota& input);
  Result<ReplyValue> handle(Step& step, const PlaceExperiments& input);

  /// Errors: kResourceExhausted when the user or the workspace may have no further live experiment. O(live
  /// experiments) if it has such a quota.
  Status check_experiment(UserId owner, std::int64_t workspace) const;

  const QuotaTable& all() const { return quotas_; }
  void restore(const std::vector<Quota>& rows);

 private:
  /// Passes a quota of slots on to the schedulers.
  void apply(const scheduler::QuotaKey& of, std::optional<std::int64_t> limit);

  Owners& owners_;
  QuotaTable quotas_;
};

}  // namespace det::core
