// Owns the section `resources`: what a trial needs of the cluster and how it waits for it.
#include "base/text.h"
#include "master/expconf/sections.h"

namespace det::expconf {
namespace {

void check_resources(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  const Json slots = resolved.value("slots_per_trial", Json());
  const Json most = resolved.value("max_slots", Json());
  if (slots.is_null() || most.is_null() || most >= slots) return;
  reader.problem(value_or_map(map, "max_slots"), child(path, "max_slots"), "E-CFG-CONFLICT",
                 "is below slots_per_trial (" + slots.dump() + "): no trial could ever run; use " +
                     slots.dump() + " or more");
}

/// {host_path, container_path, mode} or "/host:/container[:rwm]".
Json read_device(Reader& reader, const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::kString) {
    return table({required("host_path", absolute_path(), "the device on the agent"),
                  required("container_path", absolute_path(), "the device in the container"),
                  defaulted("mode", text({.min = 1, .max = 3}), "mrw")})(reader, node, path);
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
  constexpr std::int64_t kMostSlots = 100'000;
  return table({defaulted("slots_per_trial", whole(0, kMostSlots), 1),
                defaulted("resource_pool", text({.max = 128}), ""), defaulted("priority", whole(1, 99), 42),
                optional("max_slots", whole(0, kMostSlots)), defaulted("weight", real(0, false), 1),
                optional("shm_size", size_in_bytes()), defaulted("is_single_node", boolean(), false),
                defaulted("devices", list_of(read_device), Json::array()),
                optional("native_parallel", boolean()), optional("agent_label", text())},
               check_resources);
}

}  // namespace det::expconf
