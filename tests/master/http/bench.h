// A public port in the test process: a Site in front of a gRPC server with small fake services, and raw
// client sockets.
#pragma once

#include <grpcpp/server.h>

#include <memory>
#include <string>

#include "common/base/fd.h"
#include "det/v1/auth.methods.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/log.methods.h"
#include "det/v1/trial.methods.h"
#include "master/http/site.h"
#include "tests/wire/fake_service.h"

namespace det::test {

/// Fake services. Replies are built from the request, so that a test can check what arrived.
class FakeAuth : public FakeService {
 public:
  FakeAuth() {
    serve(v1::AuthService::VisibleExperiments, &FakeAuth::VisibleExperiments);
    serve(v1::AuthService::Login, &FakeAuth::Login);
    serve(v1::AuthService::Logout, &FakeAuth::Logout);
    serve(v1::AuthService::CurrentUser, &FakeAuth::CurrentUser);
  }

 private:
  /// The token "narrow" sees experiment 1 and task "seen", other tokens see everything.
  grpc::Status VisibleExperiments(grpc::ServerContext*, const v1::VisibleExperimentsRequest*,
                                  v1::VisibleExperimentsResponse*);

  grpc::Status Login(grpc::ServerContext*, const v1::LoginRequest*, v1::LoginResponse*);
  grpc::Status Logout(grpc::ServerContext*, const v1::LogoutRequest*, v1::LogoutResponse*);
  /// Succeeds with the tokens "good" and "narrow".
  grpc::Status CurrentUser(grpc::ServerContext*, const v1::CurrentUserRequest*, v1::CurrentUserResponse*);
};
class FakeExperiments : public FakeService {
 public:
  FakeExperiments() {
    serve(v1::ExperimentService::CreateExperiment, &FakeExperiments::CreateExperiment);
    serve(v1::ExperimentService::GetExperiments, &FakeExperiments::GetExperiments);
    serve(v1::ExperimentService::GetExperiment, &FakeExperiments::GetExperiment);
    serve(v1::ExperimentService::KillExperiment, &FakeExperiments::KillExperiment);
  }

 private:
  grpc::Status CreateExperiment(grpc::ServerContext*, const v1::CreateExperimentRequest*,
                                v1::CreateExperimentResponse*);
  grpc::Status GetExperiments(grpc::ServerContext*, const v1::GetExperimentsRequest*,
                              v1::GetExperimentsResponse*);
  grpc::Status GetExperiment(grpc::ServerContext*, const v1::GetExperimentRequest*,
                             v1::GetExperimentResponse*);
  grpc::Status KillExperiment(grpc::ServerContext*, const v1::ExperimentActionRequest*,
                              v1::ExperimentActionResponse*);
};
class FakeTrials : public FakeService {
 public:
  FakeTrials() { serve(v1::TrialService::CompareTrials, &FakeTrials::CompareTrials); }

 private:
  grpc::Status CompareTrials(grpc::ServerContext*, const v1::CompareTrialsRequest*,
                             v1::CompareTrialsResponse*);
};
class FakeLogs : public FakeService {
 public:
  FakeLogs() { serve(v1::LogService::TrialLogs, &FakeLogs::TrialLogs); }

 private:
  /// Sends `limit` entries. Trial 404 is not found; trial 500 fails after the first entry.
  grpc::Status TrialLogs(grpc::ServerContext*, const v1::TrialLogsRequest*,
                         grpc::ServerWriter<v1::LogEntry>*);
};

class Bench {
 public:
  explicit Bench(http::SiteOptions options = {});
  ~Bench();
  int port() const { return site_->port(); }
  loop::Hub& hub() { return hub_; }
  int grpc_connections() const { return grpc_connections_; }
  /// Bytes of bodies in memory; at most 40 MiB.
  std::int64_t upload_bytes() const { return uploads_.held(); }

 private:
  /// Knows all senders but those of a login, and refuses the token "bad".
  Result<std::shared_ptr<loop::Budget::Lease>> admit(const http::Entrance& from);

  loop::Budget uploads_{40 << 20, 40 << 20};
  FakeAuth auth_;
  FakeExperiments experiments_;
  FakeTrials trials_;
  FakeLogs logs_;
  std::unique_ptr<grpc::Server> server_;
  loop::Hub hub_;
  loop::Workers json_{2};
  loop::Workers serial_;
  std::atomic<int> grpc_connections_{0};
  std::unique_ptr<http::Site> site_;
};

/// A TCP connection to the port on loopback.
class Client {
 public:
  explicit Client(int port);
  bool open() const { return static_cast<bool>(fd_); }
  void send(std::string_view bytes);
  /// Reads until `until` has arrived, `seconds` have passed, or the server closed. Returns all bytes so far.
  std::string read_until(const std::string& until, int seconds = 10);
  /// Reads until the server closes. Appends "still open" if it does not within `seconds`.
  std::string read_all(int seconds = 10);
  void shutdown_writing();

 private:
  /// Returns false at the end of the stream or at the deadline.
  bool read_some(std::int64_t deadline_micros);
  UniqueFd fd_;
  std::string seen_;
  bool ended_ = false;
};

/// One request on a separate connection. Returns the whole response with its headers.
std::string request(int port, const std::string& head, const std::string& body = "");
/// The status code of a response; 0 when there is none.
int status_of(const std::string& answer);
std::string body_of(const std::string& answer);

}  // namespace det::test
