#include "agent/task_sandbox.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/build/cache.h"

namespace det::agent {
namespace {

namespace fs = std::filesystem;
using Access = SandboxMount::Access;

// A checkpoint storage is writable for tasks, as its owner.
constexpr std::array<std::string_view, 13> kSystem{"/etc",   "/usr",   "/bin",  "/sbin", "/lib",
                                                   "/lib32", "/lib64", "/boot", "/dev",  "/proc",
                                                   "/sys",   "/run",   "/opt"};
/// Place of TensorBoard files in a sandbox.
constexpr std::string_view kEventFiles = "/run/events";
// Shown read-only in a sandbox without an image.
constexpr std::array<std::string_view, 11> kReadOnly{"/etc",  "/usr",   "/bin",   "/sbin",   "/lib", "/sys",
                                                     "/proc", "/lib32", "/lib64", "/libx32", "/opt"};
constexpr std::array<std::string_view, 7> kShared{"/",        "/root", "/home",   "/var",
                                                  "/var/lib", "/tmp",  "/var/tmp"};

bool is_below(std::string_view path, std::string_view directory) {
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

/// Returns the settings of the checkpoint storage; an empty object if there are none.
Json storage_settings(const std::string& experiment_config) {
  const auto config = parse_json(experiment_config, {.bytes = 64 << 20, .depth = 64});
  if (!config || !config->is_object()) return Json::object();
  Json storage = config->value("checkpoint_storage", Json::object());
  return storage.is_object() ? storage : Json::object();
}

std::string storage_text(const Json& object, const char* name) {
  const Json value = object.value(name, Json());
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// Returns the path without symbolic links.
Result<std::string> resolve(const std::string& path) {
  std::error_code error;
  std::string real = fs::canonical(path, error).string();
  if (error) return fail(Code::kNotFound, path + ": " + error.message());
  return real;
}

tl::unexpected<Error> unsafe_storage(const StorageDirectory& storage, const std::string& why) {
  return fail(Code::kPermissionDenied, "checkpoint_storage: " + storage.path() + " " + why +
                                           "; name a directory that holds only checkpoints");
}

/// Refuses a directory of the system or of the agent. `real` has no symbolic links.
Status check_place(const std::string& real, const StorageDirectory& storage, const Site& site) {
  for (const std::string_view system : kSystem)
    if (is_below(real, system)) return unsafe_storage(storage, "is a directory of the system");
  for (const std::string_view shared : kShared)
    if (real == shared) return unsafe_storage(storage, "has files of others");
  for (const std::string& own : {site.data.path(), site.prefix, site.models})
    if (is_below(real, own) || is_below(own, real))
      return unsafe_storage(storage, "contains files of the agent");
  return {};
}

/// Creates the directory if it is missing, and returns its path without symbolic links. Links in `base` are
/// followed, since an administrator chose it; tasks may have written below it. The task gets the directory
/// itself, not `base`: a `base` with files of others, like /tmp, is admitted.
Result<std::string> checked_storage(const StorageDirectory& storage, const Site& site) {
  TRY(check_place(fs::path(storage.path()).lexically_normal().string(), storage, site));
  TRY(make_directories(storage.base));
  TRY_ASSIGN(const std::string base, resolve(storage.base));
  const std::string real =
      storage.below.empty() ? base : fs::path(base + "/" + storage.below).lexically_normal().string();
  if (!is_below(real, base)) return unsafe_storage(storage, "is outside of its base");
  TRY(check_place(real, storage, site));
  TRY(make_directories(real));
  TRY_ASSIGN(const std::string target, resolve(real));
  if (target != real) return unsafe_storage(storage, "contains a symbolic link");
  return real;
}

/// Returns the path of existing event files without symbolic links; "" if there are none.
Result<std::string> checked_events(const v1::EventFiles& files, const Site& site) {
  const StorageDirectory storage{files.base(), files.below()};
  const std::string name = fs::path(files.name()).lexically_normal().string();
  if (storage.below.empty() || name != files.name() || name.starts_with('/') || name.starts_with(".."))
    return fail(Code::kPermissionDenied, "event files: " + files.name() + " is not the name of a directory");
  if (!path_exists(storage.path())) return std::string();
  TRY_ASSIGN(const std::string base, resolve(storage.base));
  const std::string real = fs::path(base + "/" + storage.below).lexically_normal().string();
  TRY_ASSIGN(const std::string target, resolve(real));
  if (target != real || !is_below(real, base)) return unsafe_storage(storage, "contains a symbolic link");
  TRY(check_place(real, storage, site));
  return real;
}

/// Returns the files and directories outside /usr and the installation that the recipe of builds names.
std::set<std::string> recipe_directories(const Site& site) {
  std::set<std::string> found;
  const auto recipe = build::read_recipe(site.prefix + "/share/det/model_build.json");
  if (!recipe) return found;
  const auto add = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::size_t at = word.find('/');
      if (at == std::string::npos) continue;
      std::string path = word.substr(at);
      if (!is_below(path, "/usr") && !is_below(path, site.prefix) && path_exists(path))
        found.insert(std::move(path));
    }
  };
  for (const auto* words : {&recipe->include_dirs, &recipe->link_flags, &recipe->cxx_flags}) add(*words);
  if (recipe->precompiled) {
    add(recipe->precompiled->cxx_flags);
    add({recipe->precompiled->header});
  }
  return found;
}

/// Covers `directory` at each place where a mount of the sandbox shows it.
void hide(const std::string& directory, Sandbox& sandbox) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(directory, error).string();
  const std::vector<SandboxMount> mounts = sandbox.mounts;
  for (const SandboxMount& mount : mounts) {
    if (mount.access != Access::kHide && is_below(real, mount.path))
      sandbox.mounts.push_back({"", mount.inside + real.substr(mount.path.size()), Access::kHide});
  }
}

/// Puts outer mounts first: a later one covers what it contains.
void sort_outer_first(std::vector<SandboxMount>& mounts) {
  std::stable_sort(mounts.begin(), mounts.end(), [](const SandboxMount& left, const SandboxMount& right) {
    return left.inside < right.inside;
  });
}

/// Returns the mounts of every sandbox of this agent. Its directory and the build cache are hidden, also
/// below bind mounts: entries of the cache are code that other tasks load. `root`: the files of an image, in
/// which the installation is of no use; or "".
Sandbox common_sandbox(const Order& order, const TaskDir& dir, const Site& site, const std::string& root) {
  Sandbox sandbox{
      .root = root, .uid = order.uid, .tmp = dir.tmp(), .mounts = {}, .own_network = site.own_network};
  for (const BindMount& mount : site.settings.bind_mounts) {
    std::error_code error;
    const std::string real = fs::canonical(mount.path, error).string();
    sandbox.mounts.push_back(
        {error ? mount.path : real, mount.path, mount.writable ? Access::kWriteAsOwner : Access::kRead});
  }
  sort_outer_first(sandbox.mounts);
  if (root.empty()) {
    if (!is_below(site.prefix, "/usr")) sandbox.mounts.push_back({site.prefix, site.prefix, Access::kRead});
    for (const std::string& path : recipe_directories(site))
      sandbox.mounts.push_back({path, path, Access::kRead});
  }
  hide(site.data.path(), sandbox);
  hide(site.models, sandbox);
  sandbox.mounts.push_back({"", site.data.path(), Access::kHide});
  return sandbox;
}

/// Shows the task a user and a group of its own: the accounts of the machine, and these.
Status add_account(const TaskAccount& account, const TaskDir& dir, Sandbox& sandbox) {
  const std::string uid = std::to_string(account.ids.uid), gid = std::to_string(account.ids.gid);
  // The first line of a name or a number counts.
  const std::string user = account.user + ":x:" + uid + ":" + gid + "::" + dir.run() + "/home:/bin/sh\n",
                    group = account.group + ":x:" + gid + ":\n";
  TRY(write_file_atomic(dir.passwd(), user + read_file("/etc/passwd").value_or("")));
  TRY(write_file_atomic(dir.group(), group + read_file("/etc/group").value_or("")));
  sandbox.mounts.push_back({dir.passwd(), "/etc/passwd", Access::kRead});
  sandbox.mounts.push_back({dir.group(), "/etc/group", Access::kRead});
  sandbox.shown = account.ids;
  return {};
}

/// Adds the bind mounts of the configuration (JSON). They show at another place what the sandbox shows
/// anyway: system directories, and bind mounts of the agent.
Status add_bind_mounts(const std::string& experiment_config, const TaskDir& dir, const Site& site,
                       Sandbox& sandbox) {
  const auto config = parse_json(experiment_config, {.bytes = 64 << 20, .depth = 64});
  if (!config || !config->is_object()) return {};
  std::vector<SandboxMount> mounts;
  for (const Json& each : config->value("bind_mounts", Json::array())) {
    const auto from = each.at("host_path").get<std::string>(),
               to = each.at("container_path").get<std::string>();
    TRY_ASSIGN(const std::string real, resolve(from));
    Access access = Access::kRead;
    bool visible = is_below(real, "/usr") || is_below(real, "/opt");
    // The innermost mount of the agent decides.
    std::size_t depth = 0;
    std::vector<std::string> read_only;
    for (const BindMount& mount : site.settings.bind_mounts) {
      const auto shown = resolve(mount.path);
      if (shown && !mount.writable && *shown != real && is_below(*shown, real)) read_only.push_back(*shown);
      if (!shown || !is_below(real, *shown) || shown->size() < depth) continue;
      depth = shown->size();
      const bool writes = mount.writable && !each.value("read_only", false);
      access = writes ? Access::kWriteAsOwner : Access::kReadAsOwner;
      visible = true;
    }
    for (const std::string& own : {site.data.path(), site.models})
      if (is_below(real, own) || is_below(own, real)) visible = false;
    if (!visible)
      return fail(Code::kPermissionDenied, "bind_mounts: tasks of agent " + site.settings.id +
                                               " do not see " + from +
                                               "; an administrator can add it to bind_mounts of the agent");
    std::string inside = fs::path(to.starts_with('/') ? to : dir.workdir() + "/" + to).lexically_normal();
    mounts.push_back({real, inside, access});
    if (access != Access::kWriteAsOwner) continue;
    if (inside.ends_with('/')) inside.pop_back();
    // A part that the agent shows read-only stays so at the other place.
    for (const std::string& part : read_only)
      mounts.push_back({part, inside + part.substr(real.size()), Access::kReadAsOwner});
  }
  sort_outer_first(mounts);
  sandbox.mounts.insert(sandbox.mounts.end(), mounts.begin(), mounts.end());
  return {};
}

/// Shows the task its checkpoint storage, if that is a directory.
Status add_storage(const std::string& experiment_config, const TaskDir& dir, const Site& site,
                   Sandbox& sandbox) {
  const StorageDirectory storage = storage_directory(experiment_config);
  if (storage.base.empty()) return {};
  TRY_ASSIGN(const std::string real, checked_storage(storage, site));
  sandbox.mounts.push_back({real, storage.path(), Access::kWriteAsOwner});
  if (path_exists(dir.upstream_storage())) {
    const StorageDirectory upstream{"/determined_shared_fs", storage.below};
    sandbox.mounts.push_back({real, upstream.path(), Access::kWriteAsOwner});
  }
  return {};
}

/// The file or directory that the sandbox shows before a mount, and its place on the machine.
struct Below {
  std::string shown, real;
};

/// Returns the directory of the machine that contains the place of a mount. Nothing where the sandbox has
/// files of its own, in which bubblewrap creates the place.
std::optional<Below> machine_below(const Sandbox& sandbox, std::size_t number) {
  const std::string& place = sandbox.mounts[number].inside;
  for (std::size_t i = number; i-- > 0;) {
    const SandboxMount& mount = sandbox.mounts[i];
    if (mount.inside == place || !is_below(place, mount.inside)) continue;
    const bool own = mount.access == Access::kHide || mount.access == Access::kWrite;
    return own ? std::nullopt : std::optional<Below>({mount.inside, mount.path});
  }
  if (sandbox.root.empty()) {
    for (const std::string_view system : kReadOnly)
      if (is_below(place, system)) return Below{std::string(system), std::string(system)};
  }
  return std::nullopt;
}

/// Checks that the place of each mount exists where bubblewrap must not or cannot create it: in a directory
/// of the machine. A link there could lead to any other place of the machine.
Status check_places(const Sandbox& sandbox) {
  for (std::size_t i = 0; i < sandbox.mounts.size(); ++i) {
    const SandboxMount& mount = sandbox.mounts[i];
    const auto below = mount.access == Access::kHide ? std::nullopt : machine_below(sandbox, i);
    if (!below) continue;
    const std::string place = below->real + mount.inside.substr(below->shown.size());
    if (place == mount.path) continue;
    std::error_code error;
    const std::string base = fs::canonical(below->real, error).string(),
                      real = fs::canonical(place, error).string();
    const bool directory = fs::is_directory(mount.path, error);
    if (!real.empty() && is_below(real, base) && fs::is_directory(real, error) == directory) continue;
    return fail(Code::kInvalidArgument, "bind_mounts: " + mount.path + " cannot be mounted at " +
                                            mount.inside + ", because " + below->shown +
                                            " is a directory of the machine without such a " +
                                            (directory ? "directory" : "file") + "; create " + place +
                                            " on the agent's machine, or choose another container_path");
  }
  return {};
}

/// Finds the control groups for the limits of tasks.
void add_groups(SandboxReport& report) {
  auto place = open_group_place();
  if (place) report.groups = std::move(*place);
  if (place) return;
  report.level = SandboxReport::Level::kPartial;
  report.missing += (report.missing.empty() ? "" : "; ") + std::string("tasks have no limits: ") +
                    place.error().message +
                    "; run the agent as root, or unset memory_per_slot and cpus_per_slot";
}

}  // namespace

