#include "common/sandbox/sandbox.h"

#include <link.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/sandbox/id_mapped_mount.h"

namespace det {
namespace {

namespace fs = std::filesystem;
using Access = SandboxMount::Access;

void add(std::vector<std::string>& command, std::initializer_list<std::string> words) {
  command.insert(command.end(), words);
}

// Programs of the agent and libraries of the machine, in a sandbox with the root of an image.
constexpr std::string_view kPrograms = "/run/programs";
constexpr std::size_t kMaxLibraryDirectories = 4;

/// The system directories of the machine. Merged ones (/bin → usr/bin) stay symbolic links.
void add_machine(std::vector<std::string>& command) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}) {
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
}

/// Shows the directory `inside` of an image. A directory with a covered path below it is shown entry by
/// entry, because bubblewrap creates places of mounts, and cannot in a read-only directory. A symbolic link
/// of the image is never on the way to a mount.
void add_image_directory(std::vector<std::string>& command, const std::string& root,
                         const std::string& inside, const std::set<std::string>& covered) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root + inside, error)) {
    const std::string path = inside + "/" + entry.path().filename().string();
    if (covered.contains(path)) continue;
    const auto below = covered.lower_bound(path + "/");
    const bool link = entry.is_symlink(error);
    if (below != covered.end() && below->starts_with(path + "/")) {
      add(command, {"--dir", path});
      if (!link && entry.is_directory(error)) add_image_directory(command, root, path, covered);
    } else if (link) {
      add(command, {"--symlink", fs::read_symlink(entry.path(), error).string(), path});
    } else {
      add(command, {"--ro-bind", entry.path().string(), path});
    }
  }
}

/// The files of an image, without the places of other mounts.
void add_image(std::vector<std::string>& command, const Sandbox& sandbox) {
  std::set<std::string> covered{"/dev", "/proc", "/run", "/sys", "/tmp", "/var"};
  constexpr std::array kNetworkFiles{"/etc/hosts", "/etc/resolv.conf"};
  covered.insert(kNetworkFiles.begin(), kNetworkFiles.end());
  for (const SandboxMount& mount : sandbox.mounts) covered.insert(mount.inside);
  add_image_directory(command, sandbox.root, "", covered);
  for (const char* path : kNetworkFiles) {
    std::error_code error;
    if (const fs::path real = fs::canonical(path, error); !error)
      add(command, {"--ro-bind", real.string(), path});
  }
}

/// Devices and private directories of every sandbox.
void add_common(std::vector<std::string>& command, std::int64_t shm_bytes) {
  add(command, {"--ro-bind", "/sys", "/sys", "--proc", "/proc", "--dev", "/dev", "--perms", "1777"});
  if (shm_bytes > 0) add(command, {"--size", std::to_string(shm_bytes)});
  add(command, {"--tmpfs", "/dev/shm"});
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/dev", error)) {
    const std::string path = entry.path().string();
    if (path.starts_with("/dev/nvidia") || path == "/dev/infiniband")
      add(command, {"--dev-bind-try", path, path});
  }
  add(command, {"--tmpfs", "/run", "--tmpfs", "/var"});
  // /etc/resolv.conf is often a link to this directory.
  add(command, {"--ro-bind-try", "/run/systemd/resolve", "/run/systemd/resolve"});
}

/// Files of the libraries of this process, with the dynamic loader.
std::set<std::string> loaded_libraries() {
  std::set<std::string> files;
  const auto take = [](dl_phdr_info* info, std::size_t, void* user) {
    if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/')
      static_cast<std::set<std::string>*>(user)->insert(info->dlpi_name);
    return 0;
  };
  ::dl_iterate_phdr(take, &files);
  return files;
}

/// Shows the programs in `bin` that run inside a sandbox, with what they load.
void add_programs(std::vector<std::string>& command, const std::string& bin) {
  const std::string place(kPrograms);
  // Otherwise bubblewrap creates it without access for the user of the task.
  add(command, {"--dir", place});
  std::set<std::string> directories;
  for (const std::string& file : loaded_libraries()) {
    std::error_code error;
    const fs::path path(file);
    directories.insert(fs::canonical(path.parent_path(), error).string());
    if (path.filename().string().starts_with("ld-"))
      add(command, {"--ro-bind", fs::canonical(path, error).string(), place + "/ld.so"});
  }
  std::size_t number = 0;
  for (const std::string& directory : directories) {
    if (number == kMaxLibraryDirectories) break;
    add(command, {"--ro-bind", directory, place + "/lib" + std::to_string(number++)});
  }
  for (const char* name : {"/det-task-init", "/det-task-shell", "/det-task-ssh"})
    add(command, {"--ro-bind", bin + name, place + name});
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
  const bool image = !sandbox.root.empty();
  if (image) {
    add_image(command, sandbox);
  } else {
    add_machine(command);
  }
  add_common(command, sandbox.shm_bytes);
  if (image) add_programs(command, fs::path(argv[0]).parent_path().string());
  // Not a symbolic link: mounts below /var/tmp, such as a directory of the agent, could not pass it.
  for (const char* path : {"/tmp", "/var/tmp"}) add(command, {"--bind", sandbox.tmp, path});
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
  if (image) {
    const std::vector<std::string> program = program_in_image(fs::path(argv[0]).filename().string());
    command.insert(command.end(), program.begin(), program.end());
  }
  command.insert(command.end(), argv.begin() + (image ? 1 : 0), argv.end());
  return command;
}

std::vector<std::string> program_in_image(const std::string& name) {
  const std::string place(kPrograms);
  std::string libraries = place + "/lib0";
  for (std::size_t i = 1; i < kMaxLibraryDirectories; ++i)
    libraries += ":" + place + "/lib" + std::to_string(i);
  return {place + "/ld.so", "--library-path", libraries, place + "/" + name};
}

std::vector<std::string> program_beside(const std::string& name) {
  const std::string own = program_path(), directory = own.substr(0, own.rfind('/'));
  // In the root of an image this process is the dynamic loader.
  return directory == kPrograms ? program_in_image(name) : std::vector{directory + "/" + name};
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

}  // namespace det
