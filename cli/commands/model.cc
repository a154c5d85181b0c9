// `det model`: the model registry.
#include <iostream>

#include "cli/command.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/model.grpc.pb.h"
#include "det/v1/workspace.grpc.pb.h"

namespace det::cli {
namespace {

using ModelStub = v1::ModelService::Stub;

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
        return client.call(&ModelStub::GetModelVersions, page);
      },
      [&](const v1::GetModelVersionsResponse& page) {
        all.insert(all.end(), page.model_versions().begin(), page.model_versions().end());
      }));
  return all;
}

/// Lists models; archived ones only with --all.
Action declare_model_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto paging = std::make_shared<Paging>();
  auto workspaces = std::make_shared<std::vector<std::string>>();
  auto sort = std::make_shared<std::string>("id");
  auto order = std::make_shared<std::string>("asc");
  auto all = std::make_shared<bool>(false);
  output->declare(app);
  paging->declare(app);
  app.add_option("-w,--workspace-names", *workspaces, "Only models of these workspaces; commas between them.")
      ->delimiter(',');
  app.add_option("--sort-by", *sort, "By what to sort.")
      ->check(CLI::IsMember(
          {"id", "name", "description", "creation_time", "last_updated_time", "num_versions", "workspace"}));
  app.add_option("--order-by", *order, "asc or desc.")->check(CLI::IsMember({"asc", "desc"}));
  app.add_flag("-a,--all", *all, "Archived ones too.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetModelsRequest request;
    v1::GetModelsRequest::SortBy by = v1::GetModelsRequest::SORT_BY_UNSPECIFIED;
    // The values of --sort-by are the lower-case names of the enumeration.
    if (*sort != "id") v1::GetModelsRequest::SortBy_Parse("SORT_BY_" + to_upper(*sort), &by);
    request.set_sort_by(by);
    request.set_order_by(*order == "desc" ? v1::ORDER_BY_DESC : v1::ORDER_BY_ASC);
    if (!*all) request.mutable_archived()->set_value(false);
    request.mutable_workspace_names()->Assign(workspaces->begin(), workspaces->end());
    std::vector<v1::Model> models;
    TRY(each_page(
        *paging, request,
        [&](const v1::GetModelsRequest& page) { return client->call(&ModelStub::GetModels, page); },
        [&](const v1::GetModelsResponse& page) {
          models.insert(models.end(), page.models().begin(), page.models().end());
        }));
    TRY(output->print(model_table(models), [&] { return list_to_json(models); }));
    return 0;
  };
}

Action declare_model_create(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  auto description = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "What to call it; not a number.")->required();
  app.add_option("-w,--workspace-name", *workspace, "Where it goes; else the default workspace.");
  app.add_option("--description", *description, "What it is.");
  app.add_flag("--json", *json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostModelRequest request;
    request.set_name(*name);
    request.set_workspace_name(*workspace);
    request.set_description(*description);
    TRY_ASSIGN(const auto response, client->call(&ModelStub::PostModel, request));
    TRY_ASSIGN(const Json value, to_json(response.model()));
    if (*json) {
      print_json(value);
    } else {
      std::cout << to_text(model_table({response.model()}));
    }
    return 0;
  };
}

/// Shows a model and one of its versions.
Action declare_model_describe(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto version = std::make_shared<int>(0);
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "The model: its name or number.")->required();
  app.add_option("--version", *version, "A version's number; else the newest.")->check(kPositive);
  app.add_flag("--json", *json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetModelRequest request;
    request.set_model_name(*name);
    TRY_ASSIGN(const auto response, client->call(&ModelStub::GetModel, request));
    TRY_ASSIGN(std::vector<v1::ModelVersion> versions, get_versions(*client, *name));
    if (*version > 0) {
      std::erase_if(versions, [&](const v1::ModelVersion& each) { return each.version() != *version; });
      if (versions.empty())
        return fail(Code::kNotFound, "model " + *name + " has no version " + std::to_string(*version));
    }
    // Shows one version: the requested one, else the newest.
    if (versions.size() > 1) versions.resize(1);
    if (*json) {
      TRY_ASSIGN(Json value, to_json(response.model()));
      if (!versions.empty()) {
        TRY_ASSIGN(value["modelVersion"], to_json(versions[0]));
      }
      print_json(value);
      return 0;
    }
    std::cout << to_text(model_table({response.model()}));
    if (!versions.empty()) std::cout << '\n' << to_text(version_table(versions));
    return 0;
  };
}

/// Adds a checkpoint as the next version of a model.
Action declare_model_register(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto uuid = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  app.add_option("NAME", *name, "The model.")->required();
  app.add_option("UUID", *uuid, "The checkpoint; nothing deletes it from then on.")->required();
  app.add_flag("--json", *json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PostModelVersionRequest request;
    request.set_model_name(*name);
    request.set_checkpoint_uuid(*uuid);
    TRY_ASSIGN(const auto response, client->call(&ModelStub::PostModelVersion, request));
    TRY_ASSIGN(const Json value, to_json(response.model_version()));
    if (*json) {
      print_json(value);
    } else {
      std::cout << to_text(version_table({response.model_version()}));
    }
    return 0;
  };
}

Action declare_model_versions(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto name = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The model.")->required();
  output->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto versions, get_versions(*client, *name));
    TRY(output->print(version_table(versions), [&] { return list_to_json(versions); }));
    return 0;
  };
}

