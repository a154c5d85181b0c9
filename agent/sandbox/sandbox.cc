#include "agent/sandbox/sandbox.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "agent/sandbox/id_mapped_mount.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"

namespace det::agent {
namespace {

namespace fs = std::filesystem;
using Access = SandboxMount::Access;

void add(std::vector<std::string>& command, std::initializer_list<std::string> words) {
  command.insert(command.end(), words);
}

/// The directories of the system. Merged ones (/bin → usr/bin) stay symbolic links.
void add_system(std::vector<std::string>& command, std::int64_t shm_bytes) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sys"}) {
    std::error_code error;
    if (fs::is_symlink(path, error)) {
      add(command, {"--symlink", fs::read_symlink(path, error).string(), path});
    } else if (fs::is_directory(path, error)) {
      add(command, {"--ro-bind", path, path});
    }
  }
  add(command, {"--ro-bind", "/etc", "/etc"});
  // The settings of master and agent can contain passwords.
  if (path_exists("/etc/determinant")) add(command, {"--tmpfs", "/etc/determinant"});
  add(command, {"--proc", "/proc", "--dev", "/dev", "--perms", "1777"});
  if (shm_bytes > 0) add(command, {"--size", std::to_string(shm_bytes)});
  add(command, {"--tmpfs", "/dev/shm"});
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const std::string path = entry.path().string();
    if (path.starts_with("/dev/nvidia") || path == "/dev/infiniband")
      add(command, {"--dev-bind-try", path, path});
  }
  add(command, {"--tmpfs", "/run", "--tmpfs", "/var", "--symlink", "/tmp", "/var/tmp"});
  // /etc/resolv.conf is often a link to this directory.
  add(command, {"--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"});
}

/// Makes the mounts of this process private to it.
Status leave_mount_namespace() {
  if (::unshare(CLONE_NEWNS) != 0) return fail_errno("unshare of the mount namespace");
  // Slave propagation: later mounts of the machine appear here, but the mounts made here stay private.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) return fail_errno("mount /");
  return {};
}

}  // namespace

std::vector<std::string> sandbox_command(const Sandbox& sandbox, const std::vector<std::string>& argv) {
  std::vector<std::string> command{"bwrap",         "--unshare-pid",        "--unshare-ipc",
                                   "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
                                   "--as-pid-1",    "--cap-drop",           "ALL"};
  if (sandbox.uid) {
    // Kept until det-task-init has changed its user. It reads spec.json below directories of the task.
    for (const char* name : {"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH"})
      add(command, {"--cap-add", name});
  } else {
    add(command, {"--unshare-user"});
    if (sandbox.shown)
      add(command,
          {"--uid", std::to_string(sandbox.shown->uid), "--gid", std::to_string(sandbox.shown->gid)});
  }
  // Brings its loopback interface up.
  if (sandbox.own_network) add(command, {"--unshare-net"});
  add_system(command, sandbox.shm_bytes);
  add(command, {"--bind", sandbox.tmp, "/tmp"});
  for (const SandboxMount& mount : sandbox.mounts) {
    // Otherwise bubblewrap creates the parents of a private file without access for the task.
    if (const fs::path parent = fs::path(mount.inside).parent_path(); parent != "/")
      add(command, {"--dir", parent.string()});
    if (mount.access == Access::kHide) {
      add(command, {"--tmpfs", mount.inside});
    } else {
      const bool reads = mount.access == Access::kRead || mount.access == Access::kReadAsOwner;
      add(command, {reads ? "--ro-bind" : "--bind", mount.path, mount.inside});
    }
  }
  add(command, {"--remount-ro", "/", "--"});
  command.insert(command.end(), argv.begin(), argv.end());
  return command;
}

Result<std::string> run_as_owner(Sandbox& sandbox, const std::string& inside, uid_t common) {
  const auto mount =
      std::find_if(sandbox.mounts.begin(), sandbox.mounts.end(), [&](const SandboxMount& each) {
        return each.access == Access::kWriteAsOwner && each.inside == inside;
      });
  if (!sandbox.uid || mount == sandbox.mounts.end()) return "";
  const Status mapped = can_map_owners(mount->path, *sandbox.uid);
  if (mapped) return "";
  struct stat status {};
  if (::stat(mount->path.c_str(), &status) != 0) return fail_errno(mount->path);
  sandbox.uid = status.st_uid != 0 ? status.st_uid : common;
  if (status.st_uid == 0 && ::chown(mount->path.c_str(), common, common) != 0) {
    return fail(Code::kUnavailable, "giving " + mount->path + " to user " + std::to_string(common) + ": " +
                                        std::strerror(errno) +
                                        "; give it to a user of its own, or run the agent as its owner");
  }
  return mount->path + " has no id-mapped mounts (" + mapped.error().message +
         "): the task runs as its owner, user " + std::to_string(*sandbox.uid);
}

