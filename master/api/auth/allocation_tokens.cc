#include "master/api/auth/allocation_tokens.h"

#include <functional>
#include <optional>

namespace det::api {
namespace {

/// Returns the trial of the running allocation that has the token.
std::optional<ConfirmedTrial> find_owner(const core::Core& core, const std::string& token_hash) {
  const auto found = core.tokens().find(token_hash);
  if (found == core.tokens().end()) return std::nullopt;
  const core::Allocation& allocation = *found->second;
  const core::Trial* const trial = core.trial(allocation.task);
  if (!trial) return std::nullopt;
  const auto experiment = core.experiments().find(trial->experiment);
  if (experiment == core.experiments().end()) return std::nullopt;
  return ConfirmedTrial{.trial = trial->id,
                        .run = allocation.run,
                        .experiment = trial->experiment,
                        .task = trial->task,
                        .owner = {experiment->second.owner, experiment->second.workspace},
                        .started = trial->started};
}

}  // namespace

std::size_t AllocationTokens::shard_of(const std::string& token_hash) {
  return std::hash<std::string>()(token_hash) % kShards;
}

const std::atomic<std::uint64_t>& AllocationTokens::changes_of(TrialId trial) const {
  return changes_[static_cast<std::size_t>(trial.value) % kTrials];
}

std::shared_ptr<const ConfirmedTrial> AllocationTokens::confirmed(const std::string& token_hash) const {
  const auto shard = shards_[shard_of(token_hash)].get();
  if (!shard) return nullptr;
  for (const auto& known : *shard)
    if (known->hash == token_hash) return known->changes == changes_of(known->trial) ? known : nullptr;
  return nullptr;
}

Status AllocationTokens::check(const std::string& token_hash) {
  if (confirmed(token_hash)) return {};
  const std::uint64_t before = all_changes_;
  auto owner = std::make_shared<std::optional<ConfirmedTrial>>();
  TRY(loop_.inspect([owner, token_hash](const core::Core& core) { *owner = find_owner(core, token_hash); }));
  if (!*owner) {
    return fail(Code::kUnauthenticated,
                "the token is not that of a running allocation (Grpc-Metadata-x-allocation-token)");
  }
  auto known = std::make_shared<Known>();
  static_cast<ConfirmedTrial&>(*known) = std::move(**owner);
  known->hash = token_hash;
  known->changes = changes_of(known->trial);
  // A change during the read may have ended the allocation; then the result is not kept. forget() counts in
  // all_changes_ first, so a change that this comparison misses outdates `known`.
  if (before != all_changes_) return {};
  Shared<Shard>& shared = shards_[shard_of(token_hash)];
  auto shard = std::make_shared<Shard>();
  // Without the outdated entries, so that a shard holds few.
  if (const auto old = shared.get()) {
    for (const auto& other : *old)
      if (other->hash != token_hash && other->changes == changes_of(other->trial)) shard->push_back(other);
  }
  shard->push_back(std::move(known));
  shared.set(std::move(shard));
  return {};
}

void AllocationTokens::forget(TrialId trial) {
  ++all_changes_;
  ++changes_[static_cast<std::size_t>(trial.value) % kTrials];
}

}  // namespace det::api
