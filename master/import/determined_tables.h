// The tables of a Determined AI 0.38 database that are imported, as statements. Private to the import.
#pragma once

#include <vector>

namespace det::import {

/// Rows of one kind: `select` runs on the source and yields `columns` of `table` in the target.
struct TableCopy {
  const char* what;  ///< name in the report
  const char* table;
  const char* columns;
  const char* select;
  bool logs = false;           ///< skipped when logs are not wanted
  const char* then = nullptr;  ///< runs on the target after the rows
};

/// All copies in an order that satisfies the foreign keys of the target.
const std::vector<TableCopy>& table_copies();

/// Run on the target before and after the copies. Tables named imported_… are temporary: they hold rows whose
/// ids may exist already.
extern const char* const kBeforeCopies;
extern const char* const kAfterCopies;

}  // namespace det::import
