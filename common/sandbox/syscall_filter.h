// Seccomp filter of tasks.
#pragma once

#include "common/base/result.h"

namespace det {

/// Makes system calls that no training program needs fail with EPERM, in this process and its later children,
/// for good: tracing, keyrings, mounts, namespaces, kernel modules, BPF, performance counters, userfaultfd,
/// io_uring, clocks, terminal injection. Other instruction sets fail with ENOSYS. Needs no_new_privs. Errors:
/// a kernel without seccomp filters.
Status filter_syscalls();

}  // namespace det
