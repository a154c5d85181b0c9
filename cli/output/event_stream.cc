#include "cli/output/event_stream.h"

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/base/json.h"
#include "common/base/text.h"
#include "common/client/channel.h"
#include "common/client/trust.h"

namespace det::cli {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using PlainStream = tcp::socket;
using TlsStream = asio::ssl::stream<tcp::socket>;

/// Time limit for each of: connect, TLS handshake, request, response header.
constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
constexpr std::size_t kMaxEvent = 1 << 20;  ///< bytes of an incomplete event
constexpr std::size_t kMaxHead = 64 << 10;  ///< bytes of the response header

/// Parses the lines of one event, such as "event: trial". Stores its id in `last_id`. An event without a type
/// has an empty kind.
ChangeEvent read_event(std::string_view text, std::string& last_id) {
  ChangeEvent event;
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with("id:")) last_id = trim(line.substr(3));
    if (line.starts_with("event:")) event.kind = trim(line.substr(6));
    if (!line.starts_with("data:")) continue;
    const auto data = parse_json(line.substr(5));
    if (data && data->is_object() && data->contains("experimentId") &&
        (*data)["experimentId"].is_number_integer())
      event.experiment = (*data)["experimentId"].get<int>();
  }
  return event;
}

/// Creates the TLS settings for `trust`. Errors: kUnavailable (the certificate file is not readable).
Result<asio::ssl::context> tls_context(const MasterTrust& trust) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  ErrorCode error;
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  if (trust.cert_file == "noverify") return context;
  context.set_verify_mode(asio::ssl::verify_peer, error);
  if (trust.cert_file.empty()) {
    context.set_default_verify_paths(error);
  } else {
    context.load_verify_file(trust.cert_file, error);
    // Accept the user's file as an anchor even when it holds an intermediate certificate.
    ::X509_STORE_set_flags(::SSL_CTX_get_cert_store(context.native_handle()), X509_V_FLAG_PARTIAL_CHAIN);
  }
  if (error) return fail(Code::kUnavailable, "the trusted certificates cannot be read: " + error.message());
  return context;
}

tcp::socket& socket_of(PlainStream& stream) { return stream; }
tcp::socket& socket_of(TlsStream& stream) { return stream.next_layer(); }

}  // namespace

