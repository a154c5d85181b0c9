// State machine of a connection: idle → header → body → reply → idle.
#include "master/http/connection.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <deque>
#include <optional>

#include "common/base/text.h"
#include "master/http/request_head.h"

namespace det::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using ErrorCode = boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;

constexpr std::size_t kReadSize = 64 * 1024;
constexpr std::size_t kWriteSize = 256 * 1024;
constexpr const char* kTooManyUploads =
    "the uploads under way hold too much memory; try again when one has ended";

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, std::string peer, const HttpLimits& limits, const Handler& handler,
             IdleConnections& idle, std::function<void()> closed)
      : socket_(std::move(socket)),
        timer_(socket_.get_executor()),
        peer_(std::move(peer)),
        limits_(limits),
        handler_(handler),
        idle_(idle),
        closed_(std::move(closed)) {}
  ~Connection() { closed_(); }

  void next_request() {
    ++serial_;
    parser_.reset();
    memory_.reset();
    request_ = {};
    // A pipelined request may be in the buffer already.
    if (has_header_end()) return read_header();
    const bool fresh = buffer_.size() == 0;
    arm(fresh ? limits_.idle_time : limits_.header_time);
    header_deadline_.reset();
    if (!fresh) header_deadline_ = Clock::now() + limits_.header_time;
    if (fresh && serial_ > 1) {
      place_ = idle_.add([this] {
        place_.reset();
        fail_connection();
      });
    }
    read_more_header();
  }

  void respond(Response response) {
    if (answer_ != Answer::kNone) return;
    answer_ = Answer::kWhole;
    const bool bodiless = response.status == 204 || response.status == 304;
    send(head_text(response, keep_alive_, false, bodiless), nullptr);
    if (!is_head() && !bodiless && !response.body.empty()) send(std::move(response.body), nullptr);
    finish();
  }

  void begin(const Response& head, std::function<void()> gone) {
    if (answer_ != Answer::kNone) return;
    answer_ = Answer::kStream;
    gone_ = std::move(gone);
    // HTTP/1.0 has no chunks: the end of the connection ends the body.
    if (version_ < 11) keep_alive_ = false;
    send(head_text(head, keep_alive_, version_ >= 11, version_ < 11), nullptr);
    if (!head.body.empty() && !is_head()) send(framed(head.body), nullptr);
    if (broken_ || is_head()) return report_gone();
    watch_for_close();
  }

  void write(const std::string& piece, std::function<void(bool)> done) {
    if (answer_ != Answer::kStream || broken_ || is_head()) return done(false);
    if (piece.empty()) return done(true);
    send(framed(piece), std::move(done));
  }

  void end() {
    if (answer_ != Answer::kStream) return;
    gone_ = nullptr;
    if (version_ >= 11 && !raw_ && !is_head()) send("0\r\n\r\n", nullptr);
    finish();
  }

  void upgrade(const Response& head, Exchange::Received received, std::function<void()> gone) {
    if (answer_ != Answer::kNone) return;
    answer_ = Answer::kStream;
    keep_alive_ = false;
    raw_ = true;
    received_ = std::move(received);
    gone_ = std::move(gone);
    send(upgrade_text(head), nullptr);
    if (broken_) return report_gone();
    read_raw();
  }

  /// Number of the request being answered. Calls that belong to an earlier request are ignored.
  std::uint64_t serial() const { return serial_; }

  /// Called when the handler drops the exchange without completing the reply.
  void abandoned() {
    if (answer_ == Answer::kNone) return respond(message_response(500, "the request was dropped"));
    if (answer_ == Answer::kStream && !finishing_) {
      gone_ = nullptr;
      is_head() ? finish() : fail_connection();
    }
  }

  auto executor() { return socket_.get_executor(); }

 private:
  enum class Answer { kNone, kWhole, kStream, kSent };
  bool is_head() const { return request_.method == "HEAD"; }

  /// Sets the only deadline. When it passes, pending operations are canceled with timed_out_ set.
  void arm(Clock::duration time) {
    timed_out_ = false;
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this(), serial = ++armed_](ErrorCode error) {
      auto self = weak.lock();
      if (error || !self || self->armed_ != serial) return;
      self->timed_out_ = true;
      ErrorCode ignored;
      self->socket_.cancel(ignored);
    });
  }
  void disarm() {
    ++armed_;
    timed_out_ = false;
    timer_.cancel();
  }

  void leave_idle() {
    if (place_) idle_.remove(*place_);
    place_.reset();
  }

  bool has_header_end() const {
    const auto data = buffer_.data();
    return std::string_view(static_cast<const char*>(data.data()), data.size()).find("\r\n\r\n") !=
           std::string_view::npos;
  }

  void read_more_header() {
    if (buffer_.size() >= limits_.header_bytes) return refuse(431, "the header is larger than 8 KiB");
    socket_.async_read_some(buffer_.prepare(std::min(kReadSize, limits_.header_bytes + kReadSize)),
                            [self = shared_from_this()](ErrorCode error, std::size_t count) {
                              self->leave_idle();
                              if (self->timed_out_ && self->buffer_.size() > 0)
                                return self->refuse(408, "the header did not arrive in time");
                              if (error) return self->fail_connection();
                              self->buffer_.commit(count);
                              if (self->has_header_end()) return self->read_header();
                              if (!self->header_deadline_)
                                self->header_deadline_ = Clock::now() + self->limits_.header_time;
                              self->arm(*self->header_deadline_ - Clock::now());
                              self->read_more_header();
                            });
  }

  /// Parses the complete header in the buffer. Rejects what Beast 1.74 accepts in error: folded lines, a
  /// missing or duplicate Host, and any Transfer-Encoding other than a single "chunked".
  void read_header() {
    const auto data = buffer_.data();
    std::string_view raw(static_cast<const char*>(data.data()), data.size());
    raw = raw.substr(0, raw.find("\r\n\r\n") + 4);
    if (raw.size() > limits_.header_bytes) return refuse(431, "the header is larger than 8 KiB");
    if (raw.find("\r\n") > limits_.line_bytes) return refuse(431, "the request line is longer than 4 KiB");
    if (raw.find("\r\n ") != raw.npos || raw.find("\r\n\t") != raw.npos)
      return refuse(400, "folded header line");
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(limits_.header_bytes));
    // The real limit is set in admitted(), once the caller and the route are known.
    parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
    ErrorCode error;
    const std::size_t used = parser_->put(asio::buffer(raw.data(), raw.size()), error);
    if (error && error != beast::http::error::need_more) return refuse(400, "malformed request");
    if (!parser_->is_header_done()) return refuse(400, "malformed request");
    if (const char* problem = header_problem(parser_->get())) return refuse(400, problem);
    buffer_.consume(used);
    take_head();
    if (request_.headers.size() > static_cast<std::size_t>(limits_.header_fields))
      return refuse(431, "more than 64 header fields");
    read_body();
  }

  void take_head() {
    const auto& message = parser_->get();
    version_ = static_cast<int>(message.version());
    keep_alive_ = parser_->keep_alive();
    answer_ = Answer::kNone;
    finishing_ = false;
    request_ = to_request(message, peer_);
  }

  void read_body() {
    if (parser_->is_done()) return dispatch();
    constexpr std::uint64_t kUnknown = std::numeric_limits<std::int64_t>::max();
    const auto bytes =
        static_cast<std::int64_t>(std::min(parser_->content_length().value_or(kUnknown), kUnknown));
    // The handler answers within its own deadlines.
    disarm();
    handler_.admit(request_, bytes, [self = shared_from_this(), serial = serial_](Admission admission) {
      asio::post(self->executor(), [self, serial, admission = std::move(admission)]() mutable {
        if (self->serial_ == serial && !self->broken_) self->admitted(std::move(admission));
      });
    });
  }

  /// Reads the body as far as the handler's decision allows.
  void admitted(Admission admission) {
    if (admission.refusal) {
      keep_alive_ = false;
      return respond(std::move(*admission.refusal));
    }
    memory_ = std::move(admission.memory);
    reserved_ = 0;
    const std::int64_t limit = admission.body_bytes;
    parser_->body_limit(static_cast<std::uint64_t>(limit));
    if (const auto length = parser_->content_length(); length && *length > static_cast<std::uint64_t>(limit))
      return refuse(413, "the body is larger than " + std::to_string(limit) + " bytes");
    const std::string expect = to_lower(request_.header("expect"));
    body_started_ = Clock::now();
    if (expect.empty()) return read_more_body();
    if (expect != "100-continue") return refuse(417, "the only Expect taken is 100-continue");
    arm(limits_.write_time);
    asio::async_write(socket_, asio::buffer("HTTP/1.1 100 Continue\r\n\r\n", 25),
                      [self = shared_from_this()](ErrorCode error, std::size_t) {
                        if (error) return self->fail_connection();
                        self->read_more_body();
                      });
  }

  void read_more_body() {
    // The deadline moves with the bytes received: a minimum rate instead of a fixed time.
    const auto grown = parser_->get().body().size();
    const std::chrono::seconds earned(static_cast<std::int64_t>(grown) / limits_.body_bytes_per_second);
    arm(body_started_ + limits_.header_time + earned - Clock::now());
    beast::http::async_read_some(
        socket_, buffer_, *parser_, [self = shared_from_this()](ErrorCode error, std::size_t) {
          if (error == beast::http::error::body_limit) return self->refuse(413, "the body is too large");
          if (self->timed_out_) return self->refuse(408, "the body did not arrive in time");
          if (error == beast::http::error::end_of_stream || error == asio::error::eof ||
              error == asio::error::connection_reset || error == asio::error::operation_aborted)
            return self->fail_connection();
          if (error && error != beast::http::error::need_buffer) return self->refuse(400, "malformed body");
          if (!self->reserve()) return self->refuse(429, kTooManyUploads);
          if (self->parser_->is_done()) return self->dispatch();
          self->read_more_body();
        });
  }

  /// Reserves memory for what has arrived of the body. Returns false beyond a bound.
  bool reserve() {
    const auto grown = static_cast<std::int64_t>(parser_->get().body().size());
    if (memory_ && !memory_->grow(grown - reserved_)) return false;
    reserved_ = grown;
    return true;
  }

  void dispatch();

  /// Answers a protocol error and closes the connection.
  void refuse(int status, const std::string& message) {
    keep_alive_ = false;
    answer_ = Answer::kNone;
    finishing_ = false;
    respond(message_response(status, message));
  }

  std::string framed(const std::string& piece) const {
    return version_ >= 11 && !raw_ ? chunk_text(piece) : piece;
  }

  /// Reads bytes of an upgraded connection, first those behind the request.
  void read_raw() {
    if (broken_ || !received_) return;
    if (buffer_.size() == 0) {
      reading_ = true;
      return socket_.async_read_some(buffer_.prepare(kReadSize),
                                     [self = shared_from_this()](ErrorCode error, std::size_t count) {
                                       self->reading_ = false;
                                       if (error) return self->fail_connection();
                                       if (!self->received_) return self->drain();
                                       self->buffer_.commit(count);
                                       self->read_raw();
                                     });
    }
    std::string bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
    buffer_.consume(bytes.size());
    received_(std::move(bytes), [weak = weak_from_this(), executor = executor()] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->read_raw();
      });
    });
  }

  void send(std::string bytes, std::function<void(bool)> done) {
    pieces_.push_back({std::move(bytes), std::move(done)});
    if (!writing_) write_next();
  }

  void write_next() {
    if (pieces_.empty()) {
      writing_ = false;
      if (finishing_) return after_answer();
      // The time limit is one of a write; a streamed reply may pause.
      if (answer_ == Answer::kStream) disarm();
      return;
    }
    writing_ = true;
    Piece& piece = pieces_.front();
    const std::size_t count = std::min(kWriteSize, piece.bytes.size() - piece.sent);
    arm(limits_.write_time);
    asio::async_write(socket_, asio::buffer(piece.bytes.data() + piece.sent, count),
                      [self = shared_from_this()](ErrorCode error, std::size_t sent) {
                        // The connection may have failed meanwhile; pieces_ is empty then.
                        if (error || self->broken_) return self->fail_connection();
                        Piece& written = self->pieces_.front();
                        written.sent += sent;
                        if (written.sent == written.bytes.size()) {
                          auto done = std::move(written.done);
                          self->pieces_.pop_front();
                          if (done) done(true);
                        }
                        self->write_next();
                      });
  }

  void finish() {
    finishing_ = true;
    if (!writing_) after_answer();
  }

  void after_answer() {
    if (broken_) return;
    finishing_ = false;
    // The handler may drop the exchange only now, before the next request begins.
    answer_ = Answer::kSent;
    disarm();
    // Post, so that pipelined requests do not recurse.
    if (keep_alive_) return asio::post(executor(), [self = shared_from_this()] { self->next_request(); });
    ErrorCode ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    drain();
  }

  /// Discards input before closing: a close with unread bytes sends a reset that can overtake the reply.
  void drain() {
    arm(std::chrono::seconds(2));
    received_ = nullptr;
    // The pending read of an upgraded connection continues here.
    if (reading_) return;
    buffer_.clear();
    drain_more();
  }
  void drain_more() {
    socket_.async_read_some(buffer_.prepare(kReadSize),
                            [self = shared_from_this()](ErrorCode error, std::size_t count) {
                              self->drained_ += count;
                              if (error || self->drained_ > (1u << 20)) return self->fail_connection();
                              self->drain_more();
                            });
  }

  void watch_for_close() {
    socket_.async_wait(Socket::wait_read, [self = shared_from_this()](ErrorCode error) {
      if (self->answer_ != Answer::kStream || self->finishing_ || !self->gone_) return;
      char byte;
      ErrorCode peek_error;
      const std::size_t count =
          error ? 0 : self->socket_.receive(asio::buffer(&byte, 1), Socket::message_peek, peek_error);
      // A pipelined request: leave it unread, and stop watching.
      if (!error && !peek_error && count > 0) return;
      self->fail_connection();
    });
  }

  void fail_connection() {
    if (broken_) return;
    broken_ = true;
    keep_alive_ = false;
    ErrorCode ignored;
    socket_.close(ignored);
    // Callbacks may call back into this object, so detach the list first.
    auto pieces = std::move(pieces_);
    pieces_.clear();
    for (Piece& piece : pieces)
      if (piece.done) piece.done(false);
    report_gone();
  }
  void report_gone() {
    if (auto gone = std::exchange(gone_, nullptr)) gone();
    received_ = nullptr;
  }

  struct Piece {
    std::string bytes;
    std::function<void(bool)> done;
    std::size_t sent = 0;
  };

  Socket socket_;
  asio::steady_timer timer_;
  std::uint64_t armed_ = 0, serial_ = 0;
  bool timed_out_ = false;
  const std::string peer_;
  const HttpLimits& limits_;
  const Handler& handler_;
  IdleConnections& idle_;
  std::optional<IdleConnections::Place> place_;  ///< in idle_
  std::function<void()> closed_;
  beast::flat_buffer buffer_{4 * kReadSize};
  std::optional<beast::http::request_parser<beast::http::string_body>> parser_;
  std::optional<Clock::time_point> header_deadline_;
  Clock::time_point body_started_;
  /// Reservation of the body that is being read, and the bytes it holds.
  std::shared_ptr<loop::Budget::Lease> memory_;
  std::int64_t reserved_ = 0;
  Request request_;
  int version_ = 11;
  bool keep_alive_ = true;
  Answer answer_ = Answer::kNone;
  bool writing_ = false, finishing_ = false, broken_ = false, raw_ = false, reading_ = false;
  std::size_t drained_ = 0;
  std::deque<Piece> pieces_;
  std::function<void()> gone_;
  Exchange::Received received_;  ///< of an upgraded connection (raw_); null when it has ended
};

