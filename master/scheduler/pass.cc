#include "master/scheduler/pass.h"

#include <algorithm>
#include <climits>

#include "master/scheduler/fitting.h"

namespace det::scheduler {

bool Pass::Head::before(const Head& b) const {
  if (user < b.user || b.user < user) return user < b.user;
  if (job < b.job || b.job < job) return job < b.job;
  return preemptor().task < b.preemptor().task;
}

// Not a field: most heads are refilled many times before they are served.
Preemptor Pass::Head::preemptor() const {
  return {job.job, shape, *job.job->waiting.find(shape)->second.first()};
}

void Pass::refill(Head& head) const {
  head.stale = head.any = false;
  const auto line = pool_.queue.lines().find(head.shape);
  if (head.min_priority == INT_MAX || line == pool_.queue.lines().end()) return;
  // Only the priority policy narrows a line (min_priority), and there all jobs belong to one user, so the
  // first user suffices.
  head.user = *line->second.begin();
  pool_.queue.rank_holders(*head.user.user);
  const auto& jobs = head.user.user->waiting.find(head.shape)->second;
  const bool all = head.min_priority == INT_MIN;
  const auto first = all ? jobs.begin() : jobs.lower_bound({0, {head.min_priority, INT64_MIN, {}}, nullptr});
  if (first == jobs.end()) return;
  head.job = *first;
  head.any = true;
}

Pass::Head* Pass::next() {
  Head* best = nullptr;
  for (Head& head : heads_) {
    if (head.stale) refill(head);
    if (head.any && (!best || head.before(*best))) best = &head;
  }
  return best;
}

/// The served job moves back as its share grows, or leaves the line. Other jobs move only when a victim of
/// their user was preempted, which makes its share smaller.
void Pass::refresh(const Head& served) {
  const bool shares = pool_.rules.policy == Policy::kFairShare;
  // A start under a quota may exclude requests of other jobs.
  const JobState& job = *served.job.job;
  const bool quota = job.quotas[0] || job.quotas[1];
  for (Head& head : heads_) {
    const bool moved = shares ? head.user.user == served.user.user : head.job.job == served.job.job;
    head.stale = head.stale || moved || quota || &head == &served ||
                 (shares && !preempted_users_.empty() && is_passed(head));
  }
  preempted_users_.clear();
}

bool Pass::is_passed(const Head& head) const {
  const auto line = pool_.queue.lines().find(head.shape);
  if (line == pool_.queue.lines().end() || line->second.begin()->user != head.user.user) return true;
  return std::find(preempted_users_.begin(), preempted_users_.end(), head.user.user) !=
         preempted_users_.end();
}

bool Pass::run() {
  // A merge over the lines of all shapes. Serving requests adds no shape.
  pool_.holds.clear();
  for (const auto& [shape, users] : pool_.queue.lines()) heads_.push_back({.shape = shape});
  while ((head_ = next()) != nullptr) {
    const Shape shape = head_->shape;
    exclude(shape, true);
    serve(head_->preemptor());
    exclude(shape, false);
    refresh(*head_);
  }
  take_back();
  return decided_;
}

void Pass::exclude(const Shape& shape, bool excluded) {
  for (const AgentId& id : pool_.excluded(shape)) {
    Node* const node = pool_.fleet.find(id);
    if (!node) continue;
    node->excluded = excluded;
    pool_.fleet.file(*node);
  }
}

void Pass::serve(const Preemptor& preemptor) {
  if (const auto set = pool_.fleet.whole_set(preemptor.shape.slots, preemptor.shape.single_node);
      !set.empty())
    return start(preemptor, set);
  // A zero-slot request needs no slots, so promises and the reservation do not concern it.
  if (preemptor.shape.slots == 0) {
    if (Node* node = pool_.fleet.least_zero_slot()) return start(preemptor, {{node, 0}});
    head_->min_priority = INT_MAX;
    return;
  }
  if (start_somewhere(preemptor)) return;
  // A borrower sees the slots of the reservation as available for the rest of the rules.
  const bool borrows = this->borrows(preemptor);
  if (borrows) open_reservation();
  const bool served =
      (borrows && start_somewhere(preemptor)) || hold_coming_slots(preemptor) || preempt(preemptor);
  if (borrows) close_reservation();
  if (served) return;
  if (!reservation_ && reserve(preemptor)) hold(preemptor, Hold::Why::kReserved, reservation_->node);
  end_line(preemptor, borrows);
}

/// Borrowed slots must return by preemption: the borrower is preemptible and strictly less important.
bool Pass::borrows(const Preemptor& preemptor) const {
  return reservation_ && pool_.rules.preemption && pool_.rules.policy == Policy::kPriority &&
         preemptor.shape.preemptible && preemptor.job->job.priority > reservation_->priority;
}

void Pass::end_line(const Preemptor& preemptor, bool borrows) {
  // A request that failed without the right to borrow does not block less important ones that have it.
  const bool others_may_borrow = !borrows && reservation_ && pool_.rules.preemption &&
                                 pool_.rules.policy == Policy::kPriority && preemptor.shape.preemptible;
  head_->min_priority = others_may_borrow ? reservation_->priority + 1 : INT_MAX;
}

bool Pass::start_somewhere(const Preemptor& preemptor) {
  const int slots = preemptor.shape.slots;
  // An agent may have enough free slots that are promised to holders without an agent.
  if (slack() < slots) return false;
  if (Node* node = pool_.fleet.tightest(slots)) {
    start(preemptor, {{node, slots}});
    return true;
  }
  if (preemptor.shape.single_node || pool_.fleet.free() < slots) return false;
  const auto parts = pool_.fleet.spread(slots);
  if (parts.empty()) return false;
  start(preemptor, parts);
  return true;
}

void Pass::start(const Preemptor& preemptor, const std::vector<std::pair<Node*, int>>& where) {
  Placement placement{preemptor.task, {}};
  std::vector<Node*> nodes;
  for (const auto& [node, slots] : where) {
    placement.parts.push_back({node->agent.id, choose_slots(node->agent.slots, node->free_slots(), slots)});
    nodes.push_back(node);
  }
  pool_.start(*preemptor.job, preemptor.shape,
              {.task = placement.task,
               .job = preemptor.job->job.id,
               .parts = placement.parts,
               .preemptible = preemptor.shape.preemptible},
              std::move(nodes));
  plan_.start.push_back(std::move(placement));
  decided_ = true;
}

bool Pass::hold_coming_slots(const Preemptor& preemptor) {
  const int slots = preemptor.shape.slots;
  if (static_cast<int>(held_.size()) >= pool_.rules.holders || slack() < slots) return false;
  // A single slot is not bound to an agent: the first one that comes free anywhere will do.
  Node* node = takes_any(preemptor.shape) ? nullptr : pool_.fleet.tightest_coming(slots);
  if (!node && preemptor.shape.single_node) return false;
  hold(preemptor, Hold::Why::kComing, node);
  return true;
}

int Pass::victims_above(const Preemptor& preemptor) const {
  if (!pool_.preempts()) return Fleet::kNobody;
  // Fair-share victims are all of level 0; restores_share decides among them.
  return pool_.rules.policy == Policy::kPriority ? preemptor.job->job.priority : -1;
}

bool Pass::preempt(const Preemptor& preemptor) {
  if (static_cast<int>(held_.size()) >= pool_.rules.holders) return false;
  Node* node = nullptr;
  // One agent is preferred to a gang, as for placements.
  std::vector<RunningState*> victims = victims_on(preemptor, node);
  if (victims.empty() && !preemptor.shape.single_node) victims = victims_anywhere(preemptor);
  if (victims.empty()) return false;
  for (RunningState* victim : victims) {
    plan_.preempt.push_back(victim->running->task);
    preempted_users_.push_back(victim->job->user);
    pool_.terminate(*victim);
  }
  decided_ = true;
  hold(preemptor, Hold::Why::kPreempting, takes_any(preemptor.shape) ? nullptr : node);
  return true;
}

bool Pass::reserve(const Preemptor& preemptor) {
  const int slots = preemptor.shape.slots;
  // A request that the open agents could not hold even when empty would block them for nothing.
  const bool fits_one = pool_.fleet.largest() >= slots;
  if (preemptor.shape.single_node ? !fits_one : pool_.fleet.capacity() < slots) return false;
  Reservation reservation{preemptor.job->job.priority, nullptr, slots};
  // A reservation of slots on any agent could keep those of an excluded agent idle.
  if (preemptor.shape.single_node || (preemptor.shape.excluded != 0 && fits_one)) {
    // The agent where most has gathered. Slots of less important allocations count: they can be preempted.
    const int level = pool_.rules.policy == Policy::kPriority ? victims_above(preemptor) + 1 : Fleet::kNobody;
    reservation.node = pool_.fleet.fullest(std::min(level, Fleet::kNobody), slots);
  }
  reservation_ = reservation;
  close_reservation();
  return true;
}

void Pass::promise(Node& node, int slots) {
  // Coming slots first: free ones stay available to a request that can start at once.
  const int coming = std::min(node.coming, slots);
  pool_.fleet.promise(node, slots - coming, coming);
  promises_.push_back({&node, slots - coming, coming});
}

void Pass::hold(const Preemptor& preemptor, Hold::Why why, Node* node) {
  const int slots = preemptor.shape.slots;
  pool_.holds.push_back({preemptor.task, why, node ? node->agent.id : AgentId(), slots});
  // The reservation promises nothing by itself: `close_reservation` hides its slots, and it counts towards no
  // share.
  if (why == Hold::Why::kReserved) return;
  if (node) {
    promise(*node, slots);
  } else {
    promised_anywhere_ += slots;
  }
  held_.emplace_back(preemptor.job, preemptor.shape);
  pool_.queue.hold(*preemptor.job, preemptor.shape);
}

void Pass::open_reservation() {
  if (Node* node = reservation_->node) {
    node->hidden = false;
    pool_.fleet.file(*node);
  } else {
    promised_anywhere_ -= reservation_->slots;
  }
}

void Pass::close_reservation() {
  if (Node* node = reservation_->node) {
    node->hidden = true;
    pool_.fleet.file(*node);
  } else {
    promised_anywhere_ += reservation_->slots;
  }
}

void Pass::take_back() {
  if (reservation_) open_reservation();
  for (const Promise& promise : promises_) {
    pool_.fleet.promise(*promise.node, -promise.free, -promise.coming);
  }
  pool_.queue.release(held_);
}

bool walk(Pool& pool, Plan& plan) { return Pass(pool, plan).run(); }

}  // namespace det::scheduler
