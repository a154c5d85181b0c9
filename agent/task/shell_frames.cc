#include "agent/task/shell_frames.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "common/base/files.h"
#include "common/base/text.h"
#include "common/task/message.h"

namespace det::agent {
namespace {

constexpr std::size_t kMaxTerm = 64;
/// In place of the size of a terminal.
constexpr std::string_view kErrorsApart = "errors";

bool is_term(const std::string& text) {
  return text.size() <= kMaxTerm && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                  c == '.' || c == '_' || c == '+';
         });
}

bool read_number(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 1 && out <= 9999;
}

/// Directory of the socket, opened: the path of a socket has at most 107 bytes, the directory's may be
/// longer.
Result<UniqueFd> open_directory(const TaskDir& dir) {
  UniqueFd fd(::open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(dir.path());
  return fd;
}
std::string socket_path(const UniqueFd& directory) {
  return "/proc/self/fd/" + std::to_string(directory.get()) + "/shells";
}

}  // namespace

std::string default_shell() { return ::access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh"; }

std::string encode(const TerminalSize& size) {
  return std::to_string(size.rows) + " " + std::to_string(size.columns);
}

Result<TerminalSize> decode_terminal_size(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  TerminalSize size;
  if (space == text.size() || !read_number(text.substr(0, space), size.rows) ||
      !read_number(text.substr(space + 1), size.columns))
    return fail(Code::kInvalidArgument, "the size of a terminal is from 1 to 9999 rows and columns");
  return size;
}

// Fields end with NUL: the size of the terminal, "errors" or "", TERM, each word of the command.
std::string encode(const ShellRequest& request) {
  std::string text = request.terminal ? encode(*request.terminal) : "";
  if (!request.terminal && request.errors_apart) text = kErrorsApart;
  text += '\0' + request.term + '\0';
  for (const std::string& word : request.command) text += word + '\0';
  return text;
}

Result<ShellRequest> decode_shell_request(std::string_view text) {
  std::vector<std::string> fields = split(std::string(text), '\0');
  // Each field ends with NUL, so the text after the last one is empty.
  if (fields.size() < 3 || !fields.back().empty() || !is_term(fields[1]))
    return fail(Code::kInvalidArgument, "not a request for a shell");
  ShellRequest request;
  request.errors_apart = fields[0] == kErrorsApart;
  if (!fields[0].empty() && !request.errors_apart) {
    TRY_ASSIGN(request.terminal, decode_terminal_size(fields[0]));
  }
  request.term = std::move(fields[1]);
  request.command.assign(fields.begin() + 2, fields.end() - 1);
  return request;
}

Status send_frame(int socket, ShellFrame kind, std::string_view bytes) {
  std::string frame(1, static_cast<char>(kind));
  frame += bytes;
  for (;;) {
    if (::send(socket, frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
    if (errno == EAGAIN) return fail(Code::kResourceExhausted, "the other side of the shell does not read");
    if (errno != EINTR) return fail(Code::kUnavailable, "the other side of the shell has closed it");
  }
}

Result<bool> receive_frame(int socket, ShellFrame& kind, std::string& bytes) {
  bytes.resize(1 + std::max(kMaxShellData, kMaxShellRequest));
  const ssize_t got = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) return fail(Code::kUnavailable, "the other side of the shell has closed it");
  bytes.resize(static_cast<std::size_t>(got));
  kind = static_cast<ShellFrame>(bytes[0]);
  bytes.erase(0, 1);
  return true;
}

Result<UniqueFd> listen_for_shells(const TaskDir& dir) {
  TRY_ASSIGN(const UniqueFd directory, open_directory(dir));
  return listen_messages(socket_path(directory));
}

Result<UniqueFd> connect_shell(const TaskDir& dir) {
  TRY_ASSIGN(const UniqueFd directory, open_directory(dir));
  return connect_messages(socket_path(directory));
}

}  // namespace det::agent
