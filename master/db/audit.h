// Owns the log of who changed what and who was refused. Rows are only ever added.
#pragma once

#include "master/db/queries.h"

namespace det::db {

struct AuditRow {
  std::int64_t id = 0;
  WallTime time;
  std::optional<UserId> user;  ///< none: nobody who is known
  std::string username;        ///< as claimed, when nobody was let in
  std::string action;          ///< "ExperimentService/KillExperiment"
  std::string object;          ///< "experiment 7"; "" when the call names none
  std::string outcome;         ///< "OK" or the name of gRPC's code: "PermissionDenied"
  std::string address;
};

/// id and time are the database's.
Status add_audit(Pool& pool, const AuditRow& row);

/// Empty members do not filter.
struct AuditFilter {
  std::string username;
  std::optional<WallTime> after;
  Window window;  ///< newest first when descending
};
Result<Page<AuditRow>> list_audit(Pool& pool, const AuditFilter& filter);

}  // namespace det::db
