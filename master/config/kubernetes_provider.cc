// Keys of a provider of type kubernetes.
#include <algorithm>

#include "common/base/text.h"
#include "master/config/provider_reader.h"

namespace det {
namespace {

/// Shortest grace: 10 s for the kill grace of the master, 5 s for the farewell of the agent, 5 s to save.
constexpr auto kLeastGrace = std::chrono::seconds(20);

/// Options of det-agent that the master sets itself, without the leading hyphens.
const std::vector<std::string>& own_arguments() {
  static const std::vector<std::string> options{"id",     "data-dir",        "pool",
                                                "master", "join-token-file", "config",
                                                "until",  "ephemeral",       "exit-when-idle"};
  return options;
}

/// Refuses fields of the template that the master sets.
void check_template(ProviderReader& reader, const Json& pods) {
  constexpr const char* kOwn[] = {"restartPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds"};
  for (const auto& [key, value] : pods.items()) {
    if (key != "metadata" && key != "spec")
      reader.add("pod_template." + key, "is no field of a pod template; there are metadata, spec");
    if (!value.is_object()) reader.add("pod_template." + key, "must be a map");
  }
  const Json spec = pods.value("spec", Json::object());
  for (const char* key : kOwn) {
    if (spec.is_object() && spec.contains(key))
      reader.add(std::string("pod_template.spec.") + key, "must not be set: the master sets it");
  }
}

}  // namespace

const std::vector<std::string>& kubernetes_keys() {
  static const std::vector<std::string> keys{
      "type",          "pilot",           "max_pilots",  "slots_per_node",
      "max_nodes",     "idle_timeout",    "walltime",    "min_time_left",
      "kubeconfig",    "context",         "namespace",   "image",
      "agent",         "agent_arguments", "master",      "join_token_secret",
      "resources",     "node_selector",   "tolerations", "priority_class",
      "labels",        "queue",           "gang",        "grace",
      "start_timeout", "pod_template"};
  return keys;
}

void read_kubernetes(ProviderReader& reader, ProviderConfig& config) {
  reader.text("kubeconfig", config.kubeconfig);
  reader.text("context", config.context);
  reader.text("namespace", config.name_space);
  reader.text("image", config.image);
  reader.text("master", config.master);
  reader.text("join_token_secret", config.token_secret);
  reader.text("priority_class", config.priority_class);
  reader.text("queue", config.queue);
  reader.text("gang", config.gang);
  const std::vector<std::string> gangs{"plain", "pod_group", "volcano"};
  if (std::find(gangs.begin(), gangs.end(), config.gang) == gangs.end())
    reader.add("gang", "must be plain, pod_group or volcano" + did_you_mean(config.gang, gangs));
  if (config.gang == "pod_group" && !config.queue.empty()) {
    reader.add("gang",
               "pod_group does not go with queue: Kueue starts all pods of a Job together; remove one");
  }
  reader.long_options("agent_arguments", config.agent_arguments, own_arguments());
  reader.duration("grace", config.grace, kLeastGrace);
  reader.duration("start_timeout", config.start_timeout);
  reader.texts("resources", config.resources);
  reader.texts("node_selector", config.node_selector);
  reader.texts("labels", config.labels);
  reader.maps("tolerations", config.tolerations);
  reader.map("pod_template", config.pod_template);
  if (config.pod_template.is_object()) check_template(reader, config.pod_template);
  reader.require("image", "a container image with det-agent");
  reader.require("master", "the address of this master for the agents, like https://det-master:8080");
  reader.require("join_token_secret", "the Secret with a join token at the key token");
}

}  // namespace det
