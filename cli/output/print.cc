#include "cli/output/print.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <iostream>
#include <map>

#include "common/base/text.h"
#include "common/yaml/yaml.h"
#include "det/v1/trial.pb.h"

namespace det::cli {
namespace {

/// The line that --quiet prints for a row.
std::string ids_of(const Table& table, const std::vector<std::string>& row) {
  std::vector<std::string> ids;
  for (const std::size_t column : table.id_columns) ids.push_back(printable(row[column]));
  return join(ids, " ");
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

namespace {
/// Adds `-o` with the formats in [from, to). The flags of the same meaning exclude it.
void add_format(CLI::App& app, Output& output, std::size_t from, std::size_t to) {
  static const std::vector<std::pair<std::string, bool Output::*>> formats{{"wide", &Output::wide},
                                                                           {"json", &Output::json},
                                                                           {"yaml", &Output::yaml},
                                                                           {"csv", &Output::csv},
                                                                           {"name", &Output::quiet}};
  std::map<std::string, bool Output::*> known(formats.begin() + static_cast<std::ptrdiff_t>(from),
                                              formats.begin() + static_cast<std::ptrdiff_t>(to));
  std::vector<std::string> names;
  for (std::size_t i = from; i < to; ++i) names.push_back(formats[i].first);
  CLI::Option* option =
      app.add_option_function<std::string>(
             "-o,--output", [&output, known](const std::string& name) { output.*known.at(name) = true; },
             "Format: " + join(names, ", ") + ".")
          ->check(CLI::IsMember(names))
          ->type_name("FORMAT");
  for (const char* flag : {"--csv", "--json", "--yaml", "--quiet"})
    if (CLI::Option* other = app.get_option_no_throw(flag)) option->excludes(other);
}
}  // namespace

void Output::declare_flags(CLI::App& app) {
  CLI::Option* as_csv = app.add_flag("--csv", csv, "Print as CSV.");
  CLI::Option* as_json = app.add_flag("--json", json, "Print as JSON.")->excludes(as_csv);
  app.add_flag("--yaml", yaml, "Print as YAML.")->excludes(as_csv)->excludes(as_json);
}

void Output::declare(CLI::App& app) {
  declare_flags(app);
  add_format(app, *this, 0, 4);
}

void Output::declare_list(CLI::App& app) {
  declare_flags(app);
  CLI::Option* only_ids = app.add_flag("-q,--quiet", quiet, "Print only ids or names, one per line.");
  for (const char* other : {"--csv", "--json", "--yaml"}) only_ids->excludes(app.get_option(other));
  add_format(app, *this, 0, 5);
}

void Output::declare_value(CLI::App& app) {
  CLI::Option* as_json = app.add_flag("--json", json, "Print as JSON.");
  app.add_flag("--yaml", yaml, "Print as YAML.")->excludes(as_json);
  add_format(app, *this, 1, 3);
}

std::string Output::text(const Table& table) const {
  return csv ? to_csv(table) : shown(table, wide ? Look::Fit::kWide : Look::Fit::kHide);
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
    std::cout << text(table);
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
      if (widths[i] > 0) text += padded(row[i], widths[i]) + "  ";
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