uid_t TaskUids::take(const AllocationId& id) {
  if (const auto it = used_.find(id); it != used_.end()) return it->second;
  std::set<uid_t> busy;
  for (const auto& [owner, uid] : used_) busy.insert(uid);
  uid_t uid = first_ + next_;
  for (uid_t i = 0; i < count_ && busy.contains(uid); ++i) {
    next_ = (next_ + 1) % count_;
    uid = first_ + next_;
  }
  next_ = (next_ + 1) % count_;
  used_.emplace(id, uid);
  return uid;
}

StorageDirectory storage_directory(const std::string& experiment_config) {
  const Json storage = storage_settings(experiment_config);
  const auto text = [&](const char* name) { return storage_text(storage, name); };
  if (text("type") == "shared_fs") return {text("host_path"), text("storage_path")};
  if (text("type") == "directory") return {text("container_path"), ""};
  return {};
}

std::int64_t shared_memory(const std::string& experiment_config) {
  const auto config = parse_json(experiment_config, {.bytes = 64 << 20, .depth = 64});
  if (!config || !config->is_object()) return 0;
  const Json resources = config->value("resources", Json::object());
  const Json size = resources.is_object() ? resources.value("shm_size", Json()) : Json();
  return size.is_number_integer() ? std::max<std::int64_t>(size.get<std::int64_t>(), 0) : 0;
}

