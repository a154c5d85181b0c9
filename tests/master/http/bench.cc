#include "bench.h"

#include <arpa/inet.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <future>

#include "det/status.pb.h"

namespace det::test {
namespace {

std::string metadata(grpc::ServerContext* context, const char* key) {
  auto it = context->client_metadata().find(key);
  return it == context->client_metadata().end() ? "" : std::string(it->second.data(), it->second.size());
}

}  // namespace

grpc::Status FakeAuth::Login(grpc::ServerContext*, const v1::LoginRequest* request,
                             v1::LoginResponse* response) {
  if (request->password() != "right")
    return {grpc::StatusCode::UNAUTHENTICATED, "wrong user name or password"};
  response->set_token("tok");
  response->mutable_user()->set_username(request->username());
  return grpc::Status::OK;
}
grpc::Status FakeAuth::Logout(grpc::ServerContext*, const v1::LogoutRequest*, v1::LogoutResponse*) {
  return grpc::Status::OK;
}
grpc::Status FakeAuth::CurrentUser(grpc::ServerContext* context, const v1::CurrentUserRequest*,
                                   v1::CurrentUserResponse* response) {
  const std::string token = metadata(context, "authorization");
  if (token != "Bearer good" && token != "Bearer narrow")
    return {grpc::StatusCode::UNAUTHENTICATED, "not logged in"};
  response->mutable_user()->set_display_name(metadata(context, "x-det-peer"));
  return grpc::Status::OK;
}

grpc::Status FakeAuth::VisibleExperiments(grpc::ServerContext* context,
                                          const v1::VisibleExperimentsRequest* request,
                                          v1::VisibleExperimentsResponse* response) {
  response->set_all(metadata(context, "authorization") != "Bearer narrow");
  if (response->all()) return grpc::Status::OK;
  for (const std::int64_t id : request->ids())
    if (id == 1) response->add_ids(id);
  for (const std::string& task : request->task_ids())
    if (task == "seen") response->add_task_ids(task);
  return grpc::Status::OK;
}

grpc::Status FakeExperiments::CreateExperiment(grpc::ServerContext*,
                                               const v1::CreateExperimentRequest* request,
                                               v1::CreateExperimentResponse* response) {
  if (request->config() == "bad") {
    v1::Problems problems;
    auto* problem = problems.add_problems();
    problem->set_code("E-CFG-RANGE");
    problem->set_path("searcher.max_trials");
    problem->set_message("must be an integer >= 1, got 0");
    problem->set_file("const.yaml");
    problem->set_line(14);
    google::rpc::Status details;
    details.add_details()->PackFrom(problems);
    return {grpc::StatusCode::INVALID_ARGUMENT, "1 problem", details.SerializeAsString()};
  }
  std::size_t bytes = 0;
  for (const auto& file : request->model_definition()) bytes += file.content().size();
  response->mutable_experiment()->set_name(request->config());
  response->mutable_experiment()->set_checkpoint_size(static_cast<std::int64_t>(bytes));
  return grpc::Status::OK;
}
grpc::Status FakeExperiments::GetExperiments(grpc::ServerContext*, const v1::GetExperimentsRequest* request,
                                             v1::GetExperimentsResponse* response) {
  v1::Experiment* echo = response->add_experiments();
  echo->set_description(request->ShortDebugString());
  return grpc::Status::OK;
}
grpc::Status FakeExperiments::GetExperiment(grpc::ServerContext*, const v1::GetExperimentRequest* request,
                                            v1::GetExperimentResponse* response) {
  if (request->experiment_id() == 404) return {grpc::StatusCode::NOT_FOUND, "experiment 404 not found"};
  response->mutable_experiment()->set_id(request->experiment_id());
  return grpc::Status::OK;
}
grpc::Status FakeExperiments::KillExperiment(grpc::ServerContext*, const v1::ExperimentActionRequest*,
                                             v1::ExperimentActionResponse*) {
  return grpc::Status::OK;
}
grpc::Status FakeTrials::CompareTrials(grpc::ServerContext*, const v1::CompareTrialsRequest* request,
                                       v1::CompareTrialsResponse* response) {
  for (const int id : request->trial_ids()) response->add_trials()->mutable_trial()->set_id(id);
  return grpc::Status::OK;
}
grpc::Status FakeLogs::TrialLogs(grpc::ServerContext* context, const v1::TrialLogsRequest* request,
                                 grpc::ServerWriter<v1::LogEntry>* writer) {
  if (request->trial_id() == 404) return {grpc::StatusCode::NOT_FOUND, "trial 404 not found"};
  v1::LogEntry entry;
  for (int i = 1; i <= request->limit(); ++i) {
    entry.set_id(std::to_string(i));
    entry.set_log("line " + std::to_string(i));
    if (!writer->Write(entry)) return grpc::Status::CANCELLED;
    if (request->trial_id() == 500) return {grpc::StatusCode::INTERNAL, "broke in the middle"};
  }
  (void)context;
  return grpc::Status::OK;
}

Bench::Bench(http::SiteOptions options)
    : serial_(
          1, 1 << 16,
          [this] {
            if (site_) site_->tick();
          },
          std::chrono::milliseconds(50)) {
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&auth_);
  builder.RegisterService(&experiments_);
  builder.RegisterService(&trials_);
  builder.RegisterService(&logs_);
  server_ = builder.BuildAndStart();
  auto site = http::Site::open(options);
  REQUIRE(site);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  (*site)->start({.channel = server_->InProcessChannel(arguments),
                  .services = {v1::LoginRequest::descriptor()->file()->service(0),
                               v1::GetExperimentsRequest::descriptor()->file()->service(0),
                               v1::GetTrialRequest::descriptor()->file()->service(0),
                               v1::TrialLogsRequest::descriptor()->file()->service(0)},
                  .hub = hub_,
                  .workers = json_,
                  .serial = serial_,
                  .admit = [this](const http::Entrance& from, auto done) { done(admit(from)); },
                  .grpc = [this](UniqueFd) { ++grpc_connections_; },
                  .health = [] { return "{\"status\":\"up\"}\n"; }});
  // The tick reads site_ on its own thread.
  std::promise<void> placed;
  serial_.post([&] {
    site_ = std::move(*site);
    placed.set_value();
  });
  placed.get_future().wait();
}

