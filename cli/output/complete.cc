#include "cli/output/complete.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/job.methods.h"
#include "det/v1/role.methods.h"
#include "det/v1/run.methods.h"
#include "det/v1/template.methods.h"
#include "det/v1/token.methods.h"
#include "det/v1/user.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {
namespace {

using Candidates = std::vector<Candidate>;
// Limits of what a completion fetches: the whole query has 800 ms (cli/output/completion.cc).
constexpr int kNewest = 100, kNewestForTrials = 10, kNewestForCheckpoints = 5;

// ---- candidates from the master ----

/// The arguments before the cursor, and the part of the word at the cursor that is typed.
struct Typed {
  const std::vector<std::string>& before;
  const std::string& begun;
};
using Source = std::function<Result<Candidates>(Client&, const Typed&)>;

/// Newest experiments first, at most `count`. `from` and `to` limit the ids, unless they are 0.
Result<v1::GetExperimentsResponse> newest_experiments(Client& client, int count, int from = 0, int to = 0) {
  v1::GetExperimentsRequest request;
  request.set_sort_by(v1::GetExperimentsRequest::SORT_BY_ID);
  request.set_order_by(v1::ORDER_BY_DESC);
  request.set_limit(count);
  if (from > 0) request.mutable_experiment_id_filter()->mutable_gte()->set_value(from);
  if (to > 0) request.mutable_experiment_id_filter()->mutable_lte()->set_value(to);
  return client.call(v1::ExperimentService::GetExperiments, request);
}

/// The ids that begin with these digits, as ranges: "12" are 12, 120 to 129, 1200 to 1299 and so on. Empty
/// for other text.
std::vector<std::pair<int, int>> ids_from(const std::string& begun) {
  std::int64_t first = 0;
  const auto [end, error] = std::from_chars(begun.data(), begun.data() + begun.size(), first);
  std::vector<std::pair<int, int>> ranges;
  if (error != std::errc() || end != begun.data() + begun.size() || first < 1) return ranges;
  constexpr std::int64_t kMax = std::numeric_limits<int>::max();
  for (std::int64_t count = 1; first <= kMax; first *= 10, count *= 10)
    ranges.emplace_back(static_cast<int>(first), static_cast<int>(std::min(first + count - 1, kMax)));
  return ranges;
}

/// The newest experiments; of more than a page of them, those whose ids begin with the typed digits.
Result<Candidates> experiments(Client& client, const Typed& typed) {
  TRY_ASSIGN(const auto newest, newest_experiments(client, kNewest));
  std::vector<v1::Experiment> all(newest.experiments().begin(), newest.experiments().end());
  if (newest.pagination().total() > kNewest && !typed.begun.empty()) {
    all.clear();
    for (const auto& [from, to] : ids_from(typed.begun)) {
      if (from > newest.experiments(0).id()) break;
      TRY_ASSIGN(const auto part, newest_experiments(client, kNewest, from, to));
      all.insert(all.end(), part.experiments().begin(), part.experiments().end());
    }
  }
  Candidates found;
  for (const v1::Experiment& each : all)
    found.push_back({std::to_string(each.id()), each.name() + ", " + state_text(each.state())});
  return found;
}

/// Trials of all experiments whose ids begin with the typed digits, newest first.
Result<Candidates> trials_from(Client& client, const std::vector<std::pair<int, int>>& ranges) {
  const auto limit = [](const char* sign, int value) {
    return Json{{"kind", "field"}, {"columnName", "id"}, {"operator", sign}, {"value", value}};
  };
  Json any = Json::array();
  for (const auto& [from, to] : ranges)
    any.push_back(
        {{"kind", "group"}, {"conjunction", "and"}, {"children", {limit(">=", from), limit("<=", to)}}});
  v1::SearchRunsRequest request;
  request.set_limit(kNewest);
  request.set_sort("id=desc");
  request.set_filter(
      dump_json({{"filterGroup", {{"kind", "group"}, {"conjunction", "or"}, {"children", any}}},
                 {"showArchived", true}}));
  TRY_ASSIGN(const auto response, client.call(v1::RunService::SearchRuns, request));
  Candidates found;
  for (const v1::FlatRun& each : response.runs())
    found.push_back({std::to_string(each.id()), "of experiment " + std::to_string(each.experiment().id()) +
                                                    ", " + state_text(each.state())});
  return found;
}

/// Trials that begin with the typed digits; without digits those of the newest experiments, one call per
/// experiment.
Result<Candidates> trials(Client& client, const Typed& typed) {
  if (const auto ranges = ids_from(typed.begun); !ranges.empty()) return trials_from(client, ranges);
  TRY_ASSIGN(const auto all, newest_experiments(client, kNewestForTrials));
  Candidates found;
  for (const v1::Experiment& experiment : all.experiments()) {
    TRY_ASSIGN(const auto list, get_trials(client, experiment.id(), Paging{.limit = kNewest}));
    for (const v1::Trial& each : list)
      found.push_back({std::to_string(each.id()),
                       "of experiment " + std::to_string(experiment.id()) + ", " + state_text(each.state())});
  }
  return found;
}

/// Checkpoints of the newest experiments, one call or more per experiment.
Result<Candidates> checkpoints(Client& client, const Typed&) {
  TRY_ASSIGN(const auto all, newest_experiments(client, kNewestForCheckpoints));
  Candidates found;
  for (const v1::Experiment& experiment : all.experiments()) {
    TRY_ASSIGN(const auto list, get_checkpoints(client, experiment.id()));
    for (const v1::Checkpoint& each : list)
      found.push_back({each.uuid(), "experiment " + std::to_string(experiment.id()) + ", batch " +
                                        std::to_string(each.steps_completed())});
  }
  return found;
}

Result<Candidates> agents(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response, client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest()));
  Candidates found;
  for (const v1::Agent& each : response.agents())
    found.push_back({each.id(), std::to_string(each.slots().size()) + " slots"});
  return found;
}