std::optional<TaskAccount> task_account(const std::string& experiment_config) {
  const auto config = parse_json(experiment_config, {.bytes = 64 << 20, .depth = 64});
  if (!config || !config->is_object() || !config->contains("agent_user_group")) return std::nullopt;
  const Json& account = config->at("agent_user_group");
  return TaskAccount{{account.at("uid").get<uid_t>(), account.at("gid").get<gid_t>()},
                     account.at("user").get<std::string>(),
                     account.at("group").get<std::string>()};
}

std::string bucket_storage(const std::string& experiment_config) {
  const std::string type = storage_text(storage_settings(experiment_config), "type");
  return type == "shared_fs" || type == "directory" ? "" : type;
}

Result<SandboxReport> choose_sandbox(const Settings& settings, const DataDir& data, const std::string& init) {
  using Level = SandboxReport::Level;
  if (settings.sandbox == SandboxMode::kOff) {
    log::warn("SANDBOX OFF: tasks have all rights of the agent on this machine (setting sandbox: off)");
    return SandboxReport{Level::kOff, "the agent's setting is sandbox: off"};
  }
  const auto uid = ::geteuid() == 0 ? std::optional<uid_t>(settings.task_uid_first) : std::nullopt;
  SandboxReport report =
      probe_sandbox(uid, init, data.path(), settings.task_network == TaskNetwork::kCluster);
  if (settings.limits_tasks() && report.level != Level::kOff) add_groups(report);
  if (report.level == Level::kFull) return report;
  if (settings.sandbox == SandboxMode::kRequired) {
    return fail(Code::kFailedPrecondition,
                "sandbox: required, but " + report.missing + "; mend this, or set sandbox: best_effort");
  }
  if (report.level == Level::kOff) {
    log::warn("SANDBOX OFF: tasks have all rights of the agent on this machine: " + report.missing);
  } else {
    log::warn("sandbox of tasks is partial: " + report.missing);
  }
  return report;
}

