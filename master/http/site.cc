// Routing of paths.
#include "master/http/site.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <thread>

#include "common/base/log.h"
#include "master/http/acceptor.h"
#include "master/http/events.h"
#include "master/http/old_routes.h"
#include "master/http/openapi.h"
#include "master/http/proxy.h"
#include "master/http/static_files.h"

namespace det::http {
namespace {

namespace asio = boost::asio;

constexpr auto kDrainPatience = std::chrono::seconds(2);
const std::string kTaskLogs = "/api/v1/task/logs";

/// Decorator that adds the security headers to every reply.
class Secured : public Exchange {
 public:
  /// `last_event`: number of the last event before the request, for a reply with data; 0: none.
  Secured(std::shared_ptr<Exchange> inner, bool tls, std::uint64_t last_event)
      : inner_(std::move(inner)), tls_(tls), last_event_(last_event) {}
  void respond(Response response) override {
    add_headers(response, tls_);
    // A page that subscribes to later events misses no change, unless the subscription starts behind it.
    if (last_event_ != 0 && response.status == 200)
      response.headers.emplace_back("Det-Last-Event", std::to_string(last_event_));
    inner_->respond(std::move(response));
  }
  void begin(Response head, std::function<void()> closed) override {
    add_headers(head, tls_);
    inner_->begin(std::move(head), std::move(closed));
  }
  void write(std::string piece, std::function<void(bool)> done) override {
    inner_->write(std::move(piece), std::move(done));
  }
  void end() override { inner_->end(); }

  static void add_headers(Response& response, bool tls) {
    const Headers& headers = security_headers();
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
    if (tls) response.headers.emplace_back("Strict-Transport-Security", "max-age=31536000");
  }

 private:
  std::shared_ptr<Exchange> inner_;
  const bool tls_;
  const std::uint64_t last_event_;
};

}  // namespace

struct Site::Impl {
  IdleConnections idle;  ///< outlives the connections, which end with `io`
  asio::io_context io{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work{io.get_executor()};
  std::unique_ptr<Acceptor> acceptor;
  StaticFiles files;
  HttpLimits limits;
  std::unique_ptr<Gateway> gateway;
  std::unique_ptr<Proxy> proxy;
  std::unique_ptr<EventStream> events;
  loop::Hub* hub = nullptr;
  loop::Workers* serial = nullptr;
  bool tls = false, shell_ssh = false;
  Networks proxies;
  std::string info, openapi, api_page;
  std::function<std::string()> health;
  Handler handler;
  std::thread thread;

  void admit(const Request& request, std::int64_t bytes, std::function<void(Admission)> done) {
    if (request.path.starts_with("/proxy/")) return proxy->admit(request, bytes, std::move(done));
    // As in task_logs().
    const std::string& path = request.path == "/task-logs" ? kTaskLogs : request.path;
    gateway->admit(request, path, bytes, [secure = tls, done = std::move(done)](Admission admission) {
      if (admission.refusal) Secured::add_headers(*admission.refusal, secure);
      done(std::move(admission));
    });
  }

  void handle(Request request, const std::shared_ptr<Exchange>& plain) {
    // Pages of tasks have security headers of their own.
    if (request.path.starts_with("/proxy/")) return proxy->handle(std::move(request), plain);
    const std::string& path = request.path;
    auto exchange = std::make_shared<Secured>(plain, tls, path.starts_with("/api/") ? hub->last() : 0);
    if (path == "/health" || path == "/info") {
      return exchange->respond({200,
                                {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}},
                                path == "/health" ? health() : info});
    }
    if (path == "/api/v1/api.swagger.json") {
      return exchange->respond(
          {200, {{"Content-Type", "application/json"}, {"Cache-Control", "no-cache"}}, openapi});
    }
    if (path == "/docs/rest-api" || path == "/docs/rest-api/") {
      return exchange->respond(
          {200, {{"Content-Type", "text/html; charset=utf-8"}, {"Cache-Control", "no-cache"}}, api_page});
    }
    if (const OldRoute* old = find_old_route(path)) {
      request.path = old->target;
      if (!old->extra.empty()) request.query += (request.query.empty() ? "" : "&") + std::string(old->extra);
      // The conversion reads the JSON, so the gateway must not compress it.
      std::erase_if(request.headers, [](const auto& header) { return header.first == "accept-encoding"; });
      return gateway->handle(std::move(request), converted(exchange, *old));
    }
    if (path == "/task-logs") return task_logs(std::move(request), exchange);
    if (path == "/api/v1/events") return events->handle(std::move(request), exchange);
    if (path.starts_with("/api/")) return gateway->handle(std::move(request), exchange);
    if (path.starts_with("/checkpoints/")) return download(request, exchange);
    if (path.starts_with("/trial-files/")) return trial_file(request, exchange);
    if (path == "/prom/det-state-metrics") return scrape(request, "state", exchange);
    if (path == "/metrics" || path == "/debug/prom/metrics") return scrape(request, "master", exchange);
    if (path == "/prom/det-http-sd-config") return scrape(request, "targets", exchange);
    exchange->respond(files.answer(request));
  }

