#include "master/api/accounts/deletions.h"

#include "common/base/log.h"
#include "master/api/experiments/experiment.h"

namespace det::api {
namespace {

constexpr std::size_t kMaxQueuedWakes = 64;
constexpr Duration kDeletionPause = std::chrono::milliseconds(500);  // between two looks at what still ends

/// Kills an experiment or a command. One that has ended meanwhile is fine.
Status kill_content(loop::Loop& loop, core::Input input) {
  const auto done = loop.ask(std::move(input));
  if (!done && done.error().code != Code::kNotFound && done.error().code != Code::kFailedPrecondition)
    return tl::unexpected(done.error());
  return {};
}

}  // namespace

Deletions::Deletions(const Context& context)
    : context_(context),
      worker_(
          1, kMaxQueuedWakes, [this] { tick(); }, kDeletionPause) {}

void Deletions::stop() {
  stopping_ = true;
  worker_.stop();
}

Result<bool> Deletions::start(const db::Container& container) {
  TRY_ASSIGN(const db::Contents contents, db::contents_of(context_.pool, container));
  if (contents.models > 0) {
    return fail(Code::kFailedPrecondition, "workspace " + std::to_string(container.id) + " contains " +
                                               std::to_string(contents.models) +
                                               " models; move or delete them first");
  }
  if (contents.ended.empty() && contents.live.empty() && contents.live_commands.empty()) {
    TRY(remove(container));
    return true;
  }
  TRY(db::begin_deletion(context_.pool, container));
  waiting_ = true;
  // A full queue is harmless: the tick comes anyway.
  (void)worker_.try_post([this] { tick(); });
  return false;
}

void Deletions::tick() {
  if (stopping_ || !waiting_.exchange(false)) return;
  const auto all = db::deletions(context_.pool);
  if (!all) waiting_ = true;
  for (const db::Container& container : all.value_or(std::vector<db::Container>())) {
    const auto done = advance(container);
    if (done && *done) continue;
    // Only what no repeat can cure ends the deletion.
    const bool failed = !done && done.error().code == Code::kFailedPrecondition;
    if (!failed || !db::fail_deletion(context_.pool, container, done.error().message)) waiting_ = true;
    if (failed) {
      log::warn("contents could not be deleted",
                {{container.kind == db::Container::Kind::kProject ? "project" : "workspace", container.id},
                 {"reason", done.error().message}});
    }
  }
}

Status Deletions::remove(const db::Container& container) {
  // A missing container is not barred: its id may be that of a later one.
  TRY_ASSIGN(const auto projects, db::projects_in(context_.pool, container));
  core::BarContainer bar{.projects = projects};
  if (container.kind == db::Container::Kind::kWorkspace) bar.workspace = container.id;
  Status done;
  if (const auto barred = context_.loop.ask(bar); !barred)
    done = tl::unexpected(barred.error());
  else
    done = db::delete_container(context_.pool, container, projects);
  // A container that may be gone stays barred.
  if (done || done.error().code == Code::kNotFound || done.error().code == Code::kUnknown) return done;
  bar.barred = false;
  (void)context_.loop.submit(std::move(bar));
  return done;
}

Result<bool> Deletions::advance(const db::Container& container) {
  TRY_ASSIGN(const db::Contents contents, db::contents_of(context_.pool, container));
  for (const ExperimentId id : contents.live)
    TRY(kill_content(context_.loop,
                     core::ActOnExperiment{.experiment = id, .action = core::ExperimentAction::kKill}));
  for (const TaskId& task : contents.live_commands)
    TRY(kill_content(context_.loop, core::KillCommand{.task = task}));
  for (const ExperimentId id : contents.ended) {
    if (stopping_) return false;
    const Status done = remove_experiment(context_, id, container);
    if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  }
  if (!contents.live.empty() || !contents.live_commands.empty()) return false;
  const Status done = remove(container);
  if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
  return true;
}

}  // namespace det::api
