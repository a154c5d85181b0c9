// A proxied request: opened → header and body sent → reply streamed, or upgraded → ended.
#include "master/http/proxy.h"

#include <grpcpp/client_context.h>

#include <optional>
#include <utility>

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/client/calls.h"
#include "det/v1/task.methods.h"
#include "master/http/websocket.h"

namespace det::http {
namespace {

constexpr std::size_t kMaxMessage = 64 << 10;
constexpr std::int64_t kSmallBody = 64 << 10, kMaxBody = 64LL << 20;
constexpr std::size_t kMaxTicketsOfUser = 200;
constexpr Duration kTicketTime = std::chrono::hours(12);
constexpr const char* kConnect = "/det.v1.TaskService/Connect";

/// One request. Runs on the HTTP thread, to which gRPC's threads post. Keeps itself alive until gRPC has
/// finished with it.
class ProxiedCall : public grpc::ClientBidiReactor<v1::TunnelMessage, v1::TunnelMessage>,
                    public std::enable_shared_from_this<ProxiedCall> {
 public:
  ProxiedCall(const std::shared_ptr<Calls>& calls, const std::shared_ptr<grpc::Channel>& channel,
              Proxy::Post post, Request request, ProxyPath path, bool tls, std::shared_ptr<Exchange> exchange)
      : ticket_(calls),
        channel_(channel),
        post_(std::move(post)),
        request_(std::move(request)),
        path_(std::move(path)),
        tls_(tls),
        exchange_(std::move(exchange)),
        reader_(request_.method == "HEAD") {}

  /// `authorization`: "Bearer TOKEN"; "" to reach the SSH server of a shell without a login.
  void run(const std::string& authorization) {
    self_ = shared_from_this();
    if (!authorization.empty()) context_.AddMetadata("authorization", authorization);
    context_.AddMetadata("x-det-peer", request_.peer);
    v1::TunnelTarget* target = out_.mutable_target();
    target->set_task_id(path_.task);
    target->set_port(path_.port);
    const auto method = authorization.empty() ? v1::TaskService::ConnectSsh : v1::TaskService::Connect;
    wire::bind(channel_, method, context_, this);
    // Operations start on the HTTP thread; the hold keeps the call from completing in between.
    AddHold();
    StartWrite(&out_);
    StartRead(&in_);
    StartCall();
  }

 private:
  void OnReadDone(bool ok) override {
    post_([self = shared_from_this(), ok] { ok ? self->received() : self->release(); });
  }
  void OnWriteDone(bool ok) override {
    post_([self = shared_from_this(), ok] {
      self->writing_ = false;
      if (ok) self->send_more();
    });
  }
  void OnDone(const grpc::Status& status) override {
    post_([self = shared_from_this(), status] { self->done(status); });
  }

  void received() {
    if (in_.has_opened()) return opened(in_.opened());
    if (in_.has_data() && upgraded_) return write(frames_ ? data_frame(in_.data()) : in_.data());
    if (in_.has_data()) return reply(in_.data());
    // The task has closed the connection.
    if (const Status whole = upgraded_ ? Status() : reader_.close(); !whole) return break_off(whole.error());
    end_reply();
  }

  void opened(const v1::TunnelOpened& port) {
    port_ = port;
    if (port_.tcp()) return open_tcp();
    outgoing_ = forwarded_head(request_, path_, port_.port(), port_.strip_prefix(), tls_) + request_.body;
    std::string().swap(request_.body);
    send_more();
    StartRead(&in_);
  }

  /// Sends the next piece of the request, or of an upgraded connection.
  void send_more() {
    // The end of the first write may be reported after the reply to it.
    if (released_ || writing_) return;
    if (sent_ < outgoing_.size()) {
      out_.set_data(outgoing_.substr(sent_, kMaxMessage));
      sent_ += out_.data().size();
      writing_ = true;
      return StartWrite(&out_);
    }
    sent_ = 0;
    std::string().swap(outgoing_);
    request_.memory.reset();
    if (const auto resume = std::exchange(resume_, nullptr)) resume();
  }

  /// Handles bytes of a reply.
  void reply(const std::string& bytes) {
    std::string body;
    if (const Status read = reader_.feed(bytes, body); !read) return break_off(read.error());
    if (const Response* const head = begun_ ? nullptr : reader_.head()) {
      if (head->status == 101) return upgrade(*head);
      begin(*head, body.empty() && reader_.done());
      if (released_) return;
    }
    write(std::move(body));
  }

  /// Starts the reply. `bodiless`: it is complete with its header.
  void begin(Response head, bool bodiless) {
    confine_reply(head, path_, port_.port(), port_.strip_prefix());
    begun_ = true;
    if (bodiless) {
      exchange_->respond(std::move(head));
      return stop();
    }
    exchange_->begin(std::move(head), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->context_.TryCancel();
    });
  }

