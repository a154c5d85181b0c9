// Base of the master's gRPC services. Unary handlers are plain functions; the base parses, authorizes, runs
// them on a worker, records changes in the audit log and replies exactly once.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <vector>

#include "master/api/auth/agent_auth.h"
#include "master/api/auth/allocation_tokens.h"
#include "master/api/auth/authorize.h"
#include "master/api/context.h"
#include "master/api/status.h"
#include "proto/method.h"

namespace det::api {

/// Request of a call as it arrived: it stays unread until the caller is authenticated.
template <typename Request>
struct Unread {
  grpc::ByteBuffer bytes;   ///< shared by copies
  mutable Request message;  ///< of a deferred call, when the caller is authenticated
};

/// One call of a deferred method.
struct Deferred {
  grpc::CallbackServerContext* context;
  grpc::ServerUnaryReactor* reactor;  ///< the handler finishes it once
  /// Trial of the caller, if that is a process whose token is confirmed. The request may name another one.
  std::shared_ptr<const ConfirmedTrial> trial;
  AgentCaller agent;  ///< the caller of a method of agents
};

/// An authorized stream.
template <typename Request>
struct Authorized {
  Caller caller;
  std::shared_ptr<const Request> request;
};

/// Parses the bytes of a request. Errors: kInvalidArgument.
Status read_request(const grpc::ByteBuffer& bytes, google::protobuf::Message* request);

/// Authenticates the caller of `method`, reads its request, and applies the rules. Blocks. Errors: those of
/// authorize() and read_request().
template <typename Request>
Result<Authorized<Request>> read_authorized(const Context& context, const char* method,
                                            const Credentials& credentials, const grpc::ByteBuffer& bytes) {
  TRY_ASSIGN(Caller caller, authenticate(method, credentials, *context.sessions));
  auto request = std::make_shared<Request>();
  TRY(read_request(bytes, request.get()));
  TRY(check_rules(method, caller, request.get(), context.sessions->pool()));
  return Authorized<Request>{std::move(caller), std::move(request)};
}

}  // namespace det::api

/// Keeps the bytes of a request.
template <typename Request>
class grpc::SerializationTraits<det::api::Unread<Request>, void> {
 public:
  static Status Deserialize(ByteBuffer* bytes, det::api::Unread<Request>* request) {
    request->bytes.Swap(bytes);
    return Status::OK;
  }
};

namespace det::api {

/// A service registers its methods in its constructor. A handler whose types are not those of the method does
/// not compile. Registered handlers are called until the server has shut down.
///
/// Generated service classes are not used: each of them instantiates gRPC's handler templates once per
/// method, which made this folder slow to compile.
class Service : public grpc::Service {
 public:
  ~Service() override;
  /// Methods of the .proto file without a handler, as "/det.v1.Service/Method".
  std::vector<std::string> missing() const;

 protected:
  /// `full_name` is that of the service, e.g. v1::ModelService::full_name.
  Service(const Context& context, const char* full_name);

  /// Serves a method with `handler`, which runs on `workers` for an authorized caller. It may block on the
  /// database and the core, and fills the response. It does not run for a call that its client has canceled,
  /// nor for one that has waited for a thread for longer than kQueuePatience (UNAVAILABLE).
  template <typename S, typename Request, typename Response>
  void unary(UnaryMethod<Request, Response> method,
             Status (S::*handler)(const Caller&, const Request&, Response*), loop::Workers& workers) {
    add_unary(method.path, Request::default_instance(), Response::default_instance(), workers,
              [self = static_cast<S*>(this), handler](const Caller& caller,
                                                      const google::protobuf::Message& request,
                                                      google::protobuf::Message* response) {
                return (self->*handler)(caller, static_cast<const Request&>(request),
                                        static_cast<Response*>(response));
              });
  }
  /// Same, on the pool of the method's kind: `steer` for changes, `read` for reads, `ingest` for calls of
  /// processes and agents.
  template <typename S, typename Request, typename Response>
  void unary(UnaryMethod<Request, Response> method,
             Status (S::*handler)(const Caller&, const Request&, Response*)) {
    unary(method, handler, default_pool(method.path));
  }

