#include "master/api/template.h"

#include "base/text.h"
#include "master/api/convert.h"
#include "master/db/queries_config.h"
#include "master/expconf/parse.h"

namespace det::api {
namespace {

void to_proto(const db::TemplateRow& row, v1::Template* out) {
  out->set_name(row.name);
  out->set_workspace_id(1);
  out->set_text(row.text);
  yaml_to_struct(row.text, out->mutable_config());
}

Status check_name(const std::string& name) {
  if (!name.empty() && name.size() <= 128 && !has_control_characters(name) && !find_bad_utf8(name) &&
      name.find('/') == std::string::npos)
    return {};
  return fail(Code::kInvalidArgument, "a template's name has 1 to 128 bytes, no control characters and no /");
}

}  // namespace

Status TemplateService::set(const v1::SetTemplateRequest& request, bool replace,
                            v1::SetTemplateResponse* response) {
  const std::string& name = request.template_name();
  TRY(check_name(name));
  const std::string text = request.text().empty() ? to_yaml(from_struct(request.config())) : request.text();
  const std::string file = request.file_name().empty() ? "template \"" + name + "\""
                                                       : make_utf8(request.file_name().substr(0, 256));
  TRY_ASSIGN(const std::vector<Problem> warnings, expconf::check_part(text, file));
  TRY(db::set_template(context_.pool, {name, text}, replace));
  for (const Problem& warning : warnings) response->add_warnings(make_utf8(to_string(warning)));
  to_proto({name, text}, response->mutable_template_());
  return {};
}

grpc::ServerUnaryReactor* TemplateService::GetTemplates(grpc::CallbackServerContext* call,
                                                        const v1::GetTemplatesRequest* request,
                                                        v1::GetTemplatesResponse* response) {
  return unary(
      context_, call, "/det.v1.TemplateService/GetTemplates",
      [this, request, response](const Caller&) -> Status {
        const db::Window window = to_window(request->offset(), request->limit(), request->order_by(), -1);
        TRY_ASSIGN(const auto page, db::list_templates(context_.pool, make_utf8(request->name()), window));
        for (const db::TemplateRow& row : page.rows) to_proto(row, response->add_templates());
        to_pagination(page, window, response->mutable_pagination());
        return {};
      });
}

grpc::ServerUnaryReactor* TemplateService::GetTemplate(grpc::CallbackServerContext* call,
                                                       const v1::GetTemplateRequest* request,
                                                       v1::GetTemplateResponse* response) {
  return unary(context_, call, "/det.v1.TemplateService/GetTemplate",
               [this, request, response](const Caller&) -> Status {
                 TRY(check_name(request->template_name()));
                 TRY_ASSIGN(const auto row, db::get_template(context_.pool, request->template_name()));
                 to_proto(row, response->mutable_template_());
                 return {};
               });
}

grpc::ServerUnaryReactor* TemplateService::PostTemplate(grpc::CallbackServerContext* call,
                                                        const v1::SetTemplateRequest* request,
                                                        v1::SetTemplateResponse* response) {
  return unary(context_, call, "/det.v1.TemplateService/PostTemplate",
               [this, request, response](const Caller&) { return set(*request, false, response); });
}

grpc::ServerUnaryReactor* TemplateService::PutTemplate(grpc::CallbackServerContext* call,
                                                       const v1::SetTemplateRequest* request,
                                                       v1::SetTemplateResponse* response) {
  return unary(context_, call, "/det.v1.TemplateService/PutTemplate",
               [this, request, response](const Caller&) { return set(*request, true, response); });
}

grpc::ServerUnaryReactor* TemplateService::DeleteTemplate(grpc::CallbackServerContext* call,
                                                          const v1::DeleteTemplateRequest* request,
                                                          v1::DeleteTemplateResponse*) {
  return unary(context_, call, "/det.v1.TemplateService/DeleteTemplate",
               [this, request](const Caller&) -> Status {
                 TRY(check_name(request->template_name()));
                 return db::delete_template(context_.pool, request->template_name());
               });
}

}  // namespace det::api
