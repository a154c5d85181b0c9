#include "master/api/tasks/interactive_launch.h"

#include "common/base/secret.h"
#include "common/base/units.h"
#include "common/storage/work.h"
#include "master/api/context.h"
#include "master/db/queries/experiments.h"
#include "master/db/queries/media.h"

namespace det::api {
namespace {

constexpr int kFirstPort = 12'000, kPorts = 12'000;
constexpr std::int64_t kMaxIdleSeconds = 365LL * 24 * 3600;
constexpr std::size_t kMaxSources = 100;  // of a TensorBoard
/// Idle timeout of a TensorBoard without one, as in Determined AI.
constexpr std::int64_t kTensorboardIdleSeconds = 300;
/// Read by both Jupyter servers.
constexpr const char* kTokenVariable = "JUPYTER_TOKEN";

// Arguments: port, path of its pages. The options of each of the two servers are unknown to the other, which
// ignores them.
constexpr const char* kNotebookScript = R"(for program in jupyter-lab jupyter-notebook; do
  if command -v "$program" >/dev/null; then
    exec "$program" --no-browser --ip=127.0.0.1 --port="$1" \
      --ServerApp.port_retries=0 --ServerApp.base_url="$2" --ServerApp.allow_remote_access=True \
      --NotebookApp.port_retries=0 --NotebookApp.base_url="$2" --NotebookApp.allow_remote_access=True
  fi
done
echo "this agent has neither jupyter-lab nor jupyter-notebook: install jupyterlab by pip, or the Debian package jupyter-notebook" >&2
exit 127)";

// Arguments: port, path of its pages, directory of the event files, further arguments of the user.
constexpr const char* kTensorboardScript = R"(port=$1 path=$2 events=$3
shift 3
if command -v tensorboard >/dev/null; then
  exec tensorboard --host=127.0.0.1 --port="$port" --path_prefix="$path" --logdir="$events" "$@"
fi
echo "this agent has no tensorboard: install tensorboard by pip" >&2
exit 127)";

std::string page_path(const std::string& id) { return "/proxy/" + id; }

/// Reads a number of seconds, or a duration such as "30m". `fallback` where it is unset.
Result<std::int64_t> idle_seconds(const Json& config, std::int64_t fallback) {
  const Json value = config.value("idle_timeout", Json());
  const auto wrong = [] {
    return fail(Code::kInvalidArgument,
                "idle_timeout: a number of seconds or a duration such as 30m was expected; 0 for none");
  };
  if (value.is_null()) return fallback;
  std::int64_t seconds = -1;
  if (value.is_string()) {
    const auto duration = parse_duration(value.get<std::string>());
    if (!duration) return wrong();
    seconds = std::chrono::ceil<std::chrono::seconds>(*duration).count();
  } else if (value.is_number() && value.get<double>() >= 0 &&
             value.get<double>() <= static_cast<double>(kMaxIdleSeconds)) {
    // Numbers of protobuf's Struct are floating point.
    seconds = static_cast<std::int64_t>(value.get<double>());
  }
  if (seconds < 0 || seconds > kMaxIdleSeconds) return wrong();
  return seconds;
}

/// Adds a variable to a list, or to the list of each device. Other forms are refused by the parser.
void add_variable(Json& environment, const std::string& name, const std::string& value) {
  Json& variables = environment["environment_variables"];
  if (variables.is_null()) variables = Json::array();
  const std::string line = name + "=" + value;
  if (variables.is_array()) variables.push_back(line);
  if (!variables.is_object()) return;
  for (const char* device : {"cpu", "cuda"}) {
    Json& list = variables[device];
    if (list.is_null()) list = Json::array();
    if (list.is_array()) list.push_back(line);
  }
}

/// Settings that the cluster chooses.
Status check_free(const Json& config, const std::string& kind) {
  const auto is_set = [](const Json& map, const char* name) {
    const auto found = map.find(name);
    return found != map.end() && !found->is_null() && !found->empty();
  };
  if (is_set(config, "entrypoint"))
    return fail(Code::kInvalidArgument,
                "entrypoint: the cluster chooses the program of the task; use a command for another one");
  const auto environment = config.find("environment");
  if (kind != "SHELL" && environment != config.end() && environment->is_object() &&
      is_set(*environment, "proxy_ports"))
    return fail(
        Code::kInvalidArgument,
        "environment.proxy_ports: the cluster chooses the port of the task; use a command for others");
  const Json idle_type = config.value("notebook_idle_type", Json());
  if (!idle_type.is_null() && idle_type != "activity")
    return fail(Code::kInvalidArgument,
                "notebook_idle_type: only activity is supported: a notebook without requests is idle");
  return {};
}

