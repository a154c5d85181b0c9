// Columns of the table of experiments and of the table of runs, by their names in the API.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace det::db {

/// Type of a column; it selects how values are compared and sorted.
enum class ColumnKind { kNumber, kText, kState, kTime, kArray, kFlag, kJson };
/// Table that the expression of a column reads. Only those of a statement's columns are joined.
enum class ColumnTable { kExperiments, kSummaries, kOwner };
/// Expression of a column in the statement of a search.
struct Sortable {
  std::string sql;
  ColumnKind kind = ColumnKind::kText;
  ColumnTable table = ColumnTable::kExperiments;
  bool cheap = true;        ///< can be evaluated several times
  bool never_null = false;  ///< sorted as by its index, which is read backward for descending order
};

/// Tables: e (experiments), u (users, the owner), best (experiment_summaries).
const std::map<std::string_view, Sortable>& experiment_columns();
/// Tables: t (trials), e (experiments), u (users, the owner).
const std::map<std::string_view, Sortable>& run_columns();

}  // namespace det::db
