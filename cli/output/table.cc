#include "cli/output/table.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/text.h"

namespace det::cli {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string spaces(width - std::min(width, width_of(text)), ' ');
  return right ? spaces + text : text + spaces;
}

namespace {

/// Columns of a terminal between two columns of a table.
constexpr std::size_t kGap = 2;
/// Text is not shortened below this width.
constexpr std::size_t kLeastText = 12;
/// Width of a column with an object of JSON, such as hyperparameters, that may be shortened.
constexpr std::size_t kLeastObject = 20;

constexpr const char* kBold = "\033[1m";
constexpr const char* kDim = "\033[2m";
constexpr const char* kPlain = "\033[0m";

/// True for cells that are aligned to the right: digits, a decimal point, a percent sign.
bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.%") == std::string::npos;
}

std::string trimmed_end(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// Quotes a cell where RFC 4180 requires it.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

template <typename Row>
std::string csv_line(const Row& row) {
  std::vector<std::string> cells;
  for (const std::string& cell : row) cells.push_back(csv_cell(cell));
  return join(cells, ",") + "\r\n";
}

/// Parses the text of time_text(); unset for other text.
std::optional<WallTime> time_of(const std::string& text) {
  constexpr std::size_t kSeconds = 19;  // "2022-03-02 02:15:18"
  if (text.size() != kSeconds + 5 || !text.ends_with("+0000") || text[10] != ' ') return std::nullopt;
  const auto time = parse_rfc3339(text.substr(0, 10) + "T" + text.substr(11, 8) + "Z");
  return time ? std::optional(*time) : std::nullopt;
}

/// `{"lr":0.1,"width":8}` as `lr=0.1 width=8`; unset for other text.
std::optional<std::string> object_text(const std::string& text) {
  if (!text.starts_with("{") || !text.ends_with("}")) return std::nullopt;
  const auto object = parse_json(text);
  if (!object || !object->is_object()) return std::nullopt;
  std::vector<std::string> parts;
  for (const auto& [name, value] : object->items())
    parts.push_back(name + "=" + (value.is_string() ? value.template get<std::string>() : dump_json(value)));
  return join(parts, " ");
}

/// Escape sequence of a state; "" without a color.
std::string color_of(const std::string& state) {
  constexpr const char *kGreen = "\033[32m", *kRed = "\033[31m", *kYellow = "\033[33m", *kBlue = "\033[34m";
  static const std::map<std::string, const char*> colors{
      {"COMPLETED", kGreen}, {"RUNNING", kBlue},       {"ERROR", kRed},      {"DELETE_FAILED", kRed},
      {"FAILED", kRed},      {"STOPPING_ERROR", kRed}, {"QUEUED", kYellow},  {"PULLING", kYellow},
      {"STARTING", kYellow}, {"BUILDING", kYellow},    {"WAITING", kYellow}, {"CANCELED", kDim},
      {"TERMINATED", kDim},  {"DELETED", kDim},        {"PAUSED", kDim},
  };
  // "BUILDING 12s"
  const auto found = colors.find(state.substr(0, state.find(' ')));
  return found == colors.end() ? "" : found->second;
}

/// A column of a table as a terminal shows it.
struct Shown {
  std::string name;
  std::vector<std::string> cells;
  std::size_t width = 0, least = 0;  ///< current width; width below which it is not shortened
  bool right = false, state = false;
};

Shown shown_column(const Table& table, std::size_t at, WallTime now) {
  Shown column{.name = table.columns[at], .cells = {}};
  column.state = column.name == "State" || column.name == "Outcome";
  column.right = !table.rows.empty();
  bool short_cells = true, objects = false;
  for (const auto& row : table.rows) {
    std::string cell = row[at];
    if (const auto time = time_of(cell)) {
      cell = relative_time(*time, now);
    } else if (cell == "N/A") {
      cell = "-";
    } else if (const auto object = object_text(cell)) {
      cell = printable(*object);
      short_cells = false;
      objects = true;
    } else {
      cell = printable(cell);
      short_cells =
          short_cells && cell.find_first_of(" /") == std::string::npos && width_of(cell) <= kLeastText;
    }
    column.right = column.right && (is_number(cell) || cell.empty() || cell == "-");
    column.width = std::max(column.width, width_of(cell));
    column.cells.push_back(std::move(cell));
  }
  column.width = std::max(column.width, width_of(column.name));
  // A part of an id is of no use: it is copied into other commands.
  const bool is_id =
      column.name.ends_with("ID") || column.name.ends_with("Id") ||
      std::find(table.id_columns.begin(), table.id_columns.end(), at) != table.id_columns.end();
  const std::size_t least = std::max(width_of(column.name), objects ? kLeastObject : kLeastText);
  column.least =
      is_id || column.right || column.state || short_cells ? column.width : std::min(column.width, least);
  return column;
}

/// True for columns that a terminal shows with `-o wide` only: wide ones, and those without any text.
bool is_left_out(const Table& table, std::size_t at) {
  if (std::find(table.wide.begin(), table.wide.end(), table.columns[at]) != table.wide.end()) return true;
  return !table.rows.empty() &&
         std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) { return row[at].empty(); });
}

std::size_t total(const std::vector<Shown>& columns, std::size_t Shown::*size) {
  return std::accumulate(columns.begin(), columns.end(), kGap * (columns.size() - 1),
                         [&](std::size_t sum, const Shown& each) { return sum + each.*size; });
}

