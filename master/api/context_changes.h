// Owns ContextService: experiments of files that were submitted before.
#pragma once

#include "det/v1/context.grpc.pb.h"
#include "master/api/unary.h"

namespace det::api {

class ContextService final : public v1::ContextService::CallbackService {
 public:
  explicit ContextService(const Context& context) : context_(context) {}
  grpc::ServerUnaryReactor* CreateFromContext(grpc::CallbackServerContext* call,
                                              const v1::CreateFromContextRequest* request,
                                              v1::CreateFromContextResponse* response) override;

 private:
  const Context& context_;
};

}  // namespace det::api
