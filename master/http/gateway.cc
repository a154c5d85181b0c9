// Calls of the gateway. Each is an object that owns itself until gRPC has finished with it.
#include "master/http/gateway.h"

#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/client_callback.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>

#include "common/archive/gzip.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/client/grpc_keepalive.h"
#include "det/status.pb.h"
#include "det/v1/auth.pb.h"
#include "det/v1/common.pb.h"
#include "master/http/calls.h"
#include "master/http/not_offered.h"
#include "master/http/routes.h"
#include "master/http/transcode.h"

namespace det::http {
namespace {

namespace pb = google::protobuf;

constexpr std::string_view kCodeArchivePaths[] = {"/api/v1/experiments", "/api/v1/commands"};
constexpr std::string_view kLogin = "det.v1.AuthService.Login";
constexpr std::string_view kLogout = "det.v1.AuthService.Logout";
// Smaller replies are sent as they are: they fit into one packet anyway.
constexpr std::size_t kCompressFrom = 1024;
// Larger replies are archives, which are compressed already.
constexpr std::size_t kCompressUpTo = 4 << 20;
// The fastest level: replies are compressed for one reader.
constexpr int kCompression = 1;
// Deadline of unary calls.
constexpr auto kCallTime = std::chrono::seconds(120);

grpc::ByteBuffer to_buffer(const pb::Message& message) {
  grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool from_buffer(grpc::ByteBuffer& buffer, pb::Message& message) {
  grpc::ProtoBufferReader reader(&buffer);
  return reader.status().ok() && message.ParseFromZeroCopyStream(&reader);
}

Error to_error(const grpc::Status& status) {
  Error error{static_cast<Code>(status.error_code()), status.error_message(), {}};
  google::rpc::Status details;
  // Problems travel as a google.rpc.Status in the trailer.
  if (status.error_details().empty() || !details.ParseFromString(status.error_details())) return error;
  for (const pb::Any& any : details.details()) {
    v1::Problems problems;
    if (!any.UnpackTo(&problems)) continue;
    for (const v1::Problem& p : problems.problems()) {
      error.problems.push_back({p.code(), p.path(), p.message(), p.file(), p.line(), p.column()});
    }
  }
  return error;
}

std::string bearer(const Request& request) {
  // The header takes precedence over the cookie.
  const std::string_view header = request.header("authorization");
  if (!header.empty()) return std::string(header);
  const std::string_view cookie = request.cookie("auth");
  return cookie.empty() ? "" : "Bearer " + std::string(cookie);
}

/// gRPC metadata accepts printable ASCII only.
bool is_plain(std::string_view text) {
  for (const unsigned char c : text) {
    if (c < 0x20 || c > 0x7e) return false;
  }
  return true;
}

void fill_context(const Request& request, grpc::ClientContext& context) {
  if (const std::string token = bearer(request); !token.empty() && is_plain(token)) {
    context.AddMetadata("authorization", token);
  }
  if (const std::string_view token = request.header("grpc-metadata-x-allocation-token");
      !token.empty() && is_plain(token)) {
    context.AddMetadata("x-allocation-token", std::string(token));
  }
  // The server trusts this address because only the gateway reaches it over this channel.
  context.AddMetadata("x-det-peer", request.peer);
}

/// CSRF check. Browsers attach the session cookie to cross-site requests, but only our own pages can add
/// X-Requested-With or have our origin.
Status check_forgery(const Request& request) {
  // Requests with an explicit token are not forgeries: a browser never adds one by itself.
  const bool changes = request.method != "GET" && request.method != "HEAD";
  if (!changes || !request.header("authorization").empty() || request.cookie("auth").empty()) return {};
  if (!request.header("x-requested-with").empty()) return {};
  const std::string_view origin = request.header("origin");
  const std::size_t scheme = origin.find("://");
  if (scheme != origin.npos && origin.substr(scheme + 3) == request.header("host")) return {};
  return fail(Code::kPermissionDenied, "a change with the session cookie needs the header X-Requested-With");
}

Json error_json(const Error& error) {
  Json details = Json::array();
  for (const Problem& p : error.problems) {
    details.push_back({{"code", p.code},
                       {"path", p.path},
                       {"message", p.message},
                       {"file", p.file},
                       {"line", p.line},
                       {"column", p.column}});
  }
  const std::string text = error.problems.empty() ? error.message : fail(error.problems).value().message;
  return {{"code", static_cast<int>(error.code)},
          {"reason", std::string(code_name(error.code))},
          {"error", text},
          {"details", std::move(details)}};
}

void add_cookie(const pb::MethodDescriptor& method, const pb::Message& message, bool secure,
                Response& response) {
  const std::string flags = std::string("; Path=/; HttpOnly; SameSite=Strict") + (secure ? "; Secure" : "");
  if (method.full_name() == kLogout) {
    response.headers.emplace_back("Set-Cookie", "auth=" + flags + "; Max-Age=0");
  } else if (method.full_name() == kLogin) {
    const auto* field = message.GetDescriptor()->FindFieldByName("token");
    const std::string token = message.GetReflection()->GetString(message, field);
    response.headers.emplace_back("Set-Cookie", "auth=" + token + flags + "; Max-Age=604800");
  }
}

/// One unary call in flight.
struct Unary {
  explicit Unary(const std::shared_ptr<Calls>& calls) : ticket(calls) {}

  const Calls::Ticket ticket;
  grpc::ClientContext context;
  grpc::ByteBuffer request, reply;
  std::shared_ptr<loop::Budget::Lease> memory;  ///< of the request
  std::shared_ptr<Exchange> exchange;
  const pb::MethodDescriptor* method = nullptr;
  bool pretty = false, secure_cookie = false, gzip = false;

  void finish(const grpc::Status& status) {
    if (!status.ok()) return exchange->respond(error_response(to_error(status)));
    auto message = new_message(method->output_type());
    if (!from_buffer(reply, *message)) {
      return exchange->respond(error_response({Code::kInternal, "the answer cannot be read", {}}));
    }
    Response response{200,
                      {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
                      to_json_text(*message, pretty)};
    if (gzip && response.body.size() >= kCompressFrom && response.body.size() <= kCompressUpTo) {
      response.body = det::gzip(response.body, kCompression);
      response.headers.emplace_back("Content-Encoding", "gzip");
    }
    add_cookie(*method, *message, secure_cookie, response);
    exchange->respond(std::move(response));
  }
};

/// A unary call with a callback instead of an exchange.
template <typename Answer>
struct Asking : Unary {
  Asking(const std::shared_ptr<Calls>& calls, std::function<void(Answer)> then)
      : Unary(calls), done(std::move(then)) {}
  std::function<void(Answer)> done;
};

/// A streaming call that copies its messages into chunks of the reply body. Backpressure: the next message is
/// read only after the last chunk was handed to the kernel.
class Streaming : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                  public std::enable_shared_from_this<Streaming> {
 public:
  using ToPiece = std::function<Result<std::string>(const pb::Message&)>;

  Streaming(const std::shared_ptr<Calls>& calls, const pb::MethodDescriptor& method,
            const grpc::ByteBuffer& request, Response head, ToPiece to_piece, bool errors_inline,
            std::shared_ptr<Exchange> exchange)
      : ticket_(calls),
        method_(method),
        request_(request),
        head_(std::move(head)),
        to_piece_(std::move(to_piece)),
        errors_inline_(errors_inline),
        exchange_(std::move(exchange)) {}

  grpc::ClientContext& context() { return context_; }

  void run(grpc::GenericStub& stub) {
    self_ = shared_from_this();
    stub.PrepareBidiStreamingCall(&context_, rpc_path(method_), {}, this);
    // Reads are started from the connection's thread. The hold delays OnDone until the last of them.
    AddHold();
    StartWriteLast(&request_, {});
    StartRead(&reply_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return RemoveHold();
    auto message = new_message(method_.output_type());
    auto piece = from_buffer(reply_, *message)
                     ? to_piece_(*message)
                     : Result<std::string>(fail(Code::kInternal, "unreadable answer"));
    if (!piece) {
      context_.TryCancel();
      return RemoveHold();
    }
    begin();
    exchange_->write(std::move(*piece), [self = shared_from_this()](bool sent) {
      if (sent) return self->StartRead(&self->reply_);
      self->context_.TryCancel();
      self->RemoveHold();
    });
  }

  void OnReadInitialMetadataDone(bool ok) override {
    // A service that may be quiet for long sends this metadata early, so that the client gets its header.
    if (ok && context_.GetServerInitialMetadata().contains("x-det-open")) begin();
  }

  void OnDone(const grpc::Status& status) override {
    if (!status.ok() && !begun_) {
      exchange_->respond(error_response(to_error(status)));
    } else if (status.ok() || errors_inline_) {
      begin();
      if (!status.ok()) exchange_->write(error_line(to_error(status)), [](bool) {});
      exchange_->end();
    }
    // Otherwise drop the exchange: the truncated body shows the client that the download is incomplete.
    exchange_.reset();
    self_.reset();
  }

 private:
  /// Begins the reply once. The first message may arrive while the initial metadata is handled on another
  /// thread: it must not be written before the header.
  void begin() {
    std::call_once(beginning_, [this] {
      begun_ = true;
      exchange_->begin(std::move(head_), [weak = weak_from_this()] {
        if (auto self = weak.lock()) self->context_.TryCancel();
      });
    });
  }

  static std::string error_line(const Error& error) {
    return dump_json(Json{{"error",
                           {{"grpcCode", static_cast<int>(error.code)},
                            {"httpCode", http_status(error.code)},
                            {"message", error.message},
                            {"httpStatus", std::string(status_text(http_status(error.code)))},
                            {"details", Json::array()}}}}) +
           "\n";
  }

  const Calls::Ticket ticket_;
  const pb::MethodDescriptor& method_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, reply_;
  Response head_;
  ToPiece to_piece_;
  const bool errors_inline_;
  std::shared_ptr<Exchange> exchange_;
  std::once_flag beginning_;
  bool begun_ = false;
  std::shared_ptr<Streaming> self_;
};

}  // namespace

Response error_response(const Error& error) {
  Response response{http_status(error.code), {{"Content-Type", "application/json"}}, ""};
  response.headers.emplace_back("Cache-Control", "no-store");
  if (error.code == Code::kUnauthenticated) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  response.body = dump_json(Json{{"error", error_json(error)}}) + "\n";
  return response;
}

namespace {

/// Reply to a request without a route.
Response no_route(const std::string& method, const std::string& path, const Match& match) {
  if (const NotOffered* missing = find_not_offered(method, path))
    return error_response({Code::kUnimplemented, "not offered: " + std::string(missing->why), {}});
  if (match.allowed.empty()) return error_response({Code::kNotFound, "no such path: " + make_utf8(path), {}});
  // The path exists, but not with this method.
  Response response = error_response({Code::kUnimplemented, method + " is not taken here", {}});
  response.status = 405;
  response.headers.emplace_back("Allow", join(match.allowed, ", "));
  return response;
}

}  // namespace

/// State shared by all calls.
struct Gateway::Parts {
  grpc::GenericStub stub;
  Routes routes;
  loop::Workers& workers;
  Admit admit;
  GatewayLimits limits;
  std::shared_ptr<Calls> calls = std::make_shared<Calls>();

  void unary(const Match& match, const Request& request, std::unique_ptr<pb::Message> message,
             std::shared_ptr<Exchange> exchange) {
    auto call = std::make_shared<Unary>(calls);
    call->method = match.route->method;
    call->pretty = has_flag(request, "pretty");
    call->secure_cookie = limits.secure_cookie;
    call->gzip = request.accepts_gzip();
    call->exchange = std::move(exchange);
    call->memory = request.memory;
    call->request = to_buffer(*message);
    // An archive is in memory once from here on.
    message.reset();
    call->context.set_deadline(
        std::chrono::system_clock::time_point(std::chrono::microseconds(wall_now().micros)) + kCallTime);
    fill_context(request, call->context);
    stub.UnaryCall(&call->context, rpc_path(*call->method), {}, &call->request, &call->reply,
                   [call, this](const grpc::Status& status) {
                     // Convert on a worker; when the workers have stopped, on this gRPC thread.
                     if (!workers.post([call, status] { call->finish(status); })) call->finish(status);
                   });
  }

  void stream(const Match& match, const Request& request, const pb::Message& message,
              std::shared_ptr<Exchange> exchange) {
    const bool pretty = has_flag(request, "pretty");
    Response head{200, {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}}, ""};
    auto call = std::make_shared<Streaming>(
        calls, *match.route->method, to_buffer(message), std::move(head),
        [pretty](const pb::Message& answer) -> Result<std::string> {
          return "{\"result\":" + to_json_text(answer, pretty) + "}\n";
        },
        true, std::move(exchange));
    fill_context(request, call->context());
    call->run(stub);
  }

  void serve(Request& request, const std::shared_ptr<Exchange>& exchange) {
    const Match match = routes.find(request.method, request.path);
    if (!match.route) return exchange->respond(no_route(request.method, request.path, match));
    if (auto allowed = check_forgery(request); !allowed)
      return exchange->respond(error_response(allowed.error()));
    auto message = to_message(match, request, limits.json_depth);
    if (!message) return exchange->respond(error_response(message.error()));
    std::string().swap(request.body);
    if (match.route->method->server_streaming()) {
      stream(match, request, **message, exchange);
    } else {
      unary(match, request, std::move(*message), exchange);
    }
  }
};

Gateway::Gateway(std::shared_ptr<grpc::Channel> channel,
                 const std::vector<const pb::ServiceDescriptor*>& services, loop::Workers& workers,
                 Admit admit, const GatewayLimits& limits)
    : parts_(new Parts{grpc::GenericStub(std::move(channel)), Routes(services), workers, std::move(admit),
                       limits}) {
  // A call may be the last owner of the channel, and release it on a callback thread.
  keep_callback_threads();
}

Gateway::~Gateway() = default;

bool Gateway::drain(Duration patience) { return parts_->calls->drain(patience); }

void Gateway::admit(const Request& request, const std::string& path, std::int64_t bytes,
                    std::function<void(Admission)> done) const {
  const GatewayLimits& limits = parts_->limits;
  const Match match = parts_->routes.find(request.method, path);
  // The site serves a few paths of /api/ itself, all with GET.
  if (!match.route && request.method != "GET" && path.starts_with("/api/"))
    return done({no_route(request.method, path, match), 0, nullptr});
  if (!match.route) return done({std::nullopt, limits.small_body_bytes, nullptr});
  const bool archive = request.method == "POST" &&
                       std::find(std::begin(kCodeArchivePaths), std::end(kCodeArchivePaths), path) !=
                           std::end(kCodeArchivePaths);
  const std::int64_t known = archive ? limits.archive_body_bytes : limits.body_bytes;
  const Entrance entrance{.method = rpc_path(*match.route->method),
                          .authorization = bearer(request),
                          .allocation_token = std::string(request.header("grpc-metadata-x-allocation-token")),
                          .address = request.peer,
                          .large = bytes > limits.small_body_bytes};
  parts_->admit(entrance, [known, small = limits.small_body_bytes,
                           done = std::move(done)](Result<std::shared_ptr<loop::Budget::Lease>> admitted) {
    if (!admitted) return done({error_response(admitted.error()), 0, nullptr});
    const std::int64_t limit = *admitted ? known : small;
    done({std::nullopt, limit, std::move(*admitted)});
  });
}

void Gateway::handle(Request request, const std::shared_ptr<Exchange>& exchange) const {
  auto shared = std::make_shared<Request>(std::move(request));
  if (!parts_->workers.try_post(
          [parts = parts_.get(), shared, exchange] { parts->serve(*shared, exchange); })) {
    exchange->respond(error_response({Code::kUnavailable, "the master is busy; try again in a moment", {}}));
  }
}

void Gateway::check_session(const Request& request, std::function<void(Status)> done) const {
  const auto* service = pb::DescriptorPool::generated_pool()->FindServiceByName("det.v1.AuthService");
  const auto* method = service->FindMethodByName("CurrentUser");
  auto call = std::make_shared<Asking<Status>>(parts_->calls, std::move(done));
  call->request = to_buffer(*new_message(method->input_type()));
  fill_context(request, call->context);
  parts_->stub.UnaryCall(&call->context, rpc_path(*method), {}, &call->request, &call->reply,
                         [call](const grpc::Status& status) {
                           if (status.ok()) return call->done({});
                           call->done(tl::unexpected(to_error(status)));
                         });
}

void Gateway::visible(const Request& request, const Subjects& asked,
                      std::function<void(Result<Visible>)> done) const {
  v1::VisibleExperimentsRequest message;
  message.mutable_ids()->Add(asked.experiments.begin(), asked.experiments.end());
  for (const std::string& task : asked.tasks) message.add_task_ids(task);
  auto call = std::make_shared<Asking<Result<Visible>>>(parts_->calls, std::move(done));
  call->request = to_buffer(message);
  fill_context(request, call->context);
  parts_->stub.UnaryCall(&call->context, "/det.v1.AuthService/VisibleExperiments", {}, &call->request,
                         &call->reply, [call](const grpc::Status& status) {
                           if (!status.ok()) return call->done(tl::unexpected(to_error(status)));
                           v1::VisibleExperimentsResponse response;
                           if (!from_buffer(call->reply, response))
                             return call->done(fail(Code::kInternal, "the answer cannot be read"));
                           if (response.all()) return call->done(Visible());
                           call->done(Subjects{{response.ids().begin(), response.ids().end()},
                                               {response.task_ids().begin(), response.task_ids().end()}});
                         });
}

void Gateway::download(const Request& request, const std::string& rpc, const Fields& fields, Response head,
                       std::shared_ptr<Exchange> exchange) const {
  const auto* method = pb::DescriptorPool::generated_pool()->FindMethodByName(rpc);
  auto message = new_message(method->input_type());
  for (const auto& [name, value] : fields) {
    const pb::FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING) {
      message->GetReflection()->SetString(message.get(), field, value);
    } else {
      message->GetReflection()->SetInt32(message.get(), field,
                                         static_cast<std::int32_t>(std::atol(value.c_str())));
    }
  }
  auto call = std::make_shared<Streaming>(
      parts_->calls, *method, to_buffer(*message), std::move(head),
      [](const pb::Message& answer) -> Result<std::string> {
        return answer.GetReflection()->GetString(answer, answer.GetDescriptor()->FindFieldByName("chunk"));
      },
      false, std::move(exchange));
  fill_context(request, call->context());
  call->run(parts_->stub);
}

}  // namespace det::http