  /// Serves a method that authorizes its caller itself and may reply long after the handler has returned. Its
  /// caller is authenticated. The handler runs on a thread of gRPC or on a worker and must not block; that of
  /// a method of agents runs on a worker and may.
  template <typename S, typename Request, typename Response>
  void deferred(UnaryMethod<Request, Response> method,
                void (S::*handler)(const Deferred&, const Request*, Response*)) {
    add(method.path, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<Unread<Request>, Response>(
            [this, handler, path = method.path](grpc::CallbackServerContext* call,
                                                const Unread<Request>* request, Response* response) {
              return defer(path, call, request->bytes, &request->message,
                           [self = static_cast<S*>(this), handler, request, response](const Deferred& begun) {
                             (self->*handler)(begun, &request->message, response);
                           });
            }));
  }
  /// Serves a stream. Its handler runs on a thread of gRPC and must not block. The stream admits its caller
  /// before it reads the request.
  template <typename S, typename Request, typename Response>
  void server_stream(ServerStreamMethod<Request, Response> method,
                     grpc::ServerWriteReactor<Response>* (S::*handler)(grpc::CallbackServerContext*,
                                                                       const Unread<Request>&)) {
    add(method.path, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<Unread<Request>, Response>(
            [self = static_cast<S*>(this), handler](grpc::CallbackServerContext* call,
                                                    const Unread<Request>* request) {
              return (self->*handler)(call, *request);
            }));
  }
  template <typename S, typename Request, typename Response>
  void client_stream(ClientStreamMethod<Request, Response> method,
                     grpc::ServerReadReactor<Request>* (S::*handler)(grpc::CallbackServerContext*,
                                                                     Response*)) {
    add(method.path, grpc::internal::RpcMethod::CLIENT_STREAMING,
        new grpc::internal::CallbackClientStreamingHandler<Request, Response>(
            [self = static_cast<S*>(this), handler](grpc::CallbackServerContext* call, Response* response) {
              return (self->*handler)(call, response);
            }));
  }
  template <typename S, typename Request, typename Response>
  void bidi_stream(BidiStreamMethod<Request, Response> method,
                   grpc::ServerBidiReactor<Request, Response>* (S::*handler)(grpc::CallbackServerContext*)) {
    add(method.path, grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::CallbackBidiHandler<Request, Response>(
            [self = static_cast<S*>(this), handler](grpc::CallbackServerContext* call) {
              return (self->*handler)(call);
            }));
  }

  /// Runs `work`, which must finish `reactor`, on `workers`. Replies UNAVAILABLE when their queue is full.
  static void post(loop::Workers& workers, grpc::ServerUnaryReactor* reactor, std::function<void()> work);
  /// Applies the rules of `path`, runs `body`, and records the call in the audit log and the statistics.
  /// `response` is what `body` fills, null without one; `begun` is the arrival of the call. Blocks.
  Status perform(const char* path, const Result<Caller>& caller, const google::protobuf::Message& request,
                 const google::protobuf::Message* response, MonoTime begun,
                 const std::function<Status(const Caller&)>& body);

  /// Longest time of a call in the queue of its pool.
  static constexpr Duration kQueuePatience = std::chrono::seconds(30);

  const Context& context_;

 private:
  /// Authenticates the caller of `path`, parses `bytes` into `request`, and runs `handler`: at once if that
  /// needs no lookup, else on a worker.
  grpc::ServerUnaryReactor* defer(const char* path, grpc::CallbackServerContext* call,
                                  const grpc::ByteBuffer& bytes, google::protobuf::Message* request,
                                  std::function<void(const Deferred&)> handler);
  loop::Workers& default_pool(const char* path) const;
  using Handler =
      std::function<Status(const Caller&, const google::protobuf::Message&, google::protobuf::Message*)>;
  struct Unary;
  void add_unary(const char* path, const google::protobuf::Message& request,
                 const google::protobuf::Message& response, loop::Workers& workers, Handler handler);
  /// Takes ownership of `handler`, and keeps `path`.
  void add(const char* path, grpc::internal::RpcMethod::RpcType type, grpc::internal::MethodHandler* handler);
  grpc::ServerUnaryReactor* serve(const Unary& method, grpc::CallbackServerContext* call,
                                  const grpc::ByteBuffer& in, grpc::ByteBuffer* out);

  const google::protobuf::ServiceDescriptor& descriptor_;
  std::vector<const char*> paths_;
  std::vector<std::unique_ptr<const Unary>> unaries_;
};

}  // namespace det::api
