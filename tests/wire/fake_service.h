// Base of fake gRPC services: serves methods with member functions that have the signatures of gRPC's
// synchronous services. They run on threads of gRPC.
#pragma once

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>

#include "proto/method.h"

namespace det {

class FakeService : public grpc::Service {
 protected:
  template <typename S, typename Request, typename Response>
  void serve(UnaryMethod<Request, Response> method,
             grpc::Status (S::*handler)(grpc::ServerContext*, const Request*, Response*)) {
    add(method.path, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<S, Request, Response, google::protobuf::MessageLite,
                                             google::protobuf::MessageLite>(std::mem_fn(handler),
                                                                            static_cast<S*>(this)));
  }
  template <typename S, typename Request, typename Response>
  void serve(ServerStreamMethod<Request, Response> method,
             grpc::Status (S::*handler)(grpc::ServerContext*, const Request*,
                                        grpc::ServerWriter<Response>*)) {
    add(method.path, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::ServerStreamingHandler<S, Request, Response>(std::mem_fn(handler),
                                                                         static_cast<S*>(this)));
  }
  template <typename S, typename Request, typename Response>
  void serve(ClientStreamMethod<Request, Response> method,
             grpc::Status (S::*handler)(grpc::ServerContext*, grpc::ServerReader<Request>*, Response*)) {
    add(method.path, grpc::internal::RpcMethod::CLIENT_STREAMING,
        new grpc::internal::ClientStreamingHandler<S, Request, Response>(std::mem_fn(handler),
                                                                         static_cast<S*>(this)));
  }
  template <typename S, typename Request, typename Response>
  void serve(BidiStreamMethod<Request, Response> method,
             grpc::Status (S::*handler)(grpc::ServerContext*, grpc::ServerReaderWriter<Response, Request>*)) {
    add(method.path, grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<S, Request, Response>(std::mem_fn(handler),
                                                                       static_cast<S*>(this)));
  }

 private:
  void add(const char* path, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    AddMethod(new grpc::internal::RpcServiceMethod(path, type, handler));
  }
};

}  // namespace det
