// Fake master for CLI tests: a gRPC server on a free port with answers set by the test. It records requests.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/base/process.h"
#include "det/v1/auth.methods.h"
#include "det/v1/bracket.methods.h"
#include "det/v1/checkpoint.methods.h"
#include "det/v1/cluster.methods.h"
#include "det/v1/diagnosis.methods.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/log.methods.h"
#include "det/v1/media.methods.h"
#include "det/v1/policy.methods.h"
#include "det/v1/task.methods.h"
#include "det/v1/template.methods.h"
#include "det/v1/trial.methods.h"

namespace det::cli::test {

/// Set before det runs and read after it has ended, so it needs no lock.
struct World {
  std::map<int, v1::Experiment> experiments;
  std::vector<v1::Trial> trials;
  std::vector<v1::WorkloadContainer> workloads;
  std::vector<v1::Checkpoint> checkpoints;
  std::vector<v1::LogEntry> log;
  std::map<std::string, std::string> checkpoint_archives;  ///< uuid → tar.gz
  std::map<std::string, std::string> trial_files;          ///< path → content, of every trial
  std::vector<v1::TrialProfile> profiles;                  ///< replies to profile calls, in order
  std::vector<v1::ProfileTrialRequest> profile_requests;
  std::vector<v1::Agent> agents;
  std::map<std::string, std::string> templates;  ///< name → YAML
  std::string policies;                          ///< config policies of experiments, YAML
  grpc::Status refuse_create;                    ///< reply to an upload unless OK
  int uploads_lost = 0;    ///< number of uploads that are stored but answered with UNAVAILABLE
  int log_cut_after = -1;  ///< entries after which the first log stream ends with UNAVAILABLE; -1 never
  int log_refusals = 0;    ///< number of log streams that end with UNAVAILABLE at once

  std::vector<v1::CreateExperimentRequest> created;  ///< requests of uploads
  std::vector<std::string> archives;                 ///< code archives of uploads
  std::vector<v1::TrialLogsRequest> log_requests;
  std::vector<std::string> actions;  ///< for example "pause 1"
  std::vector<v1::PatchExperiment> patches;
  std::vector<std::string> retentions;  ///< "trial 7: 30", in days
  std::vector<v1::CreateFromCodeArchiveRequest> by_digest;
  std::map<int, std::string> model_defs;  ///< experiment → tar.gz; "hello" if absent
  v1::GetDiagnosisResponse diagnosis;
  v1::GetExperimentBracketsResponse brackets;
  std::vector<v1::MetricSeries> series;
};

/// Whether `text` contains `part`.
inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The user is "admin" with password "secret password". Every call except Login and GetMaster needs the
/// token.
class FakeMaster {
 public:
  FakeMaster();
  ~FakeMaster();
  World world;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  /// Runs the real det program against this master, logged in with `token`; "" is not logged in.
  ProcessResult det(std::vector<std::string> arguments, const std::string& cwd = "",
                    const std::string& token = "token-of-admin", const std::string& input = "",
                    const std::vector<std::string>& environment = {}) const;
  /// The directory of det's configuration and tokens.
  std::string config_home() const { return home_.path() + "/config"; }

 private:
  struct Services;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  TemporaryDirectory home_;
};

}  // namespace det::cli::test
