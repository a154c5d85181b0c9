// Owns how results look: tables, CSV, JSON, times, states. Whatever came from the cluster is made harmless to
// a terminal.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "det/v1/checkpoint.pb.h"
#include "det/v1/common.pb.h"

namespace det::cli {

/// For counts on the command line.
inline const CLI::Range kPositive(1, std::numeric_limits<int>::max());

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> id_columns = {0};  ///< what --quiet prints of a row
};
/// For people: columns aligned, numbers to the right.
std::string to_text(const Table& table);
/// RFC 4180.
std::string to_csv(const Table& table);

/// `--csv`, `--json` and `--yaml` of a command that shows a table.
struct Output {
  bool csv = false, json = false, yaml = false, quiet = false;
  void declare(CLI::App& app);
  /// The same for a list: also `--quiet`, which prints what names the rows, a line each.
  void declare_list(CLI::App& app);
  /// A value is wanted, not a table.
  bool structured() const { return json || yaml; }
  /// Prints the table, or with --json and --yaml what `value` makes.
  Status print(const Table& table, const std::function<Result<Json>()>& value) const;
  /// As JSON or YAML.
  void print_value(const Json& value) const;
};
void print_json(const Json& value);

/// The API's own JSON of a message: camelCase, defaults written out, 64-bit integers as strings.
Result<Json> to_json(const google::protobuf::Message& message);
/// With sorted keys: a struct has no order, and would print in another one each time.
Result<Json> to_json(const google::protobuf::Struct& value);
template <typename Messages>
Result<Json> list_to_json(const Messages& messages) {
  Json list = Json::array();
  for (const auto& message : messages) {
    TRY_ASSIGN(Json value, to_json(message));
    list.push_back(std::move(value));
  }
  return list;
}

/// `const.yaml:14:16  searcher.max_trials   E-CFG-RANGE   must be …`, a line each, columns aligned.
std::string problem_lines(const std::vector<Problem>& problems);
/// Control characters escaped: one line, no tricks with the terminal.
std::string printable(const std::string& text);
/// The same for a text of several lines: they stay, and the last one ends.
std::string printable_lines(const std::string& text);

std::string time_text(const google::protobuf::Timestamp& time,
                      bool is_set);       ///< "2022-03-02 02:15:18+0000", "N/A"
std::string state_text(v1::State state);  ///< "COMPLETED"
std::string state_text(v1::Checkpoint::CheckpointState state);
bool is_terminal_state(v1::State state);
std::string yes_or_no(bool value);
/// Six significant digits.
std::string number_text(double value);

}  // namespace det::cli