/// Returns the command line of the task's server.
Result<Json> server_entrypoint(const std::string& kind, const Json& config, const std::string& id, int port) {
  const std::string number = std::to_string(port);
  if (kind == "NOTEBOOK")
    return Json{"/bin/sh", "-c", kNotebookScript, "notebook", number, page_path(id) + "/"};
  Json words{"/bin/sh", "-c", kTensorboardScript, "tensorboard", number, page_path(id), "/run/events"};
  const Json arguments = config.value("tensorboard_args", Json::array());
  if (!arguments.is_null() && !arguments.is_array())
    return fail(Code::kInvalidArgument, "tensorboard_args: a list of strings was expected");
  for (const Json& argument : arguments) words.push_back(argument);
  return words;
}

/// Adds the directories of the training library and of Determined AI's Python package. Without `trial` those
/// of the experiment.
Status add_event_files(const Context& context, ExperimentId id, std::optional<TrialId> trial, Json& files) {
  TRY_ASSIGN(const auto experiment, db::get_experiment(context.pool, id));
  TRY_ASSIGN(const Json config, parse_json(experiment.config, {.bytes = 16 << 20, .depth = 64}));
  const Json* const storage = config.is_object() ? find_path(config, "checkpoint_storage") : nullptr;
  if (storage == nullptr || !storage->is_object() || storage::is_bucket(*storage))
    return fail(Code::kFailedPrecondition,
                "the checkpoint storage of experiment " + std::to_string(id.value) +
                    " is no shared directory, so its event files end with the runs that write them");
  TRY_ASSIGN(const storage::Root root, context.storages->get()->root_of(*storage));
  const auto names = storage::tensorboard_names(context.settings.cluster_id, id);
  const std::string number = trial ? std::to_string(trial->value) : "";
  const std::string shown = "experiment_" + std::to_string(id.value) + (trial ? "_trial_" + number : "");
  const std::string below = root.below.empty() ? "" : root.below + "/";
  files.push_back({{"base", root.base},
                   {"below", below + names.at(0) + (trial ? "/trial_" + number : "")},
                   {"name", shown}});
  files.push_back({{"base", root.base},
                   {"below", below + names.at(1) + (trial ? "/trial/" + number : "")},
                   {"name", shown + "_python"}});
  return {};
}

}  // namespace

Result<InteractiveConfig> interactive_config(const std::string& kind, Json config, const std::string& id,
                                             int port, const std::string& token) {
  if (config.is_null()) config = Json::object();
  if (!config.is_object()) return fail(Code::kInvalidArgument, "config: must be a map");
  TRY(check_free(config, kind));
  InteractiveConfig out;
  out.task.kind = kind;
  TRY_ASSIGN(out.task.idle_timeout,
             idle_seconds(config, kind == "TENSORBOARD" ? kTensorboardIdleSeconds : 0));
  if (kind == "SHELL") {
    config["entrypoint"] = Json{"sleep", "infinity"};
  } else {
    TRY_ASSIGN(config["entrypoint"], server_entrypoint(kind, config, id, port));
    Json& environment = config["environment"];
    if (environment.is_null()) environment = Json::object();
    if (environment.is_object()) {
      environment["proxy_ports"] = Json::array({{{"proxy_port", port}, {"default_service_id", true}}});
      if (kind == "NOTEBOOK") add_variable(environment, kTokenVariable, token);
    }
  }
  // A TensorBoard computes nothing.
  Json& resources = config["resources"];
  if (resources.is_null()) resources = Json::object();
  if (kind == "TENSORBOARD" && resources.is_object() && !resources.contains("slots")) resources["slots"] = 0;
  // Read above; a command ignores them.
  for (const char* name : {"idle_timeout", "notebook_idle_type", "tensorboard_args"}) config.erase(name);
  out.command = std::move(config);
  return out;
}

Result<Json> event_files_of(const Context& context, const db::InteractiveTask& task) {
  const std::size_t count = task.experiments.size() + task.trials.size();
  if (count == 0 || count > kMaxSources)
    return fail(Code::kInvalidArgument, "experiment_ids, trial_ids: from 1 to 100 experiments and trials");
  Json files = Json::array();
  for (const std::int64_t id : task.experiments) TRY(add_event_files(context, ExperimentId(id), {}, files));
  for (const std::int64_t id : task.trials) {
    TRY_ASSIGN(const ExperimentId experiment, db::experiment_of_trial(context.pool, TrialId(id)));
    TRY(add_event_files(context, experiment, TrialId(id), files));
  }
  return files;
}

int random_task_port() {
  const std::string bytes = random_bytes(4);
  std::uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return kFirstPort + static_cast<int>(number % kPorts);
}

std::string service_address(const db::CommandRow& row, bool secret) {
  if (row.interactive.kind == "SHELL") return "";
  const std::string path = page_path(row.command.task.value) + "/";
  const auto& variables = row.command.config->environment_variables;
  const auto token = variables.find(kTokenVariable);
  return secret && token != variables.end() ? path + "?token=" + token->second : path;
}

}  // namespace det::api
