// Program det-task-ssh: SSH server of one connection to a task, in its sandbox. Executed by det-task-shell
// only, with the user and the environment of the task. Standard input is the socket to the agent
// (task/shell_frames.h), over which the connection arrives. Each session channel is served by a
// det-task-shell of its own; this program translates between channels and frames. Single-threaded. At most
// one frame per channel and direction is held outside of libssh, whose windows bound the rest.
#include <fcntl.h>
#include <libssh/callbacks.h>
#include <libssh/server.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iostream>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "agent/task/shell_frames.h"
#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/release.h"
#include "common/base/text.h"
#include "common/sandbox/sandbox.h"
#include "common/task/message.h"

namespace det::agent {
namespace {

/// Time for the connection to arrive from the agent.
constexpr Duration kConnectionPatience = std::chrono::seconds(10);
/// Time from the connection to the login.
constexpr unsigned kLoginSeconds = 20;
/// Keys that a client may offer, as in OpenSSH.
constexpr int kMaxLoginAttempts = 6;
constexpr std::size_t kMaxChannels = 10;
/// Limits of the environment of a channel.
constexpr std::size_t kMaxVariables = 32, kMaxVariableBytes = 4 << 10;
/// Interval of messages that keep a connection with a session from being idle.
constexpr int kKeepAliveMs = 60'000;
/// Exit code of a session whose shell did not start, as in OpenSSH.
constexpr int kNoShell = 255;

using Key = std::unique_ptr<ssh_key_struct, ReleaseWith<ssh_key_free>>;
using Bind = std::unique_ptr<ssh_bind_struct, ReleaseWith<ssh_bind_free>>;
using Connection = std::unique_ptr<ssh_session_struct, ReleaseWith<ssh_free>>;
using Event = std::unique_ptr<ssh_event_struct, ReleaseWith<ssh_event_free>>;

/// Variables that a client may set.
bool is_passed(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  return name == "LANG" || (plain && name.starts_with("LC_"));
}

TerminalSize to_size(int columns, int rows) {
  return {rows > 0 ? std::min(rows, 9999) : 24, columns > 0 ? std::min(columns, 9999) : 80};
}

/// A session channel and the shell that serves it.
class SessionChannel {
 public:
  explicit SessionChannel(ssh_session connection)
      : connection_(connection), channel_(ssh_channel_new(connection)) {
    if (channel_ == nullptr) return;
    ssh_callbacks_init(&callbacks_);
    callbacks_.userdata = this;
    // The data stay in libssh until pump() reads them.
    callbacks_.channel_data_function = [](ssh_session, ssh_channel, void*, std::uint32_t, int, void* self) {
      of(self).input_ready_ = true;
      return 0;
    };
    callbacks_.channel_pty_request_function = [](ssh_session, ssh_channel, const char* term, int columns,
                                                 int rows, int, int, void* self) {
      return of(self).open_terminal(term, to_size(columns, rows));
    };
    callbacks_.channel_pty_window_change_function = [](ssh_session, ssh_channel, int columns, int rows, int,
                                                       int, void* self) {
      of(self).size_ = to_size(columns, rows);
      return 0;
    };
    callbacks_.channel_env_request_function = [](ssh_session, ssh_channel, const char* name,
                                                 const char* value,
                                                 void* self) { return of(self).set_variable(name, value); };
    callbacks_.channel_shell_request_function = [](ssh_session, ssh_channel, void* self) {
      return of(self).start({});
    };
    callbacks_.channel_exec_request_function = [](ssh_session, ssh_channel, const char* command, void* self) {
      return of(self).start({default_shell(), "-c", command});
    };
    ssh_set_channel_callbacks(channel_, &callbacks_);
  }
  SessionChannel(const SessionChannel&) = delete;
  SessionChannel& operator=(const SessionChannel&) = delete;
  ~SessionChannel() {
    if (channel_ == nullptr) return;
    ssh_remove_channel_callbacks(channel_, &callbacks_);
    ssh_channel_free(channel_);
  }

  ssh_channel get() const { return channel_; }
  bool running() const { return static_cast<bool>(shell_); }
  bool is_closed() const { return ssh_channel_is_closed(channel_) != 0; }

