// The two threads of Loop. The header shows the path of an input.
#include "master/loop/loop.h"

#include <algorithm>

#include "common/base/log.h"

namespace det::loop {
namespace {

constexpr std::size_t kBatch = 256;
constexpr auto kMaxNap = std::chrono::seconds(1);

Error stopped_error() {
  return {Code::kUnavailable, "the master is shutting down; try again in a moment", {}};
}

/// Sets the reply field of an input. Returns false if this kind of input has none.
bool set_reply(core::Input& input, core::ReplyTo to) {
  return std::visit(
      [&](auto& value) {
        if constexpr (requires { value.reply; }) {
          value.reply = to;
          return true;
        } else {
          return false;
        }
      },
      input);
}

}  // namespace

Loop::Loop(core::Core core, db::Store& store, std::function<core::Now()> clock, std::size_t capacity)
    : core_(std::move(core)), store_(store), clock_(std::move(clock)), queue_(capacity), outbox_(capacity) {}

Loop::~Loop() { stop(); }

void Loop::start(Sinks sinks, std::function<void(Error)> failed) {
  sinks_ = std::move(sinks);
  failed_ = std::move(failed);
  store_.start({.durable = [this](db::Sequence sequence) { wake(sequence); },
                .failed =
                    [this](Error error) {
                      wake(kBroken);
                      failed_(std::move(error));
                    }});
  loop_thread_ = std::thread([this] { run(); });
  release_thread_ = std::thread([this] { release(); });
}

void Loop::stop() {
  if (stopped_.exchange(true)) return;
  queue_.close();
  if (!loop_thread_.joinable()) return;
  loop_thread_.join();
  store_.stop();
  outbox_.close();
  // The writer has stopped: what is not durable now never will be.
  if (durable_.load() < appended_) wake(kBroken);
  release_thread_.join();
}

bool Loop::submit(core::Input input) { return queue_.push(Call{std::move(input), nullptr}); }

void Loop::call(core::Input input, const std::function<void(Answer)>& answer) {
  Call item{std::move(input), answer};
  if (!queue_.push(std::move(item))) answer(tl::unexpected(stopped_error()));
}

Answer Loop::ask(core::Input input, Duration timeout) {
  auto promise = std::make_shared<std::promise<Answer>>();
  auto future = promise->get_future();
  call(std::move(input), [promise](Answer answer) { promise->set_value(std::move(answer)); });
  // A late reply goes to the shared promise and is dropped.
  if (future.wait_for(timeout) != std::future_status::ready) {
    return fail(Code::kDeadlineExceeded,
                "the master did not answer in time; what was asked may still happen");
  }
  return future.get();
}

Status Loop::inspect(std::function<void(const core::Core&)> read, Duration timeout) {
  if (queue_read(std::move(read), true).wait(timeout)) return {};
  return fail(Code::kUnavailable, "the master did not answer in time; try again in a moment");
}

PendingRead Loop::inspect_uncommitted(std::function<void(const core::Core&)> read) {
  return queue_read(std::move(read), false);
}

PendingRead Loop::queue_read(std::function<void(const core::Core&)> read, bool durable) {
  auto promise = std::make_shared<std::promise<bool>>();
  PendingRead pending;
  pending.done_ = promise->get_future();
  if (!queue_.push(
          Inspection{std::move(read), [promise](bool usable) { promise->set_value(usable); }, durable}))
    pending.done_ = {};
  return pending;
}

void Loop::run() {
  for (;;) {
    // Sleeps until an input arrives or the next deadline of the core.
    Duration nap = kMaxNap;
    if (auto deadline = core_.next_deadline()) {
      nap = std::clamp(*deadline - clock_().mono, Duration(0), nap);
    }
    std::vector<Item> items = queue_.pop_batch(kBatch, nap);
    if (items.empty() && queue_.closed()) break;
    for (Item& item : items) process(std::move(item));
    // Once a batch: expired timers, then one scheduling pass for all its inputs.
    const core::Now now = clock_();
    const std::size_t before = effects_.writes.size();
    if (auto deadline = core_.next_deadline(); deadline && *deadline <= now.mono) {
      core_.step(core::Tick{}, now, effects_);
    }
    core_.schedule(now, effects_);
    collect_changes(before);
    emit();
  }
  // No input leaves its reply pending today; if one did, its caller must not wait until its timeout.
  for (auto& [to, answer] : waiting_) answer(tl::unexpected(stopped_error()));
  waiting_.clear();
}

void Loop::process(Item item) {
  if (auto* inspection = std::get_if<Inspection>(&item)) {
    inspection->read(core_);
    if (!inspection->durable) return inspection->released(true);
    batch_.inspected.push_back(std::move(inspection->released));
    return;
  }
  auto& call = std::get<Call>(item);
  if (call.answer) {
    if (set_reply(call.input, next_reply_)) {
      waiting_.emplace(next_reply_++, std::move(call.answer));
    } else {
      batch_.replies.emplace_back(std::move(call.answer), core::Done{});
    }
  }
  const std::size_t before = effects_.writes.size();
  const core::Now now = clock_();
  core_.step(call.input, now, effects_);
  ++steps_;
  step_micros_ += static_cast<std::uint64_t>((clock_().mono - now.mono).count());
  collect_changes(before);
}

Loop::Stats Loop::stats() const {
  const db::Sequence durable = durable_.load(), appended = appended_seen_.load();
  return {.steps = steps_.load(),
          .step_seconds = static_cast<double>(step_micros_.load()) / 1e6,
          .queued = queue_.size(),
          .undurable = appended > durable ? appended - durable : 0};
}

/// Must run right after the step: a later step of the batch may remove a trial that a change refers to.
void Loop::collect_changes(std::size_t from) {
  add_changes(effects_.writes, from, core_.trials(), states_, batch_.changes);
}

void Loop::emit() {
  core::Effects effects = std::exchange(effects_, {});
  ReleasedBatch batch = std::exchange(batch_, {});
  if (effects.writes.empty() && effects.sends.empty() && effects.replies.empty() && batch.replies.empty() &&
      batch.inspected.empty())
    return;
  if (!effects.writes.empty()) appended_seen_ = appended_ = store_.append(std::move(effects.writes));
  // Replies without writes of their own also wait for all earlier writes, since they may show their effects.
  batch.after = appended_;
  batch.sends = std::move(effects.sends);
  for (core::Reply& reply : effects.replies) {
    auto it = waiting_.find(reply.to);
    if (it == waiting_.end()) continue;
    batch.replies.emplace_back(std::move(it->second), std::move(reply.value));
    waiting_.erase(it);
  }
  outbox_.push(std::move(batch));
}

void Loop::wake(db::Sequence durable) {
  db::Sequence known = durable_.load();
  // Monotonic maximum: the writer and a failure may report concurrently.
  while (known < durable && !durable_.compare_exchange_weak(known, durable)) {
  }
  durable_.notify_all();
}

void Loop::release() {
  while (auto batch = outbox_.pop()) {
    db::Sequence durable = durable_.load();
    while (durable < batch->after) {
      durable_.wait(durable);
      durable = durable_.load();
    }
    if (durable == kBroken && batch->after > 0) {
      // The core's memory is ahead of the store: release nothing that could be untrue after the restart.
      for (auto& [answer, value] : batch->replies) answer(tl::unexpected(stopped_error()));
      for (const auto& released : batch->inspected) released(false);
      continue;
    }
    for (core::Send& send : batch->sends) sinks_.send(std::move(send));
    for (auto& [answer, value] : batch->replies) answer(std::move(value));
    for (const Change& change : batch->changes) sinks_.changed(change);
    for (const auto& released : batch->inspected) released(true);
  }
}

}  // namespace det::loop
