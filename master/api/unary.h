// Owns how every unary handler runs: credentials read, work moved to a worker, authorized there, answered
// once.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <functional>

#include "master/api/authorize.h"
#include "master/api/context.h"
#include "master/api/status.h"

namespace det::api {

/// `body` fills the response and may wait for the database and the core; it runs when the method's rules
/// allow the request. Changes are noted in the audit log before they are answered. `workers` are
/// context.workers unless said.
inline grpc::ServerUnaryReactor* unary(const Context& context, grpc::CallbackServerContext* call,
                                       const google::protobuf::Message* request, const char* method,
                                       std::function<Status(const Caller&)> body,
                                       loop::Workers* workers = nullptr) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  Credentials credentials = read_credentials(*call);
  loop::Workers& pool = workers ? *workers : context.workers;
  const bool taken = pool.try_post([reactor, credentials, request, method, body = std::move(body), &context,
                                    begun = mono_now()] {
    auto caller = authorize(method, credentials, *context.sessions, request);
    if (!caller) {
      context.calls->took(method, mono_now() - begun, false);
      return reactor->Finish(to_grpc(caller.error()));
    }
    const Status done = body(*caller);
    if (changes_rights(method)) context.sessions->changed();  // one that failed may have changed some
    audit(context.pool, *caller, method, request, done);
    context.calls->took(method, mono_now() - begun, done.has_value());
    reactor->Finish(to_grpc(done));
  });
  if (!taken) {
    reactor->Finish(to_grpc(Error{Code::kUnavailable, "the master is busy; try again in a moment", {}}));
  }
  return reactor;
}

}  // namespace det::api
