// Guards against a gRPC deadlock: its callback threads must outlive the last reference to a channel.
#include "common/client/grpc_keepalive.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <future>

#include "common/base/wait.h"

namespace det {
namespace {

struct Call {
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1}, response;
};

TEST_CASE("a callback may be the last to hold a channel") {
  keep_callback_threads();
  for (int round = 0; round < 20; ++round) {
    std::promise<void> ours_is_gone;
    std::weak_ptr<grpc::Channel> held;
    {
      const auto channel = grpc::CreateChannel("nowhere", nullptr);
      held = channel;
      grpc::GenericStub stub(channel);
      const auto call = std::make_shared<Call>();  // the context holds the channel
      stub.UnaryCall(&call->context, "/det/anything", {}, &call->request, &call->response,
                     [call, gone = ours_is_gone.get_future().share()](const grpc::Status&) { gone.wait(); });
    }
    CHECK_FALSE(held.expired());
    ours_is_gone.set_value();
    REQUIRE(wait_until([&] { return held.expired(); }, std::chrono::seconds(20)));
  }
}

}  // namespace
}  // namespace det
