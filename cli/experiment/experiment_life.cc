// Verbs of `det experiment` about its record and its successors: delete, label, fork, continue.
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands/not_offered.h"
#include "cli/experiment/experiment_verbs.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "cli/submit/follow.h"
#include "common/base/files.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/expconf/parse.h"
#include "common/expconf/secrets.h"
#include "det/v1/experiment.methods.h"

namespace det::cli {
namespace {

struct DeleteOptions : ExperimentOptions {
  bool yes = false;
  void declare(CLI::App& app) {
    add_id(app, id, "Experiment id. The experiment must have ended.");
    app.add_flag("--yes", yes, "Skip the confirmation prompt.");
  }
};

/// Deletes an experiment that has ended, with checkpoints, metrics and logs. Prompts unless --yes is set.
Status delete_experiment(Session& session, const DeleteOptions& options) {
  const std::string name = "experiment " + std::to_string(options.id);
  if (!options.yes) {
    TRY_ASSIGN(const bool sure, confirm("Delete " + name + " with its checkpoints, metrics and logs?"));
    if (!sure) return fail(Code::kCancelled, "nothing was deleted");
  }
  TRY_ASSIGN(Client * client, session.client());
  v1::DeleteExperimentRequest request;
  request.set_experiment_id(options.id);
  TRY(client->call(v1::ExperimentService::DeleteExperiment, request));
  std::cout << "Deleted " << name << '\n';
  return {};
}

struct LabelOptions : ExperimentOptions {
  std::string label;
  void declare(CLI::App& app) {
    ExperimentOptions::declare(app);
    app.add_option("LABEL", label, "Label.")->required();
  }
};

/// Declares `label add` or `label remove`.
Command label_verb(std::string name, std::string summary, bool add) {
  const auto run = [add](Client& client, const LabelOptions& options) -> Status {
    v1::ExperimentLabelRequest request;
    request.set_experiment_id(options.id);
    request.set_label(options.label);
    TRY(client.call(
        add ? v1::ExperimentService::PutExperimentLabel : v1::ExperimentService::DeleteExperimentLabel,
        request));
    std::cout << (add ? "Added label " : "Removed label ") << printable(options.label)
              << (add ? " to" : " from") << " experiment " << options.id << '\n';
    return {};
  };
  return {{std::move(name)}, std::move(summary), action<LabelOptions>(run)};
}

std::vector<expconf::Override> to_overrides(const std::vector<std::string>& assignments) {
  std::vector<expconf::Override> overrides;
  for (const std::string& each : assignments) overrides.push_back({each});
  return overrides;
}

void declare_overrides(CLI::App& app, std::vector<std::string>& overrides) {
  app.add_option("--config", overrides, "Override path.to.key=value; repeatable.")->allow_extra_args(false);
}

struct ForkOptions : ExperimentOptions {
  std::vector<std::string> overrides;
  bool paused = false;
  void declare(CLI::App& app) {
    add_id(app, id, "Id of the experiment to copy.");
    declare_overrides(app, overrides);
    app.add_flag("--paused", paused, "Create the experiment paused.");
  }
};

/// Adds the paths of the values that differ in two configurations with the same keys; a list is one value.
void add_changes(const Json& before, const Json& after, const std::string& path,
                 std::vector<std::string>& paths) {
  if (before == after) return;
  if (!before.is_object()) {
    paths.push_back(path);
    return;
  }
  for (const auto& [key, value] : before.items())
    add_changes(value, after.at(key), path.empty() ? key : path + "." + key, paths);
}

/// Fails if a secret of the configuration is a mask: the master returns no secrets. Errors: kInvalidArgument.
Status check_secrets(const std::string& config, const std::string& name) {
  TRY_ASSIGN(const YamlNode tree, parse_yaml(config, name));
  const Json before = det::to_json(tree);
  Json after = before;
  expconf::change_secrets(after, [](Json& value) {
    const bool masked = value.is_string() && value.get_ref<const std::string&>() == kSecretMask;
    if (masked) value = "";
    return masked;
  });
  std::vector<std::string> paths;
  add_changes(before, after, "", paths);
  if (paths.empty()) return {};
  return fail(Code::kInvalidArgument, name + ": the master masks secrets, so they are not copied; set " +
                                          join(paths, ", ") + " with --config");
}

/// Creates an experiment from the configuration and the model definition of another, in its project unless an
/// override names another one. Overrides apply to the configuration as it was submitted.
Status fork_experiment(Client& client, const ForkOptions& options) {
  TRY_ASSIGN(const v1::Experiment parent, get_experiment(client, options.id));
  const std::string name = "experiment " + std::to_string(options.id);
  v1::CreateExperimentRequest request;
  TRY_ASSIGN(*request.mutable_config(),
             expconf::apply_overrides(parent.original_config(), name, to_overrides(options.overrides)));
  TRY(check_secrets(request.config(), name));
  request.set_config_name(name);
  // The parent may have moved since its configuration was written.
  if (expconf::placement(request.config(), name, {}) ==
      expconf::placement(parent.original_config(), name, {}))
    request.set_project_id(parent.project_id());
  // The master copies the model definition of the parent; nothing is uploaded.
  request.set_parent_id(options.id);
  request.set_activate(!options.paused);
  request.set_request_id(uuid4());
  TRY_ASSIGN(const auto made, client.call(v1::ExperimentService::CreateExperiment, request));
  print_warnings(made.config_warnings());
  std::cout << "Created experiment " << made.experiment().id() << '\n';
  return {};
}

struct ContinueOptions : ExperimentOptions {
  std::string file;
  std::vector<std::string> overrides;
  bool follow = false;
  void declare(CLI::App& app) {
    add_id(app, id, "Experiment id. The experiment must have ended.");
    app.add_option("--config-file", file, "YAML file that overrides fields of the configuration.");
    declare_overrides(app, overrides);
    app.add_flag("-f,--follow-first-trial", follow, "Follow the log of the first trial.");
  }
};

/// Resumes an experiment that has ended. --config has precedence over --config-file.
Result<int> continue_experiment(Session& session, const ContinueOptions& options) {
  v1::ContinueExperimentRequest request;
  request.set_id(options.id);
  std::string text;
  if (!options.file.empty()) {
    TRY_ASSIGN(text, read_file(options.file, 1 << 20));
  }
  if (!options.overrides.empty()) {
    // Overrides need a document: {} stands for an absent file.
    TRY_ASSIGN(text, expconf::apply_overrides(text.empty() ? "{}" : text,
                                              options.file.empty() ? "command line" : options.file,
                                              to_overrides(options.overrides)));
  }
  request.set_override_config(text);
  TRY_ASSIGN(Client * client, session.client());
  TRY(client->call(v1::ExperimentService::ContinueExperiment, request));
  std::cout << "Continued experiment " << options.id << std::endl;
  return options.follow ? follow_experiment(*client, options.id) : 0;
}

}  // namespace

std::vector<Command> life_verbs() {
  return {{{"delete"},
           "Delete an experiment that has ended, with checkpoints, metrics and logs.",
           action(delete_experiment)},
          {{"label"},
           "Manage labels.",
           {},
           {label_verb("add", "Add a label.", true), label_verb("remove", "Remove a label.", false)}},
          set_verb(),
          not_offered({"delete-tb-files"}, "event files and traces are deleted with the experiment"),
          {{"fork"}, "Create an experiment from another's configuration and code.", action(fork_experiment)},
          {{"continue"}, "Continue an experiment that has ended.", action(continue_experiment)}};
}

}  // namespace det::cli
