// The HTTP site of the master: the port, the routing of paths, and the thread that serves HTTP.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "common/crypto/peer.h"
#include "master/http/gateway.h"
#include "master/http/tunnel.h"
#include "master/loop/hub.h"
#include "master/loop/workers.h"

namespace det::http {

/// Configuration of Site.
struct SiteOptions {
  /// Numeric address to listen on; port 0 picks a free port.
  std::string address = "127.0.0.1";
  int port = 0;
  /// Directory of the web UI; may be absent.
  std::string webui_dir;
  /// Limits of the acceptor.
  int connections = 2000;
  int connections_per_address = 64;
  Networks trusted_proxies = {};  ///< exempt from the limit; their X-Forwarded-For names the client
  TlsServer tls = nullptr;        ///< Null: plain text only.
  bool shell_ssh = false;         ///< SSH servers of shells are reached without a login
};

/// open() → start() → close() → stop(). Owns the HTTP thread.
class Site {
 public:
  /// Binds the port, so that a port conflict fails early, and reads the web UI. Serves nothing until start().
  /// Errors: as Acceptor::listen() and StaticFiles::load().
  static Result<std::unique_ptr<Site>> open(const SiteOptions& options);
  ~Site();

  /// The bound port.
  int port() const;

  /// Collaborators of start(). References must stay valid until stop() has returned.
  struct Parts {
    std::shared_ptr<grpc::Channel> channel;
    std::vector<const google::protobuf::ServiceDescriptor*> services;
    loop::Hub& hub;
    loop::Workers& workers;  ///< Run JSON conversion.
    loop::Workers& serial;   ///< One thread; holds the state of event streams.
    /// Identifies the sender of a body before it is read.
    Admit admit;
    /// Takes over connections that speak HTTP/2.
    std::function<void(UniqueFd)> grpc;
    std::function<std::string()> health;  ///< JSON of /health. Called on the HTTP thread; does not block.
    /// JSON of /info, which clients of Determined AI read first.
    std::string info;
    /// Counter that increases when a user may have lost permissions.
    std::function<std::uint64_t()> rights = nullptr;
  };
  /// Starts the HTTP thread and begins to accept connections.
  void start(Parts parts);
  /// Call about four times a second on Parts::serial.
  void tick();
  /// Stops accepting connections and ends the event streams. Replies in progress continue.
  void close();
  /// Ends the remaining connections and the thread. Blocks for up to 2 s. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit Site(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::http
