// Log policies of experiments: remembers the first named one that a line of a trial matches, and the trials
// whose restarts are canceled by one. Used by the log thread only.
#pragma once

#include <re2/re2.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "master/db/ingest/bulk.h"

namespace det::db {

class LogPolicies {
 public:
  /// Reads the policies of tasks that are not known yet, with one statement.
  Status load(Connection& connection, const std::vector<LogBatch>& batches);
  /// Notes the first named policy that the line matches, unless its task has one already, and the trial of
  /// the task if the policy cancels retries.
  void match(const LogBatch& batch, const LogLine& line);
  /// Stores in the open transaction the matches since the last call. A stored match stays.
  Status store(Connection& connection);
  /// Returns the trials with canceled retries since the last call.
  std::set<TrialId> take_canceled() { return std::exchange(canceled_, {}); }

 private:
  struct Policy {
    TrialId trial;
    std::string name;  ///< "": not shown
    std::unique_ptr<re2::RE2> pattern;
    bool cancels = false;  ///< the action is cancel_retries
  };
  /// Policies that can still match. Empty for commands.
  std::map<TaskId, std::vector<Policy>> tasks_;
  std::map<TaskId, std::string> matches_;
  std::set<TrialId> canceled_;
};

}  // namespace det::db
