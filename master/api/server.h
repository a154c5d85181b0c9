// The gRPC server of the master: all services, limits, start and shutdown. Opens no port; the listener passes
// connections to it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <memory>

#include "common/base/fd.h"
#include "master/api/auth/authorize.h"
#include "master/api/context.h"
#include "master/core/effect.h"
#include "master/loop/change.h"

namespace det::api {

struct Authority;

/// The services are registered twice: at a server for network clients and at one for the gateway.
class Server {
 public:
  /// `authority` signs agent certificates; null without TLS. Aborts the process if a method has no handler.
  explicit Server(const Context& context, std::shared_ptr<const Authority> authority = nullptr);
  ~Server();

  /// Takes ownership of a connected, non-blocking socket. Any thread.
  void take(UniqueFd connection);
  /// Returns a channel to this server within the process. Messages are not limited in size.
  std::shared_ptr<grpc::Channel> channel();
  /// Identifies the sender of an HTTP body before it is read. Calls `done` once: with an error that answers
  /// the request; with a reservation in Context::uploads; or with null when anyone may send it, or a process
  /// of a running allocation. `large`: the body may be more than a few KiB, so a user must have a role that
  /// allows `method` somewhere. Does not block; `done` runs on this thread or on a worker.
  void admit(const std::string& method, Credentials credentials, bool large,
             const std::function<void(Result<std::shared_ptr<loop::Budget::Lease>>)>& done);
  /// Sinks of the core's loop: commands for agents and processes, and change notifications. Called on the
  /// release thread; do not block.
  void send(const core::Send& send);
  void changed(const loop::Change& change);
  /// Periodic work of the services. Called on the edge worker several times a second.
  void tick();
  /// Access to storages that only agents can reach, for the collector. Its functions block and must not be
  /// called on the edge worker.
  gc::StorageAgents storage_agents();
  /// Grows whenever a user may have lost rights. Any thread.
  std::uint64_t rights_generation() const;
  /// Ends the streams, waits at most `grace` for running calls, then cancels them. Blocks.
  void stop(Duration grace);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace det::api
