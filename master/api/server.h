// Owns the gRPC server: the services together, its limits, its start and end. Opens no port: connections are
// handed to it.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <memory>

#include "base/fd.h"
#include "master/api/context.h"
#include "master/core/effect.h"
#include "master/loop/change.h"

namespace det::api {

struct Authority;

class Server {
 public:
  /// `authority` signs agents' certificates; none without TLS.
  explicit Server(const Context& context, std::shared_ptr<const Authority> authority = nullptr);
  ~Server();

  /// Takes over a connected, non-blocking socket. Any thread.
  void take(UniqueFd connection);
  /// To this server, in this process.
  std::shared_ptr<grpc::Channel> channel();
  /// The loop's sinks. On the release thread.
  void send(core::Send send);
  void changed(const loop::Change& change);
  /// On the edge worker, several times a second.
  void tick();
  /// For the collector: agents work on storages that the master does not reach. Any thread that may wait.
  gc::Hands hands();
  /// Grows whenever somebody's rights may have become less. Any thread.
  std::uint64_t rights_generation() const;
  /// Ends the streams, lets running calls finish for at most `grace`, then cuts them.
  void stop(Duration grace);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace det::api
