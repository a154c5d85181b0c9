// Owns TemplateService: named partial configurations, checked when they are set.
#pragma once

#include "det/v1/template.pb.h"
#include "master/api/service.h"

namespace det::api {

class TemplateService final : public Service {
 public:
  explicit TemplateService(const Context& context);
  Status GetTemplates(const Caller& caller, const v1::GetTemplatesRequest& request,
                      v1::GetTemplatesResponse* response);
  Status GetTemplate(const Caller& caller, const v1::GetTemplateRequest& request,
                     v1::GetTemplateResponse* response);
  Status PostTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                      v1::SetTemplateResponse* response);
  Status PutTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                     v1::SetTemplateResponse* response);
  Status PatchTemplateConfig(const Caller& caller, const v1::PatchTemplateConfigRequest& request,
                             v1::PatchTemplateConfigResponse* response);
  Status PatchTemplateName(const Caller& caller, const v1::PatchTemplateNameRequest& request,
                           v1::PatchTemplateNameResponse* response);
  Status DeleteTemplate(const Caller& caller, const v1::DeleteTemplateRequest& request,
                        v1::DeleteTemplateResponse* response);

 private:
  Result<std::int64_t> workspace_of(const v1::SetTemplateRequest& request, const Caller& caller) const;
  Status set(const v1::SetTemplateRequest& request, const Caller& caller, bool replace,
             v1::SetTemplateResponse* response);
};

}  // namespace det::api