/// Slots of the agent that precedes the cursor.
Result<Candidates> slots(Client& client, const Typed& typed) {
  TRY_ASSIGN(const auto response, client.call(v1::ClusterService::GetAgents, v1::GetAgentsRequest()));
  Candidates found;
  for (const v1::Agent& agent : response.agents()) {
    if (typed.before.empty() || agent.id() != typed.before.front()) continue;
    for (const auto& [id, slot] : agent.slots()) found.push_back({id, slot.device().brand()});
  }
  return found;
}

Result<Candidates> jobs(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response, client.call(v1::JobService::GetJobs, v1::GetJobsRequest()));
  Candidates found;
  for (const v1::Job& each : response.jobs()) found.push_back({each.entity_id(), each.name()});
  return found;
}

Result<Candidates> users(Client& client, const Typed&) {
  TRY_ASSIGN(const auto names, user_names(client));
  Candidates found;
  for (const auto& [id, name] : names) found.push_back({name, ""});
  return found;
}

Result<Candidates> workspaces(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response,
             client.call(v1::WorkspaceService::GetWorkspaces, v1::GetWorkspacesRequest()));
  Candidates found;
  for (const v1::Workspace& each : response.workspaces()) found.push_back({each.name(), ""});
  return found;
}

/// Projects of the workspace that precedes the cursor.
Result<Candidates> projects(Client& client, const Typed& typed) {
  if (typed.before.empty()) return Candidates();
  TRY_ASSIGN(const v1::Workspace workspace, find_workspace(client, typed.before.back()));
  v1::GetWorkspaceProjectsRequest request;
  request.set_id(workspace.id());
  TRY_ASSIGN(const auto response, client.call(v1::WorkspaceService::GetWorkspaceProjects, request));
  Candidates found;
  for (const v1::Project& each : response.projects()) found.push_back({each.name(), each.description()});
  return found;
}

Result<Candidates> templates(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response, client.call(v1::TemplateService::GetTemplates, v1::GetTemplatesRequest()));
  Candidates found;
  for (const v1::Template& each : response.templates()) found.push_back({each.name(), ""});
  return found;
}

Result<Candidates> roles(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response, client.call(v1::RoleService::ListRoles, v1::ListRolesRequest()));
  Candidates found;
  for (const v1::Role& each : response.roles()) found.push_back({each.name(), ""});
  return found;
}

Result<Candidates> groups(Client& client, const Typed&) {
  TRY_ASSIGN(const auto names, group_names(client));
  Candidates found;
  for (const auto& [id, name] : names) found.push_back({name, ""});
  return found;
}

