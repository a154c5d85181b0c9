#include "master/engines/kubernetes/objects.h"

#include <algorithm>
#include <chrono>

#include "master/engines/engine.h"
#include "master/engines/kubernetes/gangs.h"

namespace det::engines {
namespace {

using core::PilotPhase;

/// Time of a pod beside `walltime`: pulls of images before the agent starts, and its way out.
constexpr auto kWalltimeMargin = std::chrono::minutes(15);
/// Kill grace of the master (10 s) and farewell of the agent (5 s): not for saving.
constexpr auto kFarewell = std::chrono::seconds(15);
/// Time after which Kubernetes removes an ended Job that no master has removed, in s.
constexpr int kTimeToLive = 3600;
constexpr std::size_t kMaxReason = 300;
constexpr const char* kTokens = "/run/determinant";
constexpr const char* kData = "/var/lib/determinant";
constexpr const char* kIndex = "batch.kubernetes.io/job-completion-index";

std::int64_t seconds(Duration time) { return std::chrono::ceil<std::chrono::seconds>(time).count(); }

/// Returns the value at `path`, like {"status", "phase"}; null if there is none.
const Json& at(const Json& json, std::initializer_list<const char*> path) {
  static const Json none;
  const Json* node = &json;
  for (const char* key : path) {
    if (!node->is_object() || !node->contains(key)) return none;
    node = &(*node)[key];
  }
  return *node;
}
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json& node = at(json, path);
  return node.is_string() ? node.get<std::string>() : "";
}
int number(const Json& json, std::initializer_list<const char*> path) {
  const Json& node = at(json, path);
  return node.is_number_integer() ? node.get<int>() : 0;
}

/// Joins a reason and its message, of which the last line counts: the message of a container ends with the
/// error of the agent.
std::string reason_of(const std::string& reason, std::string message) {
  while (message.ends_with('\n')) message.pop_back();
  if (const auto line = message.rfind('\n'); line != message.npos) message.erase(0, line + 1);
  if (message.empty()) return reason;
  return (reason.empty() ? message : reason + ": " + message).substr(0, kMaxReason);
}

/// Returns the condition of a type with status `status`; null if there is none.
const Json& condition(const Json& json, const std::string& type, const std::string& status) {
  for (const Json& one : at(json, {"status", "conditions"})) {
    if (text_at(one, {"type"}) == type && text_at(one, {"status"}) == status) return one;
  }
  return at(json, {"status", "no such condition"});
}

/// Merges `from` into `to`; `from` wins.
void merge(Json& to, const Json& from) {
  if (to.is_object() && from.is_object()) {
    for (const auto& [key, value] : from.items()) {
      to.contains(key) ? merge(to[key], value) : static_cast<void>(to[key] = value);
    }
  } else if (to.is_array() && from.is_array()) {
    for (const Json& item : from) {
      const std::string name = text_at(item, {"name"});
      const auto same = std::find_if(to.begin(), to.end(), [&](const Json& one) {
        return !name.empty() && text_at(one, {"name"}) == name;
      });
      same == to.end() ? to.push_back(item) : merge(*same, item);
    }
  } else {
    to = from;
  }
}

Json labels_of(const ProviderConfig& config, const std::string& instance) {
  Json labels = config.labels.is_object() ? config.labels : Json::object();
  labels["app.kubernetes.io/name"] = "det-agent";
  labels["app.kubernetes.io/instance"] = instance;
  return labels;
}

/// The container of the agent. Its index within the Job is the last part of its id.
Json container(const ProviderConfig& config, const std::string& pool, const std::string& name) {
  Json arguments = Json::array();
  for (const std::string& argument : config.agent_arguments) arguments.push_back(argument);
  const std::string id = name + "-$(DET_POD_INDEX)";
  // The first agents of a gang wait for the last ones.
  const auto idle = seconds(config.idle_timeout) * kIdleTimeouts + seconds(config.start_timeout);
  for (const std::string& argument :
       {"--id=" + id, std::string("--data-dir=") + kData + "/" + id, "--pool=" + pool,
        "--master=" + config.master, std::string("--join-token-file=") + kTokens + "/token",
        std::string("--ephemeral"), "--exit-when-idle=" + std::to_string(idle) + "s"})
    arguments.push_back(argument);
  if (config.walltime > Duration(0))
    arguments.push_back("--until=" + std::to_string(seconds(config.walltime)) + "s");
  const auto save = seconds(config.grace - kFarewell);
  const std::string index = std::string("metadata.annotations['") + kIndex + "']";
  Json made = {{"name", "agent"},
               {"image", config.image},
               {"command", Json::array({config.agent})},
               {"args", std::move(arguments)},
               {"env",
                {{{"name", "DET_POD_INDEX"}, {"valueFrom", {{"fieldRef", {{"fieldPath", index}}}}}},
                 {{"name", "DET_AGENT_STOP_TIMEOUT"}, {"value", std::to_string(save) + "s"}}}},
               {"volumeMounts",
                {{{"name", "data"}, {"mountPath", kData}},
                 {{"name", "join-token"}, {"mountPath", kTokens}, {"readOnly", true}}}},
               // The end of the agent's log becomes the reason of a failed pilot.
               {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  if (config.resources.is_object())
    made["resources"] = {{"requests", config.resources}, {"limits", config.resources}};
  return made;
}

Json pod_spec(const ProviderConfig& config, const std::string& pool, const std::string& name, int nodes) {
  Json spec = {{"restartPolicy", "Never"},
               {"terminationGracePeriodSeconds", seconds(config.grace)},
               // Trials have no business with the API server.
               {"automountServiceAccountToken", false},
               {"containers", Json::array({container(config, pool, name)})},
               {"volumes",
                {{{"name", "data"}, {"emptyDir", Json::object()}},
                 {{"name", "join-token"}, {"secret", {{"secretName", config.token_secret}}}}}}};
  if (config.walltime > Duration(0))
    spec["activeDeadlineSeconds"] = seconds(config.walltime + kWalltimeMargin);
  if (config.node_selector.is_object()) spec["nodeSelector"] = config.node_selector;
  if (config.tolerations.is_array()) spec["tolerations"] = config.tolerations;
  if (!config.priority_class.empty()) spec["priorityClassName"] = config.priority_class;
  if (nodes > 1) {
    const Json rule = {{"topologyKey", "kubernetes.io/hostname"},
                       {"labelSelector", {{"matchLabels", {{"job-name", name}}}}}};
    spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        Json::array({rule});
  }
  return spec;
}

}  // namespace

Object read_job(const Json& json) {
  Object job{.name = text_at(json, {"metadata", "name"}),
             .uid = text_at(json, {"metadata", "uid"}),
             .nodes = number(json, {"spec", "parallelism"}),
             .created = text_at(json, {"metadata", "creationTimestamp"})};
  const Json& failed = condition(json, "Failed", "True");
  if (!failed.is_null()) {
    job.phase = PilotPhase::kEnded;
    job.failed = true;
    job.reason = reason_of(text_at(failed, {"reason"}), text_at(failed, {"message"}));
  } else if (!condition(json, "Complete", "True").is_null()) {
    job.phase = PilotPhase::kEnded;
    job.reason = "its agents have left";
  } else if (!text_at(json, {"metadata", "deletionTimestamp"}).empty()) {
    job.phase = PilotPhase::kEnded;
    job.reason = "its Job is being deleted";
  } else if (at(json, {"spec", "suspend"}) == true) {
    job.reason = "its Job is suspended: the queue has not admitted it";
  }
  return job;
}

Object read_pod(const Json& json) {
  Object pod{.name = text_at(json, {"metadata", "name"}),
             .job = text_at(json, {"metadata", "labels", "job-name"}),
             .assigned = !text_at(json, {"spec", "nodeName"}).empty()};
  const std::string phase = text_at(json, {"status", "phase"});
  const Json& status = at(json, {"status"});
  pod.reason = reason_of(text_at(status, {"reason"}), text_at(status, {"message"}));
  if (phase == "Running") pod.phase = PilotPhase::kRunning;
  if (phase == "Failed" || phase == "Succeeded") pod.phase = PilotPhase::kEnded;
  pod.failed = phase == "Failed";
  const Json& unscheduled = condition(json, "PodScheduled", "False");
  if (!unscheduled.is_null())
    pod.reason = reason_of(text_at(unscheduled, {"reason"}), text_at(unscheduled, {"message"}));
  for (const Json& one : at(status, {"containerStatuses"})) {
    const Json& waiting = at(one, {"state", "waiting"});
    const Json& ended = at(one, {"state", "terminated"});
    if (!waiting.is_null())
      pod.reason = reason_of(text_at(waiting, {"reason"}), text_at(waiting, {"message"}));
    if (pod.failed && !ended.is_null() && pod.reason.empty()) {
      pod.reason =
          reason_of("exit code " + std::to_string(number(ended, {"exitCode"})), text_at(ended, {"message"}));
    }
  }
  return pod;
}

std::string selector(const std::string& instance) {
  return "app.kubernetes.io/name%3Ddet-agent,app.kubernetes.io/instance%3D" + instance;
}

Json owner_map(const std::string& instance) {
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", {{"name", instance}, {"labels", {{"app.kubernetes.io/name", "det-agent"}}}}},
          {"data", {{"about", "Owner of the pilots of a Determinant cluster. Its deletion ends them."}}}};
}

Json pilot_job(const ProviderConfig& config, const std::string& instance, const std::string& pool,
               const std::string& name, int nodes, const std::string& owner_uid) {
  Json labels = labels_of(config, instance);
  Json pods = {{"metadata", {{"labels", labels}}}, {"spec", pod_spec(config, pool, name, nodes)}};
  if (config.pod_template.is_object()) merge(pods, config.pod_template);
  if (has_pod_group(config, nodes)) join_pod_group(config, name, pods);
  // The labels by which pilots are found survive a template.
  merge(pods["metadata"]["labels"], labels_of({}, instance));
  Json spec = {{"parallelism", nodes},
               {"completions", nodes},
               {"completionMode", "Indexed"},
               {"backoffLimit", 0},
               {"ttlSecondsAfterFinished", kTimeToLive},
               {"template", std::move(pods)}};
  if (!config.queue.empty() && config.gang == "plain") {
    // Kueue resumes the Job when all of its pods fit.
    spec["suspend"] = true;
    labels["kueue.x-k8s.io/queue-name"] = config.queue;
  }
  const Json owner = {{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"name", instance}, {"uid", owner_uid}};
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata",
           {{"name", name}, {"labels", std::move(labels)}, {"ownerReferences", Json::array({owner})}}},
          {"spec", std::move(spec)}};
}

}  // namespace det::engines
