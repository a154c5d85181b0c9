#include "master/api/service.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/log.h"
#include "master/api/auth/audit_record.h"

namespace det::api {
namespace {

namespace pb = google::protobuf;

[[noreturn]] void end(const std::string& problem) {
  log::error("internal error: " + problem);
  std::abort();
}

const pb::ServiceDescriptor& find_service(const char* full_name) {
  const pb::ServiceDescriptor* found = pb::DescriptorPool::generated_pool()->FindServiceByName(full_name);
  if (!found) end(std::string("no service ") + full_name);
  return *found;
}

grpc::Status serialize(const pb::Message& message, grpc::ByteBuffer* out) {
  bool own = false;
  return grpc::GenericSerialize<grpc::ProtoBufferWriter, pb::Message>(message, out, &own);
}

}  // namespace

Status read_request(const grpc::ByteBuffer& bytes, pb::Message* request) {
  grpc::ByteBuffer shared(bytes);  // the reader consumes its buffer; the slices are not copied
  grpc::ProtoBufferReader reader(&shared);
  if (reader.status().ok() && request->ParseFromZeroCopyStream(&reader)) return {};
  return fail(Code::kInvalidArgument,
              "the request is not a " + request->GetDescriptor()->full_name() + "; text must be UTF-8");
}

struct Service::Unary {
  const char* path;
  const pb::Message& request;  ///< prototypes
  const pb::Message& response;
  loop::Workers& workers;
  Handler handler;
};

Service::Service(const Context& context, const char* full_name)
    : context_(context), descriptor_(find_service(full_name)) {}

Service::~Service() = default;

std::vector<std::string> Service::missing() const {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor_.method_count(); ++i) {
    const std::string path = "/" + descriptor_.full_name() + "/" + descriptor_.method(i)->name();
    const bool served = std::find(paths_.begin(), paths_.end(), path) != paths_.end();
    if (!served) names.push_back(path);
  }
  return names;
}

void Service::add(const char* path, grpc::internal::RpcMethod::RpcType type,
                  grpc::internal::MethodHandler* handler) {
  paths_.push_back(path);
  AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
  MarkMethodCallback(static_cast<int>(paths_.size()) - 1, handler);
}

void Service::add_unary(const char* path, const pb::Message& request, const pb::Message& response,
                        loop::Workers& workers, Handler handler) {
  Unary* const entry = new Unary{path, request, response, workers, std::move(handler)};
  unaries_.emplace_back(entry);
  auto* const callback = new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
      [this, entry](grpc::CallbackServerContext* call, const grpc::ByteBuffer* in, grpc::ByteBuffer* out) {
        return serve(*entry, call, *in, out);
      });
  add(path, grpc::internal::RpcMethod::NORMAL_RPC, callback);
}

loop::Workers& Service::default_pool(const char* path) const {
  const Access* const entry = access(path);
  if (!entry) end(std::string(path) + " has no entry in the table of access");
  if (entry->requirement == Requirement::kAllocation || entry->requirement == Requirement::kAgent)
    return context_.pools.ingest;
  return is_change(*entry) ? context_.pools.steer : context_.pools.read;
}

void Service::post(loop::Workers& workers, grpc::ServerUnaryReactor* reactor, std::function<void()> work) {
  if (!workers.try_post(std::move(work))) reactor->Finish(to_grpc(busy()));
}

Status check_disk(const Context& context, std::string_view path) {
  const Access* const entry = access(path);
  return context.disk && entry && is_change(*entry) ? context.disk->check() : Status();
}

Status Service::perform(const char* path, const Result<Caller>& caller, const pb::Message& request,
                        const pb::Message* response, MonoTime begun,
                        const std::function<Status(const Caller&)>& body) {
  Status allowed;
  if (!caller) allowed = tl::unexpected(caller.error());
  if (allowed) allowed = check_disk(context_, path);
  if (allowed) allowed = check_rules(path, *caller, &request, context_.pool);
  if (!allowed) {
    context_.calls->took(path, mono_now() - begun, false);
    return allowed;
  }
  Status done = body(*caller);
  if (changes_rights(path)) context_.sessions->changed();  // a failed change may have been made in part
  audit(context_.pool, *caller, path, &request, done, response);
  context_.calls->took(path, mono_now() - begun, done.has_value());
  return done;
}

grpc::ServerUnaryReactor* Service::serve(const Unary& method, grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer& in, grpc::ByteBuffer* out) {
  grpc::ServerUnaryReactor* const reactor = call->DefaultReactor();
  post(method.workers, reactor,
       [this, &method, call, reactor, credentials = read_credentials(*call), &in, out, begun = mono_now()] {
         // A client that has canceled its call expects no effect.
         if (call->IsCancelled()) return reactor->Finish(grpc::Status::CANCELLED);
         if (mono_now() - begun > kQueuePatience) return reactor->Finish(to_grpc(busy()));
         // The body stays unread until the caller is known.
         const auto caller = authenticate(method.path, credentials, *context_.sessions);
         const std::unique_ptr<pb::Message> request(method.request.New());
         if (const Status read = caller ? read_request(in, request.get()) : Status(); !read) {
           context_.calls->took(method.path, mono_now() - begun, false);
           return reactor->Finish(to_grpc(read));
         }
         const std::unique_ptr<pb::Message> response(method.response.New());
         const Status done =
             perform(method.path, caller, *request, response.get(), begun,
                     [&](const Caller& known) { return method.handler(known, *request, response.get()); });
         reactor->Finish(done ? serialize(*response, out) : to_grpc(done));
       });
  return reactor;
}

grpc::ServerUnaryReactor* Service::defer(const char* path, grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer& bytes, pb::Message* request,
                                         std::function<void(const Deferred&)> handler) {
  grpc::ServerUnaryReactor* const reactor = call->DefaultReactor();
  const Credentials credentials = read_credentials(*call);
  const Requirement required = access(path)->requirement;
  const auto find_trial = [this, by_process = credentials.user_token.empty(),
                           hash = token_hash(credentials.allocation_token)] {
    return by_process ? context_.allocation_tokens->confirmed(hash) : nullptr;
  };
  const auto read = [call, reactor, &bytes, request, handler = std::move(handler)](
                        std::shared_ptr<const ConfirmedTrial> trial, AgentCaller agent = {}) {
    if (const Status done = read_request(bytes, request); !done) return reactor->Finish(to_grpc(done));
    handler({call, reactor, std::move(trial), std::move(agent)});
  };
  // The common case, a report of a process that has reported before, needs no worker.
  if (auto trial = required == Requirement::kAllocation ? find_trial() : nullptr) {
    read(std::move(trial));
    return reactor;
  }
  post(context_.pools.ingest, reactor,
       [this, call, reactor, read, find_trial, path, credentials, required, arrived = mono_now()] {
         if (call->IsCancelled()) return reactor->Finish(grpc::Status::CANCELLED);
         if (mono_now() - arrived > kQueuePatience) return reactor->Finish(to_grpc(busy()));
         Status known;
         if (required == Requirement::kAgent) {
           auto agent = authorize_agent(peer_of(*call), context_.pool);
           if (agent) return read(nullptr, std::move(*agent));
           known = tl::unexpected(agent.error());
         } else {
           const auto caller = authenticate(path, credentials, *context_.sessions);
           if (caller) return read(find_trial());
           known = tl::unexpected(caller.error());
         }
         context_.calls->took(path, mono_now() - arrived, false);
         reactor->Finish(to_grpc(known));
       });
  return reactor;
}

}  // namespace det::api