std::vector<ChangeEvent> EventParser::take(std::string_view text) {
  text_ += text;
  std::vector<ChangeEvent> events;
  std::size_t begin = 0;
  // An empty line ends an event.
  for (std::size_t end; (end = text_.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    ChangeEvent event = read_event(std::string_view(text_).substr(begin, end - begin), last_id_);
    if (!event.kind.empty()) events.push_back(std::move(event));
  }
  text_.erase(0, begin);
  if (text_.size() > kMaxEvent) text_.clear();
  return events;
}

/// Hides the type of the socket: plain or TLS.
class EventStream::Connection {
 public:
  virtual ~Connection() = default;
  /// Returns the next part of the body; "" after the timeout.
  virtual Result<std::string> read(Duration timeout) = 0;
};

/// Connection with an event loop of its own, run by the calling thread. An operation that times out is
/// abandoned together with the connection.
template <typename Stream>
class EventStream::Http final : public Connection {
 public:
  /// `context` is set for TLS and absent for plain HTTP.
  Http(const Address& address, std::optional<asio::ssl::context> context)
      : where_(address.url()), context_(std::move(context)), stream_(make()) {
    // The response has no end.
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
    parser_.header_limit(kMaxHead);
  }

  Status connect(const Address& address) {
    tcp::resolver resolver(io_);
    ErrorCode error;
    const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
    if (error) return fail(Code::kUnavailable, address.host + " has no address");
    return finish("connect", [&](auto done) { asio::async_connect(socket_of(stream_), found, done); });
  }

  /// TLS handshake with verification of the host name. A no-op for plain HTTP. No request is sent before it.
  Status shake_hands(const std::string& name, bool verify) {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      ErrorCode numeric;
      asio::ip::make_address(name, numeric);
      // SNI takes names only, no IP addresses.
      if (numeric) SSL_set_tlsext_host_name(stream_.native_handle(), name.c_str());
      if (verify) stream_.set_verify_callback(asio::ssl::host_name_verification(name));
      return finish("TLS", [&](auto done) { stream_.async_handshake(asio::ssl::stream_base::client, done); });
    }
    return {};
  }

  /// Sends the request and reads the response header. Errors: kUnavailable (another status than 200, or
  /// another content type than text/event-stream).
  Status ask(const http::request<http::empty_body>& request) {
    TRY(finish("ask", [&](auto done) { http::async_write(stream_, request, done); }));
    TRY(finish("answer", [&](auto done) { http::async_read_header(stream_, buffer_, parser_, done); }));
    const auto& answer = parser_.get();
    if (answer.result() != http::status::ok) {
      return fail(Code::kUnavailable, "the master's events: " + std::to_string(answer.result_int()) + " " +
                                          std::string(answer.reason()));
    }
    if (!to_lower(std::string(answer[http::field::content_type])).starts_with("text/event-stream"))
      return fail(Code::kUnavailable, "the answer is no stream of events");
    return {};
  }

  Result<std::string> read(Duration timeout) override {
    // A read that timed out is still pending. Starting a second one on the same stream is not allowed.
    if (!std::exchange(reading_, true)) {
      parser_.get().body().data = piece_.data();
      parser_.get().body().size = piece_.size();
      http::async_read_some(stream_, buffer_, parser_, [this](ErrorCode error, std::size_t) {
        reading_ = false;
        // need_buffer: piece_ is full. Beast reports that as an error; the data is valid.
        error_ = error == http::error::need_buffer ? ErrorCode() : error;
      });
    }
    io_.restart();
    io_.run_for(timeout);
    if (reading_) return std::string();
    const std::size_t size = piece_.size() - parser_.get().body().size;
    if (error_ || parser_.is_done())
      return fail(Code::kUnavailable, "the master has ended the stream of events");
    return std::string(piece_.data(), size);
  }

 private:
  Stream make() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      return Stream(io_, *context_);
    } else {
      return Stream(io_);
    }
  }

  /// Runs what `start` begins to its end. After a failure nothing else may be begun.
  template <typename Start>
  /// Starts an asynchronous operation and runs it to completion. The connection is unusable after a failure.
  Status finish(const char* what, const Start& start) {
    bool done = false;
    start([this, &done](ErrorCode error, const auto&...) {
      done = true;
      error_ = error;
    });
    io_.restart();
    io_.run_for(kAnswerTimeout);
    if (!done) {
      // Closing cancels the operation. The loop must run its handler, which refers to `done`.
      socket_of(stream_).close(error_);
      io_.run();
      return fail(Code::kUnavailable, where_ + ": " + what + ": no answer in time");
    }
    if (error_) return fail(Code::kUnavailable, where_ + ": " + what + ": " + error_.message());
    return {};
  }

  const std::string where_;
  asio::io_context io_;
  std::optional<asio::ssl::context> context_;
  Stream stream_;
  boost::beast::flat_buffer buffer_;
  http::response_parser<http::buffer_body> parser_;
  std::array<char, 16 << 10> piece_;
  ErrorCode error_;
  bool reading_ = false;
};

EventStream::EventStream(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
EventStream::EventStream(EventStream&&) noexcept = default;
EventStream& EventStream::operator=(EventStream&&) noexcept = default;
EventStream::~EventStream() = default;

Result<EventStream> EventStream::open(const Client& client, const std::string& after) {
  const Address& address = client.address();
  http::request<http::empty_body> request(http::verb::get, "/api/v1/events", 11);
  request.set(http::field::host, address.target());
  request.set(http::field::authorization, "Bearer " + client.token());
  request.set(http::field::accept, "text/event-stream");
  if (!after.empty()) request.set("Last-Event-ID", after);

  const auto begin = [&](auto http, const MasterTrust& trust) -> Result<EventStream> {
    TRY(http->connect(address));
    TRY(http->shake_hands(trust.cert_name.empty() ? address.host : trust.cert_name,
                          trust.cert_file != "noverify"));
    TRY(http->ask(request));
    return EventStream(std::move(http));
  };
  if (!address.tls) return begin(std::make_unique<Http<PlainStream>>(address, std::nullopt), {});
  const MasterTrust trust = known_trust(address);
  TRY_ASSIGN(auto context, tls_context(trust));
  return begin(std::make_unique<Http<TlsStream>>(address, std::move(context)), trust);
}

Result<std::vector<ChangeEvent>> EventStream::wait(Duration timeout) {
  const MonoTime end = mono_now() + timeout;
  // A part of the body may hold no complete event.
  for (Duration left = timeout;; left = std::max(Duration(0), end - mono_now())) {
    TRY_ASSIGN(const std::string text, connection_->read(left));
    auto events = parser_.take(text);
    if (!events.empty() || (text.empty() && mono_now() >= end)) return events;
  }
}

}  // namespace det::cli
