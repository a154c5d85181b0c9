// Rules for commands: each runs at most once between pauses, ends like its process, is killed only for its
// user or a lost agent, and is created once.
#include <algorithm>

#include "tests/sim/checker.h"

namespace det::sim {
namespace {

const core::Command* find(const MemoryDisk& disk, const TaskId& task) {
  for (const auto& [id, row] : disk.commands) {
    if (row.task == task) return &row;
  }
  return nullptr;
}

}  // namespace

void Checker::check_command_kills(const core::Core& core) {
  for (const auto& [id, allocation] : core.allocations()) {
    if (!allocation.task.as<CommandId>() || !allocation.kill_requested || !killed_commands_.insert(id).second)
      continue;
    const core::Command* command = core.command(allocation.task);
    if (!command || core::is_stopping(command->state) || command->state == core::State::kPaused) continue;
    const core::AllocationPart& part = allocation.parts.front();
    auto settings = core.agent_settings().find(part.agent);
    const bool out_of_service =
        settings != core.agent_settings().end() &&
        (!settings->second.enabled || std::any_of(part.slots.begin(), part.slots.end(), [&](int slot) {
          return settings->second.disabled_slots.contains(slot);
        }));
    const auto agent = core.agents().find(part.agent);
    const bool stopping = agent != core.agents().end() && agent->second.stopping;
    if (!out_of_service && !stopping)
      fail("command " + command->task.value + " is killed and nobody asked for it");
  }
}

void Checker::acked_command(const TaskId& task, const MemoryDisk& disk) {
  if (!find(disk, task)) fail("command " + task.value + " was acknowledged and is not there");
}

void Checker::acked_kill(const TaskId& task, const MemoryDisk& disk) {
  const core::Command* row = find(disk, task);
  const bool ending = row && (core::is_stopping(row->state) || core::is_terminal(row->state));
  if (!ending) fail("command " + task.value + " was acknowledged to end and goes on");
}

void Checker::check_commands(const MemoryDisk& disk) {
  if (disk.commands.size() != plan_.commands.size()) {
    fail(std::to_string(plan_.commands.size()) + " commands were submitted and " +
         std::to_string(disk.commands.size()) + " are there");
  }
  for (const CommandPlan& plan : plan_.commands) {
    const core::Command* row = find(disk, plan.task);
    if (!row) return fail("command " + plan.task.value + " was never taken");
    const std::string is = "command " + plan.task.value + " is " + std::string(core::state_name(row->state));
    const auto part = parts_.find({row->id, row->run, 0});
    const bool ended_well = part != parts_.end() && part->second == PartState::kWell;
    const int failed = failures(row->id);
    if (!core::is_terminal(row->state)) fail(is + " and never ends");
    if (row->state == core::State::kCompleted && !ended_well) fail(is + " but its process did not end well");
    if (row->state == core::State::kCanceled && !plan.kill_after) fail(is + " and nobody asked for it");
    if (row->state == core::State::kError && !row->exit) fail(is + " without an exit");
    if (row->exit && row->exit->kind == core::ExitKind::kFailed && failed == 0)
      fail(is + " and its process did not fail");
  }
}

}  // namespace det::sim
