// The simulated loop: a batch of inputs is stepped, its groups are appended, and its effects are released
// once durable.
#include "tests/sim/master.h"

#include <utility>

namespace det::sim {

Master::Master(Engine& engine, const Plan& plan, Checker& checker)
    : engine_(engine), plan_(plan), checker_(checker), boundary_(plan.boundary) {}

core::Now Master::now() const {
  // Each life has its own monotonic clock, which exposes deadlines carried over a restart.
  return {MonoTime{engine_.now().micros + life_ * 1000000007ll}, WallTime{engine_.now().micros + 1}};
}

void Master::start() {
  ++life_;
  store_ = std::make_unique<MemoryStore>(disk_, MemoryStore::Mode::kManual);
  store_->start({.durable = [this](db::Sequence n) { durable_ = n; }, .failed = nullptr});
  appended_ = durable_ = 0;
  auto recovered = store_->load();
  boundary_.restart(*recovered);
  core::Options options = boundary_.options(plan_.options);
  options.token_key = "key " + std::to_string(life_);
  auto core = core::Core::restore(options, std::move(*recovered), now());
  if (!core) {
    checker_.fail("the core does not start: " + core.error().message);
    return;
  }
  core_.emplace(std::move(*core));
  engine_.trace("master starts");
  checker_.master_started(*core_, disk_);
  watched_.reset();
  wake(Duration(0));
}

void Master::crash() {
  if (!up()) return;
  const std::size_t kept = engine_.random().below(store_->pending() + 1);
  engine_.trace("master crashes, " + std::to_string(kept) + " of " + std::to_string(store_->pending()) +
                " groups in doubt are kept");
  checker_.master_crashes(*core_);
  store_->crash(kept);
  store_.reset();
  core_.reset();
  ++life_;
  inbox_.clear();
  outbox_.clear();
  waiting_.clear();
  agent_links_.clear();
  harness_links_.clear();
  waking_ = flushing_ = false;
}

void Master::stall_store(Duration duration) {
  engine_.trace("store stalls");
  stalled_until_ = std::max(stalled_until_, engine_.now() + duration);
}

void Master::submit(core::Input input, std::function<void(Answer)> answer) {
  if (!up()) return;
  if (answer) {
    std::visit(
        [&](auto& value) {
          if constexpr (requires { value.reply; }) value.reply = next_reply_;
        },
        input);
    waiting_.emplace(next_reply_++, std::move(answer));
  }
  inbox_.push_back(std::move(input));
  wake(engine_.between(Duration(0), milliseconds(2)));
}

void Master::wake(Duration delay) {
  if (std::exchange(waking_, true)) return;
  engine_.after(delay, [this, life = life_] {
    if (life != life_ || !up()) return;
    waking_ = false;
    process();
  });
}

void Master::process() {
  for (core::Input& input : std::exchange(inbox_, {})) {
    core::Effects effects;
    boundary_.change(input, *core_);
    core_->step(input, now(), effects);
    boundary_.change(effects, &input);
    checker_.after_step(*core_);
    emit(std::move(effects));
  }
  core::Effects effects;
  if (auto due = core_->next_deadline(); due && *due <= now().mono) core_->step(core::Tick{}, now(), effects);
  core_->schedule(now(), effects);
  boundary_.change(effects, nullptr);
  checker_.after_step(*core_);
  emit(std::move(effects));
  watch_deadline();
}

void Master::watch_deadline() {
  const auto due = core_->next_deadline();
  if (!due || (watched_ && *watched_ <= *due && now().mono < *watched_)) return;
  watched_ = due;
  engine_.after(*due - now().mono, [this, life = life_] {
    if (life == life_ && up()) wake(Duration(0));
  });
}

void Master::emit(core::Effects effects) {
  if (effects.writes.empty() && effects.sends.empty() && effects.replies.empty()) return;
  for (const core::Write& write : effects.writes) checker_.appended(write);
  if (!effects.writes.empty()) appended_ = store_->append(std::move(effects.writes));
  if (plan_.boundary == BoundaryMutant::kReplyBeforeDurable) {
    for (core::Reply& reply : std::exchange(effects.replies, {})) deliver(reply);
  }
  if (plan_.boundary == BoundaryMutant::kSendBeforeDurable) {
    for (const core::Send& send : std::exchange(effects.sends, {})) deliver(send);
  }
  outbox_.push_back({appended_, std::move(effects.sends), std::move(effects.replies)});
  release();
  flush_later();
}

void Master::flush_later() {
  if (store_->pending() == 0 || std::exchange(flushing_, true)) return;
  const Duration commit = engine_.between(milliseconds(1), milliseconds(30));
  const Duration stall = std::max(stalled_until_ - engine_.now(), Duration(0));
  engine_.after(commit + stall, [this, life = life_] {
    if (life != life_ || !up()) return;
    flushing_ = false;
    // The pending groups become durable; later ones belong to the next commit.
    store_->make_durable(1 + engine_.random().below(store_->pending()));
    checker_.disk_changed(disk_);
    release();
    flush_later();
  });
}

void Master::release() {
  std::size_t count = 0;
  while (count < outbox_.size() && outbox_[count].after <= durable_) ++count;
  std::vector<ReleasedBatch> ready(
      std::make_move_iterator(outbox_.begin()),
      std::make_move_iterator(outbox_.begin() + static_cast<std::ptrdiff_t>(count)));
  outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<std::ptrdiff_t>(count));
  for (ReleasedBatch& batch : ready) {
    for (const core::Send& send : batch.sends) deliver(send);
    for (core::Reply& reply : batch.replies) deliver(reply);
  }
}