  void scrape(const Request& request, const char* target, const std::shared_ptr<Exchange>& exchange) {
    if (request.method != "GET") return exchange->respond(message_response(405, "only GET here"));
    const bool json = std::string_view(target) == "targets";
    Response head{200,
                  {{"Content-Type", json ? "application/json" : "text/plain; version=0.0.4; charset=utf-8"},
                   {"Cache-Control", "no-store"}},
                  ""};
    gateway->download(request, "det.v1.PrometheusService.Scrape", {{"what", target}}, std::move(head),
                      exchange);
  }

  /// Older form of POST /api/v1/task/logs, used by the log shipper of Determined AI: the body is the bare
  /// list.
  void task_logs(Request request, const std::shared_ptr<Exchange>& exchange) {
    request.path = kTaskLogs;
    request.body = "{\"logs\":" + request.body + "}";
    gateway->handle(std::move(request), exchange);
  }

  void download(const Request& request, const std::shared_ptr<Exchange>& exchange) {
    std::string uuid;
    if (request.method != "GET") return exchange->respond(message_response(405, "only GET here"));
    // 13 is the length of "/checkpoints/". Only hex digits and dashes may reach the header below.
    if (!percent_decode(std::string_view(request.path).substr(13), uuid) || uuid.empty() ||
        uuid.size() > 64 || uuid.find_first_not_of("0123456789abcdefABCDEF-") != std::string::npos) {
      return exchange->respond(message_response(404, "no such checkpoint"));
    }
    Response head{200,
                  {{"Content-Type", "application/gzip"},
                   {"Content-Disposition", "attachment; filename=\"" + uuid + ".tar.gz\""},
                   {"Cache-Control", "no-store"}},
                  ""};
    gateway->download(request, "det.v1.CheckpointService.DownloadCheckpoint", {{"checkpoint_uuid", uuid}},
                      std::move(head), exchange);
  }

  /// GET /trial-files/TRIAL/PATH. The content is a user's: always an attachment of unspecific type, which no
  /// browser shows or runs.
  void trial_file(const Request& request, const std::shared_ptr<Exchange>& exchange) {
    if (request.method != "GET") return exchange->respond(message_response(405, "only GET here"));
    constexpr std::string_view kTrialFiles = "/trial-files/";
    const std::string_view rest = std::string_view(request.path).substr(kTrialFiles.size());
    const std::string trial(rest.substr(0, rest.find('/')));
    std::string path;
    if (trial.empty() || trial.size() > 9 || trial.find_first_not_of("0123456789") != trial.npos ||
        trial.size() == rest.size() || !percent_decode(rest.substr(trial.size() + 1), path) || path.empty()) {
      return exchange->respond(message_response(404, "no such file"));
    }
    std::string name = path.substr(path.rfind('/') + 1);
    // Only plain characters may reach the header.
    for (char& c : name) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!plain && std::string_view("._-=").find(c) == std::string_view::npos) c = '_';
    }
    Response head{200,
                  {{"Content-Type", "application/octet-stream"},
                   {"Content-Disposition", "attachment; filename=\"" + name + "\""},
                   {"Content-Security-Policy", "default-src 'none'; sandbox"},
                   {"Cache-Control", "no-store"}},
                  ""};
    gateway->download(request, "det.v1.MediaService.DownloadTrialFile", {{"trial_id", trial}, {"path", path}},
                      std::move(head), exchange);
  }
};

