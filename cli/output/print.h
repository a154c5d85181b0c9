// Output of results: tables, CSV, JSON, YAML, times and states. Tables escape the control characters of text
// from the cluster, which could otherwise manipulate the terminal.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <CLI/CLI.hpp>
#include <concepts>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/result.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/common.pb.h"

namespace det::v1 {
class Trial;
}  // namespace det::v1

namespace det::cli {

/// Validator of counts on the command line: at least 1.
inline const CLI::Range kPositive(1, std::numeric_limits<int>::max());

/// `-o`, `--csv`, `--json`, `--yaml` and `--quiet` of a command that shows a table.
struct Output {
  bool csv = false, json = false, yaml = false, quiet = false, wide = false;
  /// Adds -o, --csv, --json and --yaml, which exclude one another.
  void declare(CLI::App& app);
  /// Adds --quiet as well, which prints one line per row with its ids or names.
  void declare_list(CLI::App& app);
  /// Adds -o, --json and --yaml only.
  void declare_value(CLI::App& app);
  /// True with --json or --yaml.
  bool structured() const { return json || yaml; }
  /// True for output that programs parse. Other lines would break it.
  bool for_programs() const { return structured() || csv; }
  /// Prints `table`, or the result of `value` with --json and --yaml. Errors: those of `value`.
  Status print(const Table& table, const std::function<Result<Json>()>& value) const;
  /// Returns the table as CSV or as text.
  std::string text(const Table& table) const;
  /// Prints YAML with --yaml, else JSON.
  void print_value(const Json& value) const;

 private:
  void declare_flags(CLI::App& app);
};
/// Output of a command with the flags of a list only.
struct ListOutput : Output {
  void declare(CLI::App& app) { declare_list(app); }
};
/// Output of a command with the flags --json and --yaml only.
struct ValueOutput : Output {
  void declare(CLI::App& app) { declare_value(app); }
};
/// Prints indented JSON.
void print_json(const Json& value);
/// Prints warnings of the master to stderr, a line each.
void print_warnings(const google::protobuf::RepeatedPtrField<std::string>& warnings);

/// Converts a message to the JSON of the HTTP API: camelCase names, defaults included, 64-bit integers as
/// strings. Errors: kInternal.
Result<Json> to_json(const google::protobuf::Message& message);
/// Converts with sorted keys. A Struct is an unordered map and would print differently from run to run.
Result<Json> to_json(const google::protobuf::Struct& value);
/// Converts a list of messages to a JSON array.
template <typename Messages>
Result<Json> list_to_json(const Messages& messages) {
  Json list = Json::array();
  for (const auto& message : messages) {
    TRY_ASSIGN(Json value, to_json(message));
    list.push_back(std::move(value));
  }
  return list;
}

/// Prints a message as indented JSON. Errors: those of to_json().
template <std::derived_from<google::protobuf::Message> Message>
Status print_json(const Message& message) {
  TRY_ASSIGN(const Json value, to_json(message));
  print_json(value);
  return {};
}
/// Prints a message as YAML, with --json as JSON. Errors: those of to_json().
template <typename Message>
Status print_yaml(const Message& message, const Output& output) {
  TRY_ASSIGN(const Json value, to_json(message));
  Output{.yaml = !output.json}.print_value(value);
  return {};
}

/// Formats the problems of a document in aligned columns, a line each:
/// `const.yaml:14:16  searcher.max_trials   E-CFG-RANGE   must be …`
std::string problem_lines(const std::vector<Problem>& problems);
/// Returns the text on one line, in valid UTF-8. Control characters, ASCII and C1, and characters that change
/// the direction of text are escaped: \x1b, \u202e.
std::string printable(const std::string& text);
/// Same for a text of several lines. Keeps the line breaks and ends the last line.
std::string printable_lines(const std::string& text);

/// Returns "2022-03-02 02:15:18+0000" (UTC), or "N/A" when the time is not set.
std::string time_text(const google::protobuf::Timestamp& time, bool is_set);
/// Returns the state without its prefix: "COMPLETED".
std::string state_text(v1::State state);
std::string state_text(v1::Checkpoint::CheckpointState state);
/// Returns "BUILDING 12s" while the code of a trial is built, else its state.
std::string state_text(const v1::Trial& trial, WallTime now);
/// True for experiments that have ended, and those that are being deleted.
bool is_terminal_state(v1::State state);
/// "True" or "False".
std::string yes_or_no(bool value);
/// Formats with six significant digits.
std::string number_text(double value);

}  // namespace det::cli