  /// Writes bytes to the client, then reads the next ones of the task.
  void write(std::string bytes) {
    if (bytes.empty()) return next_read();
    exchange_->write(std::move(bytes),
                     [self = shared_from_this()](bool sent) { sent ? self->next_read() : self->stop(); });
  }

  void next_read() {
    if (released_) return;
    if (!upgraded_ && reader_.done()) return end_reply();
    StartRead(&in_);
  }

  void upgrade(Response head) {
    if (!is_websocket(request_))
      return break_off({Code::kUnavailable, "the task changed the protocol of a plain request", {}});
    confine_reply(head, path_, port_.port(), port_.strip_prefix());
    upgrade_client(std::move(head));
    write(reader_.take_rest());
  }

  /// Serves a port with proxy_tcp: the data of the client's frames are the bytes of the connection.
  void open_tcp() {
    const std::string_view key = request_.header("sec-websocket-key");
    if (!is_websocket(request_) || key.empty()) {
      const std::string port = "port " + std::to_string(port_.port()) +
                               " has proxy_tcp; use `det task port-forward` in place of HTTP";
      return break_off(
          {Code::kFailedPrecondition,
           port_.port() == 0 ? "a shell serves ssh; use `det shell open` in place of HTTP" : port,
           {}});
    }
    frames_.emplace();
    upgrade_client({101, {{"Sec-WebSocket-Accept", websocket_accept(key)}}, ""});
    StartRead(&in_);
  }

  void upgrade_client(Response head) {
    begun_ = upgraded_ = true;
    exchange_->upgrade(
        std::move(head),
        [weak = weak_from_this()](std::string bytes, std::function<void()> resume) {
          if (const auto self = weak.lock(); self && !self->released_)
            self->take(std::move(bytes), std::move(resume));
        },
        [weak = weak_from_this()] {
          if (const auto self = weak.lock()) self->context_.TryCancel();
        });
  }

  /// Handles bytes of the client of an upgraded connection.
  void take(std::string bytes, std::function<void()> resume) {
    resume_ = std::move(resume);
    outgoing_ = std::move(bytes);
    if (frames_) {
      auto frames = frames_->feed(outgoing_);
      if (!frames || frames->closed) {
        exchange_->write(close_frame(), [](bool) {});
        exchange_->end();
        return context_.TryCancel();
      }
      if (!frames->replies.empty()) exchange_->write(std::move(frames->replies), [](bool) {});
      outgoing_ = std::move(frames->data);
    }
    send_more();
  }

  /// Completes the reply.
  void end_reply() {
    if (frames_) exchange_->write(close_frame(), [](bool) {});
    if (begun_) exchange_->end();
    stop();
  }
  /// Answers with an error; a reply that has begun is broken off, so that its client sees that it is
  /// incomplete.
  void break_off(const Error& error) {
    if (!std::exchange(begun_, true)) exchange_->respond(error_response(error));
    stop();
  }
  /// Closes the tunnel. No read is in flight.
  void stop() {
    context_.TryCancel();
    release();
  }
  /// No operation starts after this.
  void release() {
    if (!std::exchange(released_, true)) RemoveHold();
  }

