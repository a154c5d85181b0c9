#include "common/sandbox/syscall_filter.h"

#include <linux/vm_sockets.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

namespace det {
namespace {

// By name: libseccomp resolves numbers, and one that it does not know is skipped.
constexpr std::array kRefused{
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
    // keyrings
    "keyctl", "add_key", "request_key",
    // mounts and namespaces
    "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
    "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "unshare", "setns", "open_by_handle_at",
    "name_to_handle_at",
    // kernel
    "bpf", "perf_event_open", "userfaultfd", "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "create_module", "io_uring_setup", "io_uring_enter", "io_uring_register", "syslog",
    "lookup_dcookie", "fanotify_init",
    // machine
    "reboot", "swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "iopl", "ioperm", "vhangup", "nfsservctl", "sethostname", "setdomainname"};

constexpr unsigned kNamespaces =
    CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/// Adds the rules. Returns 0 or a negative errno.
int add_rules(scmp_filter_ctx filter) {
  const auto refuse = [&](int call, std::initializer_list<scmp_arg_cmp> when) {
    return ::seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(EPERM), call, static_cast<unsigned>(when.size()),
                                    when.begin());
  };
  for (const char* name : kRefused) {
    const int call = ::seccomp_syscall_resolve_name(name);
    if (call == __NR_SCMP_ERROR) continue;
    if (const int error = refuse(call, {}); error != 0) return error;
  }
  // A namespace of its own gives a process capabilities within it. One rule for each flag: a masked
  // comparison matches a single value.
  for (unsigned flag = 1; flag != 0; flag <<= 1) {
    if ((flag & kNamespaces) == 0) continue;
    if (const int error = refuse(SCMP_SYS(clone), {SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)}); error != 0)
      return error;
  }
  // The flags of clone3 are in memory, where a filter cannot see them. The C library falls back to clone.
  if (const int error = ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0); error != 0)
    return error;
  // Input for another user's terminal. The kernel reads 32 bits of the request.
  for (const unsigned request : {static_cast<unsigned>(TIOCSTI), static_cast<unsigned>(TIOCLINUX)}) {
    if (const int error = refuse(SCMP_SYS(ioctl), {SCMP_A1(SCMP_CMP_MASKED_EQ, 0xFFFFFFFFu, request)});
        error != 0)
      return error;
  }
  // Sockets to the host of a virtual machine, and to the kernel's cryptography.
  for (const unsigned family : {static_cast<unsigned>(AF_VSOCK), static_cast<unsigned>(AF_ALG)}) {
    if (const int error = refuse(SCMP_SYS(socket), {SCMP_A0(SCMP_CMP_MASKED_EQ, 0xFFFFFFFFu, family)});
        error != 0)
      return error;
  }
  return 0;
}

}  // namespace

Status filter_syscalls() {
  const std::unique_ptr<void, decltype(&::seccomp_release)> filter(::seccomp_init(SCMP_ACT_ALLOW),
                                                                   &::seccomp_release);
  if (!filter) return fail(Code::kResourceExhausted, "no memory for a seccomp filter");
  int error = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));
  // A binary tree instead of a list, and no mitigation that slows the training down.
  if (error == 0) error = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
  if (error == 0) error = ::seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_SSB, 1);
  if (error == 0) error = add_rules(filter.get());
  if (error == 0) error = ::seccomp_load(filter.get());
  if (error != 0)
    return fail(Code::kFailedPrecondition, std::string("seccomp filter: ") + std::strerror(-error));
  return {};
}

}  // namespace det