/// Hides the last columns as long as the others do not fit. Returns the number of hidden ones.
std::size_t hide(std::vector<Shown>& columns, std::size_t width) {
  const std::size_t before = columns.size();
  while (columns.size() > 1 && total(columns, &Shown::least) > width) columns.pop_back();
  return before - columns.size();
}

/// Takes width from the widest columns until the table fits, or no column can be shortened further.
void shorten(std::vector<Shown>& columns, std::size_t width) {
  while (total(columns, &Shown::width) > width) {
    Shown* widest = nullptr;
    for (Shown& each : columns)
      if (each.width > each.least && (widest == nullptr || each.width > widest->width)) widest = &each;
    if (widest == nullptr) return;
    --widest->width;
  }
}

/// The first `width` characters of a text; the last one of these is "…" when the text is longer.
std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  std::size_t at = 0;
  for (std::size_t characters = 0; at < text.size(); ++at) {
    if ((text[at] & 0xC0) != 0x80 && ++characters == width) break;
  }
  return text.substr(0, at) + "…";
}

std::string terminal_row(const std::vector<Shown>& columns, std::size_t row, bool color) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Shown& column = columns[i];
    const std::string cell = cut(column.cells[row], column.width);
    const std::string begin = !color ? "" : column.state ? color_of(cell) : cell == "-" ? kDim : "";
    const bool last = i + 1 == columns.size();
    const std::string text = last && !column.right ? cell : padded(cell, column.width, column.right);
    line += (i == 0 ? "" : std::string(kGap, ' ')) + begin + text + (begin.empty() ? "" : kPlain);
  }
  return trimmed_end(line);
}

}  // namespace

std::string relative_time(WallTime time, WallTime now) {
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour, kMaxDays = 30;
  const std::int64_t apart = (now.micros - time.micros) / 1'000'000, seconds = std::abs(apart);
  if (seconds > kMaxDays * kDay) return to_rfc3339(time).substr(0, 10);
  const std::string amount = seconds < kMinute    ? std::to_string(seconds) + "s"
                             : seconds < kHour    ? std::to_string(seconds / kMinute) + "m"
                             : seconds < 2 * kDay ? std::to_string(seconds / kHour) + "h"
                                                  : std::to_string(seconds / kDay) + "d";
  return apart >= 0 ? amount + " ago" : "in " + amount;
}

std::string to_terminal(const Table& table, const Look& look) {
  const auto width = static_cast<std::size_t>(std::max(look.width, 1));
  std::vector<Shown> columns;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (look.fit == Look::Fit::kHide && is_left_out(table, i)) continue;
    columns.push_back(shown_column(table, i, look.now));
  }
  const std::size_t hidden = look.fit == Look::Fit::kHide ? hide(columns, width) : 0;
  if (look.fit != Look::Fit::kWide) shorten(columns, width);
  std::string head;
  for (const Shown& column : columns)
    head += (head.empty() ? "" : std::string(kGap, ' ')) + padded(column.name, column.width, column.right);
  head = trimmed_end(head);
  head.pop_back();
  std::string text = (look.color ? kBold + head + kPlain : head) + "\n";
  for (std::size_t row = 0; row < table.rows.size(); ++row) text += terminal_row(columns, row, look.color);
  std::string notes = table.rows.empty() ? "none\n" : "";
  if (table.more > 0) notes += std::to_string(table.more) + " more: --limit N, or --pages all\n";
  if (hidden > 0 && !table.rows.empty())
    notes += std::to_string(hidden) + (hidden == 1 ? " column does" : " columns do") + " not fit: -o wide\n";
  return text + (look.color && !notes.empty() ? kDim + notes + kPlain : notes);
}

std::string to_text(const Table& table) {
  const std::size_t count = table.columns.size();
  std::vector<std::size_t> widths(count);
  // A column is aligned to the right when all of its cells are numbers or empty.
  std::vector<bool> right(count, !table.rows.empty());
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < count; ++i) widths[i] = width_of(table.columns[i]);
  for (const auto& row : table.rows) {
    rows.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      rows.back().push_back(printable(row[i]));
      widths[i] = std::max(widths[i], width_of(rows.back()[i]));
      right[i] = right[i] && (is_number(row[i]) || row[i].empty());
    }
  }
  std::string head, line, text;
  for (std::size_t i = 0; i < count; ++i) {
    head += (i == 0 ? " " : " | ") + padded(table.columns[i], widths[i], right[i]);
    line += (i == 0 ? "" : "+") + std::string(widths[i] + 2, '-');
  }
  // No line ends with spaces.
  text = trimmed_end(head) + line + "\n";
  for (const auto& row : rows) {
    std::string cells;
    for (std::size_t i = 0; i < count; ++i)
      cells += (i == 0 ? " " : " | ") + padded(row[i], widths[i], right[i]);
    text += trimmed_end(cells);
  }
  return text;
}

std::string to_csv(const Table& table) {
  std::string text = csv_line(table.columns);
  for (const auto& row : table.rows) text += csv_line(row);
  return text;
}

std::string shown(const Table& table, Look::Fit fit) {
  if (!is_terminal(STDOUT_FILENO)) return to_text(table);
  return to_terminal(table, {.fit = fit,
                             .width = terminal_width(STDOUT_FILENO),
                             .color = wants_color(STDOUT_FILENO),
                             .now = wall_now()});
}

}  // namespace det::cli