  void done(const grpc::Status& status) {
    if (!begun_) {
      Error error{static_cast<Code>(status.error_code()), status.error_message(), {}};
      if (status.ok() || error.code == Code::kCancelled)
        error = {Code::kUnavailable, "the connection to the task broke", {}};
      exchange_->respond(error_response(error));
    }
    exchange_.reset();
    self_.reset();
  }

  const Calls::Ticket ticket_;
  const std::shared_ptr<grpc::Channel> channel_;
  const Proxy::Post post_;
  grpc::ClientContext context_;
  Request request_;
  const ProxyPath path_;
  const bool tls_;
  std::shared_ptr<Exchange> exchange_;
  ReplyReader reader_;
  std::optional<FrameReader> frames_;  ///< set for a port with proxy_tcp
  v1::TunnelOpened port_;
  v1::TunnelMessage in_, out_;
  std::string outgoing_;          ///< bytes for the task
  std::size_t sent_ = 0;          ///< of outgoing_
  std::function<void()> resume_;  ///< continues to read from the client of an upgraded connection
  bool begun_ = false;            ///< a reply has been started
  bool upgraded_ = false, released_ = false, writing_ = true;
  std::shared_ptr<ProxiedCall> self_;
};

/// True if the browser shows the reply as a page.
bool is_navigation(const Request& request) {
  if (request.method != "GET" || is_websocket(request)) return false;
  const std::string_view mode = request.header("sec-fetch-mode");
  return mode.empty() ? request.header("accept").find("text/html") != std::string_view::npos
                      : mode == "navigate";
}

/// Whether a page of another origin may have sent a request with the session cookie.
bool is_forgery(const Request& request) {
  if (!request.header("x-requested-with").empty()) return false;
  const std::string_view origin = request.header("origin");
  const std::size_t scheme = origin.find("://");
  const bool own = scheme != origin.npos && origin.substr(scheme + 3) == request.header("host");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return !own && (!reads || !origin.empty());
}

/// Whether a page of the master's own origin loads a reply as part of itself. Its policy trusts this origin,
/// so it must not get scripts of a task from here. Browsers send the header over TLS and to localhost.
bool is_part_of_own_page(const Request& request) {
  return request.header("sec-fetch-site") == "same-origin" &&
         request.header("sec-fetch-mode") != "navigate" && !is_websocket(request);
}

Response redirection(const std::string& location) {
  return {
      302, {{"Location", location}, {"Cache-Control", "no-store"}, {"Referrer-Policy", "no-referrer"}}, ""};
}

}  // namespace

Proxy::Proxy(std::shared_ptr<grpc::Channel> channel, Admit admit, Post post, bool tls, bool shell_ssh)
    : channel_(std::move(channel)),
      admit_(std::move(admit)),
      post_(std::move(post)),
      tls_(tls),
      shell_ssh_(shell_ssh) {}

std::string Proxy::authorization_of(const Request& request, const ProxyPath& path) const {
  if (!path.ticket.empty()) {
    const auto ticket = tickets_.find(path.ticket);
    const bool valid = ticket != tickets_.end() && ticket->second.service == path.service &&
                       mono_now() < ticket->second.expires;
    return valid ? ticket->second.authorization : "";
  }
  if (const std::string_view header = request.header("authorization"); !header.empty())
    return std::string(header);
  const std::string_view cookie = request.cookie("auth");
  return cookie.empty() ? "" : "Bearer " + std::string(cookie);
}

std::string Proxy::issue_ticket(const std::string& service, const std::string& authorization,
                                std::size_t owner) {
  std::string ticket = random_token();
  tickets_[ticket] = {service, authorization, mono_now() + kTicketTime};
  std::deque<std::string>& own = oldest_tickets_[owner];
  own.push_back(ticket);
  for (; own.size() > kMaxTicketsOfUser; own.pop_front()) tickets_.erase(own.front());
  return ticket;
}

