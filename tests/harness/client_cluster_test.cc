// The cluster client delivers every report in order across failures. The master is a fake that can be broken.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <thread>

#include "common/base/files.h"
#include "common/base/process.h"
#include "common/base/queue.h"
#include "common/base/wait.h"
#include "det/v1/harness.methods.h"
#include "harness/src/client/client.h"
#include "tests/wire/fake_service.h"

namespace det {
namespace {

using Stream = grpc::ServerReaderWriter<v1::MasterMessage, v1::HarnessMessage>;

/// State that survives a restart of the fake server, as a durable master's does.
struct Master {
  Queue<v1::Report> reports{100'000};  ///< each sequence number once, in order
  std::atomic<std::int64_t> durable{0};
  std::atomic<int> sessions{0}, repeats{0};
  std::atomic<int> together{0};                                 ///< messages that carry several reports
  std::atomic<bool> preempt{false}, stale{false}, deaf{false};  ///< deaf: never acknowledges
  std::atomic<int> break_after{-1};                             ///< reports until the next break; -1 never
  std::string token, user_token;
  std::string allocation;
  std::atomic<int> alive{0};  ///< number of heartbeats received
  std::atomic<bool> takes_profiles{false};
  std::string profile;  ///< id of a request that every session sends; "" for none
  Queue<v1::ProfileStatus> profiles{1000};
  std::atomic<bool> ends{false};  ///< the trial has ended: every call is answered with ABORTED
};

class Service final : public FakeService {
 public:
  explicit Service(Master& master) : master_(master) {
    serve(v1::HarnessService::Session, &Service::Session);
  }
  grpc::Status Session(grpc::ServerContext* context, Stream* stream) {
    const auto token = context->client_metadata().find("x-allocation-token");
    if (token != context->client_metadata().end())
      master_.token.assign(token->second.data(), token->second.size());
    const auto user = context->client_metadata().find("authorization");
    if (user != context->client_metadata().end())
      master_.user_token.assign(user->second.data(), user->second.size());
    ++master_.sessions;
    v1::HarnessMessage in;
    v1::MasterMessage out;
    if (!stream->Read(&in) || !in.has_attach()) return {grpc::StatusCode::INVALID_ARGUMENT, "no attach"};
    if (master_.stale) return {grpc::StatusCode::ABORTED, "run 2 is current"};
    out.mutable_attached()->set_acknowledged_sequence(0);
    out.mutable_attached()->set_preempt(master_.preempt);
    if (!master_.user_token.empty()) out.mutable_attached()->set_alive_milliseconds(5);
    master_.allocation = in.attach().allocation_id();
    stream->Write(out);
    master_.takes_profiles = in.attach().profiles();
    if (!master_.profile.empty()) {
      v1::MasterMessage request;
      request.mutable_profile()->set_request_id(master_.profile);
      request.mutable_profile()->set_batches(3);
      stream->Write(request);
    }
    while (stream->Read(&in)) {
      if (in.has_profile()) {
        master_.profiles.push(v1::ProfileStatus(in.profile()));
        continue;
      }
      if (master_.ends) return {grpc::StatusCode::ABORTED, "the trial has ended"};
      if (in.has_alive()) {
        ++master_.alive;
        continue;
      }
      if (in.has_reports()) ++master_.together;
      if (in.has_report()) *in.mutable_reports()->add_reports() = v1::Report(in.report());
      if (master_.deaf) continue;
      for (const v1::Report& report : in.reports().reports()) {
        if (master_.break_after >= 0 && master_.break_after-- == 0)
          return {grpc::StatusCode::UNAVAILABLE, "broken"};
        take(report, out);
      }
      stream->Write(out);
    }
    return grpc::Status::OK;
  }

 private:
  void take(v1::Report report, v1::MasterMessage& out) {
    const std::int64_t sequence = report.sequence();
    if (sequence == master_.durable + 1) {
      master_.reports.push(std::move(report));
      master_.durable = sequence;
    } else {
      CHECK(sequence <= master_.durable);  // sequence numbers have no gaps
      ++master_.repeats;
    }
    out.mutable_acknowledged()->set_sequence(sequence);
  }
  Master& master_;
};

class Server {
 public:
  explicit Server(Master& master, int port = 0) : service_(master) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(port_ != 0);
  }
  /// Shuts down at once: open streams break.
  ~Server() { server_->Shutdown(std::chrono::system_clock::time_point()); }
  int port() const { return port_; }

