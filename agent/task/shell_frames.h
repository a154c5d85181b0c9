// Frames between the agent and det-task-shell, over a SOCK_SEQPACKET socket: one frame a packet, its kind in
// the first byte. The agent connects to the supervisor, which passes the connection to det-task-init, which
// starts det-task-shell with it. det-task-ssh uses the same frames with the shells of its sessions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "common/task/task_dir.h"

namespace det::agent {

enum class ShellFrame : char {
  kStart = 's',   ///< agent, first: encode(ShellRequest)
  kData = 'd',    ///< both: at most kMaxShellData bytes
  kErrors = 'E',  ///< shell: as kData, of standard error if ShellRequest::errors_apart
  kSize = 'r',    ///< agent: encode(TerminalSize)
  kEnd = 'e',     ///< agent: end of the input
  /// Agent, first and last, with one descriptor: "TYPE BASE64" of a public key. The descriptor is a stream,
  /// which det-task-ssh serves as an SSH connection.
  kSsh = 'k',
  kOpened = 'o',  ///< shell, first: the process runs
  kFailed = 'f',  ///< shell, first and last: a message
  kExit = 'x',    ///< shell, last: exit code as text, 128 + n for signal n
};

constexpr std::size_t kMaxShellData = 32 << 10;
/// Bytes of an encoded request, and with it of a command line.
constexpr std::size_t kMaxShellRequest = 64 << 10;

struct TerminalSize {
  int rows = 0, columns = 0;
  bool operator==(const TerminalSize&) const = default;
};

/// Process that a shell runs.
struct ShellRequest {
  std::vector<std::string> command;      ///< empty: an interactive shell
  std::optional<TerminalSize> terminal;  ///< none: pipes in place of a terminal
  std::string term;                      ///< TERM of the user
  bool errors_apart = false;             ///< standard error is not part of the output; without a terminal
  bool operator==(const ShellRequest&) const = default;
};

/// Program of a shell without a command line: /bin/bash, or /bin/sh where it is missing.
std::string default_shell();

std::string encode(const TerminalSize& size);
/// Errors: kInvalidArgument unless both numbers are from 1 to 9999.
Result<TerminalSize> decode_terminal_size(std::string_view text);
std::string encode(const ShellRequest& request);
/// Errors: kInvalidArgument.
Result<ShellRequest> decode_shell_request(std::string_view text);

/// Sends a frame without waiting. Errors: kUnavailable if the other side is gone; kResourceExhausted if it
/// does not read.
Status send_frame(int socket, ShellFrame kind, std::string_view bytes = {});
/// Receives a frame into `kind` and `bytes` without waiting. Returns false if there is none. Errors:
/// kUnavailable if the other side is gone.
Result<bool> receive_frame(int socket, ShellFrame& kind, std::string& bytes);

/// Listens for shells of an allocation. Only the user of this process may connect.
Result<UniqueFd> listen_for_shells(const TaskDir& dir);
/// Connects to listen_for_shells(). Errors: the allocation has no supervisor.
Result<UniqueFd> connect_shell(const TaskDir& dir);

}  // namespace det::agent
