// TemplateService: named partial configurations, validated when they are stored.
#pragma once

#include "det/v1/template.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Names are unique in the cluster. Secrets are masked in responses. Existing experiments keep the
/// configuration they were created with.
class TemplateService final : public Service {
 public:
  explicit TemplateService(const Context& context);
  /// Lists templates that the caller may see, paged.
  Status GetTemplates(const Caller& caller, const v1::GetTemplatesRequest& request,
                      v1::GetTemplatesResponse* response);
  /// Returns a template. Errors: kNotFound.
  Status GetTemplate(const Caller& caller, const v1::GetTemplateRequest& request,
                     v1::GetTemplateResponse* response);
  /// Creates a template. Errors: kAlreadyExists; kInvalidArgument with Problems.
  Status PostTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                      v1::SetTemplateResponse* response);
  /// Creates or replaces a template. Idempotent. Errors: as PostTemplate.
  Status PutTemplate(const Caller& caller, const v1::SetTemplateRequest& request,
                     v1::SetTemplateResponse* response);
  /// Replaces the configuration of a template. Idempotent. Errors: kNotFound; kInvalidArgument.
  Status PatchTemplateConfig(const Caller& caller, const v1::PatchTemplateConfigRequest& request,
                             v1::PatchTemplateConfigResponse* response);
  /// Renames a template. Errors: kNotFound; kAlreadyExists.
  Status PatchTemplateName(const Caller& caller, const v1::PatchTemplateNameRequest& request,
                           v1::PatchTemplateNameResponse* response);
  /// Deletes a template. Errors: kNotFound.
  Status DeleteTemplate(const Caller& caller, const v1::DeleteTemplateRequest& request,
                        v1::DeleteTemplateResponse* response);

 private:
  /// Workspace in which a template is created or replaced. Checks that the caller may edit there.
  Result<std::int64_t> workspace_of(const v1::SetTemplateRequest& request, const Caller& caller) const;
  Status set(const v1::SetTemplateRequest& request, const Caller& caller, bool replace,
             v1::SetTemplateResponse* response);
};

}  // namespace det::api
