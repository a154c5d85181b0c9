// A shell of an allocation: frames of det-task-shell become messages of a tunnel (task/shell_frames.h).
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <charconv>
#include <utility>

#include "agent/master_link/tunnel_end.h"
#include "agent/task/shell_frames.h"

namespace det::agent {
namespace {

namespace asio = boost::asio;
using ShellError = boost::system::error_code;
using Wait = asio::posix::stream_descriptor::wait_type;

/// Time for the shell to start.
constexpr auto kShellStartTime = std::chrono::seconds(5);

std::optional<TerminalSize> size_of(bool given, const v1::TerminalSize& size) {
  if (!given) return std::nullopt;
  return TerminalSize{size.rows(), size.columns()};
}

class ShellEnd final : public TunnelEnd, public std::enable_shared_from_this<ShellEnd> {
 public:
  ShellEnd(asio::io_context& io, const v1::ShellStart& start, TaskDir dir)
      : request_{{start.command().begin(), start.command().end()},
                 size_of(start.has_terminal(), start.terminal()),
                 start.term()},
        dir_(std::move(dir)),
        socket_(io),
        timer_(io) {}

  void connect(Connected done) override {
    const std::string text = encode(request_);
    if (text.size() > kMaxShellRequest) return done("the command line of the shell has more than 64 KiB");
    // Checked here too, so that the error names the request and not the task.
    if (const auto valid = decode_shell_request(text); !valid) return done(valid.error().message);
    auto socket = connect_shell(dir_);
    if (!socket) return done("the task has no process on this agent yet, or was started by an older release");
    ShellError failed;
    socket_.assign(socket->release(), failed);
    if (const Status sent = send_frame(socket_.native_handle(), ShellFrame::kStart, text); !sent)
      return done(sent.error().message);
    timer_.expires_after(kShellStartTime);
    timer_.async_wait([self = shared_from_this()](ShellError error) {
      if (!error) self->socket_.cancel();
    });
    receive([self = shared_from_this(), done = std::move(done)](bool ok) {
      self->timer_.cancel();
      if (ok && self->kind_ == ShellFrame::kOpened) return done("");
      if (ok && self->kind_ == ShellFrame::kFailed) return done(self->bytes_);
      done("the task did not start a shell; is it ending?");
    });
  }

  void read(v1::TunnelMessage& out, Done done) override {
    receive([self = shared_from_this(), &out, done = std::move(done)](bool ok) {
      if (!ok || !self->to_message(out)) return done(false);
      done(true);
    });
  }

  void write(const v1::TunnelMessage& message, Done done) override {
    if (message.has_data()) {
      std::string_view rest = std::string_view(message.data()).substr(written_);
      rest = rest.substr(0, kMaxShellData);
      return send(ShellFrame::kData, rest,
                  [self = shared_from_this(), &message, size = rest.size(), done = std::move(done)](bool ok) {
                    self->written_ += size;
                    const bool whole = self->written_ >= message.data().size();
                    if (ok && !whole) return self->write(message, done);
                    self->written_ = 0;
                    done(ok);
                  });
    }
    if (message.has_end()) return send(ShellFrame::kEnd, "", std::move(done));
    if (!message.has_size()) return done(false);
    size_ = encode(TerminalSize{message.size().rows(), message.size().columns()});
    send(ShellFrame::kSize, size_, std::move(done));
  }

  void close() override {
    closed_ = true;
    ShellError ignored;
    timer_.cancel();
    socket_.close(ignored);
  }

 private:
  /// Waits for the next frame, which goes to `kind_` and `bytes_`.
  void receive(Done done) {
    socket_.async_wait(
        Wait::wait_read, [self = shared_from_this(), done = std::move(done)](ShellError error) {
          if (self->closed_) return;
          if (error) return done(false);
          const auto got = receive_frame(self->socket_.native_handle(), self->kind_, self->bytes_);
          if (got && !*got) return self->receive(done);
          done(got.has_value());
        });
  }

  /// Sends a frame when the shell takes it. `bytes` must stay valid.
  void send(ShellFrame kind, std::string_view bytes, Done done) {
    socket_.async_wait(Wait::wait_write,
                       [self = shared_from_this(), kind, bytes, done = std::move(done)](ShellError error) {
                         if (self->closed_) return;
                         if (error) return done(false);
                         const Status sent = send_frame(self->socket_.native_handle(), kind, bytes);
                         const bool full = !sent && sent.error().code == Code::kResourceExhausted;
                         // The end of the shell, and its exit code, are reported by read().
                         full ? self->send(kind, bytes, done) : done(true);
                       });
  }

  /// Returns false for a frame that ends the tunnel without an exit code.
  bool to_message(v1::TunnelMessage& out) const {
    out.Clear();
    if (kind_ == ShellFrame::kData) {
      out.set_data(bytes_);
      return true;
    }
    int code = 0;
    const auto [end, error] = std::from_chars(bytes_.data(), bytes_.data() + bytes_.size(), code);
    if (kind_ != ShellFrame::kExit || error != std::errc()) return false;
    out.mutable_exit()->set_code(code);
    return true;
  }

  const ShellRequest request_;
  const TaskDir dir_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer timer_;
  ShellFrame kind_{};
  std::string bytes_, size_;
  std::size_t written_ = 0;  ///< of the message being written
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<TunnelEnd> make_shell_end(asio::io_context& io, const v1::ShellStart& start,
                                          const TaskDir& dir) {
  return std::make_shared<ShellEnd>(io, start, dir);
}

}  // namespace det::agent
