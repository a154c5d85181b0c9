// The task's side of a tunnel: a port on loopback, a shell, or an SSH server. Belongs to the I/O thread of
// the tunnels.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/task/task_dir.h"
#include "det/v1/tunnel.pb.h"

namespace det::agent {

/// One operation per direction at a time. No handler is called after close().
class TunnelEnd {
 public:
  /// Gets "" or an error for the user.
  using Connected = std::function<void(const std::string& error)>;
  /// Gets whether the end is still there.
  using Done = std::function<void(bool ok)>;

  virtual ~TunnelEnd() = default;
  virtual void connect(Connected done) = 0;
  /// Reads the next message for the user: data, end or exit.
  virtual void read(v1::TunnelMessage& out, Done done) = 0;
  /// Writes data, end or size of the user. `message` must stay valid until `done`.
  virtual void write(const v1::TunnelMessage& message, Done done) = 0;
  virtual void close() = 0;
};

/// Connects to a port on loopback. Only a listener of the user `uid` is accepted. Without `uid`: to a port in
/// the network of the task of `dir`.
std::shared_ptr<TunnelEnd> make_port_end(boost::asio::io_context& io, int port, std::optional<uid_t> uid,
                                         const TaskDir& dir);
/// Starts a shell in the allocation of `dir`.
std::shared_ptr<TunnelEnd> make_shell_end(boost::asio::io_context& io, const v1::ShellStart& start,
                                          const TaskDir& dir);
/// Starts an SSH server for this connection in the allocation of `dir`. It admits the owner of the public key
/// ("TYPE BASE64").
std::shared_ptr<TunnelEnd> make_ssh_end(boost::asio::io_context& io, const std::string& public_key,
                                        const TaskDir& dir);

}  // namespace det::agent
