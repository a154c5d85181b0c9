// `det experiment create`: validates, packs, submits, follows and tests. Sends nothing while the
// configuration has a problem.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/logs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/submit/checked_config.h"
#include "cli/submit/code_archive.h"
#include "cli/submit/create_local.h"
#include "cli/submit/follow.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/secret.h"
#include "common/base/units.h"
#include "common/crypto/digest.h"
#include "common/expconf/entrypoint.h"
#include "common/expconf/parse.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/template.methods.h"

namespace det::cli {
namespace {

/// Polling interval during a test, which usually takes seconds.
constexpr Duration kTestLooks = std::chrono::milliseconds(200);

struct ExperimentCreateFlags {
  std::string config, directory, template_name;
  std::vector<std::string> includes, overrides;
  std::vector<int> ports;
  int project_id = 0;
  bool paused = false, follow = false, local = false, test = false;
};

/// Overrides that reduce an experiment to one trial of one batch.
std::vector<expconf::Override> test_overrides(const std::string& metric) {
  return {{"searcher={name: single, metric: " + dump_json(Json(metric)) + ", max_length: {batches: 1}}"},
          {"scheduling_unit=1"},
          {"min_validation_period={batches: 1}"},
          {"max_restarts=0"},
          {"resources.slots_per_trial=1"}};
}

/// Fetches a template from the master. A missing one is reported like a problem of the configuration.
Result<expconf::Document> fetch_template(Session& session, const std::string& name) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetTemplateRequest request;
  request.set_template_name(name);
  auto response = client->call(v1::TemplateService::GetTemplate, request);
  if (!response && response.error().code == Code::kNotFound) {
    return fail({Problem{"E-CFG-REF", "template",
                         "there is no template \"" + name + "\"; see `det template list`", "command line"}});
  }
  if (!response) return tl::unexpected(response.error());
  return expconf::Document{"template \"" + name + "\"", response->template_().text()};
}

/// Reads the configuration with the overrides and the template of the flags.
Result<CheckedConfig> read_config(Session& session, const ExperimentCreateFlags& flags) {
  std::vector<expconf::Override> overrides;
  for (const std::string& assignment : flags.overrides) overrides.push_back({assignment});
  if (!flags.ports.empty()) {
    Json ports = Json::array();
    for (const int port : flags.ports) ports.push_back({{"proxy_port", port}, {"strip_prefix", true}});
    overrides.push_back({"environment.proxy_ports=" + dump_json(ports)});
  }
  std::optional<expconf::Document> from;
  if (!flags.template_name.empty()) {
    TRY_ASSIGN(from, fetch_template(session, flags.template_name));
  }
  TRY_ASSIGN(CheckedConfig checked, check_config(flags.config, overrides, from));
  // Read twice: the overrides of a test need the metric of the configuration. A local test gets its single
  // batch from det-harness instead.
  if (!flags.test || flags.local) return checked;
  for (const expconf::Override& each : test_overrides(checked.config.searcher.metric))
    overrides.push_back(each);
  return check_config(flags.config, overrides, from);
}

/// Waits for a test and archives the experiment. Prints the end of the log when the test fails.
Result<int> finish_test(Client& client, int id) {
  std::cout << "Training, validating and saving one batch..." << std::endl;
  TRY_ASSIGN(const v1::Experiment end, wait_for_end(client, id, kTestLooks));
  if (end.state() != v1::STATE_COMPLETED) {
    TRY_ASSIGN(const auto trials, get_trials(client, id, Paging{.limit = 1}));
    LogFlags last;
    last.tail = 20;
    if (!trials.empty()) TRY(print_logs(client, trials.front().id(), last));
    return fail(Code::kAborted, "the test ended with state " + state_text(end.state()) +
                                    "; see `det experiment logs " + std::to_string(id) + "`");
  }
  v1::ExperimentActionRequest request;
  request.set_id(id);
  TRY(client.call(v1::ExperimentService::ArchiveExperiment, request));
  std::cout << "Archived experiment " << id
            << "\nThe trial works: one batch was trained, validated and saved\n";
  return 0;
}

/// Creates the experiment. For an archive of more than one chunk, the master is asked first whether it stores
/// the archive. Idempotent: `create` has a request id. Errors: those of Client::call().
Result<v1::CreateExperimentResponse> submit(Client& client, v1::CreateExperimentRequest create,
                                            const CodeArchive& archive) {
  if (archive.bytes.size() > kArchiveChunk) {
    v1::CreateFromCodeArchiveRequest request;
    *request.mutable_create() = create;
    request.set_code_archive(sha256_hex(archive.bytes));
    auto response = client.call(v1::ExperimentService::CreateFromCodeArchive, request);
    if (response && !response->unknown()) return std::move(*response->mutable_created());
    // An older master does not have this call.
    if (!response && response.error().code != Code::kUnimplemented) return tl::unexpected(response.error());
  }
  v1::UploadExperimentRequest first;
  *first.mutable_create() = std::move(create);
  return upload(client, v1::ExperimentService::UploadExperiment, first, archive.bytes);
}

Result<int> create(Session& session, const ExperimentCreateFlags& flags) {
  if (flags.local && !flags.test)
    return fail(Code::kInvalidArgument, "--local runs only tests: say --local --test");
  if (flags.test) std::cout << "Validating the configuration..." << std::endl;
  // Everything that needs no master comes first: the user sees mistakes without a login.
  TRY_ASSIGN(const CheckedConfig checked, read_config(session, flags));
  TRY_ASSIGN(const CodeArchive archive, pack_code_archive(flags.directory, flags.includes));
  TRY(expconf::check_entrypoint(checked.config, archive.files, flags.config));
  if (flags.local) return test_locally(checked.config, checked.text, archive);
  TRY_ASSIGN(Client * client, session.client());
  if (!flags.directory.empty() || !archive.files.empty()) {
    const std::string from = flags.directory.empty() ? "" : " (" + shown_directory(flags.directory) + ")";
    std::cout << "Preparing files" << from << " to send to master... " << format_bytes(archive.content_bytes)
              << " and " << archive.files.size() << " files" << std::endl;
  }
  v1::CreateExperimentRequest request;
  request.set_config(checked.text);
  request.set_template_(flags.template_name);
  request.set_config_name(flags.config);
  request.set_activate(!flags.paused);
  request.set_project_id(flags.project_id);
  // Makes retries of the submission idempotent.
  request.set_request_id(uuid4());
  client->set_patience(kUploadPatience);
  TRY_ASSIGN(const auto response, submit(*client, std::move(request), archive));
  for (const std::string& warning : response.config_warnings())
    std::cerr << "warning: " << printable(warning) << '\n';
  const int id = response.experiment().id();
  std::cout << "Created experiment " << id << std::endl;
  if (!flags.paused) std::cout << "Activated experiment " << id << std::endl;
  // On stderr: scripts parse the lines above.
  std::cerr << "Web UI: " << client->address().url() << "/det/experiments/" << id << '\n';
  if (flags.test) return finish_test(*client, id);
  if (flags.follow) return follow_experiment(*client, id);
  return 0;
}

}  // namespace

