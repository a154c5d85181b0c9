// Owns the public face as a whole: the port, who answers which path, and the thread on which HTTP lives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "master/http/gateway.h"
#include "master/http/tunnel.h"
#include "master/loop/hub.h"
#include "master/loop/workers.h"

namespace det::http {

struct SiteOptions {
  std::string address = "127.0.0.1";
  int port = 0;
  std::string webui_dir;
  int connections = 2000;
  int connections_per_address = 64;
  TlsServer tls = nullptr;  ///< none: everything is plain
};

class Site {
 public:
  /// Takes the port (so that a taken one is known at once) and reads the web UI; serves nothing yet.
  static Result<std::unique_ptr<Site>> open(const SiteOptions& options);
  ~Site();

  int port() const;

  struct Parts {
    std::shared_ptr<grpc::Channel> channel;
    std::vector<const google::protobuf::ServiceDescriptor*> services;
    loop::Hub& hub;
    loop::Workers& workers;              ///< JSON work
    loop::Workers& serial;               ///< one thread: the event streams' state
    std::function<void(UniqueFd)> grpc;  ///< takes connections that speak HTTP/2
    std::string health;                  ///< JSON of /health
    std::string info;  ///< JSON of /info, where upstream's clients look before anything else
    std::function<std::uint64_t()> rights = nullptr;  ///< grows when somebody may have lost rights
  };
  void start(Parts parts);
  /// About four times a second, on Parts::serial.
  void tick();
  /// Takes no more connections and ends the event streams. Running answers go on.
  void close();
  /// Cuts what is left and ends the thread. Idempotent.
  void stop();

 private:
  struct Impl;
  explicit Site(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace det::http