Result<Sandbox> task_sandbox(const Order& order, const TaskDir& dir, const Site& site,
                             const std::string& model, const std::string& root) {
  Sandbox sandbox = common_sandbox(order, dir, site, root);
  sandbox.shm_bytes = shared_memory(order.message.experiment_config());
  sandbox.mounts.push_back({dir.beside(), dir.path(), Access::kWrite});
  sandbox.mounts.push_back({dir.spec(), dir.spec(), Access::kRead});
  for (const std::string& path : {dir.workdir(), dir.run()})
    sandbox.mounts.push_back({path, path, Access::kWrite});
  // The MPS server shares memory with its clients.
  if (!site.mps_pipes.empty() && order.message.slots_size() > 0) {
    for (const std::string& path : {site.mps_pipes, std::string("/dev/shm")})
      sandbox.mounts.push_back({path, path, Access::kWrite});
  }
  TRY(add_bind_mounts(order.message.experiment_config(), dir, site, sandbox));
  if (const auto account = task_account(order.message.experiment_config()))
    TRY(add_account(*account, dir, sandbox));
  if (path_exists(dir.upstream()))
    sandbox.mounts.push_back({dir.upstream(), "/run/determined", Access::kWrite});
  if (!model.empty()) sandbox.mounts.push_back({model, model, Access::kRead});
  for (const v1::EventFiles& files : order.message.event_files()) {
    TRY_ASSIGN(const std::string real, checked_events(files, site));
    if (!real.empty())
      sandbox.mounts.push_back({real, std::string(kEventFiles) + "/" + files.name(), Access::kReadAsOwner});
  }
  TRY(add_storage(order.message.experiment_config(), dir, site, sandbox));
  TRY(check_places(sandbox));
  return sandbox;
}