Result<std::vector<std::string>> map_owners(Sandbox& sandbox, const std::string& place) {
  std::vector<std::string> warnings;
  bool left = false;
  for (std::size_t i = 0; sandbox.uid && i < sandbox.mounts.size(); ++i) {
    SandboxMount& mount = sandbox.mounts[i];
    const bool reads = mount.access == Access::kReadAsOwner;
    if (!reads && mount.access != Access::kWriteAsOwner) continue;
    struct stat status {};
    const bool owned = ::lstat(mount.path.c_str(), &status) == 0 && status.st_uid == *sandbox.uid;
    if (!left && !owned) TRY(leave_mount_namespace());
    left = left || !owned;
    const std::string copy = place + "/" + std::to_string(i);
    Status mapped;
    if (!owned) {
      TRY(make_directories(copy, 0700));
      mapped = mount_as_owner(mount.path, copy, *sandbox.uid);
    }
    std::error_code error;
    if ((owned || !mapped) && fs::canonical(mount.path, error) != mount.path)
      return fail(Code::kPermissionDenied, mount.path + " is missing or has a symbolic link in its path");
    if (!mapped) {
      warnings.push_back(mount.path + " has no id-mapped mounts (" + mapped.error().message +
                         "): the task accesses it as user " + std::to_string(*sandbox.uid) +
                         "; give its group or others access, or run the agent as its owner");
    } else if (!owned) {
      mount.path = copy;
    }
    mount.access = reads ? Access::kRead : Access::kWrite;
  }
  return warnings;
}

const char* to_string(SandboxReport::Level level) {
  switch (level) {
    case SandboxReport::Level::kOff:
      return "off";
    case SandboxReport::Level::kPartial:
      return "partial";
    case SandboxReport::Level::kFull:
      return "full";
  }
  return "off";
}

namespace {

/// Makes one sandbox.
SandboxReport probe_once(std::optional<uid_t> uid, const std::string& init, const std::string& place,
                         bool own_network) {
  using Level = SandboxReport::Level;
  auto directory = TemporaryDirectory::create("sandbox-probe", place);
  if (!directory) return {Level::kOff, directory.error().message};
  const std::string prefix = fs::path(init).parent_path().parent_path().string();
  const Sandbox sandbox{.uid = uid,
                        .tmp = directory->path(),
                        .mounts = {{prefix, prefix, Access::kRead}},
                        .own_network = own_network};
  const std::string user = uid ? std::to_string(*uid) : "-";
  const auto result = run_process({.argv = sandbox_command(sandbox, {init, "exec", user, "/bin/true"})},
                                  {.timeout = std::chrono::seconds(10)});
  if (!result) {
    return {Level::kOff, result.error().code == Code::kNotFound
                             ? "bubblewrap is not installed (apt-get install bubblewrap)"
                             : result.error().message};
  }
  if (!result->ok()) {
    const std::string said(trim(result->err.substr(0, 400)));
    return {Level::kOff,
            "this machine permits no sandbox: " + (said.empty() ? to_string(result->status) : said)};
  }
  if (uid) {
    if (auto mapped = can_map_owners(directory->path(), *uid); !mapped) {
      return {Level::kPartial,
              "the file system of " + place + " has no id-mapped mounts (" + mapped.error().message +
                  "); Linux 5.12 or newer is needed",
              own_network};
    }
  }
  return {Level::kFull, "", own_network};
}

}  // namespace

SandboxReport probe_sandbox(std::optional<uid_t> uid, const std::string& init, const std::string& place,
                            bool own_network) {
  using Level = SandboxReport::Level;
  SandboxReport report = probe_once(uid, init, place, own_network);
  if (!own_network || report.level != Level::kOff) return report;
  // The reason may be the network alone.
  SandboxReport without = probe_once(uid, init, place, false);
  if (without.level == Level::kOff) return without;
  return {Level::kPartial, "tasks have the network of the machine: " + report.missing};
}

}  // namespace det::agent
