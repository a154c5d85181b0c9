// Sandbox of a task, made by bubblewrap: namespaces, and the part of the machine that its processes see.
// Privileges are dropped inside by det-task-init (confine.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "common/sandbox/confine.h"
#include "common/sandbox/control_group.h"

namespace det {

/// One file or directory of a sandbox.
struct SandboxMount {
  enum class Access {
    kRead,
    kWrite,
    kWriteAsOwner,  ///< the processes act as the owner of `path`, and new files get that owner
    kHide,          ///< an empty directory
    kReadAsOwner,   ///< as kWriteAsOwner, without writing
  };
  std::string path;  ///< on the machine
  std::string inside;
  Access access = Access::kRead;
  bool operator==(const SandboxMount&) const = default;
};

/// What processes see of the machine beside its system directories, and their user.
struct Sandbox {
  /// Directory with the root file system of a container image, in place of the machine's system directories;
  /// "": those of the machine.
  std::string root = {};
  /// User and group. Nothing: the user of the agent, in a user namespace.
  std::optional<uid_t> uid;
  std::optional<ShownUser> shown = {};  ///< user and group that the task sees itself as; none: `uid`
  std::string tmp;                      ///< directory that becomes /tmp and /var/tmp
  std::vector<SandboxMount> mounts;     ///< later ones cover earlier ones
  std::int64_t shm_bytes = 0;           ///< size of /dev/shm; 0: half of the machine's memory
  /// A network namespace of its own, with a loopback interface only. Else the network of the machine.
  bool own_network = false;
  bool operator==(const Sandbox&) const = default;
};

/// Returns the command that runs `argv` as process 1 of a new sandbox: process, IPC, host name and mount
/// namespaces; a network namespace if the sandbox has one of its own; /usr, /opt, /etc and /sys read-only; a
/// /proc, /dev, /run and /var of its own; GPU and InfiniBand devices. With the root of an image: all its
/// directories read-only in place of /usr, /opt and /etc, with the machine's names of hosts; argv[0] is then
/// a program beside det-task-init. kWriteAsOwner is treated as kWrite, kReadAsOwner as kRead. Reads
/// directories of the machine and of the image.
std::vector<std::string> sandbox_command(const Sandbox& sandbox, const std::vector<std::string>& argv);

/// Returns the command of a program of the agent ("det-task-shell") inside a sandbox with the root of an
/// image, which has other libraries: it runs with those of the machine.
std::vector<std::string> program_in_image(const std::string& name);
/// Returns the command of another program of the agent, from a program of the agent inside a sandbox.
std::vector<std::string> program_beside(const std::string& name);

/// Chooses the user of a task with a checkpoint storage, the mount at `inside`, without id-mapped mounts
/// (NFS, kernels before 5.12, machines without user namespaces): the owner of its directory. A directory of
/// root is given to `common` first, so that no task runs as root. Returns the change for the log, "" if there
/// is none. Without `uid` or such a mount it does nothing. Errors: the directory is missing or cannot be
/// given away.
Result<std::string> run_as_owner(Sandbox& sandbox, const std::string& inside, uid_t common);

/// Replaces each kWriteAsOwner and kReadAsOwner by an id-mapped copy of the directory below `place`, in a
/// mount namespace of the calling process, or by kWrite and kRead where `uid` is its owner. Without `uid` it
/// changes nothing. Returns one warning for each directory that stays as it is. The process must be
/// single-threaded. Errors: no mount namespace; a symbolic link in a path.
Result<std::vector<std::string>> map_owners(Sandbox& sandbox, const std::string& place);

/// What the machine offers for sandboxes.
struct SandboxReport {
  enum class Level { kOff, kPartial, kFull };
  Level level = Level::kOff;
  std::string missing;                    ///< what is missing and the remedy; "" if nothing is
  bool own_network = false;               ///< Sandbox::own_network was asked for and is possible
  std::optional<GroupPlace> groups = {};  ///< limits of tasks were asked for and are possible
};
const char* to_string(SandboxReport::Level level);

/// Runs `init` (path of det-task-init) in a sandbox as `uid` and reports the result. `place`: a directory of
/// the agent, for temporary files. If a network of its own is not possible, the sandbox is partial. Blocks
/// for milliseconds, at most 20 s.
SandboxReport probe_sandbox(std::optional<uid_t> uid, const std::string& init, const std::string& place,
                            bool own_network = false);

}  // namespace det
