// Credentials and limits of the real server, over its TCP port and over sockets handed to it.
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include <catch2/catch.hpp>
#include <future>

#include "common/client/calls.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/harness.methods.h"
#include "server_bench.h"

namespace det::api {
namespace {

grpc::Status call(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                  const std::string& allocation_token = "", const std::string& bytes = "") {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  if (!allocation_token.empty()) context.AddMetadata("x-allocation-token", "Bearer " + allocation_token);
  grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1), reply;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, path, {}, &request, &reply,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

TEST_CASE("calls without credentials are refused") {
  Bench bench;
  for (const auto& channel : {bench.server.channel(), bench.over_socket()}) {
    for (const auto* service : services()) {
      for (int i = 0; i < service->method_count(); ++i) {
        const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
        if (access(path)->requirement == Requirement::kNone) continue;
        INFO(path);
        const grpc::Status status = call(channel, path);
        const bool refused = status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
                             status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
        INFO(status.error_code() << " " << status.error_message());
        CHECK(refused);
      }
    }
  }
}

TEST_CASE("a request with an invented token is refused before it is parsed, of streams too") {
  Bench bench;
  int asked = 0;
  for (const auto* service : services()) {
    for (int i = 0; i < service->method_count(); ++i) {
      const std::string path = "/" + service->full_name() + "/" + service->method(i)->name();
      const Requirement required = access(path)->requirement;
      if (required == Requirement::kNone) continue;
      INFO(path);
      // Field 1 with a length that the message does not have.
      const grpc::Status status = call(bench.server.channel(), path, "invented", "\x0a\x7f");
      INFO(status.error_message());
      // A process of an ended run is told to leave.
      const auto expected = path.ends_with("HarnessService/Session") ? grpc::StatusCode::ABORTED
                            : required == Requirement::kAgent        ? grpc::StatusCode::PERMISSION_DENIED
                                                                     : grpc::StatusCode::UNAUTHENTICATED;
      CHECK(status.error_code() == expected);
      ++asked;
    }
  }
  CHECK(asked > 250);
}

TEST_CASE("the identity of the master is public") {
  Bench bench;
  grpc::ClientContext context;
  v1::GetMasterResponse response;
  REQUIRE(wire::call(bench.over_socket(), v1::ClusterService::GetMaster, context, {}, response).ok());
  CHECK(response.version() == "0.38.1");
  CHECK(response.release() == "test");
}

grpc::Status attach(Bench& bench, const std::string& token) {
  grpc::ClientContext context;
  context.AddMetadata("x-allocation-token", "Bearer " + token);
  auto stream = wire::open(bench.over_socket(), v1::HarnessService::Session, context);
  v1::HarnessMessage message;
  message.mutable_attach()->set_allocation_id("1.a.1");
  message.mutable_attach()->set_trial_id(1);
  message.mutable_attach()->set_run(1);
  stream->Write(message);
  v1::MasterMessage answer;
  while (stream->Read(&answer)) {
  }
  return stream->Finish();
}

TEST_CASE("a harness of a run that has ended is told to leave") {
  Bench bench;
  CHECK(attach(bench, "a token of old").error_code() == grpc::StatusCode::ABORTED);
}

TEST_CASE("a request with text that is not UTF-8 is refused in words") {
  Bench bench;
  auto channel = bench.over_socket();
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::Slice wrong(std::string("\x0a\x01\xff"));  // LoginRequest.username
  grpc::ByteBuffer request(&wrong, 1), reply;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/det.v1.AuthService/Login", {}, &request, &reply,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK(status.error_message().find("UTF-8") != std::string::npos);
}

TEST_CASE("a message over 4 MiB from outside is refused") {
  Bench bench;
  auto channel = bench.over_socket();
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::Slice large(std::string(5 << 20, 'x'));
  grpc::ByteBuffer request(&large, 1), reply;
  std::promise<grpc::Status> done;
  stub.UnaryCall(&context, "/det.v1.AuthService/Login", {}, &request, &reply,
                 [&](grpc::Status status) { done.set_value(std::move(status)); });
  CHECK(done.get_future().get().error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace det::api
