// Pools, decisions and holds as text, for comparisons and failed tests.
#include "reference.h"

namespace det::scheduler {

static std::string show(const std::vector<Part>& parts) {
  std::string text = " on";
  for (const Part& part : parts) {
    text += " " + part.agent.value;
    for (std::size_t i = 0; i < part.slots.size(); ++i)
      text += (i ? "," : ":") + std::to_string(part.slots[i]);
  }
  return text;
}

/// Trials and experiments by their number, as in the case files.
static std::string show(TaskKey task) {
  return task.as<TrialId>() ? std::to_string(task.number()) : name_of(task);
}
static std::string show(JobKey job) {
  return job.as<ExperimentId>() ? std::to_string(job.number()) : name_of(job);
}

std::string show(const Snapshot& snapshot) {
  const Rules& rules = snapshot.rules;
  const char* policies[] = {"priority", "fair_share", "round_robin"};
  std::string text = std::string("pool policy ") + policies[static_cast<int>(rules.policy)] + " preemption " +
                     (rules.preemption ? "on" : "off") + " holders " + std::to_string(rules.holders);
  for (const auto& [user, weight] : rules.user_weights) {
    text += " weight " + std::to_string(user.value) + "=" + std::to_string(weight);
  }
  text += "\n";
  for (const Agent& agent : snapshot.agents) {
    text += "agent " + agent.id.value + " " + std::to_string(agent.slots.size()) +
            (agent.open ? "" : " closed") + " zero " + std::to_string(agent.max_zero_slot);
    std::string disabled, links;
    for (std::size_t i = 0; i < agent.slots.size(); ++i) {
      if (!agent.slots[i].enabled) disabled += (disabled.empty() ? "" : ",") + std::to_string(i);
      links += (i ? "," : "") + std::to_string(agent.slots[i].link);
    }
    if (!disabled.empty()) text += " disabled " + disabled;
    if (!links.empty()) text += " links " + links;
    text += "\n";
  }
  for (const Job& job : snapshot.jobs) {
    text += "job " + show(job.id) + " user " + std::to_string(job.user.value) + " priority " +
            std::to_string(job.priority) + " position " + std::to_string(job.position) + " weight " +
            std::to_string(job.weight);
    if (job.max_slots) text += " max_slots " + std::to_string(*job.max_slots);
    text += " workspace " + std::to_string(job.workspace) + "\n";
  }
  for (const auto& [key, slots, elsewhere] : snapshot.quotas) {
    text += "quota " + std::to_string(static_cast<int>(key.scope)) + " " + std::to_string(key.id) +
            " slots " + std::to_string(slots) + " elsewhere " + std::to_string(elsewhere) + "\n";
  }
  for (const Running& one : snapshot.running) {
    text += "running " + show(one.task) + " of " + show(one.job) + show(one.parts) +
            (one.terminating ? " terminating" : "") + (one.preemptible ? "" : " fixed") + "\n";
  }
  for (const Request& one : snapshot.requests) {
    text += "request " + show(one.task) + " of " + show(one.job) + " slots " + std::to_string(one.slots) +
            (one.single_node ? " single" : "") + (one.preemptible ? "" : " fixed");
    for (std::size_t i = 0; i < one.excluded.size(); ++i)
      text += (i ? "," : " excluded ") + one.excluded[i].value;
    text += "\n";
  }
  return text;
}

std::string show(const Plan& plan) {
  std::string text;
  for (const Placement& start : plan.start) {
    text += "start " + show(start.task) + show(start.parts) + "\n";
  }
  for (TaskKey task : plan.preempt) text += "preempt " + show(task) + "\n";
  return text;
}

std::string show(const std::vector<Hold>& holds) {
  std::string text;
  for (const Hold& hold : holds) {
    const char* why[] = {"coming", "preempting", "reserved"};
    text += "hold " + show(hold.task) + " " + why[static_cast<int>(hold.why)];
    if (!hold.agent.value.empty()) text += " on " + hold.agent.value;
    text += " slots " + std::to_string(hold.slots) + "\n";
  }
  return text;
}

}  // namespace det::scheduler