Result<Candidates> tokens(Client& client, const Typed&) {
  TRY_ASSIGN(const auto response,
             client.call(v1::TokenService::GetAccessTokens, v1::GetAccessTokensRequest()));
  Candidates found;
  for (const v1::TokenInfo& each : response.token_info())
    found.push_back({std::to_string(each.id()), each.description()});
  return found;
}

/// Source of each argument and flag. Keys, the most specific first: "noun verb ARGUMENT", "noun ARGUMENT",
/// the name of the argument alone, or a flag.
const std::map<std::string, Source>& sources() {
  static const std::map<std::string, Source> table{
      {"experiment ID", experiments},
      {"experiment IDS", experiments},
      {"experiment A", experiments},
      {"experiment B", experiments},
      {"explain experiment ID", experiments},
      {"checkpoint ID", experiments},
      {"trial ID", trials},
      {"explain trial ID", trials},
      {"checkpoint UUID", checkpoints},
      {"checkpoint UUIDS", checkpoints},
      {"--uuid", checkpoints},
      {"AGENT", agents},
      {"SLOT", slots},
      {"JOB", jobs},
      {"--ahead-of", jobs},
      {"--behind-of", jobs},
      {"user NAME", users},
      {"USER", users},
      {"-u", users},
      {"--user", users},
      {"--username-to-assign", users},
      {"--groups-user-belongs-to", users},
      {"--add-user", users},
      {"GROUP", groups},
      {"-g", groups},
      {"--group-name-to-assign", groups},
      {"workspace NAME", workspaces},
      {"WORKSPACE", workspaces},
      {"--workspace-name", workspaces},
      {"-w", workspaces},
      {"PROJECT", projects},
      {"template NAME", templates},
      {"--template", templates},
      {"ROLE", roles},
      {"token ID", tokens},
  };
  return table;
}

/// Values that do not depend on the cluster. Same keys as sources().
const std::map<std::string, std::vector<std::string>>& fixed_words() {
  static const std::map<std::string, std::vector<std::string>> table{
      {"SHELL", {"bash", "zsh", "fish"}},
      {"init --template", {"classification", "core-api", "language"}},
      {"WORKLOAD", {"experiment", "tasks"}},
      {"--pages", {"1", "all"}},
      {"--output", {"wide", "json", "yaml", "csv", "name"}},
      {"--mode", {"auto", "direct", "master"}},
      {"--active", {"true", "false"}},
      {"--admin", {"true", "false"}},
      {"--role", {"Viewer", "Editor", "WorkspaceAdmin"}},
      {"--stdtype", {"stdout", "stderr"}},
      {"--level", {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}},
  };
  return table;
}

// ---- the words before the cursor ----
struct Position {
  std::vector<const Command*> path;    ///< noun and verbs
  std::vector<std::string> arguments;  ///< positional arguments before the cursor
  std::string pending;                 ///< flag that takes the word at the cursor as its value; ""
  Session session;
};

bool is_name_of(const Command& command, const std::string& word) {
  return std::find(command.names.begin(), command.names.end(), word) != command.names.end();
}

/// Returns the option with this flag; null when the command has none.
const CLI::Option* find_flag(const CLI::App& app, const std::string& flag) {
  for (const CLI::Option* option : app.get_options())
    if (option->check_name(flag)) return option;
  return nullptr;
}

/// Joins words that the shell has split. Bash breaks words at colons and sends three for "host:80".
std::vector<std::string> joined_at_colons(std::vector<std::string> words) {
  std::vector<std::string> joined;
  bool glue = false;
  for (std::string& word : words) {
    const bool colon = word == ":";
    if ((colon || glue) && !joined.empty()) {
      joined.back() += word;
    } else {
      joined.push_back(std::move(word));
    }
    glue = colon;
  }
  return joined;
}

