#include "master/api/tasks/idle_tasks.h"

#include "common/base/log.h"
#include "common/base/units.h"
#include "master/api/context.h"

namespace det::api {

void IdleTasks::touch(const std::string& task, MonoTime when) {
  MonoTime& used = used_.try_emplace(task, when).first->second;
  used = std::max(used, when);
}

void IdleTasks::tick(const Context& context, MonoTime now) {
  if (looking_ || now < next_) return;
  next_ = now + kInterval;
  looking_ = context.pools.read.try_post([self = shared_from_this(), &context] {
    auto rows = db::list_idle_timeouts(context.pool);
    const Status looked = rows ? db::drop_ssh_keys(context.pool) : Status(tl::unexpected(rows.error()));
    if (!looked)
      log::warn("idle tasks and keys of ended shells were not looked for",
                {{"reason", looked.error().message}});
    context.edge.post([self, &context, rows = std::move(rows)] {
      self->looking_ = false;
      if (rows) self->check(context, *rows);
    });
  });
}

void IdleTasks::check(const Context& context, const std::vector<db::CommandRow>& rows) {
  const MonoTime now = mono_now();
  std::map<std::string, MonoTime> used;
  for (const db::CommandRow& row : rows) {
    // The time begins when the program runs.
    if (row.live != core::AllocationState::kRunning) continue;
    const TaskId& task = row.command.task;
    const auto known = used_.find(task.value);
    const MonoTime since = known == used_.end() ? now : known->second;
    used.emplace(task.value, since);
    const Duration timeout = std::chrono::seconds(row.interactive.idle_timeout);
    if (now - since <= timeout) continue;
    log::info("ending an idle task", {{"task", task}, {"idle_timeout", format_duration(timeout)}});
    (void)context.pools.steer.try_post([&context, task] {
      // The task may have ended meanwhile. Other errors are met again by the next look.
      (void)context.loop.ask(core::KillCommand{.task = task});
    });
  }
  used_ = std::move(used);
}

}  // namespace det::api
