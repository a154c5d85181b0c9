#include "common/client/calls.h"

#include <google/protobuf/message_lite.h>
#include <grpcpp/impl/client_unary_call.h>

namespace det::wire {

using google::protobuf::MessageLite;
using grpc::internal::RpcMethod;

grpc::Status call_path(const Channel& channel, const char* path, grpc::ClientContext& context,
                       const MessageLite& request, MessageLite& response) {
  return grpc::internal::BlockingUnaryCall<MessageLite, MessageLite>(
      channel.get(), RpcMethod(path, RpcMethod::NORMAL_RPC), &context, request, &response);
}

void start_path(const Channel& channel, const char* path, grpc::ClientContext& context,
                const MessageLite& request, MessageLite& response, std::function<void(grpc::Status)> done) {
  grpc::internal::CallbackUnaryCall<MessageLite, MessageLite>(
      channel.get(), RpcMethod(path, RpcMethod::NORMAL_RPC), &context, &request, &response, std::move(done));
}

}  // namespace det::wire
