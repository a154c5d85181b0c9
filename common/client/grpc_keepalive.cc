#include "common/client/grpc_keepalive.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <memory>

namespace det {
namespace {

constexpr auto kPeriod = std::chrono::milliseconds(450);  // below the 1 s idle time before a thread sleeps

struct Call {
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1}, response;
};

/// A channel without credentials: its calls fail at once. Never destroyed, which keeps gRPC's callback
/// threads alive.
grpc::GenericStub& nowhere() {
  static auto* const stub = new grpc::GenericStub(grpc::CreateChannel("nowhere", nullptr));
  return *stub;
}

void wake_one() {
  const auto call = std::make_shared<Call>();
  nowhere().UnaryCall(&call->context, "/det/keepalive", {}, &call->request, &call->response,
                      [call](const grpc::Status&) {});
}

}  // namespace

void keep_callback_threads() {
  // A channel joins the callback threads at its first call.
  static const bool kept = (wake_one(), true);
  (void)kept;
}

GrpcKeepAlive::GrpcKeepAlive()
    : thread_([this] {
        do wake_one();
        while (!stop_.wait_for(kPeriod));
      }) {}

GrpcKeepAlive::~GrpcKeepAlive() {
  stop_.set();
  thread_.join();
}

}  // namespace det
