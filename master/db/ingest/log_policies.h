// Log policies of experiments: remembers the first named one that a line of a trial matches, and what their
// actions ask for. Used by the log thread only.
#pragma once

#include <re2/re2.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/db/ingest/bulk.h"

namespace det::db {

class LogPolicies {
 public:
  /// Reads the policies of tasks that are not known yet, or have a new allocation, with one statement: a
  /// trial that goes on may have other policies, and the core has forgotten what the old ones did.
  Status load(Connection& connection, const std::vector<LogBatch>& batches);
  /// Notes the first named policy that the line matches, unless its task has one already, and the actions of
  /// all that it matches.
  void match(const LogBatch& batch, const LogLine& line);
  /// Stores in the open transaction the matches since the last call. A stored match stays.
  Status store(Connection& connection);
  /// Returns the trials with canceled retries since the last call.
  std::set<TrialId> take_canceled() { return std::exchange(canceled_, {}); }
  /// Returns the agents that were excluded from trials since the last call.
  std::set<std::pair<TrialId, AgentId>> take_excluded() { return std::exchange(excluded_, {}); }

 private:
  struct Policy {
    TrialId trial;
    std::string name;  ///< "": not shown
    std::unique_ptr<re2::RE2> pattern;
    bool cancels = false;   ///< the action is cancel_retries
    bool excludes = false;  ///< the action is exclude_node
    /// The line needs no look: nothing could follow from it.
    bool is_spent(const AgentId& agent) const {
      return name.empty() && !cancels && (!excludes || excluded.contains(agent));
    }
    std::set<AgentId> excluded;  ///< by this policy so far
  };
  /// A task as of an allocation.
  struct Task {
    AllocationId allocation;
    std::vector<Policy> policies;  ///< that can still match; empty for commands
  };
  std::map<TaskId, Task> tasks_;
  std::map<TaskId, std::string> matches_;
  std::set<TrialId> canceled_;
  std::set<std::pair<TrialId, AgentId>> excluded_;
};

}  // namespace det::db
