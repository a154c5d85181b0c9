// Section `environment` (image, variables, ports, capabilities) and list `bind_mounts`.
#include <algorithm>
#include <filesystem>
#include <set>

#include "common/base/text.h"
#include "common/expconf/sections.h"

namespace det::expconf {
namespace {

/// Device names of Determined AI. `gpu` is accepted as an old name of cuda.
const std::vector<std::string>& devices() {
  static const std::vector<std::string> names{"cpu", "cuda", "rocm"};
  return names;
}

/// Reads one value for every device, or a map from device to value. Resolved: always the map.
Type per_device(const Type& value, const Json& fallback) {
  std::string form = value.form() + ", or a map by device (cpu, cuda, rocm)";
  auto read = [=](Reader& reader, const YamlNode& node, const std::string& path) -> Json {
    Json all = Json::object();
    if (!node.is_map()) {
      const Json one = value(reader, node, path);
      for (const std::string& device : devices()) all[device] = one;
      return all;
    }
    std::vector<Field> fields;
    for (const std::string& device : devices()) fields.push_back(defaulted(device, value, fallback, ""));
    fields.push_back(optional("gpu", value, ""));
    Json given =
        table(std::move(fields), [&](Reader&, const YamlNode& map, const std::string&, Json& resolved) {
          if (map.find("cuda") == nullptr && resolved.contains("gpu")) resolved["cuda"] = resolved["gpu"];
          resolved.erase("gpu");
        })(reader, node, path);
    return given;
  };
  return {std::move(form), std::move(read)};
}

Json read_variable(Reader& reader, const YamlNode& node, const std::string& path) {
  if (node.kind != YamlNode::Kind::kString) return wrong_type(reader, node, path, "a string NAME=VALUE");
  const std::size_t equals = node.text.find('=');
  const std::string name = node.text.substr(0, equals);
  if (node.text.find('\0') != std::string::npos) {
    reader.problem(node, path, "E-CFG-RANGE", "must not contain NUL");
    return nullptr;
  }
  // A name in upper case alone is a variable without a value, as in Determined AI.
  const auto in_name = [](char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  const bool bare =
      equals == std::string::npos && is_variable_name(name) && std::all_of(name.begin(), name.end(), in_name);
  if (equals == std::string::npos && !bare) {
    // The text may be a value, and secret, so it is not shown.
    reader.problem(node, path, "E-CFG-RANGE", "must be NAME=VALUE; write NAME= for an empty value");
    return nullptr;
  }
  if (!is_variable_name(name)) {
    reader.problem(
        node, path, "E-CFG-RANGE",
        "\"" + name + "\" is no name of a variable; use letters, digits and _, and no digit first");
    return nullptr;
  }
  // The platform sets these variables, and the linker's (LD_PRELOAD, LD_AUDIT) and PATH would run foreign
  // code in its own processes.
  if (name.starts_with("DET_") || name.starts_with("LD_") || name == "PATH") {
    reader.problem(node, path, "E-CFG-SECURITY", name + " is reserved for the platform; use another name");
    return nullptr;
  }
  return bare ? name + "=" : node.text;
}

/// Allows only Linux capabilities that give a container no additional power over its host.
Json read_capability(Reader& reader, const YamlNode& node, const std::string& path) {
  static const std::set<std::string> harmless{
      "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER", "FSETID",  "KILL",   "MKNOD",
      "NET_BIND_SERVICE", "NET_RAW", "SETFCAP",      "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"};
  Json value = text({.min = 1, .max = 64})(reader, node, path);
  if (!value.is_string()) return value;
  std::string name = to_upper(node.text);
  if (name.starts_with("CAP_")) name = name.substr(4);
  if (harmless.contains(name)) return value;
  reader.problem(node, path, "E-CFG-SECURITY", node.text + " may not be added; remove it");
  return nullptr;
}

Type proxy_port_list() {
  return list_of(table(
      {required("proxy_port", whole(1, 65535), "port in the task"),
       defaulted("proxy_tcp", boolean(), false, "true: proxy raw TCP; false: HTTP"),
       defaulted("unauthenticated", boolean(), false, "without effect: the proxy always needs a login"),
       defaulted("default_service_id", boolean(), false, "true: the default port of the task's address"),
       defaulted("strip_prefix", boolean(), false, "true: the program gets paths without /proxy/TASK")}));
}

Json read_proxy_ports(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type ports = proxy_port_list();
  Json list = ports(reader, node, path);
  std::set<Json> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json port = list[i].is_object() ? list[i].value("proxy_port", Json()) : Json();
    // A port with a problem is null; it was already reported.
    if (!port.is_null() && !seen.insert(port).second)
      reader.problem(value_or_map(node.items[i], "proxy_port"), child(child(path, i), "proxy_port"),
                     "E-CFG-CONFLICT", "port " + port.dump() + " is already in the list");
    if (list[i].is_object() && list[i].value("unauthenticated", Json(false)) == true)
      reader.warn(value_or_map(node.items[i], "unauthenticated"), child(child(path, i), "unauthenticated"),
                  "E-CFG-CONFLICT", "has no effect: the proxy always needs a login");
  }
  return list;
}

void check_variables(Reader& reader, const YamlNode& map, const std::string& path, Json& resolved) {
  const Json& variables = resolved["environment_variables"];
  if (!variables.is_object() || variables["cpu"] == variables["cuda"]) return;
  reader.warn(value_or_map(map, "environment_variables"), child(path, "environment_variables"),
              "E-CFG-CONFLICT",
              "cpu and cuda differ: every trial gets both, and cuda's value where a name is in both");
}

Json read_mount_target(Reader& reader, const YamlNode& node, const std::string& path) {
  Json value = text({.min = 1})(reader, node, path);
  if (!value.is_string()) return value;
  const std::string normal = std::filesystem::path(node.text).lexically_normal().generic_string();
  const auto inside = [&](const std::string& top) { return normal == top || normal.starts_with(top + "/"); };
  if (normal == "." || normal == "./" || normal == "/") {
    reader.problem(node, path, "E-CFG-RANGE", "must name a directory below the root or the work directory");
    return nullptr;
  }
  // Mounts over these directories, or above the work directory, could break out of the container.
  if (inside("/proc") || inside("/sys") || inside("/dev") || normal == ".." || normal.starts_with("../")) {
    reader.problem(node, path, "E-CFG-SECURITY", node.text + " may not be mounted over");
    return nullptr;
  }
  return value;
}

Type bind_mount_list() {
  return list_of(
      table({required("host_path", absolute_path(), "directory on the agent"),
             required("container_path", {"path, not below /proc, /sys or /dev", read_mount_target},
                      "path in the task; relative to its work directory"),
             defaulted("read_only", boolean(), false, "true: mount read-only"),
             defaulted("propagation", text({.min = 1, .max = 32}), "rprivate", "propagation of the mount")}));
}

Json read_bind_mounts(Reader& reader, const YamlNode& node, const std::string& path) {
  static const Type mounts = bind_mount_list();
  Json list = mounts(reader, node, path);
  std::set<Json> seen;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json target = list[i].is_object() ? list[i].value("container_path", Json()) : Json();
    if (!target.is_null() && !seen.insert(target).second)
      reader.problem(value_or_map(node.items[i], "container_path"), child(child(path, i), "container_path"),
                     "E-CFG-CONFLICT", "two mounts have this container_path");
  }
  return list;
}

}  // namespace