Result<Sandbox> build_sandbox(const Order& order, const TaskDir& dir, const Site& site,
                              const std::string& work, const std::string& header) {
  TRY(give_tree(work, order.uid));
  Sandbox sandbox = common_sandbox(order, dir, site, "");
  // The compiler writes to no data of users. Without owners mapped, it might not pass through them either.
  std::erase_if(sandbox.mounts,
                [](const SandboxMount& mount) { return mount.access == Access::kWriteAsOwner; });
  sandbox.mounts.push_back({dir.workdir(), dir.workdir(), Access::kRead});
  sandbox.mounts.push_back({work, work, Access::kWrite});
  if (!header.empty()) sandbox.mounts.push_back({header, header, Access::kRead});
  return sandbox;
}

void trim_caches(const Site& site) {
  for (const AllocationId& id : site.data.allocations()) {
    const auto dir = site.data.allocation(id);
    const auto spec = dir ? dir->read_spec() : tl::unexpected(dir.error());
    if (spec && spec->sandbox && !spec->sandbox->root.empty())
      build::touch_entry(fs::path(spec->sandbox->root).parent_path().string());
  }
  build::trim_cache({site.data.contexts(), site.models, site.data.images()}, site.settings.cache_bytes);
}

Status give_tree(const std::string& path, std::optional<uid_t> uid) {
  if (!uid) return {};
  const auto give = [&](const std::string& entry) -> Status {
    return ::lchown(entry.c_str(), *uid, *uid) == 0 ? Status() : fail_errno(entry);
  };
  TRY(give(path));
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    TRY(give(it->path().string()));
  return error ? fail(Code::kUnavailable, path + ": " + error.message()) : Status();
}

}  // namespace det::agent
