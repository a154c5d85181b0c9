// Text of an explanation (to_text).
#include <cmath>

#include "common/base/text.h"
#include "master/scheduler/explain.h"
#include "master/scheduler/fits.h"

namespace det::scheduler {
namespace {

using Names = std::map<TaskKey, std::string>;

std::string task_text(TaskKey task, const Names& names) {
  const auto found = names.find(task);
  return found == names.end() ? name_of(task) : found->second;
}

/// The trial and its experiment, or the display name.
std::string whole_text(TaskKey task, JobKey job, const Names& names) {
  if (names.contains(task)) return names.at(task);
  return task_text(task, names) + " of " + name_of(job);
}

std::string tasks_text(const std::vector<TaskKey>& tasks, const Names& names) {
  std::vector<std::string> texts;
  for (const TaskKey task : tasks) texts.push_back(task_text(task, names));
  return join(texts, ", ");
}

/// Returns "90 s", "45 min", "3 h 5 min": an estimate does not deserve more digits.
std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::llround(seconds));
  if (whole < 120) return std::to_string(whole) + " s";
  if (whole < 7200) return std::to_string(whole / 60) + " min";
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

std::string quota_text(const Explanation& e) {
  const Quota& quota = *e.quota;
  const bool of_user = quota.key.scope == QuotaKey::Scope::kUser;
  return std::string("it would exceed the quota of its ") + (of_user ? "user" : "workspace") +
         " (in use: " + std::to_string(e.quota_held + quota.elsewhere) + " of " + slots_text(quota.slots) +
         (quota.elsewhere > 0 ? ", " + std::to_string(quota.elsewhere) + " in other pools)" : ")");
}

std::string why(const Explanation& e) {
  switch (e.reason) {
    case Reason::kNotWaiting:
      return "it does not wait for slots";
    case Reason::kStartsNow:
      return "it starts now";
    case Reason::kMaxSlots:
      return "its experiment has as many slots as its max_slots allows";
    case Reason::kQuota:
      return quota_text(e);
    case Reason::kTooBig:
      return "the agents that take work now could not hold it, even if they were empty";
    case Reason::kExcluded:
      return "its log policies exclude the agents that could hold it";
    case Reason::kZeroSlot:
      return "no agent takes another task without slots";
    case Reason::kComing:
      return "slots are coming free for it";
    case Reason::kKept:
      return "enough slots are free, but they are kept for those ahead of it";
    case Reason::kBusy:
      return "too few slots are free";
  }
  return "";
}

std::string blocker_text(const Blocker& blocker, const Names& names) {
  std::string text = whole_text(blocker.task, blocker.job, names);
  text += blocker.how == Blocker::How::kHolds ? " waits for " : " has ";
  text += slots_text(blocker.slots);
  std::vector<std::string> agents;
  for (const AgentId& agent : blocker.agents) agents.push_back(agent.value);
  if (!agents.empty()) text += " on " + join(agents, ", ");
  if (blocker.how == Blocker::How::kTerminates) text += " and is terminating";
  return text;
}

std::string suggestion_text(const Suggestion& suggestion, const Names& names) {
  switch (suggestion.what) {
    case Suggestion::What::kSlots:
      return "starts now with " + slots_text(suggestion.value);
    case Suggestion::What::kSpread:
      return "starts now over several agents (is_single_node: false)";
    case Suggestion::What::kMaxSlots:
      return "starts now with max_slots " + std::to_string(suggestion.value);
    case Suggestion::What::kAgent:
      return "starts when agent " + suggestion.agent.value + " takes work with all its slots";
    case Suggestion::What::kEnds:
      return "starts when " + task_text(suggestion.task, names) + " ends";
    case Suggestion::What::kPriority:
      return "starts now at priority " + std::to_string(suggestion.value) +
             (suggestion.preempts.empty() ? ""
                                          : " (preempts " + tasks_text(suggestion.preempts, names) + ")");
  }
  return "";
}

std::string estimate_text(const Estimate& estimate) {
  const std::string start = "estimate: in about " + duration_text(estimate.seconds);
  if (estimate.runs == 0) return start + ", at the pace of running tasks";
  const std::string median = duration_text(estimate.median);
  const std::string basis = " (median of " + std::to_string(estimate.runs) + " recent)";
  if (!estimate.paced) return start + ", if runs take " + median + basis;
  return start + ", at the pace of running tasks and with " + median + " for each other one" + basis;
}

}  // namespace

// The names are part of the API: programs compare them. Order of enum Reason.
std::string reason_name(Reason reason) {
  const char* names[] = {"NOT_WAITING", "STARTS_NOW", "MAX_SLOTS", "QUOTA", "TOO_BIG",
                         "EXCLUDED",    "ZERO_SLOT",  "COMING",    "KEPT",  "BUSY"};
  return names[static_cast<int>(reason)];
}

std::string to_text(const Explanation& e, const Names& names) {
  // Layout: one line for the request, one for the reason, blockers indented, one line for each suggestion,
  // and the estimate with its assumption.
  if (e.reason == Reason::kNotWaiting) return task_text(e.task, names) + ": " + why(e) + "\n";
  std::string text = whole_text(e.task, e.job, names) + " waits for " + slots_text(e.slots) +
                     (e.single_node && e.slots > 1 ? " on one agent" : "") + ": number " +
                     std::to_string(e.position) + " of " + std::to_string(e.queued) + " in the queue\n";
  text += why(e) + "\n";
  std::vector<std::string> excluded;
  for (const AgentId& agent : e.excluded) excluded.push_back(agent.value);
  if (!excluded.empty()) text += "log policies exclude " + join(excluded, ", ") + "\n";
  if (e.reserves)
    text += std::string("slots are kept for it") +
            (e.reserved.value.empty() ? "" : " on " + e.reserved.value) + "\n";
  for (const Blocker& blocker : e.blockers) text += "  " + blocker_text(blocker, names) + "\n";
  if (e.more_blockers > 0) text += "  and " + std::to_string(e.more_blockers) + " more\n";
  for (const Suggestion& suggestion : e.suggestions) text += suggestion_text(suggestion, names) + "\n";
  if (e.estimate) text += estimate_text(*e.estimate) + "\n";
  return text;
}

}  // namespace det::scheduler