/// Interprets the words before the cursor. Does not use CLI11's parser, which rejects incomplete commands.
Position read_words(const std::vector<std::string>& words) {
  Position position;
  const std::vector<Command>* table = &commands();
  CLI::App app;
  // The options declared on `app` write to variables that the action owns.
  Action kept;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (!position.pending.empty()) {
      // The query must use the master and the user of the command line.
      if (position.pending == "-m" || position.pending == "--master") position.session.master_flag = word;
      if (position.path.empty() && (position.pending == "-u" || position.pending == "--user"))
        position.session.user_flag = word;
      position.pending.clear();
      continue;
    }
    if (word.starts_with("-") && word != "-") {
      const CLI::Option* option = find_flag(app, word);
      const bool global = word == "-m" || word == "--master" || word == "-u" || word == "--user";
      if (option != nullptr ? option->get_items_expected_max() > 0 : global) position.pending = word;
      continue;
    }
    const auto found = std::find_if(table->begin(), table->end(),
                                    [&](const Command& each) { return is_name_of(each, word); });
    if (found == table->end()) {
      position.arguments.push_back(word);
      continue;
    }
    position.path.push_back(&*found);
    table = &found->verbs;
    if (found->declare) kept = found->declare(app);
  }
  return position;
}

void add_flags(const CLI::App& app, Candidates& found) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      found.push_back({"--" + name, option->get_description()});
    for (const std::string& name : option->get_snames())
      found.push_back({"-" + name, option->get_description()});
  }
}

/// Returns the candidates of the first key that has a source. Any failure yields an empty list.
Candidates ask_master(Position& position, const std::vector<std::string>& keys, const std::string& begun) {
  Candidates found;
  for (const std::string& key : keys) {
    if (const auto words = fixed_words().find(key); words != fixed_words().end()) {
      for (const std::string& word : words->second) found.push_back({word, ""});
      return found;
    }
    const auto source = sources().find(key);
    if (source == sources().end()) continue;
    const auto client = position.session.client();
    if (!client) return found;
    // A completion must not wait for an unreachable master.
    (*client)->set_patience(Duration(0));
    const auto answer = source->second(**client, {position.arguments, begun});
    return answer ? *answer : found;
  }
  return found;
}

/// Returns the candidates for the word at the cursor, of which `begun` is typed: flags, verbs or values.
Candidates at_cursor(Position& position, const std::string& begun) {
  const std::string noun = position.path.empty() ? "" : position.path.front()->names.front();
  if (!position.pending.empty())
    return ask_master(position, {noun + " " + position.pending, position.pending}, begun);
  Candidates found;
  const Command* command = position.path.empty() ? nullptr : position.path.back();
  const std::vector<Command>& next = command == nullptr ? commands() : command->verbs;
  CLI::App app;
  Action kept;
  if (command != nullptr && command->declare) kept = command->declare(app);
  if (begun.starts_with("-")) {
    add_flags(app, found);
    if (command == nullptr) {
      for (const char* flag : {"-m", "--master", "-u", "--user", "-v", "--version"})
        found.push_back({flag, ""});
    }
    return found;
  }
  if (!next.empty()) {
    for (const Command& each : next) {
      for (const std::string& name : each.names) found.push_back({name, each.summary});
    }
    found.push_back({"help", "Show help."});
    return found;
  }
  std::vector<const CLI::Option*> positionals;
  for (const CLI::Option* option : app.get_options())
    if (option->get_positional()) positionals.push_back(option);
  if (positionals.empty()) return found;
  // A list such as IDS takes all further words.
  const bool last_is_list = positionals.back()->get_items_expected_max() > 1;
  if (position.arguments.size() >= positionals.size() && !last_is_list) return found;
  const CLI::Option* option = positionals[std::min(position.arguments.size(), positionals.size() - 1)];
  const std::string name = option->get_name(true, false);
  const std::string verb = position.path.size() > 1 ? " " + position.path[1]->names.front() : "";
  return ask_master(position, {noun + verb + " " + name, noun + " " + name, name}, begun);
}

}  // namespace

std::vector<Candidate> complete(std::vector<std::string> words) {
  words = joined_at_colons(std::move(words));
  if (words.empty()) words.emplace_back();
  Position position = read_words(words);
  const std::string begun = words.back();
  Candidates found = at_cursor(position, begun);
  // Names come from the cluster: control characters could manipulate the shell or the terminal.
  std::erase_if(found, [&](const Candidate& each) {
    return !each.text.starts_with(begun) || each.text.empty() || has_control_characters(each.text);
  });
  for (Candidate& each : found) each.about = printable(each.about);
  return found;
}

}  // namespace det::cli