/// Moves the calls of a handler to the connection's thread.
class ConnectionExchange : public Exchange {
 public:
  explicit ConnectionExchange(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)), serial_(connection_->serial()) {}
  ~ConnectionExchange() override { call(&Connection::abandoned); }
  void respond(Response response) override { call(&Connection::respond, std::move(response)); }
  void begin(Response head, std::function<void()> closed) override {
    call(&Connection::begin, std::move(head), std::move(closed));
  }
  void write(std::string piece, std::function<void(bool)> done) override {
    call(&Connection::write, std::move(piece), std::move(done));
  }
  void end() override { call(&Connection::end); }
  void upgrade(Response head, Received received, std::function<void()> closed) override {
    call(&Connection::upgrade, std::move(head), std::move(received), std::move(closed));
  }

 private:
  template <typename Method, typename... Arguments>
  void call(Method method, Arguments... arguments) {
    asio::post(connection_->executor(), [connection = connection_, serial = serial_, method,
                                         ... arguments = std::move(arguments)]() mutable {
      if (connection->serial() == serial) (*connection.*method)(std::move(arguments)...);
    });
  }
  std::shared_ptr<Connection> connection_;
  const std::uint64_t serial_;
};

void Connection::dispatch() {
  request_.body = std::move(parser_->get().body());
  request_.memory = std::move(memory_);
  // respond() still needs the method, to recognize HEAD.
  disarm();
  const std::string method = request_.method;
  Request request = std::move(request_);
  request_ = {};
  request_.method = method;
  handler_.handle(std::move(request), std::make_shared<ConnectionExchange>(shared_from_this()));
}

}  // namespace

void serve_connection(asio::generic::stream_protocol::socket socket, std::string peer,
                      const HttpLimits& limits, const Handler& handler, IdleConnections& idle,
                      std::function<void()> closed) {
  // Handlers drop their references on threads of their own, and may drop the last one.
  const auto end = [](Connection* ended) {
    asio::dispatch(ended->executor(), [owned = std::unique_ptr<Connection>(ended)] {});
  };
  auto* made = new Connection(std::move(socket), std::move(peer), limits, handler, idle, std::move(closed));
  std::shared_ptr<Connection>(made, end)->next_request();
}

}  // namespace det::http
