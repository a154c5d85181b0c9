// Import of a Determined AI 0.38 database into an empty one of this platform. Ids, times, metrics and logs
// are kept as they are; docs/moving-from-determined.md lists what is left out.
//
// The import is one transaction of the target, so a failed or interrupted one leaves nothing behind. The
// source is only read, in one snapshot. Single-threaded; both connections must be idle and outlive the call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "master/db/pg/pg.h"

namespace det::import {

struct ImportOptions {
  /// Imports the logs of trials, often the largest part.
  bool logs = true;
  /// Called from the importing thread with the kind of rows ("metrics") and their number so far.
  std::function<void(const std::string& what, std::int64_t rows)> progress;
};

struct ImportReport {
  struct Count {
    std::string what;  ///< "experiments", "training metrics", …
    std::int64_t rows = 0;
  };
  std::vector<Count> counts;
  /// What differs from the source, in sentences for the administrator.
  std::vector<std::string> notes;
};

/// Imports everything that `from` holds into `to`; its schema must be current. The first user keeps the
/// password that it has in `to`; other users keep those of the source. Experiments and trials that had not
/// ended are canceled. Errors: kFailedPrecondition (`from` is not a database of Determined AI 0.38, or `to`
/// has experiments, models, or users besides the first); those of both databases.
Result<ImportReport> import_determined(db::Connection& from, db::Connection& to,
                                       const ImportOptions& options);

}  // namespace det::import
