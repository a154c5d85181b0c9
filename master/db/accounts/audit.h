// Audit log of changes and refused calls. Rows are only appended.
#pragma once

#include "master/db/queries/page.h"

namespace det::db {

/// One audited call.
struct AuditRow {
  std::int64_t id = 0;
  WallTime time;
  std::optional<UserId> user;  ///< Unset when the caller was not authenticated.
  std::string username;        ///< User name; the claimed name when authentication failed.
  std::string action;          ///< gRPC method, such as "ExperimentService/KillExperiment".
  std::string object;          ///< Target of the call, such as "experiment 7"; "" when it has none.
  std::string outcome;         ///< "OK" or the gRPC status name, such as "PermissionDenied".
  /// Client address.
  std::string address;
};

/// Appends a row. The database assigns id and time; the values in `row` are ignored.
Status add_audit(Pool& pool, const AuditRow& row);

/// Filter of list_audit(). Empty members match every row.
struct AuditFilter {
  std::string username;
  std::optional<WallTime> after;
  Window window;  ///< Descending lists the newest rows first.
};
/// Lists audit rows by id.
Result<Page<AuditRow>> list_audit(Pool& pool, const AuditFilter& filter);

}  // namespace det::db