void Master::deliver(const core::Send& send) {
  checker_.sent(send, disk_);
  if (auto* preempt = std::get_if<core::PreemptAllocation>(&send)) {
    engine_.trace("master preempts " + preempt->allocation.value);
    auto it = harness_links_.find(preempt->allocation);
    if (it != harness_links_.end()) it->second.second();
    return;
  }
  std::visit(
      [this](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, core::SubmitPilot> || std::is_same_v<T, core::CancelPilot>) {
          engine_.trace((std::is_same_v<T, core::SubmitPilot> ? "master submits " : "master cancels ") +
                        value.name);
          engine_link_(value);
        } else if constexpr (!std::is_same_v<T, core::PreemptAllocation>) {
          std::string what = " forgets ";
          std::string object;
          if constexpr (std::is_same_v<T, core::StartAllocation>) {
            what = " starts ";
            object = value.allocation.id.value;
          } else if constexpr (std::is_same_v<T, core::CheckSlot>) {
            what = " checks slot ";
            object = std::to_string(value.slot);
          } else {
            if (std::is_same_v<T, core::KillAllocation>) what = " kills ";
            object = value.allocation.value;
          }
          engine_.trace("master: " + value.agent.value + what + object);
          auto link = agent_links_.find(value.session);
          if (link != agent_links_.end()) link->second(value);
        }
      },
      send);
}

void Master::deliver(core::Reply& reply) {
  auto it = waiting_.find(reply.to);
  if (it == waiting_.end()) return;
  auto answer = std::move(it->second);
  waiting_.erase(it);
  answer(std::move(reply.value));
}

std::uint64_t Master::open_agent(AgentSink sink) {
  agent_links_[next_session_] = std::move(sink);
  return next_session_++;
}

void Master::close_agent(const AgentId& agent, std::uint64_t session) {
  agent_links_.erase(session);
  submit(core::AgentDisconnected{agent, session});
}

void Master::open_harness(const AllocationId& allocation, std::uint64_t session,
                          std::function<void()> preempt) {
  // A late attach of an abandoned session must not replace the current one.
  auto& link = harness_links_[allocation];
  if (link.first <= session) link = {session, std::move(preempt)};
}

void Master::close_harness(const AllocationId& allocation, std::uint64_t session) {
  auto it = harness_links_.find(allocation);
  if (it != harness_links_.end() && it->second.first == session) harness_links_.erase(it);
}

}  // namespace det::sim
