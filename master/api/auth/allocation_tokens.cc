#include "master/api/auth/allocation_tokens.h"

#include <functional>
#include <memory>
#include <optional>

namespace det::api {

std::size_t AllocationTokens::place_of(TrialId trial) {
  return static_cast<std::size_t>(trial.value) % kPlaces;
}

bool AllocationTokens::is_confirmed(const std::string& token_hash) const {
  const auto known = known_[std::hash<std::string>()(token_hash) % kPlaces].get();
  return known && known->hash == token_hash && known->changes == changes_[known->trial];
}

Status AllocationTokens::check(const std::string& token_hash) {
  if (is_confirmed(token_hash)) return {};
  const std::uint64_t before = all_changes_;
  auto owner = std::make_shared<std::optional<TrialId>>();
  TRY(loop_.inspect([owner, token_hash](const core::Core& core) {
    for (const auto& [id, allocation] : core.allocations()) {
      if (allocation.state == core::AllocationState::kTerminated || !allocation.has_token(token_hash))
        continue;
      if (core.trial(allocation.task)) *owner = allocation.task.as<TrialId>();
    }
  }));
  if (!*owner) {
    return fail(Code::kUnauthenticated,
                "the token is not that of a running allocation (Grpc-Metadata-x-allocation-token)");
  }
  Known found{.hash = token_hash, .trial = place_of(**owner), .changes = changes_[place_of(**owner)]};
  // A change during the read may have ended the allocation; then the result is not kept. forget() counts in
  // all_changes_ first, so a change that this comparison misses outdates `found`.
  if (before == all_changes_)
    known_[std::hash<std::string>()(token_hash) % kPlaces].set(
        std::make_shared<const Known>(std::move(found)));
  return {};
}

void AllocationTokens::forget(TrialId trial) {
  ++all_changes_;
  ++changes_[place_of(trial)];
}

}  // namespace det::api