Action declare_create(CLI::App& app) {
  auto flags = std::make_shared<ExperimentCreateFlags>();
  app.add_option("CONFIG", flags->config, "The experiment's configuration (YAML).")->required();
  app.add_option("DIR", flags->directory, "The directory with the model's files.");
  app.add_option("-i,--include", flags->includes, "One more file or directory to send; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--config", flags->overrides, "path.to.key=value over the configuration; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--template", flags->template_name,
                 "A template that fills in what the configuration leaves out.");
  app.add_option("--project_id,--project-id", flags->project_id, "The project it belongs to.");
  app.add_option("-p,--publish", flags->ports,
                 "A port of the trial to offer at /proxy/TASK:PORT/; may be repeated.")
      ->check(CLI::Range(1, 65535))
      ->allow_extra_args(false);
  app.add_flag("--local", flags->local, "With --test: on this machine, without a cluster.");
  CLI::Option* follow =
      app.add_flag("-f,--follow-first-trial", flags->follow, "Print the first trial's log to its end.");
  CLI::Option* paused = app.add_flag("--paused", flags->paused, "Create it paused.")->excludes(follow);
  app.add_flag("-t,--test,--test-mode", flags->test,
               "Train, validate and save one batch, to see whether it works.")
      ->excludes(follow)
      ->excludes(paused);
  return [=](Session& session) { return create(session, *flags); };
}

}  // namespace det::cli
