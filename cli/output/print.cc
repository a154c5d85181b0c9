#include "cli/output/print.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>

#include "common/base/text.h"
#include "common/yaml/yaml.h"
#include "det/v1/trial.pb.h"

namespace det::cli {
namespace {

/// Columns on a terminal: counts code points. UTF-8 continuation bytes take no column.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// True for cells that are aligned to the right: digits, a decimal point, a percent sign.
bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.%") == std::string::npos;
}

std::string padded(const std::string& text, std::size_t width, bool right) {
  const std::string spaces(width - std::min(width, width_of(text)), ' ');
  return right ? spaces + text : text + spaces;
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

/// The line that --quiet prints for a row.
std::string ids_of(const Table& table, const std::vector<std::string>& row) {
  std::vector<std::string> ids;
  for (const std::size_t column : table.id_columns) ids.push_back(printable(row[column]));
  return join(ids, " ");
}

template <typename Row>
std::string csv_line(const Row& row) {
  std::vector<std::string> cells;
  for (const std::string& cell : row) cells.push_back(csv_cell(cell));
  return join(cells, ",") + "\r\n";
}

}  // namespace

std::string printable(const std::string& text) {
  std::string result = make_utf8(text);
  if (!has_control_characters(result)) return result;
  const std::string valid = std::exchange(result, "");
  char escape[16];
  for (std::size_t at = 0; at < valid.size();) {
    const auto byte = static_cast<unsigned char>(valid[at]);
    const std::size_t length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    const std::string character = valid.substr(at, length);
    at += length;
    if (!has_control_characters(character)) {
      result += character;
    } else if (character == "\n" || character == "\t") {
      result += ' ';
    } else if (length == 1) {
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      result += escape;
    } else {
      // C1 controls have two bytes, direction marks, overrides and isolates three.
      const auto low = [&](std::size_t i) { return static_cast<unsigned>(character[i]) & 0x3Fu; };
      const unsigned code =
          length == 2 ? (byte & 0x1Fu) << 6 | low(1) : (byte & 0x0Fu) << 12 | low(1) << 6 | low(2);
      std::snprintf(escape, sizeof escape, "\\u%04x", code);
      result += escape;
    }
  }
  return result;
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

void Output::declare(CLI::App& app) {
  CLI::Option* as_csv = app.add_flag("--csv", csv, "Print as CSV.");
  CLI::Option* as_json = app.add_flag("--json", json, "Print as JSON.")->excludes(as_csv);
  app.add_flag("--yaml", yaml, "Print as YAML.")->excludes(as_csv)->excludes(as_json);
}

void Output::declare_list(CLI::App& app) {
  declare(app);
  CLI::Option* only_ids = app.add_flag("-q,--quiet", quiet, "Print only ids or names, one per line.");
  for (const char* other : {"--csv", "--json", "--yaml"}) only_ids->excludes(app.get_option(other));
}

void Output::declare_value(CLI::App& app) {
  CLI::Option* as_json = app.add_flag("--json", json, "Print as JSON.");
  app.add_flag("--yaml", yaml, "Print as YAML.")->excludes(as_json);
}

void print_warnings(const google::protobuf::RepeatedPtrField<std::string>& warnings) {
  for (const std::string& warning : warnings) std::cerr << "warning: " << printable(warning) << '\n';
}

void print_json(const Json& value) { std::cout << dump_json(value, 2) << '\n'; }

Status Output::print(const Table& table, const std::function<Result<Json>()>& value) const {
  if (structured()) {
    TRY_ASSIGN(const Json made, value());
    print_value(made);
  } else if (quiet) {
    for (const auto& row : table.rows) std::cout << ids_of(table, row) << '\n';
  } else {
    std::cout << (csv ? to_csv(table) : to_text(table));
  }
  return {};
}

void Output::print_value(const Json& value) const {
  if (yaml) {
    std::cout << to_yaml(value);
  } else {
    print_json(value);
  }
}

Result<Json> to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  // Programs expect every field, also one with its default value.
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok())
    return fail(Code::kInternal, "the master's response cannot be converted to JSON: " + status.ToString());
  // Limits far above those for input from users: the master is trusted.
  return parse_json(text, {.bytes = 1 << 30, .depth = 100});
}

Result<Json> to_json(const google::protobuf::Struct& value) {
  // nlohmann::json keeps its keys sorted; Json keeps the order of insertion.
  TRY_ASSIGN(const Json json, to_json(static_cast<const google::protobuf::Message&>(value)));
  return Json(nlohmann::json(json));
}

std::string problem_lines(const std::vector<Problem>& problems) {
  std::vector<std::array<std::string, 4>> rows;
  std::array<std::size_t, 3> widths{};
  for (const Problem& problem : problems) {
    std::string place = problem.file;
    if (problem.line > 0) place += ":" + std::to_string(problem.line) + ":" + std::to_string(problem.column);
    rows.push_back({printable(place), printable(problem.path), problem.code, printable(problem.message)});
    for (std::size_t i = 0; i < 3; ++i) widths[i] = std::max(widths[i], width_of(rows.back()[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (widths[i] > 0) text += padded(row[i], widths[i], false) + "  ";
    }
    text += row[3] + "\n";
  }
  return text;
}

std::string printable_lines(const std::string& text) {
  std::string out;
  const std::string_view body = std::string_view(text).substr(0, text.find_last_not_of('\n') + 1);
  for (const std::string& line : split(body, '\n')) out += printable(line) + "\n";
  return out;
}

std::string time_text(const google::protobuf::Timestamp& time, bool is_set) {
  if (!is_set) return "N/A";
  const std::time_t seconds = time.seconds();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S+0000", &parts);
  return text;
}

namespace {
std::string without_prefix(const std::string& name) {
  return name.starts_with("STATE_") ? name.substr(6) : name;
}
}  // namespace

std::string state_text(v1::State state) { return without_prefix(v1::State_Name(state)); }
std::string state_text(v1::Checkpoint::CheckpointState state) {
  return without_prefix(v1::Checkpoint::CheckpointState_Name(state));
}
std::string state_text(const v1::Trial& trial, WallTime now) {
  if (trial.state() != v1::STATE_PULLING || !trial.has_build_time()) return state_text(trial.state());
  const std::int64_t seconds =
      std::max<std::int64_t>(now.micros / 1'000'000 - trial.build_time().seconds(), 0);
  return "BUILDING " + std::to_string(seconds) + "s";
}
bool is_terminal_state(v1::State state) {
  return state == v1::STATE_COMPLETED || state == v1::STATE_CANCELED || state == v1::STATE_ERROR ||
         state == v1::STATE_DELETED || state == v1::STATE_DELETING || state == v1::STATE_DELETE_FAILED;
}
std::string yes_or_no(bool value) { return value ? "True" : "False"; }

std::string number_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace det::cli
