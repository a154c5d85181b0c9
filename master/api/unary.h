// Owns how every unary handler runs: credentials read, work moved to a worker, authorized there, answered
// once.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>

#include "master/api/authorize.h"
#include "master/api/context.h"
#include "master/api/status.h"

namespace det::api {

/// `body` fills the response and may wait for the database and the core. `workers` are context.workers unless
/// said.
inline grpc::ServerUnaryReactor* unary(const Context& context, grpc::CallbackServerContext* call,
                                       const char* method, std::function<Status(const Caller&)> body,
                                       loop::Workers* workers = nullptr) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  Credentials credentials = read_credentials(*call);
  loop::Workers& pool = workers ? *workers : context.workers;
  const bool taken = pool.try_post([reactor, credentials, method, body = std::move(body), &context] {
    auto caller = authorize(method, credentials, context.pool);
    reactor->Finish(caller ? to_grpc(body(*caller)) : to_grpc(caller.error()));
  });
  if (!taken) {
    reactor->Finish(to_grpc(Error{Code::kUnavailable, "the master is busy; try again in a moment", {}}));
  }
  return reactor;
}

/// The same; `request` is what the call is about.
inline grpc::ServerUnaryReactor* unary(const Context& context, grpc::CallbackServerContext* call,
                                       const google::protobuf::Message* /*request*/, const char* method,
                                       std::function<Status(const Caller&)> body, loop::Workers* workers = nullptr) {
  return unary(context, call, method, std::move(body), workers);
}

}  // namespace det::api