  /// Events of the shell's socket that pump() waits for. `full`: the connection takes no output now. Handles
  /// no packets: what they bring must be seen before the next wait.
  pollfd wanted(bool full) const {
    short events = 0;
    if (output_.empty() && !full) events |= POLLIN;
    const bool end = !end_sent_ && ssh_channel_is_eof(channel_) != 0;
    if (!input_.empty() || input_ready_ || size_ || end) events |= POLLOUT;
    return {shell_.get(), events, 0};
  }

  /// Passes on what each side takes. Returns false when the channel has ended.
  bool pump() {
    if (is_closed()) return false;
    if (!shell_) return !ended_;
    write_shell();
    read_shell();
    return !ended_;
  }

 private:
  static SessionChannel& of(void* self) { return *static_cast<SessionChannel*>(self); }

  int open_terminal(const char* term, const TerminalSize& size) {
    if (running() || ended_) return SSH_ERROR;
    request_.terminal = size;
    request_.term = term;
    // A name that det-task-shell would refuse: it uses the default.
    if (!decode_shell_request(encode(request_))) request_.term.clear();
    return SSH_OK;
  }

  int set_variable(const std::string& name, const std::string& value) {
    const bool fits = variables_.size() < kMaxVariables && name.size() + value.size() < kMaxVariableBytes;
    if (running() || !fits || !is_passed(name)) return SSH_ERROR;
    variables_.push_back(name + "=" + value);
    return SSH_OK;
  }

