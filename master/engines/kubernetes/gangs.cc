#include "master/engines/kubernetes/gangs.h"

namespace det::engines {
namespace {

/// The API of Kubernetes 1.36 is v1alpha2; v1alpha3 has the same fields.
constexpr Resource kNewest{"/apis/scheduling.k8s.io/v1alpha3", "podgroups"};
constexpr Resource kFirst{"/apis/scheduling.k8s.io/v1alpha2", "podgroups"};
constexpr Resource kVolcano{"/apis/scheduling.volcano.sh/v1beta1", "podgroups"};
constexpr std::string_view kApis = "/apis/";

bool is_volcano(const ProviderConfig& config) { return config.gang == "volcano"; }

}  // namespace

bool has_pod_group(const ProviderConfig& config, int nodes) {
  // Volcano reads the queue of a pod in its PodGroup.
  return is_volcano(config) || (config.gang == "pod_group" && nodes > 1);
}

void join_pod_group(const ProviderConfig& config, const std::string& name, Json& pods) {
  if (is_volcano(config)) {
    pods["spec"]["schedulerName"] = "volcano";
    pods["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = name;
  } else {
    pods["spec"]["schedulingGroup"] = {{"podGroupName", name}};
  }
}

std::vector<Resource> pod_group_kinds(const ProviderConfig& config) {
  return is_volcano(config) ? std::vector{kVolcano} : std::vector{kNewest, kFirst};
}

Json pod_group(const ProviderConfig& config, const Resource& kind, const Object& job) {
  const Json owner = {{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", job.name}, {"uid", job.uid}};
  Json spec;
  if (is_volcano(config)) {
    spec["minMember"] = job.nodes;
    if (!config.queue.empty()) spec["queue"] = config.queue;
    if (!config.priority_class.empty()) spec["priorityClassName"] = config.priority_class;
  } else {
    spec["schedulingPolicy"]["gang"]["minCount"] = job.nodes;
  }
  return {{"apiVersion", std::string(kind.api).substr(kApis.size())},
          {"kind", "PodGroup"},
          {"metadata", {{"name", job.name}, {"ownerReferences", Json::array({owner})}}},
          {"spec", std::move(spec)}};
}

}  // namespace det::engines
