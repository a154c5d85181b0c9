// `det trial profile`: a trace of the next batches of a running trial.
#include <iostream>
#include <string>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "cli/output/progress.h"
#include "common/archive/gzip.h"
#include "common/base/event.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "det/v1/media.methods.h"

namespace det::cli {
namespace {

constexpr std::chrono::milliseconds kProfileInterval{300};
/// A trace as text; its gzip has at most 2 MiB.
constexpr std::size_t kMaxTraceBytes = 1 << 30;

struct TrialProfileOptions {
  int id = 0, batches = 5;
  bool shapes = false, memory = false, stack = false;
  std::string file;
  void declare(CLI::App& app) {
    add_id(app, id, "Trial id.");
    app.add_option("--batches", batches, "Batches to record, 1 to 1000.")->capture_default_str();
    app.add_flag("--shapes", shapes, "Record the shapes of operator inputs.");
    app.add_flag("--memory", memory, "Record allocations of tensors.");
    app.add_flag("--stack", stack, "Record the lines of the program that call operators (slow).");
    app.add_option("-o,--output", file,
                   "Destination file (default: trial_ID.trace.json.gz). Compressed if it ends in .gz.");
  }
};

std::string progress_text(const v1::TrialProfile& profile, const TrialProfileOptions& options) {
  const std::string trial = "trial " + std::to_string(options.id);
  if (profile.state() == v1::ProfileStatus::STATE_RECORDING)
    return trial + ": " + std::to_string(profile.batches()) + " of " + std::to_string(options.batches) +
           " batches recorded";
  if (profile.state() == v1::ProfileStatus::STATE_STORING) return trial + ": the trace is being stored";
  return trial + ": waiting for the next batch";
}

/// Requests the trace and waits until it is stored. Repeats the request when the trial's process does not
/// know it, after a restart of the trial or the master.
Result<v1::TrialProfile> wait_for_trace(Client& client, const TrialProfileOptions& options) {
  v1::ProfileTrialRequest request;
  request.set_trial_id(options.id);
  request.set_request_id(uuid4());
  request.set_batches(options.batches);
  request.set_record_shapes(options.shapes);
  request.set_profile_memory(options.memory);
  request.set_with_stack(options.stack);
  v1::GetTrialProfileRequest look;
  look.set_trial_id(options.id);
  look.set_request_id(request.request_id());
  auto profile = client.call(v1::MediaService::ProfileTrial, request);
  StatusLine line;
  while (profile && profile->state() < v1::ProfileStatus::STATE_DONE) {
    line.show(progress_text(*profile, options), mono_now());
    (void)Event().wait_for(kProfileInterval);
    profile = client.call(v1::MediaService::GetTrialProfile, look);
    if (!profile && profile.error().code == Code::kNotFound)
      profile = client.call(v1::MediaService::ProfileTrial, request);
  }
  if (profile && profile->state() == v1::ProfileStatus::STATE_FAILED)
    return fail(Code::kFailedPrecondition, "trial " + std::to_string(options.id) +
                                               " has recorded no trace: " + printable(profile->message()));
  return profile;
}

/// Returns the file of a trace, decompressed unless `keep_gzip`.
Result<std::string> fetch_trace(Client& client, int trial, const std::string& path, bool keep_gzip) {
  v1::DownloadTrialFileRequest request;
  request.set_trial_id(trial);
  request.set_path(path);
  std::string bytes;
  TRY(client.stream(v1::MediaService::DownloadTrialFile, request,
                    [&](const v1::DownloadTrialFileResponse& part) { return bytes += part.chunk(), true; }));
  if (keep_gzip) return bytes;
  std::string text;
  ByteSource source(bytes);
  for (;;) {
    TRY_ASSIGN(const std::string_view piece, source.next());
    if (piece.empty()) return text;
    if (text.size() + piece.size() > kMaxTraceBytes) return fail(Code::kDataLoss, "the trace exceeds 1 GiB");
    text += piece;
  }
}

Status profile_trial(Client& client, const TrialProfileOptions& options) {
  if (options.batches < 1 || options.batches > 1000)
    return fail(Code::kInvalidArgument, "--batches: 1 to 1000 are expected");
  const std::string file =
      options.file.empty() ? "trial_" + std::to_string(options.id) + ".trace.json.gz" : options.file;
  TRY_ASSIGN(const v1::TrialProfile profile, wait_for_trace(client, options));
  TRY_ASSIGN(const std::string bytes, fetch_trace(client, options.id, profile.path(), file.ends_with(".gz")));
  TRY(write_file_atomic(file, bytes));
  if (!profile.message().empty()) {
    std::cerr << "note: " << profile.batches() << " of " << options.batches
              << " batches were recorded: " << printable(profile.message()) << '\n';
  }
  std::cout << "Wrote " << file << ". Open it at https://ui.perfetto.dev or in chrome://tracing\n";
  return {};
}

}  // namespace

Command trial_profile_verb() {
  return {{"profile"}, "Record a trace of the next batches of a running trial.", action(profile_trial)};
}

}  // namespace det::cli