 private:
  Service service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

std::unique_ptr<Client> connect(const std::string& address) {
  const ClusterAddress cluster{address, "allocation", "secret", 12, 1};
  return std::unique_ptr<Client>(det_make_cluster_client(&cluster));
}
std::unique_ptr<Client> connect(int port) { return connect("127.0.0.1:" + std::to_string(port)); }

void report(Client& client, int count, int from = 0) {
  for (int i = from; i < from + count; ++i) client.report_metrics("training", i, {{"loss", i}});
}
std::vector<std::int64_t> steps(Master& master) {
  std::vector<std::int64_t> steps;
  for (const v1::Report& report : master.reports.pop_batch(100'000, std::chrono::seconds(0))) {
    steps.push_back(report.metrics().steps_completed());
  }
  return steps;
}
std::vector<std::int64_t> counted(int count) {
  std::vector<std::int64_t> all;
  for (int i = 0; i < count; ++i) all.push_back(i);
  return all;
}

TEST_CASE("reports arrive exactly once and in order, and flush waits for the last") {
  Master master;
  Server server(master);
  const auto client = connect(server.port());
  report(*client, 1000);
  client->report_checkpoint({"uuid", 1000, {{"file", 5}}, {{"steps_completed", 1000}}});
  CHECK(client->flush(std::chrono::seconds(30)));
  CHECK(master.durable == 1001);
  CHECK(master.token == "Bearer secret");
  auto reports = master.reports.pop_batch(2000, std::chrono::seconds(0));
  CHECK(reports.back().checkpoint().resources().at("file") == 5);
  CHECK(reports.front().metrics().metrics() == "{\"loss\":0}");
  CHECK(master.repeats == 0);
}

TEST_CASE("a stream that breaks repeatedly neither loses nor duplicates reports") {
  Master master;
  Server server(master);
  const auto client = connect(server.port());
  for (int i = 0; i < 5; ++i) {
    master.break_after = 30;
    report(*client, 100, 100 * i);
    REQUIRE(client->flush(std::chrono::seconds(30)));
  }
  CHECK(steps(master) == counted(500));
  CHECK(master.sessions >= 5);
}

TEST_CASE("reports are buffered without a master and sent when it returns") {
  Master master;
  auto server = std::make_unique<Server>(master);
  const int port = server->port();
  const auto client = connect(port);
  report(*client, 10);
  REQUIRE(client->flush(std::chrono::seconds(30)));
  server.reset();
  report(*client, 50, 10);
  CHECK_FALSE(client->flush(std::chrono::seconds(1)));
  server = std::make_unique<Server>(master, port);
  CHECK(client->flush(std::chrono::seconds(60)));
  CHECK(steps(master) == counted(60));
  CHECK(master.together > 0);  // queued reports are sent in few messages
}

TEST_CASE("unacknowledged reports are sent again") {
  Master master;
  master.deaf = true;
  auto server = std::make_unique<Server>(master);
  const int port = server->port();
  const auto client = connect(port);
  report(*client, 20);
  CHECK_FALSE(client->flush(std::chrono::seconds(1)));
  server.reset();
  master.deaf = false;
  server = std::make_unique<Server>(master, port);
  CHECK(client->flush(std::chrono::seconds(60)));
  CHECK(steps(master) == counted(20));
}

TEST_CASE("two threads share one stream: each thread's order is kept, each report arrives once") {
  Master master;
  Server server(master);
  const auto client = connect(server.port());
  bool flushed = false;
  std::thread other([&] {
    report(*client, 2000, 10'000);
    flushed = client->flush(std::chrono::seconds(30));
  });
  report(*client, 2000);
  CHECK(client->flush(std::chrono::seconds(30)));
  other.join();
  CHECK(flushed);
  const auto all = steps(master);
  CHECK(all.size() == 4000);
  std::vector<std::int64_t> first, second;
  for (const std::int64_t step : all) (step < 10'000 ? first : second).push_back(step);
  CHECK(first == counted(2000));
  CHECK(std::is_sorted(second.begin(), second.end()));
  CHECK(second.size() == 2000);
}

TEST_CASE("preemption arrives through the stream") {
  Master master;
  master.preempt = true;
  Server server(master);
  static std::atomic<bool> told{false};
  ClusterAddress address{"http://127.0.0.1:" + std::to_string(server.port()), "allocation", "secret", 12, 1};
  address.preempted = [] { told = true; };
  const std::unique_ptr<Client> client(det_make_cluster_client(&address));
  CHECK(wait_until([&] { return client->should_preempt(); }, std::chrono::seconds(30)));
  CHECK(wait_until([&] { return told.load(); }, std::chrono::seconds(30)));
  client->acknowledge_preemption();
  CHECK(client->flush(std::chrono::seconds(30)));
  CHECK(master.reports.pop()->has_preemption_acknowledged());
}

TEST_CASE("a request for a trace reaches the program once, and its progress every session") {
  Master master;
  master.profile = "r1";
  auto server = std::make_unique<Server>(master);
  const int port = server->port();
  const auto client = connect(port);
  std::optional<ProfileRequest> request;
  REQUIRE(wait_until([&] { return (request = client->take_profile_request()).has_value(); },
                     std::chrono::seconds(30)));
  CHECK(master.takes_profiles);
  CHECK(request->id == "r1");
  CHECK(request->batches == 3);
  CHECK(master.profiles.pop()->state() == v1::ProfileStatus::STATE_WAITING);
  client->report_profile({.id = "r1", .state = ProfileProgress::State::kRecording, .batches = 2});
  const auto status = master.profiles.pop();
  CHECK(status->state() == v1::ProfileStatus::STATE_RECORDING);
  CHECK(status->batches() == 2);
  server.reset();
  server = std::make_unique<Server>(master, port);
  // The new session repeats the request; the process sends its progress.
  CHECK(master.profiles.pop()->batches() == 2);
  CHECK_FALSE(client->take_profile_request());
  client->refuse_profiles("no batches");
  master.profile = "r2";
  server.reset();
  server = std::make_unique<Server>(master, port);
  v1::ProfileStatus refused;
  while (refused.request_id() != "r2") refused = *master.profiles.pop();
  CHECK(refused.state() == v1::ProfileStatus::STATE_FAILED);
}

TEST_CASE("a client without a master can be destroyed") {
  auto client = connect("127.0.0.1:1");
  report(*client, 3);
  CHECK_FALSE(client->flush(std::chrono::seconds(0)));
  client.reset();
}

std::unique_ptr<Client> connect_outside(const Server& server) {
  const ClusterAddress owner{.master = "127.0.0.1:" + std::to_string(server.port()),
                             .trial_id = 12,
                             .run = 1,
                             .user_token = "owner's"};
  return std::unique_ptr<Client>(det_make_cluster_client(&owner));
}

TEST_CASE("a detached client uses the owner's token and reports heartbeats and its end") {
  Master master;
  Server server(master);
  const auto client = connect_outside(server);
  report(*client, 3);
  REQUIRE(client->flush(std::chrono::seconds(30)));
  CHECK(master.user_token == "Bearer owner's");
  CHECK(master.token.empty());
  CHECK(master.allocation.empty());
  CHECK(wait_until([&] { return master.alive >= 3; }, std::chrono::seconds(30)));
  client->report_end(true, "the disk is full");
  REQUIRE(client->flush(std::chrono::seconds(30)));
  const auto reports = master.reports.pop_batch(10, std::chrono::seconds(0));
  REQUIRE(reports.size() == 4);
  CHECK(reports.back().end().state() == v1::STATE_ERROR);
  CHECK(reports.back().end().message() == "the disk is full");
  CHECK(master.repeats == 0);
}

TEST_CASE("a detached trial ended by the master is preempted, and its reports are dropped") {
  Master master;
  Server server(master);
  const auto client = connect_outside(server);
  report(*client, 3);
  REQUIRE(client->flush(std::chrono::seconds(30)));
  CHECK_FALSE(client->should_preempt());
  master.ends = true;
  // The signal must come with a heartbeat: no report is sent meanwhile.
  CHECK(wait_until([&] { return client->should_preempt(); }, std::chrono::seconds(30)));
  report(*client, 100, 3);
  client->acknowledge_preemption();
  client->report_end(false, "");
  CHECK(client->flush(std::chrono::seconds(30)));
  CHECK(steps(master) == counted(3));
}

TEST_CASE("a client on the cluster sends neither heartbeats nor its end") {
  Master master;
  Server server(master);
  const auto client = connect(server.port());
  report(*client, 3);
  client->report_end(true, "x");
  REQUIRE(client->flush(std::chrono::seconds(30)));
  CHECK(master.reports.size() == 3);
  CHECK(master.alive == 0);
}

// Run in a child process, which must exit by itself.
TEST_CASE("child side of a stale run", "[.]") {
  const auto client = connect(std::getenv("DET_TEST_MASTER"));
  client->flush(std::chrono::seconds(60));
  report(*client, 1);
  client->flush(std::chrono::seconds(60));
}

TEST_CASE("a stale run exits with its own exit code") {
  Master master;
  master.stale = true;
  Server server(master);
  const auto result =
      run_process({.argv = {program_path(), "child side of a stale run"},
                   .env = environment_with({"DET_TEST_MASTER=127.0.0.1:" + std::to_string(server.port())})})
          .value();
  CHECK(result.status.code == kExitStaleRun);
  CHECK_THAT(result.err, Catch::Contains("run 2 is current"));
}

}  // namespace
}  // namespace det
