// Owns ContextService: experiments of files that were submitted before.
#pragma once

#include "det/v1/context.pb.h"
#include "master/api/service.h"

namespace det::api {

class ContextService final : public Service {
 public:
  explicit ContextService(const Context& context);
  Status CreateFromContext(const Caller& caller, const v1::CreateFromContextRequest& request,
                           v1::CreateFromContextResponse* response);
};

}  // namespace det::api