Result<std::shared_ptr<loop::Budget::Lease>> Bench::admit(const http::Entrance& from) {
  if (from.method == "/det.v1.AuthService/Login") return nullptr;
  if (from.authorization == "Bearer bad") return fail(Code::kUnauthenticated, "not logged in");
  return std::make_shared<loop::Budget::Lease>(*uploads_.take(from.address, 0));
}

Bench::~Bench() {
  site_->close();
  server_->Shutdown(std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)));
  json_.stop();
  hub_.stop();
  serial_.stop();
  site_->stop();
}

Client::Client(int port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd_.reset();
}

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

bool Client::read_some(std::int64_t deadline_micros) {
  const std::int64_t left = deadline_micros - mono_now().micros;
  pollfd poll{fd_.get(), POLLIN, 0};
  if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left / 1000 + 1)) <= 0) return false;
  char buffer[65536];
  const ssize_t count = ::recv(fd_.get(), buffer, sizeof buffer, 0);
  if (count <= 0) {
    ended_ = true;
    return false;
  }
  seen_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::string Client::read_until(const std::string& until, int seconds) {
  const std::int64_t deadline = mono_now().micros + seconds * 1'000'000LL;
  while (seen_.find(until) == std::string::npos && read_some(deadline)) {
  }
  return seen_;
}

std::string Client::read_all(int seconds) {
  const std::int64_t deadline = mono_now().micros + seconds * 1'000'000LL;
  while (read_some(deadline)) {
  }
  return ended_ ? seen_ : seen_ + "still open";
}

void Client::shutdown_writing() { ::shutdown(fd_.get(), SHUT_WR); }

std::string request(int port, const std::string& head, const std::string& body) {
  Client client(port);
  std::string text = head + "\r\nHost: test\r\nConnection: close\r\n";
  if (!body.empty()) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  client.send(text + "\r\n" + body);
  return client.read_all();
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.1 ") && answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}

std::string body_of(const std::string& answer) {
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace det::test
