// Owns `det experiment create`: check, pack, send, follow. Nothing is sent while the configuration has a
// problem.
#include <iostream>

#include "base/files.h"
#include "base/secret.h"
#include "base/units.h"
#include "cli/context.h"
#include "cli/experiment_verbs.h"
#include "cli/follow.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "det/v1/experiment.grpc.pb.h"
#include "det/v1/template.grpc.pb.h"
#include "master/expconf/entrypoint.h"
#include "master/expconf/parse.h"

namespace det::cli {
namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr std::size_t kWorthABar = 4 << 20;
constexpr Duration kUploadPatience = std::chrono::seconds(30);

struct Flags {
  std::string config, directory, template_name;
  std::vector<std::string> includes, overrides;
  int project_id = 0;
  bool paused = false, follow = false;
};

struct Checked {
  std::string text;  ///< as it is sent
  expconf::ExperimentConfig config;
};

/// What the template says. Only the master knows.
Result<expconf::Document> fetch_template(Session& session, const std::string& name) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetTemplateRequest request;
  request.set_template_name(name);
  auto response = client->call(&v1::TemplateService::Stub::GetTemplate, request);
  if (!response && response.error().code == Code::kNotFound) {
    return fail({Problem{"E-CFG-REF", "template",
                         "there is no template \"" + name + "\"; see `det template list`", "command line"}});
  }
  if (!response) return tl::unexpected(response.error());
  return expconf::Document{"template \"" + name + "\"", response->template_().text()};
}

/// The configuration, after all that can be checked here was found right.
Result<Checked> read_config(Session& session, const Flags& flags) {
  auto text = read_file(flags.config, 64 << 20);
  if (!text) return fail(Code::kInvalidArgument, text.error().message);
  std::vector<expconf::Override> overrides;
  for (const std::string& assignment : flags.overrides) overrides.push_back({assignment});
  // The cluster's own storage is not known here: one that could fill any gap stands for it.
  expconf::Defaults defaults{
      .checkpoint_storage = {{"type", "shared_fs"}, {"host_path", "/"}}, .experiment_seed = 0, .name = ""};
  if (!flags.template_name.empty()) {
    TRY_ASSIGN(defaults.template_, fetch_template(session, flags.template_name));
  }
  TRY_ASSIGN(expconf::Parsed parsed, expconf::parse(*text, flags.config, defaults, overrides));
  TRY_ASSIGN(std::string sent, expconf::apply_overrides(*text, flags.config, overrides));
  return Checked{std::move(sent), std::move(parsed.config)};
}

/// One try; repeated with the same request id it finds what an earlier one made.
grpc::Status upload(Client& client, const v1::UploadExperimentRequest& first, const std::string& bytes,
                    v1::CreateExperimentResponse& response) {
  grpc::ClientContext context;
  client.prepare(context, Duration(0));
  response.Clear();
  v1::ExperimentService::Stub stub(client.channel());
  const auto writer = stub.UploadExperiment(&context, &response);
  ProgressBar bar("uploading");
  bool open = writer->Write(first);
  for (std::size_t at = 0; open && at < bytes.size(); at += kChunk) {
    v1::UploadExperimentRequest part;
    part.set_chunk(bytes.substr(at, kChunk));
    open = writer->Write(part);
    if (bytes.size() >= kWorthABar) bar.show(static_cast<double>(at) / static_cast<double>(bytes.size()));
  }
  if (open) writer->WritesDone();
  return writer->Finish();
}

Result<int> create(Session& session, const Flags& flags) {
  TRY_ASSIGN(const Checked checked, read_config(session, flags));
  TRY_ASSIGN(const Context context, pack_context(flags.directory, flags.includes));
  TRY(expconf::check_entrypoint(checked.config, context.files, flags.config));
  TRY_ASSIGN(Client * client, session.client());
  if (!flags.directory.empty() || context.file_count > 0) {
    const std::string from = flags.directory.empty() ? "" : " (" + shown_directory(flags.directory) + ")";
    std::cout << "Preparing files" << from << " to send to master... " << format_bytes(context.content_bytes)
              << " and " << context.file_count << " files" << std::endl;
  }
  v1::UploadExperimentRequest first;
  v1::CreateExperimentRequest& request = *first.mutable_create();
  request.set_config(checked.text);
  request.set_template_(flags.template_name);
  request.set_config_name(flags.config);
  request.set_activate(!flags.paused);
  request.set_project_id(flags.project_id);
  request.set_request_id(uuid4());
  v1::CreateExperimentResponse response;
  client->set_patience(kUploadPatience);
  TRY(client->retry([&] { return upload(*client, first, context.bytes, response); }));
  for (const std::string& warning : response.config_warnings())
    std::cerr << "warning: " << printable(warning) << '\n';
  const int id = response.experiment().id();
  std::cout << "Created experiment " << id << std::endl;
  if (!flags.paused) std::cout << "Activated experiment " << id << std::endl;
  if (flags.follow) return follow_experiment(*client, id);
  return 0;
}

}  // namespace

Action declare_create(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("CONFIG", flags->config, "The experiment's configuration (YAML).")->required();
  app.add_option("DIR", flags->directory, "The directory with the model's files.");
  app.add_option("-i,--include", flags->includes, "One more file or directory to send; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--config", flags->overrides, "path.to.key=value over the configuration; may be repeated.")
      ->allow_extra_args(false);
  app.add_option("--template", flags->template_name,
                 "A template that fills in what the configuration leaves out.");
  app.add_option("--project_id,--project-id", flags->project_id, "The project it belongs to.");
  CLI::Option* follow =
      app.add_flag("-f,--follow-first-trial", flags->follow, "Print the first trial's log to its end.");
  app.add_flag("--paused", flags->paused, "Create it paused.")->excludes(follow);
  return [=](Session& session) { return create(session, *flags); };
}

}  // namespace det::cli
