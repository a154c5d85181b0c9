// One walk over the queue of a pool (the rules are in scheduler.h). Promises and the reservation last for one
// pass: only starts and preemptions outlive it.
#pragma once

#include <climits>
#include <optional>
#include <vector>

#include "master/scheduler/pool.h"

namespace det::scheduler {

/// The request that slots, and if necessary victims, are chosen for.
struct Preemptor {
  JobState* job = nullptr;
  Shape shape;
  TaskKey task;
};

/// A single pass. Used once; `pool` and `plan` must outlive it.
class Pass {
 public:
  Pass(Pool& pool, Plan& plan) : pool_(pool), plan_(plan) {}
  /// Serves every request that may still be served and sets Pool::holds. Returns false when nothing started
  /// and nothing was preempted.
  bool run();

 private:
  /// Slots kept for the first request that cannot be served.
  struct Reservation {
    int priority = 0;      ///< of the holder's job: less important requests may borrow
    Node* node = nullptr;  ///< the agent that is kept; null for slots anywhere in the pool
    int slots = 0;
  };
  /// Cursor of one line: its next request to serve.
  struct Head {
    Shape shape;
    /// Smallest priority number still served; INT_MAX when the line is done. Set once a request of the shape
    /// failed: only requests that may borrow from the reservation are tried after that.
    int min_priority = INT_MIN;
    bool stale = true;  ///< must be refilled before use
    bool any = false;   ///< the line has such a request; the fields below are valid
    UserRank user;
    JobRank job;
    /// This head precedes `b` in the order of the policy.
    bool before(const Head& b) const;
    Preemptor preemptor() const;
  };
  /// Slots of an agent promised to a holder by this pass.
  struct Promise {
    Node* node = nullptr;
    int free = 0;
    int coming = 0;
  };

  // The walk.

  /// Returns the first head in the order of the policy, or null when every line is done.
  Head* next();
  /// Looks up the next request of a line.
  void refill(Head& head) const;
  /// Marks the heads that the last served request may have changed as stale.
  void refresh(const Head& served);
  /// The user at the front of the line has changed, or has lost a victim since the last refresh.
  bool is_passed(const Head& head) const;
  /// Applies the first rule that fits to a request.
  void serve(const Preemptor& preemptor);
  /// Takes the excluded agents of a shape out of all indexes, or puts them back.
  void exclude(const Shape& shape, bool excluded);
  /// The request may take the first slot that comes free on any agent.
  static bool takes_any(const Shape& shape) { return shape.slots == 1 && shape.excluded == 0; }

  // The rules. Each returns false, without effect, when it does not apply.

  bool start_somewhere(const Preemptor& preemptor);
  void start(const Preemptor& preemptor, const std::vector<std::pair<Node*, int>>& where);
  bool hold_coming_slots(const Preemptor& preemptor);
  bool preempt(const Preemptor& preemptor);
  bool reserve(const Preemptor& preemptor);
  /// Ends the line of a request that no rule applied to, except for requests that may borrow.
  void end_line(const Preemptor& preemptor, bool borrows);

  // Promises and the reservation.

  /// The request may use slots of the reservation, because its holder could preempt it.
  bool borrows(const Preemptor& preemptor) const;
  /// Makes the slots of the reservation available to a borrower.
  void open_reservation();
  /// Ends `open_reservation`.
  void close_reservation();
  /// Promises slots of an agent: coming slots first, then free ones.
  void promise(Node& node, int slots);
  /// Records a hold; unless it is the reservation, makes the request a holder. Null `node`: anywhere.
  void hold(const Preemptor& preemptor, Hold::Why why, Node* node);
  /// Takes all promises and the reservation back.
  void take_back();
  /// Free and coming slots that are not promised to a holder.
  int slack() const { return pool_.fleet.base() - promised_anywhere_; }

  // Victims.

  /// Returns the level above which allocations are eligible victims; Fleet::kNobody or more when none are.
  int victims_above(const Preemptor& preemptor) const;
  /// Usable slots of an allocation on agents that are not hidden.
  int gain(const RunningState& state) const;
  int gain(const std::vector<RunningState*>& victims) const;

  // victims.cc. Each search returns an empty set when no set of victims makes enough room.

  /// Finds the best victims on a single agent and sets `best` to it; null when there are none.
  std::vector<RunningState*> victims_on(const Preemptor& preemptor, Node*& best);
  /// Finds victims over all agents, for a request that may spread.
  std::vector<RunningState*> victims_anywhere(const Preemptor& preemptor);
  bool share_is_owed(const Preemptor& preemptor) const;
  /// Victims of `level` and above on one agent that free `need` slots.
  std::vector<RunningState*> by_priority_on(const Node& node, int level, int need) const;
  std::vector<RunningState*> by_share_on(const Preemptor& preemptor, const Node& node, int need);
  std::vector<RunningState*> by_share_anywhere(const Preemptor& preemptor, int need);
  /// Returns an upper bound of the slots that by_share_on can free on an agent.
  int most_by_share(const Preemptor& preemptor, const Node& node) const;
  /// Returns the next fair-share victim on an agent, not one of `chosen`: of the user, then the job, with the
  /// largest share, the newest. Null when a further victim would take more than is owed.
  RunningState* most_served_on(const Preemptor& preemptor, const Node& node,
                               const std::vector<RunningState*>& chosen) const;
  /// Returns the next fair-share victim of the pool. Examines at most kMaxExamined allocations.
  RunningState* most_served(const Preemptor& preemptor) const;
  /// Gives the shares of the first `lent` victims back.
  void restore_shares(const std::vector<RunningState*>& victims, std::size_t lent);

  Pool& pool_;
  Plan& plan_;
  std::vector<Head> heads_;  ///< one for each shape
  Head* head_ = nullptr;     ///< the line being served
  std::vector<Promise> promises_;
  std::vector<std::pair<JobState*, Shape>> held_;  ///< holders
  int promised_anywhere_ = 0;                      ///< slots promised without naming an agent
  std::optional<Reservation> reservation_;
  std::vector<UserState*> preempted_users_;  ///< users of victims preempted since the last refresh
  bool decided_ = false;
};

}  // namespace det::scheduler
