// `det model`: the model registry.
#include <iostream>

#include "cli/command.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/model.methods.h"
#include "det/v1/workspace.methods.h"

namespace det::cli {
namespace {

/// JSON on one line; "" when the value cannot be converted.
std::string compact(const google::protobuf::Struct& metadata) {
  const auto json = to_json(metadata);
  return json ? dump_json(*json) : "";
}

Table model_table(const std::vector<v1::Model>& models) {
  Table table{{"ID", "Name", "Workspace ID", "Creation Time", "Last Updated Time", "Metadata"}, {}};
  for (const v1::Model& each : models) {
    table.rows.push_back({std::to_string(each.id()), each.name(), std::to_string(each.workspace_id()),
                          time_text(each.creation_time(), each.has_creation_time()),
                          time_text(each.last_updated_time(), each.has_last_updated_time()),
                          compact(each.metadata())});
  }
  return table;
}

/// The averages of the validation metrics, as JSON.
std::string version_metrics_text(const google::protobuf::Struct& metrics) {
  const auto averages = metrics.fields().find("avgMetrics");
  return averages == metrics.fields().end() ? "" : compact(averages->second.struct_value());
}

Table version_table(const std::vector<v1::ModelVersion>& versions) {
  Table table{{"Version #", "Trial ID", "Batch #", "Checkpoint UUID", "Validation Metrics", "Metadata"}, {}};
  for (const v1::ModelVersion& each : versions) {
    const v1::Checkpoint& checkpoint = each.checkpoint();
    table.rows.push_back(
        {std::to_string(each.version()),
         checkpoint.training().has_trial_id() ? std::to_string(checkpoint.training().trial_id().value()) : "",
         std::to_string(checkpoint.steps_completed()), checkpoint.uuid(),
         version_metrics_text(checkpoint.training().validation_metrics()), compact(each.metadata())});
  }
  return table;
}

/// Returns all versions of a model, in the order of the master: newest first.
Result<std::vector<v1::ModelVersion>> get_versions(Client& client, const std::string& model) {
  v1::GetModelVersionsRequest request;
  request.set_model_name(model);
  std::vector<v1::ModelVersion> all;
  TRY(each_page(
      Paging{}, request,
      [&](const v1::GetModelVersionsRequest& page) {
        return client.call(v1::ModelService::GetModelVersions, page);
      },
      [&](const v1::GetModelVersionsResponse& page) {
        all.insert(all.end(), page.model_versions().begin(), page.model_versions().end());
      }));
  return all;
}

struct ModelListOptions {
  Output output;
  Paging paging;
  std::vector<std::string> workspaces;
  std::string sort = "id", order = "asc";
  bool all = false;
  void declare(CLI::App& app) {
    output.declare(app);
    paging.declare(app);
    app.add_option("-w,--workspace-names", workspaces,
                   "Only models of these workspaces, separated by commas.")
        ->delimiter(',');
    app.add_option("--sort-by", sort, "Sort key.")
        ->check(CLI::IsMember({"id", "name", "description", "creation_time", "last_updated_time",
                               "num_versions", "workspace"}));
    app.add_option("--order-by", order, "Sort order: asc or desc.")->check(CLI::IsMember({"asc", "desc"}));
    app.add_flag("-a,--all", all, "Include archived models.");
  }
};

/// Lists models; archived ones only with --all.
Status list_models(Client& client, const ModelListOptions& options) {
  v1::GetModelsRequest request;
  v1::GetModelsRequest::SortBy by = v1::GetModelsRequest::SORT_BY_UNSPECIFIED;
  // The values of --sort-by are the lower-case names of the enumeration.
  if (options.sort != "id") v1::GetModelsRequest::SortBy_Parse("SORT_BY_" + to_upper(options.sort), &by);
  request.set_sort_by(by);
  request.set_order_by(options.order == "desc" ? v1::ORDER_BY_DESC : v1::ORDER_BY_ASC);
  if (!options.all) request.mutable_archived()->set_value(false);
  request.mutable_workspace_names()->Assign(options.workspaces.begin(), options.workspaces.end());
  std::vector<v1::Model> models;
  TRY_ASSIGN(
      const std::int64_t more,
      each_page(
          options.paging.resolved(options.output), request,
          [&](const v1::GetModelsRequest& page) { return client.call(v1::ModelService::GetModels, page); },
          [&](const v1::GetModelsResponse& page) {
            models.insert(models.end(), page.models().begin(), page.models().end());
          }));
  Table table = model_table(models);
  table.more = more;
  return options.output.print(table, [&] { return list_to_json(models); });
}

struct ModelOptions {
  std::string name;
  void declare(CLI::App& app) { app.add_option("NAME", name, "Model name.")->required(); }
};

struct ModelCreateOptions {
  std::string name, workspace, description;
  bool json = false;
  void declare(CLI::App& app) {
    app.add_option("NAME", name, "Name of the new model; not a number.")->required();
    app.add_option("-w,--workspace-name", workspace,
                   "Workspace of the model (default: the default workspace).");
    app.add_option("--description", description, "Description.");
    app.add_flag("--json", json, "Print as JSON.");
  }
};

Status create_model(Client& client, const ModelCreateOptions& options) {
  v1::PostModelRequest request;
  request.set_name(options.name);
  request.set_workspace_name(options.workspace);
  request.set_description(options.description);
  TRY_ASSIGN(const auto response, client.call(v1::ModelService::PostModel, request));
  if (options.json) return print_json(response.model());
  std::cout << shown(model_table({response.model()}));
  return {};
}

struct ModelDescribeOptions {
  std::string name;
  int version = 0;
  bool json = false;
  void declare(CLI::App& app) {
    app.add_option("NAME", name, "Model name or number.")->required();
    app.add_option("--version", version, "Version number (default: the newest).")->check(kPositive);
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Shows a model and one of its versions.
Status describe_model(Client& client, const ModelDescribeOptions& options) {
  v1::GetModelRequest request;
  request.set_model_name(options.name);
  TRY_ASSIGN(const auto response, client.call(v1::ModelService::GetModel, request));
  TRY_ASSIGN(std::vector<v1::ModelVersion> versions, get_versions(client, options.name));
  if (options.version > 0) {
    std::erase_if(versions, [&](const v1::ModelVersion& each) { return each.version() != options.version; });
    if (versions.empty())
      return fail(Code::kNotFound,
                  "model " + options.name + " has no version " + std::to_string(options.version));
  }
  // Shows one version: the requested one, else the newest.
  if (versions.size() > 1) versions.resize(1);
  if (options.json) {
    TRY_ASSIGN(Json value, to_json(response.model()));
    if (!versions.empty()) {
      TRY_ASSIGN(value["modelVersion"], to_json(versions[0]));
    }
    print_json(value);
    return {};
  }
  std::cout << shown(model_table({response.model()}));
  if (!versions.empty()) std::cout << '\n' << shown(version_table(versions));
  return {};
}

struct ModelRegisterOptions : ModelOptions {
  std::string uuid;
  bool json = false;
  void declare(CLI::App& app) {
    ModelOptions::declare(app);
    app.add_option("UUID", uuid, "Checkpoint UUID. A registered checkpoint cannot be deleted.")->required();
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Adds a checkpoint as the next version of a model.
Status register_version(Client& client, const ModelRegisterOptions& options) {
  v1::PostModelVersionRequest request;
  request.set_model_name(options.name);
  request.set_checkpoint_uuid(options.uuid);
  TRY_ASSIGN(const auto response, client.call(v1::ModelService::PostModelVersion, request));
  if (options.json) return print_json(response.model_version());
  std::cout << shown(version_table({response.model_version()}));
  return {};
}

struct ModelVersionsOptions : ModelOptions {
  Output output;
  void declare(CLI::App& app) {
    ModelOptions::declare(app);
    output.declare(app);
  }
};

Status list_versions(Client& client, const ModelVersionsOptions& options) {
  TRY_ASSIGN(const auto versions, get_versions(client, options.name));
  return options.output.print(version_table(versions), [&] { return list_to_json(versions); });
}

/// `many` fields take a list, which may be empty.
struct ModelSetOptions : ModelOptions {
  bool many = false;
  std::vector<std::string> values = {};
  void declare(CLI::App& app) {
    ModelOptions::declare(app);
    app.add_option("VALUE", values, many ? "New values; none removes all." : "New value.")
        ->required(!many)
        ->expected(many ? 0 : 1, many ? 1000 : 1);
  }
};

/// Declares a verb that replaces one field of a model.
Command model_set_verb(const char* what, const char* summary,
                       void (*set)(v1::PatchModel&, const std::vector<std::string>&), bool many = false) {
  const auto run = [=](Client& client, const ModelSetOptions& options) -> Status {
    v1::PatchModelRequest request;
    request.set_model_name(options.name);
    set(*request.mutable_model(), options.values);
    TRY_ASSIGN(const auto response, client.call(v1::ModelService::PatchModel, request));
    std::cout << "Set " << what << " of model " << printable(response.model().name()) << '\n';
    return {};
  };
  return {{what}, summary, action(run, ModelSetOptions{{}, many})};
}

void set_model_labels(v1::PatchModel& patch, const std::vector<std::string>& labels) {
  for (const std::string& label : labels) patch.mutable_labels()->add_values()->set_string_value(label);
  // Sets the field without labels as well: that removes all.
  patch.mutable_labels();
}

struct ModelMoveOptions : ModelOptions {
  std::string workspace;
  void declare(CLI::App& app) {
    ModelOptions::declare(app);
    app.add_option("-w,--workspace-name,WORKSPACE", workspace, "Destination workspace.")->required();
  }
};

Status move_model(Client& client, const ModelMoveOptions& options) {
  v1::PatchModelRequest request;
  request.set_model_name(options.name);
  request.mutable_model()->set_workspace_name(options.workspace);
  TRY(client.call(v1::ModelService::PatchModel, request));
  std::cout << "Moved model " << printable(options.name) << " to workspace " << printable(options.workspace)
            << '\n';
  return {};
}

struct ModelDeleteOptions : ModelOptions {
  int version = 0;
  void declare(CLI::App& app) {
    ModelOptions::declare(app);
    app.add_option("--version", version, "Delete only this version.")->check(kPositive);
  }
};

/// Deletes a model, or one version with --version. Checkpoints are kept.
Status delete_model(Client& client, const ModelDeleteOptions& options) {
  if (options.version > 0) {
    v1::DeleteModelVersionRequest request;
    request.set_model_name(options.name);
    request.set_model_version_num(options.version);
    TRY(client.call(v1::ModelService::DeleteModelVersion, request));
    std::cout << "Deleted version " << options.version << " of model " << printable(options.name) << '\n';
    return {};
  }
  v1::DeleteModelRequest request;
  request.set_model_name(options.name);
  TRY(client.call(v1::ModelService::DeleteModel, request));
  std::cout << "Deleted model " << printable(options.name) << '\n';
  return {};
}

/// Declares `archive` or `unarchive`. An archived model cannot be changed.
template <typename Request, typename Method>
Declare archive_action(Method method, const char* done) {
  return action<ModelOptions>([=](Client& client, const ModelOptions& options) -> Status {
    Request request;
    request.set_model_name(options.name);
    TRY(client.call(method, request));
    std::cout << done << " model " << printable(options.name) << '\n';
    return {};
  });
}

}  // namespace

Command model_command() {
  return {{"model", "m"},
          "Manage models and their versions.",
          {},
          {{{"list", "ls"}, "List models.", action(list_models)},
           {{"create"}, "Create a model without versions.", action(create_model)},
           {{"describe"}, "Show a model and its newest version.", action(describe_model)},
           {{"register-version"},
            "Register a checkpoint as the next version of a model.",
            action(register_version)},
           {{"list-versions"}, "List the versions of a model.", action(list_versions)},
           {{"set"},
            "Change a model.",
            {},
            {model_set_verb(
                 "name", "Rename a model.",
                 [](v1::PatchModel& patch, const auto& words) { patch.mutable_name()->set_value(words[0]); }),
             model_set_verb("description", "Set the description of a model.",
                            [](v1::PatchModel& patch, const auto& words) {
                              patch.mutable_description()->set_value(words[0]);
                            }),
             model_set_verb("notes", "Set the notes of a model.",
                            [](v1::PatchModel& patch, const auto& words) {
                              patch.mutable_notes()->set_value(words[0]);
                            }),
             model_set_verb("labels", "Replace the labels of a model.", set_model_labels, true)}},
           {{"move"}, "Move a model to another workspace.", action(move_model)},
           {{"archive"},
            "Archive a model. It becomes read-only.",
            archive_action<v1::ArchiveModelRequest>(v1::ModelService::ArchiveModel, "Archived")},
           {{"unarchive"},
            "Unarchive a model.",
            archive_action<v1::UnarchiveModelRequest>(v1::ModelService::UnarchiveModel, "Unarchived")},
           {{"delete"}, "Delete a model or one version. Its checkpoints are kept.", action(delete_model)}}};
}

}  // namespace det::cli