/// Declares a verb that replaces one field of a model. `many` fields take a list, which may be empty.
Command set_command(const char* what, const char* summary,
                    void (*set)(v1::PatchModel&, const std::vector<std::string>&), bool many) {
  return {{what}, summary, [=](CLI::App& app) -> Action {
            auto name = std::make_shared<std::string>();
            auto words = std::make_shared<std::vector<std::string>>();
            app.add_option("NAME", *name, "The model.")->required();
            app.add_option("VALUE", *words, many ? "The new ones; none takes all away." : "The new text.")
                ->required(!many)
                ->expected(many ? 0 : 1, many ? 1000 : 1);
            return [=](Session& session) -> Result<int> {
              TRY_ASSIGN(Client * client, session.client());
              v1::PatchModelRequest request;
              request.set_model_name(*name);
              set(*request.mutable_model(), *words);
              TRY_ASSIGN(const auto response, client->call(&ModelStub::PatchModel, request));
              std::cout << "Set " << what << " of model " << printable(response.model().name()) << '\n';
              return 0;
            };
          }};
}

void set_model_labels(v1::PatchModel& patch, const std::vector<std::string>& labels) {
  for (const std::string& label : labels) patch.mutable_labels()->add_values()->set_string_value(label);
  // Sets the field without labels as well: that removes all.
  patch.mutable_labels();
}

Action declare_model_move(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto workspace = std::make_shared<std::string>();
  app.add_option("NAME", *name, "The model.")->required();
  app.add_option("-w,--workspace-name,WORKSPACE", *workspace, "Where it goes.")->required();
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::PatchModelRequest request;
    request.set_model_name(*name);
    request.mutable_model()->set_workspace_name(*workspace);
    TRY(client->call(&ModelStub::PatchModel, request));
    std::cout << "Moved model " << printable(*name) << " to workspace " << printable(*workspace) << '\n';
    return 0;
  };
}

/// Deletes a model, or one version with --version. Checkpoints are kept.
Action declare_model_delete(CLI::App& app) {
  auto name = std::make_shared<std::string>();
  auto version = std::make_shared<int>(0);
  app.add_option("NAME", *name, "The model.")->required();
  app.add_option("--version", *version, "Only this version.")->check(kPositive);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    if (*version > 0) {
      v1::DeleteModelVersionRequest request;
      request.set_model_name(*name);
      request.set_model_version_num(*version);
      TRY(client->call(&ModelStub::DeleteModelVersion, request));
      std::cout << "Deleted version " << *version << " of model " << printable(*name) << '\n';
      return 0;
    }
    v1::DeleteModelRequest request;
    request.set_model_name(*name);
    TRY(client->call(&ModelStub::DeleteModel, request));
    std::cout << "Deleted model " << printable(*name) << '\n';
    return 0;
  };
}

/// Declares `archive` or `unarchive`. An archived model cannot be changed.
template <typename Request, typename Method>
std::function<Action(CLI::App&)> declare_model_archive(Method method, const char* done) {
  return [=](CLI::App& app) -> Action {
    auto name = std::make_shared<std::string>();
    app.add_option("NAME", *name, "The model.")->required();
    return [=](Session& session) -> Result<int> {
      TRY_ASSIGN(Client * client, session.client());
      Request request;
      request.set_model_name(*name);
      TRY(client->call(method, request));
      std::cout << done << " model " << printable(*name) << '\n';
      return 0;
    };
  };
}

}  // namespace

Command model_command() {
  return {{"model", "m"},
          "Keep checkpoints as numbered versions of named models.",
          {},
          {{{"list", "ls"}, "List models.", declare_model_list},
           {{"create"}, "Make a model, without versions.", declare_model_create},
           {{"describe"}, "Show a model and its newest version.", declare_model_describe},
           {{"register-version"}, "Make a checkpoint the next version of a model.", declare_model_register},
           {{"list-versions"}, "List the versions of a model.", declare_model_versions},
           {{"set"},
            "Change what a model is called and said to be.",
            {},
            {set_command(
                 "name", "Rename a model.",
                 [](v1::PatchModel& patch, const auto& words) { patch.mutable_name()->set_value(words[0]); },
                 false),
             set_command(
                 "description", "Say what a model is.",
                 [](v1::PatchModel& patch, const auto& words) {
                   patch.mutable_description()->set_value(words[0]);
                 },
                 false),
             set_command(
                 "notes", "Replace a model's notes.",
                 [](v1::PatchModel& patch, const auto& words) { patch.mutable_notes()->set_value(words[0]); },
                 false),
             set_command("labels", "Replace a model's labels.", set_model_labels, true)}},
           {{"move"}, "Move a model to another workspace.", declare_model_move},
           {{"archive"},
            "Let a model stay as it is.",
            declare_model_archive<v1::ArchiveModelRequest>(&ModelStub::ArchiveModel, "Archived")},
           {{"unarchive"},
            "Let a model be changed again.",
            declare_model_archive<v1::UnarchiveModelRequest>(&ModelStub::UnarchiveModel, "Unarchived")},
           {{"delete"},
            "Delete a model with its versions, or one version; checkpoints stay.",
            declare_model_delete}}};
}

}  // namespace det::cli
