#include "common/task/task_dir.h"

#include <nlohmann/json.hpp>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/secret.h"

namespace det {
namespace {

// Base64: arguments and environments are arbitrary bytes, which JSON strings cannot hold.
Json encode(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const std::string& text : texts) list.push_back(to_base64(text));
  return list;
}

Result<std::vector<std::string>> decode(const Json& list) {
  std::vector<std::string> texts;
  for (const Json& item : list) {
    TRY_ASSIGN(std::string text, from_base64(item.get_ref<const std::string&>()));
    texts.push_back(std::move(text));
  }
  return texts;
}

Json encode(const Sandbox& sandbox) {
  Json mounts = Json::array();
  for (const SandboxMount& mount : sandbox.mounts)
    mounts.push_back({to_base64(mount.path), to_base64(mount.inside), static_cast<int>(mount.access)});
  Json value{{"tmp", to_base64(sandbox.tmp)},
             {"mounts", mounts},
             {"shm_bytes", sandbox.shm_bytes},
             {"own_network", sandbox.own_network},
             {"root", to_base64(sandbox.root)}};
  if (sandbox.uid) value["uid"] = *sandbox.uid;
  if (sandbox.shown) value["shown"] = {sandbox.shown->uid, sandbox.shown->gid};
  return value;
}

Result<Sandbox> decode_sandbox(const Json& value) {
  Sandbox sandbox;
  if (value.contains("uid")) sandbox.uid = value.at("uid").get<uid_t>();
  if (value.contains("shown"))
    sandbox.shown = ShownUser{value.at("shown").at(0).get<uid_t>(), value.at("shown").at(1).get<gid_t>()};
  sandbox.own_network = value.value("own_network", false);
  TRY_ASSIGN(sandbox.root, from_base64(value.value("root", std::string())));
  TRY_ASSIGN(sandbox.tmp, from_base64(value.at("tmp").get<std::string>()));
  // Absent in files of an older release.
  sandbox.shm_bytes = value.value("shm_bytes", std::int64_t{0});
  for (const Json& item : value.at("mounts")) {
    SandboxMount mount;
    TRY_ASSIGN(mount.path, from_base64(item.at(0).get<std::string>()));
    TRY_ASSIGN(mount.inside, from_base64(item.at(1).get<std::string>()));
    mount.access = static_cast<SandboxMount::Access>(item.at(2).get<int>());
    sandbox.mounts.push_back(std::move(mount));
  }
  return sandbox;
}

/// Reads a file of this module. A value of the wrong type means that the file is damaged.
template <typename Read>
auto read_json(const std::string& path, Read read) -> decltype(read(std::declval<const Json&>())) {
  TRY_ASSIGN(const std::string text, read_file(path));
  TRY_ASSIGN(const Json value, parse_json(text, {.bytes = 64 << 20}));
  try {
    return read(value);
  } catch (const nlohmann::json::exception& error) {
    return fail(Code::kDataLoss, path + ": damaged: " + error.what());
  }
}

}  // namespace

// All files are replaced by rename, so a reader never sees half of one.
Status TaskDir::write_spec(const TaskSpec& spec) const {
  Json value{{"argv", encode(spec.argv)},
             {"env", encode(spec.env)},
             {"cwd", to_base64(spec.cwd)},
             {"attaches", spec.attaches},
             {"ends_with_agent", spec.ends_with_agent},
             {"grace_micros", spec.grace.count()},
             {"unshipped_bytes", spec.unshipped_bytes},
             {"master", to_base64(spec.master)},
             {"groups", encode(spec.groups)},
             {"hang_micros", spec.hang_timeout.count()}};
  if (spec.sandbox) value["sandbox"] = encode(*spec.sandbox);
  return replace_file(this->spec(), dump_json(value), 0600);
}

Result<TaskSpec> TaskDir::read_spec() const {
  return read_json(this->spec(), [](const Json& value) -> Result<TaskSpec> {
    TaskSpec spec;
    TRY_ASSIGN(spec.argv, decode(value.at("argv")));
    TRY_ASSIGN(spec.env, decode(value.at("env")));
    TRY_ASSIGN(spec.cwd, from_base64(value.at("cwd").get<std::string>()));
    spec.attaches = value.at("attaches").get<bool>();
    spec.grace = Duration(value.at("grace_micros").get<std::int64_t>());
    spec.unshipped_bytes = value.at("unshipped_bytes").get<std::int64_t>();
    // Absent in files of older agents.
    spec.ends_with_agent = value.value("ends_with_agent", false);
    spec.hang_timeout = Duration(value.value("hang_micros", std::int64_t{0}));
    TRY_ASSIGN(spec.groups, decode(value.value("groups", Json::array())));
    TRY_ASSIGN(spec.master, from_base64(value.value("master", std::string())));
    if (value.contains("sandbox")) {
      TRY_ASSIGN(spec.sandbox, decode_sandbox(value.at("sandbox")));
    }
    return spec;
  });
}

Status TaskDir::write_supervisor(const ProcessId& process) const {
  const Json value{{"pid", process.pid}, {"start", process.start}};
  return replace_file(path_ + "/supervisor.json", dump_json(value), 0600);
}

Result<ProcessId> TaskDir::read_supervisor() const {
  return read_json(path_ + "/supervisor.json", [](const Json& value) -> Result<ProcessId> {
    return ProcessId{value.at("pid").get<pid_t>(), value.at("start").get<std::uint64_t>()};
  });
}

Status TaskDir::write_exit(const TaskExit& exit) const {
  Json value{{"code", exit.status.code},
             {"signal", exit.status.signal},
             {"message", exit.message},
             {"last_lines", encode(exit.last_lines)}};
  if (exit.memory_limit) value["memory_limit"] = *exit.memory_limit;
  if (exit.hung_for) value["hung_micros"] = exit.hung_for->count();
  if (!exit.hang.empty()) value["hang"] = encode(exit.hang);
  return replace_file(path_ + "/exit.json", dump_json(value), 0600);
}

Result<TaskExit> TaskDir::read_exit() const {
  return read_json(path_ + "/exit.json", [](const Json& value) -> Result<TaskExit> {
    TaskExit exit{{value.at("code").get<int>(), value.at("signal").get<int>()},
                  value.at("message").get<std::string>(),
                  {},
                  {}};
    // Supervisors outlive agents: one of an older release writes fewer fields.
    if (value.contains("last_lines")) {
      TRY_ASSIGN(exit.last_lines, decode(value.at("last_lines")));
    }
    if (value.contains("memory_limit")) exit.memory_limit = value.at("memory_limit").get<std::int64_t>();
    if (value.contains("hung_micros")) exit.hung_for = Duration(value.at("hung_micros").get<std::int64_t>());
    if (value.contains("hang")) {
      TRY_ASSIGN(exit.hang, decode(value.at("hang")));
    }
    return exit;
  });
}

}  // namespace det