Site::Site(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Site::~Site() { stop(); }

Result<std::unique_ptr<Site>> Site::open(const SiteOptions& options) {
  auto impl = std::make_unique<Impl>();
  // Bind first: a port conflict is the most likely error.
  TRY_ASSIGN(impl->acceptor, Acceptor::listen(impl->io, options.address, options.port,
                                              {.connections = options.connections,
                                               .per_address = options.connections_per_address,
                                               .exempt = options.trusted_proxies},
                                              options.tls));
  impl->tls = options.tls != nullptr;
  impl->shell_ssh = options.shell_ssh;
  impl->proxies = options.trusted_proxies;
  TRY_ASSIGN(impl->files, StaticFiles::load(options.webui_dir));
  if (impl->files.empty()) log::warn("web UI not found", {{"webui_dir", options.webui_dir}});
  return std::unique_ptr<Site>(new Site(std::move(impl)));
}

int Site::port() const { return impl_->acceptor->port(); }

void Site::start(Parts parts) {
  Impl& impl = *impl_;
  impl.gateway = std::make_unique<Gateway>(parts.channel, parts.services, parts.workers, parts.admit,
                                           GatewayLimits{.secure_cookie = impl.tls});
  impl.proxy = std::make_unique<Proxy>(
      parts.channel, parts.admit,
      [&impl](std::function<void()> work) { asio::post(impl.io, std::move(work)); }, impl.tls,
      impl.shell_ssh);
  impl.events = std::make_unique<EventStream>(parts.hub, parts.serial, *impl.gateway, parts.rights);
  impl.hub = &parts.hub;
  impl.serial = &parts.serial;
  impl.health = parts.health;
  impl.info = parts.info;
  impl.openapi = openapi_json(parts.services);
  impl.api_page = openapi_page(parts.services);
  // The handler refers to impl, which outlives the thread.
  impl.handler.admit = [&impl](const Request& request, std::int64_t bytes,
                               std::function<void(Admission)> done) {
    if (impl.proxies.empty()) return impl.admit(request, bytes, std::move(done));
    Request seen = request;  // without a body yet
    seen.peer = client_address(impl.proxies, request.peer, request.header("x-forwarded-for"));
    impl.admit(seen, bytes, std::move(done));
  };
  impl.handler.handle = [&impl](Request request, const std::shared_ptr<Exchange>& exchange) {
    request.peer = client_address(impl.proxies, request.peer, request.header("x-forwarded-for"));
    impl.handle(std::move(request), exchange);
  };
  // The acceptor belongs to the HTTP thread.
  asio::post(impl.io, [&impl, grpc = std::move(parts.grpc)] {
    const auto serve = [&impl](asio::generic::stream_protocol::socket socket, std::string peer,
                               std::function<void()> release) {
      serve_connection(std::move(socket), std::move(peer), impl.limits, impl.handler, impl.idle,
                       std::move(release));
    };
    impl.acceptor->start(grpc, serve, [&impl] { return impl.idle.close_oldest(); });
  });
  impl.thread = std::thread([&impl] { impl.io.run(); });
}

void Site::tick() { impl_->events->tick(); }

void Site::close() {
  if (!impl_->thread.joinable()) return;
  asio::post(impl_->io, [this] { impl_->acceptor->stop(); });
  impl_->serial->post([this] { impl_->events->close(); });
}

void Site::stop() {
  if (!impl_ || !impl_->thread.joinable()) return;
  // Calls hold exchanges, which need `io`. The exchange of a client that does not read is kept by `io` itself
  // and is destroyed with it.
  const bool drained = impl_->gateway->drain(kDrainPatience) && impl_->proxy->drain(kDrainPatience);
  if (!drained) log::debug("calls of unresponsive clients were dropped", {});
  impl_->work.reset();
  impl_->io.stop();
  impl_->thread.join();
}

}  // namespace det::http
