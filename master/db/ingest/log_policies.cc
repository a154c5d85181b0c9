#include "master/db/ingest/log_policies.h"

#include <nlohmann/json.hpp>

#include "common/base/json.h"

namespace det::db {
namespace {

/// Known tasks. Beyond it all are read again, which only costs time.
constexpr std::size_t kMaxKnownTasks = 10'000;

}  // namespace

Status LogPolicies::load(Connection& connection, const std::vector<LogBatch>& batches) {
  if (tasks_.size() > kMaxKnownTasks) tasks_.clear();
  std::vector<std::string> unknown;
  for (const LogBatch& batch : batches) {
    const auto [known, is_new] = tasks_.try_emplace(batch.task);
    if (!is_new && known->second.allocation == batch.allocation) continue;
    known->second = {.allocation = batch.allocation, .policies = {}};
    unknown.push_back(batch.task.value);
  }
  if (unknown.empty()) return {};
  const auto rows = connection.query(
      "SELECT t.task_id, t.id, EXISTS (SELECT FROM log_policy_matches m WHERE m.trial_id = t.id),"
      " e.config->'log_policies' FROM trials t JOIN experiments e ON e.id = t.experiment_id"
      " WHERE t.task_id = ANY ($1)",
      unknown);
  if (!rows) {
    // The batch is tried again, and its policies are read then.
    for (const std::string& task : unknown) tasks_.erase(TaskId(task));
    return tl::unexpected(rows.error());
  }
  for (Rows::Row row : *rows) {
    std::vector<Policy>& policies = tasks_[row.next<TaskId>()].policies;
    const auto trial = row.next<TrialId>();
    const bool matched = row.next<bool>();
    const auto list = parse_json(row.next<std::optional<std::string>>().value_or("[]"), {.bytes = 16 << 20});
    if (!list || !list->is_array()) continue;
    for (const Json& one : *list) {
      if (!one.is_object() || !one.contains("pattern")) continue;
      Policy policy{.trial = trial, .name = "", .pattern = nullptr};
      if (const Json name = one.value("name", Json()); name.is_string() && !matched) policy.name = name;
      policy.cancels = one.value("action", Json()) == "cancel_retries";
      policy.excludes = one.value("action", Json()) == "exclude_node";
      policy.pattern = std::make_unique<re2::RE2>(one.value("pattern", ""), re2::RE2::Quiet);
      if (policy.pattern->ok() && (policy.cancels || policy.excludes || !policy.name.empty()))
        policies.push_back(std::move(policy));
    }
  }
  return {};
}

void LogPolicies::match(const LogBatch& batch, const LogLine& line) {
  const auto known = tasks_.find(batch.task);
  if (known == tasks_.end()) return;
  bool named = false;
  for (Policy& policy : known->second.policies) {
    if (policy.is_spent(batch.agent) || !re2::RE2::PartialMatch(line.text, *policy.pattern)) continue;
    if (policy.cancels) canceled_.insert(policy.trial);
    if (policy.excludes && !batch.agent.value.empty() && policy.excluded.insert(batch.agent).second)
      excluded_.emplace(policy.trial, batch.agent);
    if (!policy.name.empty() && !named) matches_.emplace(batch.task, policy.name), named = true;
    policy.cancels = false;
  }
  // The first named one is remembered for good.
  if (named)
    for (Policy& policy : known->second.policies) policy.name.clear();
}

Status LogPolicies::store(Connection& connection) {
  if (matches_.empty()) return {};
  std::vector<std::string> tasks, names;
  for (const auto& [task, name] : matches_) {
    tasks.push_back(task.value);
    names.push_back(name);
    // A transaction that fails after this call is repeated with policies that are read again.
    tasks_.erase(task);
  }
  matches_.clear();
  TRY(
      connection.query("INSERT INTO log_policy_matches (trial_id, policy)"
                       " SELECT t.id, m.policy FROM unnest($1::text[], $2::text[]) AS m (task, policy)"
                       " JOIN trials t ON t.task_id = m.task ON CONFLICT DO NOTHING",
                       tasks, names));
  return {};
}

}  // namespace det::db