void Proxy::open_page(const ProxyPath& path, const std::string& authorization, const Request& request,
                      const std::shared_ptr<Exchange>& exchange) {
  using Admitted = Result<std::shared_ptr<loop::Budget::Lease>>;
  const Entrance entrance{.method = kConnect,
                          .authorization = authorization,
                          .allocation_token = "",
                          .address = request.peer,
                          .large = false};
  const std::string query = request.query.empty() ? "" : "?" + request.query;
  const auto open = [this, path, authorization, query, exchange](const Admitted& admitted) {
    if (!admitted) return exchange->respond(error_response(admitted.error()));
    ProxyPath page = path;
    page.ticket = issue_ticket(page.service, authorization, *admitted ? (*admitted)->cell() : 0);
    exchange->respond(redirection(page.prefix() + (page.rest.empty() ? "/" : page.rest) + query));
  };
  // Counted as a call: the proxy must outlive the answer.
  const auto call = std::make_shared<Calls::Ticket>(calls_);
  admit_(entrance, [post = post_, call, open](const Admitted& admitted) {
    post([call, open, admitted] { open(admitted); });
  });
}

void Proxy::admit(const Request& request, std::int64_t bytes, std::function<void(Admission)> done) {
  const auto path = parse_proxy_path(request.path);
  if (!path) return done({error_response(path.error()), 0, nullptr});
  const Entrance entrance{.method = kConnect,
                          .authorization = authorization_of(request, *path),
                          .allocation_token = "",
                          .address = request.peer,
                          .large = bytes > kSmallBody};
  admit_(entrance, [done = std::move(done)](Result<std::shared_ptr<loop::Budget::Lease>> admitted) {
    if (!admitted) return done({error_response(admitted.error()), 0, nullptr});
    const std::int64_t limit = *admitted ? kMaxBody : kSmallBody;
    done({std::nullopt, limit, std::move(*admitted)});
  });
}

void Proxy::handle(Request request, const std::shared_ptr<Exchange>& exchange) {
  auto path = parse_proxy_path(request.path);
  if (!path) return exchange->respond(error_response(path.error()));
  const std::string query = request.query.empty() ? "" : "?" + request.query;
  const bool ticket = !path->ticket.empty();
  // A preflight carries no credentials, and none are needed to answer it.
  if (ticket && request.method == "OPTIONS" && !request.header("access-control-request-method").empty()) {
    return exchange->respond(
        {204,
         {{"Access-Control-Allow-Origin", "*"},
          {"Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"},
          {"Access-Control-Allow-Headers", "*"},
          {"Access-Control-Max-Age", "600"}},
         ""});
  }
  const std::string authorization = authorization_of(request, *path);
  // SSH authenticates the sender, by the key of the shell. All other tasks refuse it.
  const bool ssh = shell_ssh_ && authorization.empty() && !ticket && path->port == 0 && is_websocket(request);
  if (authorization.empty() && !ssh) {
    // The page may have been opened before the master restarted, or long ago: a new login or ticket helps.
    if (ticket && is_navigation(request))
      return exchange->respond(redirection("/proxy/" + path->service + path->rest + query));
    return exchange->respond(error_response({Code::kUnauthenticated, "not logged in", {}}));
  }
  for (const char c : authorization) {
    if (c < 0x20 || c > 0x7e)
      return exchange->respond(error_response({Code::kUnauthenticated, "malformed credentials", {}}));
  }
  const bool by_cookie = !ticket && request.header("authorization").empty();
  if ((ticket || by_cookie) && is_part_of_own_page(request))
    return exchange->respond(error_response(
        {Code::kPermissionDenied, "files of a task are refused as parts of a page of the master", {}}));
  if (by_cookie && is_forgery(request))
    return exchange->respond(error_response(
        {Code::kPermissionDenied, "a request of another page with the session cookie is refused", {}}));
  if (by_cookie && is_navigation(request)) return open_page(*path, authorization, request, exchange);
  if (path->rest.empty()) return exchange->respond(redirection(path->prefix() + "/" + query));
  std::make_shared<ProxiedCall>(calls_, channel_, post_, std::move(request), std::move(*path), tls_, exchange)
      ->run(authorization);
}

}  // namespace det::http
