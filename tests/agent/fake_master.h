// Fake master for agent tests: a gRPC server in this process that speaks the agent's protocol, records every
// message, and sends the commands that a test queues.
#pragma once

#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/queue.h"
#include "common/base/secret.h"
#include "common/base/wait.h"
#include "det/v1/agent.methods.h"
#include "tests/wire/fake_service.h"

namespace det::agent {

class FakeMaster : public FakeService {
 public:
  /// Port 0 picks a free port.
  explicit FakeMaster(int port = 0, std::string id = "test-" + uuid4(), int lease = 600)
      : cluster_id(std::move(id)), lease_seconds(lease) {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    serve(v1::AgentService::Link, &FakeMaster::Link);
    serve(v1::AgentService::GetContext, &FakeMaster::GetContext);
    serve(v1::AgentService::ShipLogs, &FakeMaster::ShipLogs);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~FakeMaster() override { stop(); }

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// Stops like a killed master: open streams break.
  void stop() {
    stopped_ = true;
    commands_.close();
    if (server_) server_->Shutdown(gpr_time_0(GPR_CLOCK_MONOTONIC));
  }
  void command(v1::AgentCommand command) { commands_.push(std::move(command)); }

  const std::string cluster_id;  ///< differs between tests that run at the same time
  const int lease_seconds;

  // Recorded messages. Each queue has one reader.
  Queue<v1::Hello> hellos{1000};
  Queue<v1::AllocationUpdate> updates{100'000};
  Queue<v1::ShipLogsRequest> logs{100'000};

  // Behavior, set by the test.
  std::atomic<int> grace_seconds{1}, heartbeat_seconds{1};
  std::atomic<int> refuse_hello{0};  ///< gRPC code; 0 accepts
  std::atomic<int> refuse_logs{0};   ///< number of ShipLogs calls that fail after their lines were stored
  std::atomic<int> context_requests{0};
  std::atomic<int> lefts{0};  ///< agents that have said that they left
  std::string context;        ///< reply of GetContext; set before the first order

  grpc::Status Link(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::AgentCommand, v1::AgentMessage>* stream) {
    v1::AgentMessage message;
    if (!stream->Read(&message) || !message.has_hello()) return {grpc::INVALID_ARGUMENT, "hello first"};
    // Published before the hello is pushed: the writer of the previous link must not take later commands.
    const int mine = ++newest_;
    (void)wait_until([&] { return writers_ == 0; }, std::chrono::seconds(10));
    const int refusal = refuse_hello;  // read before the test sees the hello and may change it
    hellos.push(v1::Hello(message.hello()));
    if (refusal != 0) return {static_cast<grpc::StatusCode>(refusal), "refused for the test"};
    v1::AgentCommand welcome;
    welcome.mutable_welcome()->set_heartbeat_seconds(heartbeat_seconds);
    welcome.mutable_welcome()->set_lease_seconds(lease_seconds);
    welcome.mutable_welcome()->set_kill_grace_seconds(grace_seconds);
    welcome.mutable_welcome()->set_cluster_id(cluster_id);
    stream->Write(welcome);
    // Only the newest link has a writer thread.
    ++writers_;
    std::jthread writer([&](std::stop_token stop) {
      while (!stop.stop_requested() && !stopped_ && mine == newest_) {
        for (const v1::AgentCommand& next : commands_.pop_batch(16, std::chrono::milliseconds(20)))
          stream->Write(next);
      }
      --writers_;
    });
    while (stream->Read(&message)) {
      if (message.has_left()) ++lefts;
      if (message.has_update()) updates.push(v1::AllocationUpdate(message.update()));
      if (message.has_heartbeat()) {
        v1::AgentCommand answer;
        answer.mutable_heartbeat();
        commands_.try_push(std::move(answer));
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status GetContext(grpc::ServerContext*, const v1::GetContextRequest*,
                          grpc::ServerWriter<v1::GetContextResponse>* writer) {
    ++context_requests;
    if (context.empty()) return {grpc::NOT_FOUND, "no such context"};
    v1::GetContextResponse piece;
    for (std::size_t at = 0; at < context.size(); at += 1000) {
      piece.set_chunk(context.substr(at, 1000));
      writer->Write(piece);
    }
    return grpc::Status::OK;
  }

  grpc::Status ShipLogs(grpc::ServerContext*, const v1::ShipLogsRequest* request,
                        v1::ShipLogsResponse* response) {
    logs.push(v1::ShipLogsRequest(*request));
    if (refuse_logs > 0) {
      --refuse_logs;
      return {grpc::UNAVAILABLE, "refused for the test"};
    }
    response->set_next_line(request->first_line() + request->lines_size());
    return grpc::Status::OK;
  }

 private:
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<int> newest_{0}, writers_{0};
  Queue<v1::AgentCommand> commands_{1000};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace det::agent
