#include "master/api/service.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <algorithm>
#include <cstdlib>

#include "common/base/log.h"

namespace det::api {
namespace {

namespace pb = google::protobuf;

[[noreturn]] void end(const std::string& problem) {
  log::error("internal error: " + problem);
  std::abort();
}

const pb::ServiceDescriptor& find_service(const char* name) {
  const pb::ServiceDescriptor* found = pb::DescriptorPool::generated_pool()->FindServiceByName(name);
  if (!found) end(std::string("no service ") + name);
  return *found;
}

bool parse(const grpc::ByteBuffer& bytes, pb::Message* message) {
  grpc::ByteBuffer shared(bytes);  // the reader consumes its buffer; the slices are not copied
  grpc::ProtoBufferReader reader(&shared);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
}

Error unreadable(const pb::Message& request) {
  return {Code::kInvalidArgument,
          "the request is not a " + request.GetDescriptor()->full_name() + "; text must be UTF-8",
          {}};
}

grpc::Status serialize(const pb::Message& message, grpc::ByteBuffer* out) {
  bool own = false;
  return grpc::GenericSerialize<grpc::ProtoBufferWriter, pb::Message>(message, out, &own);
}

}  // namespace

struct Service::Unary {
  const char* path;
  const pb::Message& request;  ///< prototypes
  const pb::Message& response;
  loop::Workers& workers;
  Handler handler;
};

Service::Service(const Context& context, const char* name)
    : context_(context), descriptor_(find_service(name)) {}

Service::~Service() = default;

std::vector<std::string> Service::missing() const {
  std::vector<std::string> names;
  for (int i = 0; i < descriptor_.method_count(); ++i) {
    const std::string path = "/" + descriptor_.full_name() + "/" + descriptor_.method(i)->name();
    const bool served =
        std::any_of(paths_.begin(), paths_.end(), [&](const auto& known) { return *known == path; });
    if (!served) names.push_back(path);
  }
  return names;
}

const char* Service::add(const char* method, const pb::Descriptor* request, const pb::Descriptor* response,
                         grpc::internal::RpcMethod::RpcType type, grpc::internal::MethodHandler* handler) {
  const pb::MethodDescriptor* const known = descriptor_.FindMethodByName(method);
  if (!known || known->input_type() != request || known->output_type() != response)
    end(descriptor_.full_name() + "/" + method + " is not what its .proto file says");
  paths_.push_back(std::make_unique<const std::string>("/" + descriptor_.full_name() + "/" + method));
  const char* const path = paths_.back()->c_str();
  AddMethod(new grpc::internal::RpcServiceMethod(path, type, nullptr));
  MarkMethodCallback(static_cast<int>(paths_.size()) - 1, handler);
  return path;
}

void Service::add_unary(const char* method, const pb::Message& request, const pb::Message& response,
                        loop::Workers& workers, Handler handler) {
  Unary* const entry = new Unary{nullptr, request, response, workers, std::move(handler)};
  unaries_.emplace_back(entry);
  auto* const callback = new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
      [this, entry](grpc::CallbackServerContext* call, const grpc::ByteBuffer* in, grpc::ByteBuffer* out) {
        return serve(*entry, call, *in, out);
      });
  entry->path = add(method, request.GetDescriptor(), response.GetDescriptor(),
                    grpc::internal::RpcMethod::NORMAL_RPC, callback);
}

loop::Workers& Service::default_pool(const char* method) const {
  const Access* const entry = access("/" + descriptor_.full_name() + "/" + method);
  if (!entry) end(descriptor_.full_name() + "/" + method + " has no entry in the table of access");
  if (entry->requirement == Requirement::kAllocation || entry->requirement == Requirement::kAgent)
    return context_.pools.ingest;
  return is_change(*entry) ? context_.pools.steer : context_.pools.read;
}

void Service::post(loop::Workers& workers, grpc::ServerUnaryReactor* reactor, std::function<void()> work) {
  if (!workers.try_post(std::move(work))) reactor->Finish(to_grpc(busy()));
}

const std::string& Service::name() const { return descriptor_.full_name(); }

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
  const Status done = body(*caller);
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
         if (caller && !parse(in, request.get())) {
           context_.calls->took(method.path, mono_now() - begun, false);
           return reactor->Finish(to_grpc(unreadable(*request)));
         }
         const std::unique_ptr<pb::Message> response(method.response.New());
         const Status done =
             perform(method.path, caller, *request, response.get(), begun,
                     [&](const Caller& known) { return method.handler(known, *request, response.get()); });
         reactor->Finish(done ? serialize(*response, out) : to_grpc(done));
       });
  return reactor;
}

grpc::ServerUnaryReactor* Service::defer(const std::string& path, grpc::CallbackServerContext* call,
                                         const grpc::ByteBuffer& bytes, pb::Message* request,
                                         std::function<void(const Deferred&)> handler) {
  const Deferred begun{call, call->DefaultReactor()};
  const auto read = [begun, &bytes, request, handler = std::move(handler)] {
    if (!parse(bytes, request)) return begun.reactor->Finish(to_grpc(unreadable(*request)));
    handler(begun);
  };
  const Requirement required = access(path)->requirement;
  const Credentials credentials = read_credentials(*call);
  // The common case, a report of a process that has reported before, needs no worker.
  const bool confirmed = required == Requirement::kAllocation && !credentials.allocation_token.empty() &&
                         context_.allocation_tokens->is_confirmed(token_hash(credentials.allocation_token));
  if (confirmed || required == Requirement::kAgent) {
    read();
    return begun.reactor;
  }
  post(context_.pools.ingest, begun.reactor, [this, begun, read, path, credentials, arrived = mono_now()] {
    if (begun.context->IsCancelled()) return begun.reactor->Finish(grpc::Status::CANCELLED);
    if (mono_now() - arrived > kQueuePatience) return begun.reactor->Finish(to_grpc(busy()));
    const auto caller = authenticate(path, credentials, *context_.sessions);
    if (caller) return read();
    context_.calls->took(path, mono_now() - arrived, false);
    begun.reactor->Finish(to_grpc(caller.error()));
  });
  return begun.reactor;
}

}  // namespace det::api