Type environment_type() {
  const Type word = text(), token = text({.max = 65536});
  const Type auth = table({optional("username", word, "user name"), optional("password", word, "password"),
                           optional("auth", word, "user name and password as base64"),
                           optional("email", word, "email address"),
                           optional("serveraddress", word, "address of the registry"),
                           optional("identitytoken", token, "token instead of a password"),
                           optional("registrytoken", token, "token instead of a password")});
  const Json none = {{"cpu", Json::array()}, {"cuda", Json::array()}, {"rocm", Json::array()}};
  const Type variables = per_device(list_of({"NAME=VALUE", read_variable}), Json::array());
  const Type capability("capability", read_capability);
  return table(
      {optional("image", per_device(text({.min = 1, .max = 512}), nullptr),
                "container image whose files the task sees; agents without a container engine refuse it, and "
                "C++ trial classes do not use it"),
       defaulted("environment_variables", variables, none, "environment variables of the trial's processes"),
       defaulted("force_pull_image", boolean(), false, "pull the image even if the container engine has it"),
       optional("registry_auth", auth, "credentials of the image registry"),
       defaulted("ports", inert(map_of(whole(1, 65535))), Json::object(), kIdle),
       defaulted("proxy_ports", {"list of maps", read_proxy_ports, proxy_port_list().fields()}, Json::array(),
                 "ports of the task that the master proxies"),
       defaulted("add_capabilities", inert(list_of(capability)), Json::array(),
                 "accepted, without effect: tasks have no capabilities"),
       defaulted("drop_capabilities", inert(list_of(text({.min = 1, .max = 64}))), Json::array(),
                 "accepted, without effect: tasks have no capabilities"),
       idle("pod_spec", free_map())},
      check_variables);
}

Type bind_mounts_type() { return {"list of maps", read_bind_mounts, bind_mount_list().fields()}; }

}  // namespace det::expconf
