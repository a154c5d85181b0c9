#include "load.h"

#include <cstdlib>
#include <fstream>

#include "common/base/secret.h"
#include "common/client/calls.h"
#include "det/v1/auth.methods.h"
#include "det/v1/join.methods.h"

namespace bench {

using namespace det;

void check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::_Exit(1);
}

std::shared_ptr<grpc::Channel> connect(const std::string& address, int number) {
  grpc::ChannelArguments arguments;
  arguments.SetInt("bench.connection", number);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

User::User(const std::string& address, const std::string& password_file) : channel_(connect(address)) {
  v1::LoginRequest request;
  request.set_username("admin");
  std::string password;
  std::getline(std::ifstream(password_file) >> std::ws, password);
  request.set_password(password);
  v1::LoginResponse response;
  grpc::ClientContext context;
  check(wire::call(channel_, v1::AuthService::Login, context, request, response), "login");
  token_ = response.token();
}

int User::submit(const std::string& searcher) const {
  v1::CreateExperimentRequest request;
  request.set_config("name: bench\nentrypoint: ['true']\nsearcher: " + searcher +
                     "\nmax_restarts: 0\nhyperparameters: {rate: {type: double, minval: 0, maxval: 1}}\n");
  request.set_activate(true);
  v1::CreateExperimentResponse response;
  grpc::ClientContext context;
  sign(context);
  check(wire::call(channel_, v1::ExperimentService::CreateExperiment, context, request, response), "create");
  return response.experiment().id();
}

std::string join_as(const std::string& address, const std::string& password_file, const std::string& agent) {
  const std::string folder = password_file.substr(0, password_file.rfind('/') + 1);
  std::string join_token;
  std::getline(std::ifstream(folder + "agent-join-token"), join_token);
  v1::JoinRequest request;
  request.set_token(join_token);
  request.set_agent_id(agent);
  request.set_secret(random_token());
  v1::JoinResponse response;
  grpc::ClientContext context;
  check(wire::call(connect(address), v1::JoinService::Join, context, request, response), "join");
  return request.secret();
}

void sign_agent(grpc::ClientContext& context, const std::string& token) {
  context.AddMetadata("x-agent-token", "Bearer " + token);
}

Agent::Agent(const std::string& address, const std::string& name, int slots, const std::string& token) {
  sign_agent(context_, token);
  link_ = wire::open(connect(address, 1000), v1::AgentService::Link, context_);
  v1::AgentMessage message;
  v1::Hello* hello = message.mutable_hello();
  hello->set_agent_id(name);
  hello->set_instance(name);
  hello->set_version("bench");
  for (int i = 0; i < slots; ++i) hello->add_devices()->set_type("ARTIFICIAL");
  link_->Write(message);
  v1::AgentCommand welcome;
  if (!link_->Read(&welcome)) check(link_->Finish(), "the agent's link");
  reader_ = std::thread([this] { read(); });
  writer_ = std::thread([this] { write(); });
}

Agent::~Agent() {
  outgoing_.close();
  writer_.join();
  context_.TryCancel();
  reader_.join();
}

Agent::Started Agent::next() { return std::move(*started_.pop()); }

void Agent::say(const std::string& allocation, v1::AllocationUpdate::State state) {
  v1::AgentMessage message;
  message.mutable_update()->set_allocation_id(allocation);
  message.mutable_update()->set_state(state);
  if (state == v1::AllocationUpdate::STATE_TERMINATED) {
    message.mutable_update()->mutable_exit()->set_kind(v1::AllocationExit::KIND_SUCCEEDED);
  }
  outgoing_.push(std::move(message));
}

void Agent::read() {
  v1::AgentCommand command;
  while (link_->Read(&command)) {
    if (command.has_start()) started_.push({std::move(*command.mutable_start()), Clock::now()});
    if (command.has_kill()) say(command.kill().allocation_id(), v1::AllocationUpdate::STATE_TERMINATED);
  }
}

void Agent::write() {
  for (;;) {
    auto messages = outgoing_.pop_batch(256, std::chrono::seconds(5));
    if (messages.empty() && outgoing_.closed()) return;
    if (messages.empty()) messages.emplace_back().mutable_heartbeat();
    for (const v1::AgentMessage& message : messages) link_->Write(message);
  }
}

}  // namespace bench
