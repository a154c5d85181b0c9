#include "common/sandbox/id_mapped_mount.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/base/fd.h"
#include "common/base/files.h"

namespace det {
namespace {

/// Waits for the end by SIGKILL. It shares the memory of its parent, so it calls the kernel only.
int hold_namespace(void*) {
  ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
  for (;;) ::syscall(SYS_ppoll, nullptr, 0, nullptr, nullptr, 0);
}

/// Returns a user namespace that maps one user and one group: `owner` and `group` on disk to `uid`.
Result<UniqueFd> owner_namespace(uid_t owner, gid_t group, uid_t uid) {
  // A process keeps the namespace until it is open. Copying the memory of the agent would take milliseconds.
  alignas(16) char stack[16 << 10];
  const pid_t child =
      ::clone(hold_namespace, stack + sizeof stack, CLONE_VM | CLONE_NEWUSER | SIGCHLD, nullptr);
  // EPERM, or ENOSPC with user.max_user_namespaces = 0.
  if (child < 0)
    return fail(Code::kFailedPrecondition, std::string("this machine refuses user namespaces: ") +
                                               std::strerror(errno) + " (sysctl user.max_user_namespaces)");
  const std::string process = "/proc/" + std::to_string(child);
  const auto map = [&](const char* file, unsigned id) -> Status {
    const UniqueFd out(::open((process + file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!out) return fail_errno(process + file);
    return write_all(out.get(), std::to_string(id) + " " + std::to_string(uid) + " 1\n");
  };
  Status mapped = map("/uid_map", owner);
  if (mapped) mapped = map("/gid_map", group);
  UniqueFd space(mapped ? ::open((process + "/ns/user").c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (mapped && !space) mapped = fail_errno(process + "/ns/user");
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  if (!mapped) return tl::unexpected(mapped.error());
  return space;
}

/// Returns a detached id-mapped copy of the mount of `directory`.
Result<UniqueFd> mapped_copy(const std::string& directory, uid_t uid) {
  // No component may be a link: a task that can write to a parent could replace it.
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_SYMLINKS;
  const UniqueFd opened(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, directory.c_str(), &how, sizeof how)));
  struct stat status {};
  if (!opened || ::fstat(opened.get(), &status) != 0) return fail_errno(directory);
  UniqueFd copy(static_cast<int>(::syscall(
      SYS_open_tree, opened.get(), "", AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  if (!copy) return fail_errno("open_tree");
  TRY_ASSIGN(const UniqueFd space, owner_namespace(status.st_uid, status.st_gid, uid));
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (::syscall(SYS_mount_setattr, copy.get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes,
                sizeof attributes) != 0)
    return fail_errno("mount_setattr");
  attributes.attr_set = MOUNT_ATTR_IDMAP;
  attributes.userns_fd = static_cast<__u64>(space.get());
  if (::syscall(SYS_mount_setattr, copy.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    return fail_errno("mount_setattr");
  return copy;
}

}  // namespace

Status mount_as_owner(const std::string& directory, const std::string& place, uid_t uid) {
  TRY_ASSIGN(const UniqueFd copy, mapped_copy(directory, uid));
  if (::syscall(SYS_move_mount, copy.get(), "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail_errno("move_mount " + place);
  return {};
}

Status can_map_owners(const std::string& directory, uid_t uid) {
  const auto copy = mapped_copy(directory, uid);
  return copy ? Status() : tl::unexpected(copy.error());
}

}  // namespace det
