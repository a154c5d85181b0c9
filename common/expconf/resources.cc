// Section `resources`: slots, pool and queue settings of a trial.
#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

void check_resources(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  const Json slots = resolved.value("slots_per_trial", Json());
  const Json most = resolved.value("max_slots", Json());
  // Null: absent, or a problem that was already reported.
  if (slots.is_null() || most.is_null() || most >= slots) return;
  reader.problem(value_or_map(map, "max_slots"), child(path, "max_slots"), "E-CFG-CONFLICT",
                 "is below slots_per_trial (" + slots.dump() + "): no trial could ever run; use " +
                     slots.dump() + " or more");
}

/// Reads {host_path, container_path, mode} or "/host:/container[:rwm]".
Json read_device(Reader& reader, const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::kString) {
    return table({required("host_path", absolute_path(), "the device on the agent"),
                  required("container_path", absolute_path(), "the device in the container"),
                  defaulted("mode", text({.min = 1, .max = 3}), "mrw", "of r, w, m")})(reader, node, path);
  }
  const std::vector<std::string> parts = split(node.text, ':');
  if (parts.size() < 2 || parts.size() > 3 || !parts[0].starts_with('/') || !parts[1].starts_with('/')) {
    reader.problem(node, path, "E-CFG-RANGE", "must be like /dev/host:/dev/container:rwm, " + found(node));
    return nullptr;
  }
  return {
      {"host_path", parts[0]}, {"container_path", parts[1]}, {"mode", parts.size() == 3 ? parts[2] : "mrw"}};
}

}  // namespace

Type resources_type() {
  constexpr std::int64_t kMaxSlots = 100'000;
  return table({defaulted("slots_per_trial", whole(0, kMaxSlots), 1, "slots of a trial; 0: none"),
                defaulted("resource_pool", text({.max = 128}), "",
                          "resource pool; empty: the default pool of the cluster"),
                defaulted("priority", whole(1, 99), 42, "queue priority; smaller values go first"),
                optional("max_slots", whole(0, kMaxSlots), "maximum number of slots of all trials together"),
                defaulted("weight", real(0, false), 1, "weight in fair-share pools"),
                optional("shm_size", size_in_bytes(), "size of /dev/shm in the sandbox of the trial"),
                defaulted("is_single_node", boolean(), false, "true: all slots of a trial are on one agent"),
                defaulted("devices", inert(list_of({"/host:/container:rwm, or a map", read_device})),
                          Json::array(), kIdle),
                idle("native_parallel", boolean()), idle("agent_label", text())},
               check_resources);
}

}  // namespace det::expconf