  int start(std::vector<std::string> command) {
    int ends[2];
    if (running() || ended_ || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
      return SSH_ERROR;
    shell_.reset(ends[0]);
    const UniqueFd theirs(ends[1]);
    request_.command = std::move(command);
    request_.errors_apart = !request_.terminal;
    // It ends with its socket, and hangs its shell up before.
    auto child = Child::spawn({.argv = program_beside("det-task-shell"),
                               .env = environment_with(variables_),
                               .cwd = "",
                               .in = Stream::descriptor(theirs.get()),
                               .out = Stream::null(),
                               .err = Stream::null()});
    if (child) child->detach();
    if (child && send_frame(shell_.get(), ShellFrame::kStart, encode(request_))) return SSH_OK;
    shell_.reset();
    return SSH_ERROR;
  }

  /// Sends a frame. Returns false if it must be sent again. A shell that is gone is seen by read_shell().
  bool send(ShellFrame kind, std::string_view bytes) {
    const Status sent = send_frame(shell_.get(), kind, bytes);
    return sent || sent.error().code != Code::kResourceExhausted;
  }

  void write_shell() {
    if (size_ && request_.terminal && !send(ShellFrame::kSize, encode(*size_))) return;
    size_.reset();
    for (;;) {
      if (input_.empty() && std::exchange(input_ready_, false)) {
        input_.resize(kMaxShellData);
        const int count =
            ssh_channel_read_nonblocking(channel_, input_.data(), static_cast<unsigned>(input_.size()), 0);
        input_.resize(static_cast<std::size_t>(std::max(count, 0)));
        // There may be more.
        if (!input_.empty()) input_ready_ = true;
      }
      if (input_.empty()) break;
      if (!send(ShellFrame::kData, input_)) return;
      input_.clear();
    }
    if (!end_sent_ && ssh_channel_is_eof(channel_) != 0) end_sent_ = send(ShellFrame::kEnd, "");
  }

  void read_shell() {
    for (;;) {
      if (!write_channel()) return;
      ShellFrame kind{};
      const auto got = receive_frame(shell_.get(), kind, output_);
      if (!got) output_.clear();
      if (!got) return end(kNoShell);
      if (!*got) return output_.clear();
      if (kind == ShellFrame::kFailed) {
        const std::string text = "det: " + std::exchange(output_, {}) + "\r\n";
        (void)ssh_channel_write_stderr(channel_, text.data(), static_cast<unsigned>(text.size()));
        return end(kNoShell);
      }
      if (kind == ShellFrame::kExit) {
        int code = kNoShell;
        std::from_chars(output_.data(), output_.data() + output_.size(), code);
        return end(code);
      }
      errors_ = kind == ShellFrame::kErrors;
      if (kind != ShellFrame::kData && !errors_) output_.clear();
    }
  }

  /// Returns false while output is left, and while the connection takes no more.
  bool write_channel() {
    while (!output_.empty()) {
      const std::size_t window = ssh_channel_window_size(channel_);
      if (window == 0) return false;
      const auto write = errors_ ? ssh_channel_write_stderr : ssh_channel_write;
      const int count =
          write(channel_, output_.data(), static_cast<unsigned>(std::min(window, output_.size())));
      if (count <= 0) return false;
      output_.erase(0, static_cast<std::size_t>(count));
    }
    return (ssh_get_poll_flags(connection_) & SSH_WRITE_PENDING) == 0;
  }

  void end(int code) {
    ended_ = true;
    ssh_channel_request_send_exit_status(channel_, code);
    ssh_channel_send_eof(channel_);
    ssh_channel_close(channel_);
    shell_.reset();
  }

  const ssh_session connection_;
  const ssh_channel channel_;
  ssh_channel_callbacks_struct callbacks_{};
  ShellRequest request_;
  std::vector<std::string> variables_;
  UniqueFd shell_;                    ///< socket to det-task-shell while it runs
  std::string input_, output_;        ///< bytes that the other side has not taken yet
  std::optional<TerminalSize> size_;  ///< not sent yet
  bool input_ready_ = false;          ///< libssh may hold data of the client
  bool errors_ = false;               ///< output_ is of standard error
  bool end_sent_ = false, ended_ = false;
};

class SshServer {
 public:
  /// Prepares the connection of `stream` for the owner of the key `authorized` ("TYPE BASE64").
  static Result<std::unique_ptr<SshServer>> accept(const std::string& authorized, UniqueFd stream) {
    std::unique_ptr<SshServer> server(new SshServer);
    const std::vector<std::string> words = split(authorized, ' ');
    ssh_key key = nullptr;
    if (words.size() != 2 || ssh_pki_import_pubkey_base64(
                                 words[1].c_str(), ssh_key_type_from_name(words[0].c_str()), &key) != SSH_OK)
      return fail(Code::kInvalidArgument, "the public key of the shell is malformed");
    server->authorized_.reset(key);
    // The host key lives as long as the connection: clients do not check the keys of tasks.
    ssh_key host = nullptr;
    if (ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &host) != SSH_OK)
      return fail(Code::kInternal, "the host key cannot be made");
    const Bind bind(ssh_bind_new());
    bool configured = false;
    // The bind owns the key from here on.
    if (!bind || ssh_bind_options_set(bind.get(), SSH_BIND_OPTIONS_PROCESS_CONFIG, &configured) != SSH_OK ||
        ssh_bind_options_set(bind.get(), SSH_BIND_OPTIONS_IMPORT_KEY, host) != SSH_OK)
      return fail(Code::kInternal, "the SSH server cannot be configured");
    server->connection_.reset(ssh_new());
    if (!server->connection_ ||
        ssh_bind_accept_fd(bind.get(), server->connection_.get(), stream.get()) != SSH_OK)
      return fail(Code::kInternal, "the SSH server cannot take its connection");
    (void)stream.release();
    return server;
  }

  /// Serves the connection to its end. Returns the exit code of this process. Without a login in time the
  /// process is ended by SIGALRM.
  int run(unsigned login_seconds) {
    const ssh_session connection = connection_.get();
    ssh_callbacks_init(&callbacks_);
    callbacks_.userdata = this;
    callbacks_.auth_pubkey_function = [](ssh_session, const char*, ssh_key key, char state, void* self) {
      return static_cast<SshServer*>(self)->authenticate(key, state);
    };
    callbacks_.channel_open_request_session_function = [](ssh_session, void* self) {
      return static_cast<SshServer*>(self)->open_channel();
    };
    ssh_set_server_callbacks(connection, &callbacks_);
    ssh_set_auth_methods(connection, SSH_AUTH_METHOD_PUBLICKEY);
    ::alarm(login_seconds);
    if (ssh_handle_key_exchange(connection) != SSH_OK) return 1;
    ssh_set_blocking(connection, 0);
    event_.reset(ssh_event_new());
    if (!event_ || ssh_event_add_session(event_.get(), connection) != SSH_OK) return 1;
    while (attempts_ < kMaxLoginAttempts && turn()) {
    }
    // The shells end with their sockets, the others with this process.
    channels_.clear();
    ssh_disconnect(connection);
    return 0;
  }

