// The SSH server of a task, one process for each connection: its bytes become messages of a tunnel. The agent
// passes one end of a socket pair to det-task-ssh (task/shell_frames.h) and keeps the other one.
#include <sys/socket.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/master_link/stream_end.h"
#include "agent/task/shell_frames.h"
#include "common/task/message.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;
using asio::local::stream_protocol;

/// Time for the server to start.
constexpr auto kSshStartTime = std::chrono::seconds(5);

class SshEnd final : public StreamEnd<stream_protocol::socket> {
 public:
  SshEnd(asio::io_context& io, std::string public_key, TaskDir dir)
      : StreamEnd(io), public_key_(std::move(public_key)), dir_(std::move(dir)), started_(io), timer_(io) {}

  void connect(Connected done) override {
    if (const std::string error = start(); !error.empty()) return done(error);
    auto self = std::static_pointer_cast<SshEnd>(shared_from_this());
    timer_.expires_after(kSshStartTime);
    timer_.async_wait([self](Error error) {
      if (!error) self->started_.cancel();
    });
    started_.async_wait(asio::posix::stream_descriptor::wait_read,
                        [self, done = std::move(done)](Error error) {
                          self->timer_.cancel();
                          if (!self->closed_) done(self->answer(error));
                        });
  }

  void close() override {
    StreamEnd::close();
    Error ignored;
    timer_.cancel();
    started_.close(ignored);
  }

 private:
  /// Sends the request. Returns an error for the user, or "".
  std::string start() {
    auto task = connect_shell(dir_);
    if (!task) return "the task has no process on this agent yet, or was started by an older release";
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return "socketpair failed";
    const UniqueFd theirs(ends[1]);
    Error failed;
    socket_.assign(stream_protocol(), ends[0], failed);
    const Status sent =
        send_message(task->get(), static_cast<char>(ShellFrame::kSsh) + public_key_, {theirs.get()});
    if (!sent) return sent.error().message;
    started_.assign(task->release(), failed);
    return "";
  }

  /// Reads the answer of the server. Returns an error for the user, or "".
  std::string answer(Error error) {
    ShellFrame kind{};
    std::string text;
    const bool got = !error && receive_frame(started_.native_handle(), kind, text).value_or(false);
    Error ignored;
    started_.close(ignored);
    if (got && kind == ShellFrame::kOpened) return "";
    return got && kind == ShellFrame::kFailed ? text : "the task did not start an SSH server; is it ending?";
  }

  const std::string public_key_;
  const TaskDir dir_;
  asio::posix::stream_descriptor started_;  ///< to det-task-ssh, until it has started
  asio::steady_timer timer_;
};

}  // namespace

std::shared_ptr<TunnelEnd> make_ssh_end(asio::io_context& io, const std::string& public_key,
                                        const TaskDir& dir) {
  return std::make_shared<SshEnd>(io, public_key, dir);
}

}  // namespace det::agent
