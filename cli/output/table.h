// Tables of results: aligned text, text that fits a terminal, CSV. Pure, except for shown().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/clock.h"

namespace det::cli {

/// Rows of cells; each row has one cell per column.
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> id_columns = {0};  ///< indices of the columns that --quiet prints
  std::vector<std::string> wide = {};         ///< names of columns that a terminal shows with `-o wide` only
  std::int64_t more = 0;                      ///< rows that --limit has left out
};

/// Properties of the terminal that shows a table.
struct Look {
  enum class Fit {
    kHide,     ///< shortens text and hides the last columns: the command has `-o wide`
    kShorten,  ///< shortens text only
    kWide,     ///< shows all columns in full
  };
  Fit fit = Fit::kShorten;
  int width = 80;  ///< in columns
  bool color = false;
  WallTime now;
};

/// Formats a table for a terminal: fits its width, times relative to now, states in color, objects of JSON as
/// `name=value`. Cells as printable() returns them. Lines below the table tell what is left out.
std::string to_terminal(const Table& table, const Look& look);
/// Formats a table for programs and files: aligned columns, numbers to the right, cells as printable()
/// returns them.
std::string to_text(const Table& table);
/// Formats a table as CSV (RFC 4180), with CRLF line ends.
std::string to_csv(const Table& table);
/// Returns to_terminal() when standard output is a terminal, else to_text().
std::string shown(const Table& table, Look::Fit fit = Look::Fit::kShorten);

/// Columns that a text takes on a terminal: its code points.
std::size_t width_of(const std::string& text);
/// Fills up with spaces to `width`, on the left side when `right` is set.
std::string padded(const std::string& text, std::size_t width, bool right = false);
/// Returns the time between `time` and `now`: "12s ago", "5m ago", "3h ago", "2d ago", "in 5m"; the date of a
/// time that is more than 30 days away.
std::string relative_time(WallTime time, WallTime now);

}  // namespace det::cli