 private:
  SshServer() = default;

  int authenticate(ssh_key key, char state) {
    if (ssh_key_cmp(key, authorized_.get(), SSH_KEY_CMP_PUBLIC) != 0) {
      ++attempts_;
      return SSH_AUTH_DENIED;
    }
    // A client asks before it signs.
    if (state == SSH_PUBLICKEY_STATE_NONE) return SSH_AUTH_SUCCESS;
    if (state != SSH_PUBLICKEY_STATE_VALID) return SSH_AUTH_DENIED;
    authenticated_ = true;
    ::alarm(0);
    return SSH_AUTH_SUCCESS;
  }

  ssh_channel open_channel() {
    if (!authenticated_ || channels_.size() >= kMaxChannels) return nullptr;
    return channels_.emplace_back(connection_.get()).get();
  }

  /// Waits for the next event and handles it. Returns false when the connection has ended.
  bool turn() {
    const ssh_session connection = connection_.get();
    const bool full = (ssh_get_poll_flags(connection) & SSH_WRITE_PENDING) != 0;
    std::vector<pollfd> fds{
        {ssh_get_fd(connection), static_cast<short>(full ? POLLIN | POLLOUT : POLLIN), 0}};
    bool closed = false;
    for (const SessionChannel& channel : channels_) {
      if (channel.running()) fds.push_back(channel.wanted(full));
      closed = closed || channel.is_closed();
    }
    const int ready = ::poll(fds.data(), fds.size(), closed ? 0 : kKeepAliveMs);
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && !closed && fds.size() > 1) (void)ssh_send_ignore(connection, "");
    if (ssh_event_dopoll(event_.get(), 0) == SSH_ERROR) return false;
    if ((ssh_get_status(connection) & (SSH_CLOSED | SSH_CLOSED_ERROR)) != 0) return false;
    // A channel may be added meanwhile, by a packet.
    for (auto it = channels_.begin(); it != channels_.end();)
      it = it->pump() ? std::next(it) : channels_.erase(it);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return true;
  }

  Key authorized_;
  Connection connection_;
  Event event_;
  ssh_server_callbacks_struct callbacks_{};
  std::list<SessionChannel> channels_;
  bool authenticated_ = false;
  int attempts_ = 0;  ///< keys that were refused
};

int serve(const UniqueFd& agent, unsigned login_seconds) {
  auto server = [&]() -> Result<std::unique_ptr<SshServer>> {
    TRY_ASSIGN(Message begin, receive_message(agent.get(), mono_now() + kConnectionPatience));
    if (begin.text.empty() || begin.text[0] != static_cast<char>(ShellFrame::kSsh) || begin.fds.size() != 1)
      return fail(Code::kInvalidArgument, "an SSH connection begins with its key");
    return SshServer::accept(begin.text.substr(1), std::move(begin.fds[0]));
  }();
  if (!server) {
    (void)send_frame(agent.get(), ShellFrame::kFailed, server.error().message);
    return 1;
  }
  (void)send_frame(agent.get(), ShellFrame::kOpened);
  return (*server)->run(login_seconds);
}

}  // namespace
}  // namespace det::agent

int main(int argc, char** argv) {
  det::UniqueFd agent(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  unsigned login_seconds = det::agent::kLoginSeconds;
  if (argc == 2) std::from_chars(argv[1], argv[1] + std::string_view(argv[1]).size(), login_seconds);
  if (argc > 2 || !agent || login_seconds == 0) {
    std::cerr << "usage: det-task-ssh [LOGIN_SECONDS]\nStarted by det-task-shell only.\n";
    return 2;
  }
  // In the root of an image the kernel names this process after the dynamic loader.
  (void)::prctl(PR_SET_NAME, "det-task-ssh");
  ::close(STDIN_FILENO);
  (void)::open("/dev/null", O_RDWR | O_CLOEXEC);
  ::signal(SIGPIPE, SIG_IGN);
  return det::agent::serve(agent, login_seconds);
}
