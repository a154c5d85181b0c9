// Namespaces of a running sandbox, entered by a process outside of it.
#pragma once

#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"

namespace det {

/// Opens the namespaces of this process that a sandbox may replace: user, mount, process, IPC, host name,
/// control group and network. The descriptors can be sent to another process.
Result<std::vector<UniqueFd>> open_namespaces();

/// Moves this process into the namespaces of open_namespaces(). Those that it shares already are skipped. Its
/// root and current directory become the root of the sandbox, and its later children are in the process
/// namespace; it is not itself. It holds all capabilities of a user namespace that it enters. The process
/// must be single-threaded, and have the user of the process that made the namespaces. Errors: of the kernel;
/// the process is then in an unknown state and must end.
Status enter_namespaces(const std::vector<UniqueFd>& namespaces);

}  // namespace det
