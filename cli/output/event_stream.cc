#include "cli/output/event_stream.h"

#include <array>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/base/process.h"
#include "common/base/text.h"
#include "common/client/channel.h"
#include "common/client/trust.h"
#include "common/storage/curl.h"

namespace det::cli {
namespace {

/// Time limit for the connection with its TLS handshake, and for the response header after it.
constexpr Duration kAnswerTimeout = std::chrono::seconds(10);
constexpr std::size_t kMaxEvent = 1 << 20;  ///< bytes of an incomplete event

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

/// A request whose body is read in pieces by the calling thread. OpenSSL raises SIGPIPE when it writes to a
/// closed connection, and libcurl does not cover all such writes.
class EventStream::Connection {
 public:
  explicit Connection(const storage::Curl& curl)
      : curl_(curl), easy_(curl.easy_init()), multi_(curl.multi_init()) {}
  ~Connection() {
    const PipeSignalHeld held;
    curl_.multi_remove_handle(multi_, easy_);
    curl_.easy_cleanup(easy_);
    curl_.multi_cleanup(multi_);
    curl_.slist_free_all(headers_);
    curl_.slist_free_all(connect_to_);
  }

  /// Sends the request and reads the response header. Errors: those of EventStream::open().
  Status open(const Client& client, const std::string& after) {
    const Address& address = client.address();
    std::string url = address.url();
    add_header("Host: " + address.target());
    add_header("Authorization: Bearer " + client.token());
    add_header("Accept: text/event-stream");
    if (!after.empty()) add_header("Last-Event-ID: " + after);
    if (address.tls) trust(address, known_trust(address), url);
    set(CURLOPT_URL, (url + "/api/v1/events").c_str());
    set(CURLOPT_HTTPHEADER, headers_);
    // A proxy for the Internet must not capture connections to the cluster.
    set(CURLOPT_PROXY, "");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(kAnswerTimeout));
    set(CURLOPT_ERRORBUFFER, error_.data());
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(this));
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(this));
    curl_.multi_add_handle(multi_, easy_);
    run(2 * kAnswerTimeout, [this] { return has_header_; });
    if (!has_header_)
      return fail(Code::kUnavailable,
                  address.url() + ": " + (error_[0] ? error_.data() : "no answer in time"));
    return check_header();
  }

  /// Returns the next part of the body; "" after the timeout.
  Result<std::string> read(Duration timeout) {
    run(timeout, [this] { return !body_.empty(); });
    if (body_.empty() && ended_) return fail(Code::kUnavailable, "the master has ended the stream of events");
    return std::exchange(body_, {});
  }

 private:
  template <typename Value>
  void set(CURLoption option, Value value) {
    curl_.easy_setopt(easy_, option, value);
  }
  void add_header(const std::string& line) { headers_ = curl_.slist_append(headers_, line.c_str()); }
  static long milliseconds(Duration duration) {
    return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  }

  /// Sets what is trusted, as the gRPC client does. Changes the host of `url` to the expected name.
  void trust(const Address& address, const MasterTrust& trust, std::string& url) {
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    if (trust.cert_file == "noverify") {
      set(CURLOPT_SSL_VERIFYPEER, 0L);
      set(CURLOPT_SSL_VERIFYHOST, 0L);
    } else if (!trust.cert_file.empty()) {
      set(CURLOPT_CAINFO, trust.cert_file.c_str());
      set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
    }
    if (trust.cert_name.empty()) return;
    url = Address{true, trust.cert_name, address.port}.url();
    connect_to_ = curl_.slist_append(nullptr, ("::" + address.target()).c_str());
    set(CURLOPT_CONNECT_TO, connect_to_);
  }

  Status check_header() const {
    long status = 0;
    curl_.easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200)
      return fail(Code::kUnavailable, "the master's events: " + std::to_string(status) + " " + reason_);
    const char* type = nullptr;
    curl_.easy_getinfo(easy_, CURLINFO_CONTENT_TYPE, &type);
    if (!type || !to_lower(type).starts_with("text/event-stream"))
      return fail(Code::kUnavailable, "the answer is no stream of events");
    return {};
  }

  /// Sends and receives until `done` holds, the request has ended, or the time is over.
  template <typename Done>
  void run(Duration timeout, const Done& done) {
    const PipeSignalHeld held;
    const MonoTime end = mono_now() + timeout;
    for (;;) {
      int running = 0;
      if (!ended_) curl_.multi_perform(multi_, &running);
      ended_ = running == 0;
      const Duration left = end - mono_now();
      if (done() || ended_ || left.count() <= 0) return;
      curl_.multi_poll(multi_, nullptr, 0, static_cast<int>(milliseconds(left)) + 1, nullptr);
    }
  }

  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) {
    auto& self = *static_cast<Connection*>(user);
    const std::string_view line(data, size * count);
    // "HTTP/1.1 401 Unauthorized"
    if (line.starts_with("HTTP/")) {
      const std::size_t code = line.find(' ');
      const std::size_t at = code == line.npos ? code : line.find(' ', code + 1);
      self.reason_ = at == line.npos ? "" : trim(line.substr(at));
    }
    if (trim(line).empty()) self.has_header_ = true;
    return line.size();
  }
  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) {
    static_cast<Connection*>(user)->body_.append(data, size * count);
    return size * count;
  }

  const storage::Curl& curl_;
  CURL* const easy_;
  CURLM* const multi_;
  curl_slist *headers_ = nullptr, *connect_to_ = nullptr;
  std::string reason_;  ///< of the status line
  std::string body_;    ///< received and not yet returned
  bool has_header_ = false, ended_ = false;
  std::array<char, CURL_ERROR_SIZE> error_ = {};
};

EventStream::EventStream(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
EventStream::EventStream(EventStream&&) noexcept = default;
EventStream& EventStream::operator=(EventStream&&) noexcept = default;
EventStream::~EventStream() = default;

Result<EventStream> EventStream::open(const Client& client, const std::string& after) {
  TRY_ASSIGN(const storage::Curl* curl, storage::curl());
  auto connection = std::make_unique<Connection>(*curl);
  TRY(connection->open(client, after));
  return EventStream(std::move(connection));
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
