#include "master/db/store/tables.h"

#include "common/base/json.h"
#include "common/expconf/parse.h"
#include "master/db/store/allocation_parts.h"
#include "master/db/store/at_rest.h"

namespace det::db {
namespace {

using enum Written;

/// Parses a stored configuration. `named` is the row in messages. kDataLoss.
template <typename Config>
Status read_config(Rows::Row& row, const std::string& named, std::shared_ptr<const Config>& out,
                   Result<Config> (*parse)(const Json&)) {
  // The limits exceed those of submission: any configuration that was stored must load again.
  const auto text = open_config(row.next<std::string>());
  const auto json =
      text ? parse_json(*text, {.bytes = 256 << 20, .depth = 200}) : tl::unexpected(text.error());
  auto config = json ? parse(*json) : tl::unexpected(json.error());
  if (!config)
    return fail(Code::kDataLoss,
                "the stored configuration of " + named + " cannot be read: " + config.error().message);
  out = std::make_shared<const Config>(std::move(*config));
  return {};
}

/// A column that derives from the configuration of an experiment.
template <auto... path>
Field<core::PutExperiment> derived(const char* name) {
  return {name, kFirst,
          [](const core::PutExperiment& one, Params& out) { put(out, at<path...>(*one.row.config)); }};
}

/// Column of the task of an allocation if it is an `One`, NULL otherwise. Each kind of task has one such
/// column, of which exactly one is set.
template <typename One>
Field<core::Allocation> task_column(const char* name) {
  return {name, kFirst, [](const core::Allocation& row, Params& out) { out.add(row.task.as<One>()); },
          [](Rows::Row& row, core::Allocation& out) -> Status {
            if (const auto id = row.next<std::optional<One>>()) out.task = *id;
            return {};
          }};
}

/// Adds the columns of an optional exit; all are NULL without one.
template <typename T>
std::vector<Field<T>> with_exit(std::vector<Field<T>> fields) {
  fields.push_back({"exit_kind", kAlways,
                    [](const T& row, Params& out) {
                      out.add(row.exit ? std::optional<std::string>(exit_kind_name(row.exit->kind))
                                       : std::nullopt);
                    },
                    [](Rows::Row& row, T& out) -> Status {
                      if (const auto kind = row.next<std::optional<std::string>>())
                        out.exit = core::Exit{parse_exit_kind(*kind), 0, ""};
                      return {};
                    }});
  fields.push_back({"exit_code", kAlways,
                    [](const T& row, Params& out) {
                      out.add(row.exit ? std::optional<std::int64_t>(row.exit->code) : std::nullopt);
                    },
                    [](Rows::Row& row, T& out) -> Status {
                      const auto code = row.next<std::optional<std::int32_t>>();
                      if (out.exit) out.exit->code = code.value_or(0);
                      return {};
                    }});
  fields.push_back(
      {"exit_message", kAlways,
       [](const T& row, Params& out) { out.add(row.exit ? std::optional(row.exit->message) : std::nullopt); },
       [](Rows::Row& row, T& out) -> Status {
         const auto message = row.next<std::optional<std::string>>();
         if (out.exit) out.exit->message = message.value_or("");
         return {};
       }});
  return fields;
}

}  // namespace

const Table<core::PutExperiment>& experiments_table() {
  using Config = expconf::ExperimentConfig;
  using core::Experiment;
  using core::PutExperiment;
  using core::QueueSettings;
  constexpr auto row = &PutExperiment::row;
  constexpr auto queue = &Experiment::queue;
  // Written first only: the configuration and its derived columns, which users change afterwards, and
  // project_id, because projects.cc moves experiments. Rows of old schemas have NULL in place of a priority.
  static const Table<PutExperiment> table(
      "experiments",
      {
          field<row, &Experiment::id>("id", kKey),
          field<row, &Experiment::request_id>("request_id"),
          field<row, &Experiment::job_id>("job_id"),
          field<row, &Experiment::owner>("owner_id"),
          field<row, &Experiment::project>("project_id", kFirst),
          field<row, &Experiment::state>("state"),
          {"config", kFirst,
           [](const PutExperiment& one, Params& out) { out.add(seal_config(one.row.config->resolved)); },
           [](Rows::Row& from, PutExperiment& out) {
             return read_config(from, "experiment " + std::to_string(out.row.id.value), out.row.config,
                                expconf::from_resolved);
           },
           "::json"},
          {"original_config", kFirst,
           [](const PutExperiment& one, Params& out) { out.add(seal_yaml(one.original_config)); }},
          field<row, &Experiment::code_archive>("model_definition"),
          field<row, &Experiment::progress>("progress"),
          field<row, &Experiment::submitted>("submitted"),
          field<row, &Experiment::ended>("ended"),
          field<row, &Experiment::parent>("parent_id"),
          field<row, &Experiment::searcher_events>("searcher_events"),
          derived<&Config::name>("name"),
          derived<&Config::description>("description"),
          derived<&Config::labels>("labels"),
          derived<&Config::searcher, &expconf::SearcherConfig::name>("searcher_name"),
          derived<&Config::searcher, &expconf::SearcherConfig::metric>("searcher_metric"),
          derived<&Config::searcher, &expconf::SearcherConfig::smaller_is_better>("smaller_is_better"),
          field<row, &Experiment::detached>("detached"),
          field<row, queue, &QueueSettings::pool>("resource_pool"),
          field<row, queue, &QueueSettings::priority>("priority", kAlways, "", "coalesce(priority, 0)"),
          field<row, queue, &QueueSettings::weight>("weight", kAlways, "", "coalesce(weight, 1)"),
          field<row, queue, &QueueSettings::max_slots>("max_slots"),
          field<row, queue, &QueueSettings::position>("queue_position", kAlways, "",
                                                      "coalesce(queue_position, 0)"),
      });
  return table;
}

const Table<core::Trial>& trials_table() {
  using core::Trial;
  static const Table<Trial> table("trials", {
                                                field<&Trial::id>("id", kKey),
                                                field<&Trial::experiment>("experiment_id"),
                                                field<&Trial::request_id>("request_id"),
                                                field<&Trial::task>("task_id"),
                                                field<&Trial::seed>("seed"),
                                                field<&Trial::hparams>("hparams", kAlways, "::json"),
                                                field<&Trial::state>("state"),
                                                field<&Trial::run>("run"),
                                                field<&Trial::restarts>("restarts"),
                                                field<&Trial::latest_checkpoint>("latest_checkpoint"),
                                                field<&Trial::latest_steps>("latest_steps"),
                                                field<&Trial::steps_completed>("steps_completed"),
                                                field<&Trial::last_validation>("last_validation"),
                                                field<&Trial::checkpoint_validation>("checkpoint_validation"),
                                                field<&Trial::searcher_steps>("searcher_steps"),
                                                field<&Trial::best_metric>("best_metric"),
                                                field<&Trial::early_exit_invalid_hp>("early_exit_invalid_hp"),
                                                field<&Trial::held>("held"),
                                                field<&Trial::retries_canceled>("retries_canceled"),
                                                field<&Trial::excluded>("excluded_agents"),
                                                field<&Trial::progress>("progress"),
                                                field<&Trial::exit_reason>("exit_reason"),
                                                field<&Trial::started>("started"),
                                                field<&Trial::ended>("ended"),
                                            });
  return table;
}

const Table<core::Command>& commands_table() {
  using core::Command;
  using core::QueueSettings;
  constexpr auto queue = &Command::queue;
  static const Table<Command> table(
      "commands",
      with_exit<Command>({
          field<&Command::id>("id", kKey),
          field<&Command::task>("task_id", kFirst),
          field<&Command::job_id>("job_id", kFirst),
          field<&Command::owner>("owner_id", kFirst),
          field<&Command::workspace>("workspace_id", kFirst),
          field<&Command::state>("state"),
          field<&Command::run>("run"),
          {"config", kFirst,
           [](const Command& row, Params& out) { out.add(seal_config(row.config->resolved)); },
           [](Rows::Row& row, Command& out) {
             return read_config(row, "command " + out.task.value, out.config, expconf::command_from_resolved);
           },
           "::json"},
          {"description", kFirst, [](const Command& row, Params& out) { out.add(row.config->description); }},
          field<&Command::code_archive>("context", kFirst),
          field<queue, &QueueSettings::pool>("resource_pool"),
          field<queue, &QueueSettings::priority>("priority"),
          field<queue, &QueueSettings::weight>("weight"),
          field<queue, &QueueSettings::max_slots>("max_slots"),
          field<queue, &QueueSettings::position>("queue_position"),
          field<&Command::submitted>("submitted", kFirst),
          field<&Command::ended>("ended"),
      }));
  return table;
}

const Table<core::Allocation>& allocations_table() {
  using core::Allocation;
  static const Table<Allocation> table(
      "allocations",
      with_exit<Allocation>({
          field<&Allocation::id>("id", kKey),
          task_column<TrialId>("trial_id"),
          task_column<CommandId>("command_id"),
          field<&Allocation::run>("run"),
          field<&Allocation::state>("state"),
          field<&Allocation::pool>("pool"),
          field<&Allocation::workspace>("workspace_id"),
          field<&Allocation::parts>("parts", kAlways, "::json"),
          {"slots", kAlways, [](const Allocation& row, Params& out) { out.add(row.slot_count()); }},
          field<&Allocation::port>("port"),
          field<&Allocation::attached>("attached"),
          field<&Allocation::preempt_requested>("preempt_requested"),
          field<&Allocation::preempt_acknowledged>("preempt_acknowledged"),
          field<&Allocation::kill_requested>("kill_requested"),
          field<&Allocation::started>("started"),
          field<&Allocation::ended>("ended"),
      }));
  return table;
}

const Table<core::AgentSettings>& agent_settings_table() {
  using core::AgentSettings;
  static const Table<AgentSettings> table("agent_settings",
                                          {
                                              field<&AgentSettings::agent>("agent_id", kKey),
                                              field<&AgentSettings::enabled>("enabled"),
                                              field<&AgentSettings::draining>("draining"),
                                              field<&AgentSettings::disabled_slots>("disabled_slots"),
                                          });
  return table;
}

const Table<core::Pilot>& pilots_table() {
  using core::Pilot;
  static const Table<Pilot> table("pilots", {
                                                field<&Pilot::id>("id", kKey),
                                                field<&Pilot::name>("name", kFirst),
                                                field<&Pilot::pool>("pool", kFirst),
                                                field<&Pilot::nodes>("nodes", kFirst),
                                                field<&Pilot::phase>("phase"),
                                                field<&Pilot::job>("job"),
                                                field<&Pilot::reason>("reason"),
                                                field<&Pilot::until>("until"),
                                                field<&Pilot::submitted>("submitted", kFirst),
                                                field<&Pilot::ended>("ended"),
                                                field<&Pilot::slots>("slots", kFirst),
                                                field<&Pilot::used>("used"),
                                            });
  return table;
}

const Table<core::AppendSearcherEvent>& searcher_events_table() {
  using core::AppendSearcherEvent;
  static const Table<AppendSearcherEvent> table(
      "searcher_events", {
                             field<&AppendSearcherEvent::experiment>("experiment_id", kKey),
                             field<&AppendSearcherEvent::number>("number", kKey),
                             field<&AppendSearcherEvent::event>("event", kFirst),
                         });
  return table;
}

const Table<core::PutSearcherSnapshot>& searcher_snapshots_table() {
  using core::PutSearcherSnapshot;
  static const Table<PutSearcherSnapshot> table(
      "searcher_snapshots", {
                                field<&PutSearcherSnapshot::experiment>("experiment_id", kKey),
                                field<&PutSearcherSnapshot::number>("number"),
                                field<&PutSearcherSnapshot::snapshot>("snapshot"),
                            });
  return table;
}

Status read_quota(Rows::Row& row, core::Quota& out) {
  const auto scope = core::parse_scope(row.next<std::string>());
  out.of.id = row.next<std::int64_t>();
  const auto resource = core::parse_resource(row.next<std::string>());
  row.into(out.limit);
  if (!scope || !resource) return fail(Code::kDataLoss, "quotas: a row with an unknown scope or resource");
  out.of.scope = *scope;
  out.resource = *resource;
  return {};
}

void put(Params& out, core::State state) { out.add(core::state_name(state)); }
Status take(Rows::Row& row, core::State& state) {
  state = core::parse_state(row.next<std::string>()).value_or(core::State::kError);
  return {};
}

void put(Params& out, core::AllocationState state) { out.add(core::allocation_state_name(state)); }
Status take(Rows::Row& row, core::AllocationState& state) {
  state = core::parse_allocation_state(row.next<std::string>()).value_or(core::AllocationState::kTerminated);
  return {};
}
Status take(Rows::Row& row, std::optional<core::AllocationState>& state) {
  const auto name = row.next<std::optional<std::string>>();
  state = name ? core::parse_allocation_state(*name) : std::nullopt;
  return {};
}

void put(Params& out, core::PilotPhase phase) { out.add(core::pilot_phase_name(phase)); }
Status take(Rows::Row& row, core::PilotPhase& phase) {
  phase = core::parse_pilot_phase(row.next<std::string>()).value_or(core::PilotPhase::kCanceling);
  return {};
}

void put(Params& out, const std::vector<core::AllocationPart>& parts) { out.add(write_parts(parts)); }
Status take(Rows::Row& row, std::vector<core::AllocationPart>& parts) {
  TRY_ASSIGN(parts, read_parts(row.next<std::string>()));
  return {};
}

void put(Params& out, const std::vector<AgentId>& agents) {
  std::vector<std::string> names;
  for (const AgentId& agent : agents) names.push_back(agent.value);
  out.add(names);
}
Status take(Rows::Row& row, std::vector<AgentId>& agents) {
  for (std::string& name : row.next<std::vector<std::string>>()) agents.emplace_back(std::move(name));
  return {};
}
void put(Params& out, const std::set<int>& numbers) {
  out.add(std::vector<std::int64_t>(numbers.begin(), numbers.end()));
}
Status take(Rows::Row& row, std::set<int>& numbers) {
  for (const std::int64_t number : row.next<std::vector<std::int64_t>>())
    numbers.insert(static_cast<int>(number));
  return {};
}

}  // namespace det::db
