// Owns TemplateService: named partial configurations, checked when they are set.
#pragma once

#include "det/v1/template.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class TemplateService final : public v1::TemplateService::CallbackService {
 public:
  explicit TemplateService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* GetTemplates(grpc::CallbackServerContext* call,
                                         const v1::GetTemplatesRequest* request,
                                         v1::GetTemplatesResponse* response) override;
  grpc::ServerUnaryReactor* GetTemplate(grpc::CallbackServerContext* call,
                                        const v1::GetTemplateRequest* request,
                                        v1::GetTemplateResponse* response) override;
  grpc::ServerUnaryReactor* PostTemplate(grpc::CallbackServerContext* call,
                                         const v1::SetTemplateRequest* request,
                                         v1::SetTemplateResponse* response) override;
  grpc::ServerUnaryReactor* PutTemplate(grpc::CallbackServerContext* call,
                                        const v1::SetTemplateRequest* request,
                                        v1::SetTemplateResponse* response) override;
  grpc::ServerUnaryReactor* PatchTemplateConfig(grpc::CallbackServerContext* call,
                                                const v1::PatchTemplateConfigRequest* request,
                                                v1::PatchTemplateConfigResponse* response) override;
  grpc::ServerUnaryReactor* PatchTemplateName(grpc::CallbackServerContext* call,
                                              const v1::PatchTemplateNameRequest* request,
                                              v1::PatchTemplateNameResponse* response) override;
  grpc::ServerUnaryReactor* DeleteTemplate(grpc::CallbackServerContext* call,
                                           const v1::DeleteTemplateRequest* request,
                                           v1::DeleteTemplateResponse* response) override;

 private:
  Result<std::int64_t> workspace_of(const v1::SetTemplateRequest& request, const Caller& caller) const;
  Status set(const v1::SetTemplateRequest& request, const Caller& caller, bool replace,
             v1::SetTemplateResponse* response);
  const Context& context_;
};

}  // namespace det::api
