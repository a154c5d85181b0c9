// Columns by which the experiments of a project can be displayed, sorted and searched.
#include "master/api/accounts/project.h"
#include "master/db/queries/projects.h"

namespace det::api {
namespace {

/// A column under its name in the HTTP API.
struct Column {
  const char *name, *title;
  v1::ColumnType type;
};
constexpr Column kColumns[] = {{"id", "ID", v1::COLUMN_TYPE_NUMBER},
                               {"name", "Name", v1::COLUMN_TYPE_TEXT},
                               {"description", "Description", v1::COLUMN_TYPE_TEXT},
                               {"tags", "Tags", v1::COLUMN_TYPE_ARRAY},
                               {"forkedFrom", "Forked", v1::COLUMN_TYPE_NUMBER},
                               {"startTime", "Start time", v1::COLUMN_TYPE_DATE},
                               {"duration", "Duration", v1::COLUMN_TYPE_NUMBER},
                               {"numTrials", "Trials", v1::COLUMN_TYPE_NUMBER},
                               {"state", "State", v1::COLUMN_TYPE_TEXT},
                               {"searcherType", "Searcher", v1::COLUMN_TYPE_TEXT},
                               {"searcherMetric", "Searcher metric", v1::COLUMN_TYPE_TEXT},
                               {"searcherMetricsVal", "Best searcher metric", v1::COLUMN_TYPE_NUMBER},
                               {"resourcePool", "Resource pool", v1::COLUMN_TYPE_TEXT},
                               {"progress", "Progress", v1::COLUMN_TYPE_NUMBER},
                               {"checkpointSize", "Checkpoint size", v1::COLUMN_TYPE_NUMBER},
                               {"checkpointCount", "Checkpoints", v1::COLUMN_TYPE_NUMBER},
                               {"user", "User", v1::COLUMN_TYPE_TEXT},
                               {"archived", "Archived", v1::COLUMN_TYPE_TEXT}};

void add_column(const std::string& name, const std::string& title, v1::LocationType location,
                v1::ColumnType type, v1::GetProjectColumnsResponse& response) {
  v1::ProjectColumn* column = response.add_columns();
  column->set_column(name);
  column->set_display_name(title);
  column->set_location(location);
  column->set_type(type);
}

/// Adds the column of a hyperparameter, or those of a metric over all reports of the best trial.
void add_columns(const db::ProjectField& field, v1::GetProjectColumnsResponse& response) {
  const std::size_t dot = field.name.find('.');
  const std::string section = field.name.substr(0, dot), name = field.name.substr(dot + 1);
  if (section == "hp") {
    add_column(field.name, name, v1::LOCATION_TYPE_HYPERPARAMETERS,
               field.numeric ? v1::COLUMN_TYPE_NUMBER : v1::COLUMN_TYPE_TEXT, response);
    return;
  }
  const auto location = section == "training" ? v1::LOCATION_TYPE_TRAINING : v1::LOCATION_TYPE_VALIDATIONS;
  for (const char* value : {".last", ".max", ".mean", ".min"})
    add_column(field.name + value, name + value, location, v1::COLUMN_TYPE_NUMBER, response);
}

}  // namespace

Status ProjectService::GetProjectColumns(const Caller&, const v1::GetProjectColumnsRequest& request,
                                         v1::GetProjectColumnsResponse* response) {
  TRY(db::get_project(context_.pool, request.id()));
  for (const auto& [name, title, type] : kColumns)
    add_column(name, title, v1::LOCATION_TYPE_EXPERIMENT, type, *response);
  TRY_ASSIGN(const auto fields, db::project_fields(context_.pool, request.id()));
  for (const db::ProjectField& field : fields) add_columns(field, *response);
  return {};
}

}  // namespace det::api
