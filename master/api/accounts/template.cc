#include "master/api/accounts/template.h"

#include "common/base/text.h"
#include "common/expconf/parse.h"
#include "det/v1/template.methods.h"
#include "master/api/convert/convert.h"
#include "master/api/experiments/facts.h"
#include "master/api/submit/secrets.h"
#include "master/db/queries/templates.h"
#include "master/db/queries/workspaces.h"

namespace det::api {
namespace {

void to_proto(const db::TemplateRow& row, v1::Template* out) {
  out->set_name(row.name);
  out->set_workspace_id(static_cast<int>(row.workspace));
  // Responses never contain the secrets of a template.
  const std::string text = masked_yaml(row.text);
  out->set_text(text);
  yaml_to_struct(text, out->mutable_config());
}

Status check_template_name(const std::string& name) {
  if (!name.empty() && name.size() <= 128 && !has_control_characters(name) && !find_bad_utf8(name) &&
      name.find('/') == std::string::npos)
    return {};
  return fail(Code::kInvalidArgument, "a template's name has 1 to 128 bytes, no control characters and no /");
}

}  // namespace

TemplateService::TemplateService(const Context& context) : Service(context, v1::TemplateService::full_name) {
  unary(v1::TemplateService::GetTemplates, &TemplateService::GetTemplates);
  unary(v1::TemplateService::GetTemplate, &TemplateService::GetTemplate);
  unary(v1::TemplateService::PostTemplate, &TemplateService::PostTemplate);
  unary(v1::TemplateService::PutTemplate, &TemplateService::PutTemplate);
  unary(v1::TemplateService::PatchTemplateConfig, &TemplateService::PatchTemplateConfig);
  unary(v1::TemplateService::PatchTemplateName, &TemplateService::PatchTemplateName);
  unary(v1::TemplateService::DeleteTemplate, &TemplateService::DeleteTemplate);
}

/// A template that the caller can see stays in its workspace unless the request names another one. The name
/// of a hidden template counts as taken.
Result<std::int64_t> TemplateService::workspace_of(const v1::SetTemplateRequest& request,
                                                   const Caller& caller) const {
  const auto known = db::get_template(context_.pool, request.template_name());
  if (!known && known.error().code != Code::kNotFound) return tl::unexpected(known.error());
  std::int64_t workspace = request.workspace_id() == 0 ? db::kDefaultWorkspace : request.workspace_id();
  // A template of a hidden workspace is not revealed here; storing it fails later.
  const bool seen = known && caller.grants.in(known->workspace) >= db::Role::kViewer;
  if (seen && request.workspace_id() == 0) workspace = known->workspace;
  TRY(authorize_storing(caller, workspace, context_.pool));
  TRY_ASSIGN(const auto row, db::get_workspace(context_.pool, workspace));
  if (row.archived) return fail(Code::kFailedPrecondition, "workspace " + row.name + " is archived");
  return workspace;
}

Status TemplateService::set(const v1::SetTemplateRequest& request, const Caller& caller, bool replace,
                            v1::SetTemplateResponse* response) {
  const std::string& name = request.template_name();
  TRY(check_template_name(name));
  TRY_ASSIGN(const std::int64_t workspace, workspace_of(request, caller));
  // Text is preferred over the struct: problems can then name line and column.
  std::string text = request.text();
  if (text.empty()) {
    TRY_ASSIGN(const Json config, from_struct(request.config(), "config"));
    text = to_yaml(config);
  }
  const std::string file = request.file_name().empty() ? "template \"" + name + "\""
                                                       : make_utf8(request.file_name().substr(0, 256));
  // A part may lack required fields, but the ones it has must be valid.
  TRY_ASSIGN(const std::vector<Problem> warnings, expconf::check_part(text, file));
  TRY_ASSIGN(const YamlNode tree, parse_yaml(text, file));
  TRY(check_storage_of_part(context_, tree, file));
  TRY(db::set_template(context_.pool, {name, text, workspace}, replace));
  for (const Problem& warning : warnings) response->add_warnings(make_utf8(to_string(warning)));
  to_proto({name, text, workspace}, response->mutable_template_());
  return {};
}

Status TemplateService::GetTemplates(const Caller& caller, const v1::GetTemplatesRequest& request,
                                     v1::GetTemplatesResponse* response) {
  const db::TemplateFilter filter{
      .part = make_utf8(request.name()),
      .visible = caller.grants.visible(),
      .workspaces = {request.workspace_ids().begin(), request.workspace_ids().end()},
      .window = to_window(request.offset(), request.limit(), request.order_by(), -1)};
  TRY_ASSIGN(const auto page, db::list_templates(context_.pool, filter));
  for (const db::TemplateRow& row : page.rows) to_proto(row, response->add_templates());
  to_pagination(page, filter.window, response->mutable_pagination());
  return {};
}

Status TemplateService::GetTemplate(const Caller&, const v1::GetTemplateRequest& request,
                                    v1::GetTemplateResponse* response) {
  TRY(check_template_name(request.template_name()));
  TRY_ASSIGN(const auto row, db::get_template(context_.pool, request.template_name()));
  to_proto(row, response->mutable_template_());
  return {};
}

Status TemplateService::PostTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                                     v1::SetTemplateResponse* response) {
  return set(request, caller, false, response);
}

Status TemplateService::PutTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                                    v1::SetTemplateResponse* response) {
  return set(request, caller, true, response);
}

Status TemplateService::PatchTemplateConfig(const Caller&, const v1::PatchTemplateConfigRequest& request,
                                            v1::PatchTemplateConfigResponse* response) {
  const std::string& name = request.template_name();
  TRY_ASSIGN(auto row, db::get_template(context_.pool, name));
  TRY_ASSIGN(const Json config, from_struct(request.config(), "config"));
  row.text = to_yaml(config);
  const std::string file = "template \"" + name + "\"";
  TRY(expconf::check_part(row.text, file));
  TRY_ASSIGN(const YamlNode tree, parse_yaml(row.text, file));
  TRY(check_storage_of_part(context_, tree, file));
  TRY(db::set_template(context_.pool, row, true));
  to_proto(row, response->mutable_template_());
  return {};
}

Status TemplateService::PatchTemplateName(const Caller&, const v1::PatchTemplateNameRequest& request,
                                          v1::PatchTemplateNameResponse* response) {
  TRY(check_template_name(request.new_name()));
  TRY(db::rename_template(context_.pool, request.old_name(), request.new_name()));
  TRY_ASSIGN(const auto row, db::get_template(context_.pool, request.new_name()));
  to_proto(row, response->mutable_template_());
  return {};
}

Status TemplateService::DeleteTemplate(const Caller&, const v1::DeleteTemplateRequest& request,
                                       v1::DeleteTemplateResponse*) {
  TRY(check_template_name(request.template_name()));
  return db::delete_template(context_.pool, request.template_name());
}

}  // namespace det::api
