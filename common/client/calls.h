// Calls of gRPC methods by their typed names (proto/method.h). They replace generated stubs: all unary calls
// share one instantiation. A channel may be used by several threads; a call by one reader and one writer.
// `context` and the messages outlive the call.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/async_stream.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/sync_stream.h>

#include <functional>
#include <memory>

#include "proto/method.h"

namespace det::wire {

using Channel = std::shared_ptr<grpc::ChannelInterface>;

/// Makes the unary call `path`. Blocks.
grpc::Status call_path(const Channel& channel, const char* path, grpc::ClientContext& context,
                       const google::protobuf::MessageLite& request, google::protobuf::MessageLite& response);
/// Starts the unary call `path`. `done` runs on a thread of gRPC and must not block.
void start_path(const Channel& channel, const char* path, grpc::ClientContext& context,
                const google::protobuf::MessageLite& request, google::protobuf::MessageLite& response,
                std::function<void(grpc::Status)> done);

/// Makes a unary call. Blocks.
template <typename Request, typename Response>
grpc::Status call(const Channel& channel, UnaryMethod<Request, Response> method, grpc::ClientContext& context,
                  const Request& request, Response& response) {
  return call_path(channel, method.path, context, request, response);
}
/// Starts a unary call. `done` runs on a thread of gRPC and must not block.
template <typename Request, typename Response>
void start(const Channel& channel, UnaryMethod<Request, Response> method, grpc::ClientContext& context,
           const Request& request, Response& response, std::function<void(grpc::Status)> done) {
  start_path(channel, method.path, context, request, response, std::move(done));
}

/// Opens a stream whose reads and writes block.
template <typename Request, typename Response>
std::unique_ptr<grpc::ClientReader<Response>> open(const Channel& channel,
                                                   ServerStreamMethod<Request, Response> method,
                                                   grpc::ClientContext& context, const Request& request) {
  const grpc::internal::RpcMethod rpc(method.path, grpc::internal::RpcMethod::SERVER_STREAMING);
  return std::unique_ptr<grpc::ClientReader<Response>>(
      grpc::internal::ClientReaderFactory<Response>::Create(channel.get(), rpc, &context, request));
}
template <typename Request, typename Response>
std::unique_ptr<grpc::ClientWriter<Request>> open(const Channel& channel,
                                                  ClientStreamMethod<Request, Response> method,
                                                  grpc::ClientContext& context, Response& response) {
  const grpc::internal::RpcMethod rpc(method.path, grpc::internal::RpcMethod::CLIENT_STREAMING);
  return std::unique_ptr<grpc::ClientWriter<Request>>(
      grpc::internal::ClientWriterFactory<Request>::Create(channel.get(), rpc, &context, &response));
}
template <typename Request, typename Response>
std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> open(const Channel& channel,
                                                                  BidiStreamMethod<Request, Response> method,
                                                                  grpc::ClientContext& context) {
  const grpc::internal::RpcMethod rpc(method.path, grpc::internal::RpcMethod::BIDI_STREAMING);
  return std::unique_ptr<grpc::ClientReaderWriter<Request, Response>>(
      grpc::internal::ClientReaderWriterFactory<Request, Response>::Create(channel.get(), rpc, &context));
}

/// Binds `reactor` to a new stream; its StartCall() starts the call.
template <typename Request, typename Response>
void bind(const Channel& channel, BidiStreamMethod<Request, Response> method, grpc::ClientContext& context,
          grpc::ClientBidiReactor<Request, Response>* reactor) {
  const grpc::internal::RpcMethod rpc(method.path, grpc::internal::RpcMethod::BIDI_STREAMING);
  grpc::internal::ClientCallbackReaderWriterFactory<Request, Response>::Create(channel.get(), rpc, &context,
                                                                               reactor);
}
/// Starts a stream whose events arrive at `events`, the first one with `tag`.
template <typename Request, typename Response>
std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> start(
    const Channel& channel, BidiStreamMethod<Request, Response> method, grpc::ClientContext& context,
    grpc::CompletionQueue& events, void* tag) {
  const grpc::internal::RpcMethod rpc(method.path, grpc::internal::RpcMethod::BIDI_STREAMING);
  return std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>>(
      grpc::internal::ClientAsyncReaderWriterFactory<Request, Response>::Create(channel.get(), &events, rpc,
                                                                                &context, true, tag));
}

}  // namespace det::wire
