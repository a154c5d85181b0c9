// Named log policies of experiments: remembers the first one that a line of a trial matches. Used by the log
// thread only.
#pragma once

#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "master/db/ingest/bulk.h"

namespace det::db {

class LogPolicies {
 public:
  /// Reads the policies of tasks that are not known yet, with one statement.
  Status load(Connection& connection, const std::vector<LogBatch>& batches);
  /// Notes the first policy that the line matches, unless its task has one already.
  void match(const LogBatch& batch, const LogLine& line);
  /// Stores in the open transaction the matches since the last call. A stored match stays.
  Status store(Connection& connection);

 private:
  struct Policy {
    std::string name;
    std::unique_ptr<re2::RE2> pattern;
  };
  /// Policies that can still match. Empty for commands, and after a match.
  std::map<TaskId, std::vector<Policy>> tasks_;
  std::map<TaskId, std::string> matches_;
};

}  // namespace det::db
