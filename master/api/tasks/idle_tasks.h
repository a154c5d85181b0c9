// Ends interactive tasks that are not in use, and deletes the keys of shells that have ended.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "master/db/queries/commands.h"

namespace det::api {

struct Context;

/// Records when tasks were used, and kills those with an `idle_timeout` that has passed. A task is in use
/// while data passes through a tunnel to it. After a restart of the master the time of every task begins
/// again. All functions run on the edge worker.
class IdleTasks : public std::enable_shared_from_this<IdleTasks> {
 public:
  /// Time between two looks, and so the precision of the timeout.
  static constexpr Duration kInterval = std::chrono::seconds(5);

  /// The task was used at `when`. An earlier time than the known one changes nothing.
  void touch(const std::string& task, MonoTime when);
  /// Looks for idle tasks and for keys of ended shells when the interval has passed. The database is queried
  /// by another thread.
  void tick(const Context& context, MonoTime now);

 private:
  void check(const Context& context, const std::vector<db::CommandRow>& rows);

  std::map<std::string, MonoTime> used_;  ///< tasks of the last look, and those used since
  MonoTime next_{};
  bool looking_ = false;
};

}  // namespace det::api
