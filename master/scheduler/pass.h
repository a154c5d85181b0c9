// Owns one walk over the queue of a pool: what is promised on the way lasts as long as the walk.
#pragma once

#include <climits>
#include <optional>
#include <vector>

#include "master/scheduler/pool.h"

namespace det::scheduler {

/// Who takes: a request of `job`.
struct Taker {
  JobState* job = nullptr;
  Shape shape;
  std::int64_t trial = 0;
};

class Pass {
 public:
  Pass(Pool& pool, Plan& plan) : pool_(pool), plan_(plan) {}
  bool run();

 private:
  struct Reservation {
    int priority = 0;
    Node* node = nullptr;  ///< null when it is for slots anywhere
    int slots = 0;
  };
  /// The first of a line that is still looked at.
  struct Head {
    Shape shape;
    int least_priority = INT_MIN;  ///< who is above it is passed over; INT_MAX: the line is done
    bool stale = true;
    bool any = false;
    Taker taker;
    UserRank user;
    JobRank job;
    bool before(const Head& b) const;
  };
  struct Promise {
    Node* node = nullptr;
    int free = 0;
    int leaving = 0;
  };

  Head* next();
  void refill(Head& head) const;
  void refresh(const Head& served);
  bool is_passed(const Head& head) const;
  void serve(const Taker& taker);
  bool start_somewhere(const Taker& taker);
  void start(const Taker& taker, const std::vector<std::pair<Node*, int>>& where);
  bool wait(const Taker& taker);
  bool preempt(const Taker& taker);
  bool reserve(const Taker& taker);
  void drop(const Taker& taker, bool borrows);
  bool borrows(const Taker& taker) const;
  void lift();
  void lower();
  void keep(Node& node, int slots);
  void hold(const Taker& taker, Hold::Why why, Node* node);
  void undo();
  /// Slots that are free or coming and not promised to anybody.
  int slack() const { return pool_.fleet.base() - promised_anywhere_; }
  /// Victims whose priority numbers are above this may be taken for it; at least Fleet::kNobody: none.
  int victims_above(const Taker& taker) const;
  /// Slots that come back, on agents that are not kept for somebody.
  int gain(const RunningState& state) const;
  int gain(const std::vector<RunningState*>& victims) const;

  // victims.cc
  std::vector<RunningState*> victims_on(const Taker& taker, Node*& best);
  std::vector<RunningState*> victims_anywhere(const Taker& taker);
  bool share_is_owed(const Taker& taker) const;
  std::vector<RunningState*> by_priority_on(const Node& node, int level, int need) const;
  std::vector<RunningState*> by_share_on(const Taker& taker, const Node& node, int need);
  std::vector<RunningState*> by_share_anywhere(const Taker& taker, int need);
  int most_by_share(const Taker& taker, const Node& node) const;
  /// Not of those already chosen.
  RunningState* most_served_on(const Taker& taker, const Node& node,
                               const std::vector<RunningState*>& chosen) const;
  RunningState* most_served(const Taker& taker) const;
  void restore_shares(const std::vector<RunningState*>& victims, std::size_t lent);

  Pool& pool_;
  Plan& plan_;
  std::vector<Head> heads_;
  Head* head_ = nullptr;  ///< being served
  std::vector<Promise> promises_;
  std::vector<std::pair<JobState*, Shape>> held_;
  int promised_anywhere_ = 0;
  std::optional<Reservation> reservation_;
  std::vector<UserState*> asked_;  ///< of those asked to leave since the heads were looked at
  bool decided_ = false;
};

}  // namespace det::scheduler
