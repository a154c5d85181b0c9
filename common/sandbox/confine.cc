#include "common/sandbox/confine.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "common/base/fd.h"
#include "common/base/files.h"
#include "common/sandbox/syscall_filter.h"

namespace det {
namespace {

constexpr int kMaxCapability = 63;

Status limit(__rlimit_resource resource, rlim_t most) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return fail_errno("getrlimit");
  now.rlim_max = std::min(now.rlim_max, most);
  now.rlim_cur = std::min(now.rlim_cur, now.rlim_max);
  return ::setrlimit(resource, &now) == 0 ? Status() : fail_errno("setrlimit");
}

/// Keeps this process from the abstract sockets of processes outside its sandbox, which share its network.
/// Without effect before Linux 6.12.
void leave_abstract_sockets() {
  // As in linux/landlock.h, which may be older than the kernel.
  struct {
    std::uint64_t files, ports, scopes;
  } const rules{0, 0, 1};  // LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
  const UniqueFd set(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0)));
  if (set) (void)::syscall(SYS_landlock_restrict_self, set.get(), 0);
}

/// Enters a user namespace with one user and one group: `uid` is shown as `shown`.
Status enter_shown(uid_t uid, const ShownUser& shown) {
  if (::unshare(CLONE_NEWUSER) != 0)
    return fail(Code::kFailedPrecondition,
                std::string("agentUserGroup needs a user namespace, which this machine refuses: ") +
                    std::strerror(errno) + " (sysctl user.max_user_namespaces)");
  // The change of user has made the files in /proc/self unwritable.
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return fail_errno("PR_SET_DUMPABLE");
  const std::string real = " " + std::to_string(uid) + " 1\n";
  const auto write = [](const std::string& path, const std::string& text) -> Status {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    const auto size = static_cast<ssize_t>(text.size());
    if (!file || ::write(file.get(), text.data(), text.size()) != size) return fail_errno(path);
    return {};
  };
  TRY(write("/proc/self/setgroups", "deny"));
  TRY(write("/proc/self/gid_map", std::to_string(shown.gid) + real));
  TRY(write("/proc/self/uid_map", std::to_string(shown.uid) + real));
  drop_bounding_set();
  return {};
}

}  // namespace

void drop_bounding_set() {
  for (int number = 0; number <= kMaxCapability; ++number) (void)::prctl(PR_CAPBSET_DROP, number);
}

Status confine(std::optional<uid_t> uid, std::optional<ShownUser> shown) {
  if (uid) {
    // The bounding set first: it needs a capability.
    drop_bounding_set();
    if (::setgroups(0, nullptr) != 0) return fail_errno("setgroups");
    if (::setresgid(*uid, *uid, *uid) != 0) return fail_errno("setting group " + std::to_string(*uid));
    if (::setresuid(*uid, *uid, *uid) != 0)
      return fail_errno("setting user " + std::to_string(*uid) + " (task_uids of the agent)");
    if (shown) TRY(enter_shown(*uid, *shown));
  }
  // The change of user clears the effective and permitted sets, not the inheritable one.
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3]{};
  if (::syscall(SYS_capset, &header, none) != 0) return fail_errno("capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return fail_errno("PR_SET_NO_NEW_PRIVS");
  // After the change of user, which clears it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return fail_errno("PR_SET_PDEATHSIG");
  leave_abstract_sockets();
  TRY(limit(RLIMIT_CORE, 0));
  TRY(limit(RLIMIT_NPROC, kMaxTaskProcesses));
  return filter_syscalls();
}

}  // namespace det
