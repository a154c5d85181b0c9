// ContextService: experiments from contexts that the master already stores.
#pragma once

#include "det/v1/context.pb.h"
#include "master/api/service.h"

namespace det::api {

/// Saves the upload of a context that has been submitted before or differs in few files.
class ContextService final : public Service {
 public:
  explicit ContextService(const Context& context);
  /// Creates an experiment with the context of the given digest. If it is not stored, it is built from a
  /// `base` context plus changed and removed files. Only contexts that the caller has submitted are used: a
  /// digest gives no access to the files of others. Sets `unknown`, and creates nothing, when the context is
  /// not available; the client then uploads it. Errors: those of create_experiment().
  Status CreateFromContext(const Caller& caller, const v1::CreateFromContextRequest& request,
                           v1::CreateFromContextResponse* response);
};

}  // namespace det::api
