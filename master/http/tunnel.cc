// Moves bytes between two non-blocking sockets on one reactor, with one buffer per direction, which gives
// backpressure.
#include "master/http/tunnel.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstring>

#include "common/base/log.h"
#include "common/crypto/digest.h"
#include "master/http/http2_guard.h"

namespace det::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using Inner = asio::local::stream_protocol::socket;

constexpr std::size_t kRecord = 16 * 1024;  // maximum TLS record
constexpr int kRounds = 16;                 // iterations before yielding to other connections

/// Bytes in transit in one direction.
struct Flow {
  std::array<char, kRecord> bytes;
  std::size_t begin = 0, end = 0;
  bool ended = false;   ///< End of input was read.
  bool passed = false;  ///< End of input was forwarded.
  bool empty() const { return begin == end; }
};

/// Outcome of one non-blocking operation.
enum class Step { kProgress, kBlocked, kBroken };

/// One connection. Kept alive by its pending operations.
class Tunnel : public std::enable_shared_from_this<Tunnel> {
 public:
  Tunnel(asio::io_context& io, tcp::socket socket, const TlsServer& server, std::string address,
         std::function<void(UniqueFd, const Peer&)> opened, std::shared_ptr<void> lease)
      : server_(server),
        tls_(server ? SSL_new(server.get()) : nullptr, SSL_free),
        outer_(std::move(socket)),
        inner_(io),
        timer_(io),
        address_(std::move(address)),
        opened_(std::move(opened)),
        lease_(std::move(lease)) {}

  void start(std::chrono::milliseconds limit) {
    if (server_) {
      if (!tls_ || SSL_set_fd(tls_.get(), outer_.native_handle()) != 1) return;
      SSL_set_accept_state(tls_.get());
    }
    timer_.expires_after(limit);
    timer_.async_wait([weak = weak_from_this()](ErrorCode error) {
      auto self = weak.lock();
      if (!error && self && !self->open_) self->close();
    });
    pump();
  }

 private:
  void pump() {
    for (int round = 0; !closed_ && round < kRounds; ++round) {
      outer_read_ = outer_write_ = inner_read_ = inner_write_ = false;
      const Step step = open_ ? move_bytes() : handshake();
      if (step == Step::kBroken) return close();
      if (step == Step::kBlocked) return wait();
    }
    // Yield: a fast client must not starve the others.
    if (!closed_) asio::post(outer_.get_executor(), [self = shared_from_this()] { self->pump(); });
  }

  /// Records the direction that OpenSSL waits for.
  Step blocked(int result) {
    const int why = SSL_get_error(tls_.get(), result);
    ERR_clear_error();
    if (why == SSL_ERROR_WANT_READ) outer_read_ = true;
    if (why == SSL_ERROR_WANT_WRITE) outer_write_ = true;
    // Everything else is a failure of the connection.
    return outer_read_ || outer_write_ ? Step::kBlocked : Step::kBroken;
  }

  Step handshake() {
    // A plain-text client needs no handshake.
    const int result = tls_ ? SSL_do_handshake(tls_.get()) : 1;
    if (result != 1) return blocked(result);
    timer_.cancel();
    const Peer peer = read_peer();
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return Step::kBroken;
    UniqueFd ours(ends[0]), theirs(ends[1]);
    // gRPC reports the name of the far end as the client's address, so bind it to an abstract socket name.
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string text = peer_name(peer);
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    if (::bind(ours.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) return Step::kBroken;
    ErrorCode error;
    inner_.assign(asio::local::stream_protocol(), ours.release(), error);
    if (error) return Step::kBroken;
    open_ = true;
    std::exchange(opened_, nullptr)(std::move(theirs), peer);
    return Step::kProgress;
  }

  Peer read_peer() const {
    Peer peer{.address = address_, .tls = tls_ != nullptr};
    if (!tls_) return peer;
    const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(tls_.get()), X509_free);
    if (!shown) return peer;
    unsigned char* der = nullptr;
    const int size = i2d_X509(shown.get(), &der);
    if (size <= 0) return peer;
    peer.certificate = sha256_hex({reinterpret_cast<const char*>(der), static_cast<std::size_t>(size)});
    OPENSSL_free(der);
    peer.believed = SSL_get_verify_result(tls_.get()) == X509_V_OK;
    return peer;
  }

  Step move_bytes() {
    bool moved = false;
    for (const Step step : {read_outer(), write_inner(), read_inner(), write_outer()}) {
      if (step == Step::kBroken) return step;
      moved = moved || step == Step::kProgress;
    }
    // Both directions are finished: an orderly end, handled as a close.
    if (up_.passed && down_.passed) return Step::kBroken;
    return moved ? Step::kProgress : Step::kBlocked;
  }

  Step read_outer() {
    // One buffer per direction: read only when the last bytes have been forwarded.
    if (!up_.empty() || up_.ended) return Step::kBlocked;
    const int count = tls_ ? SSL_read(tls_.get(), up_.bytes.data(), static_cast<int>(up_.bytes.size()))
                           : static_cast<int>(::recv(outer_.native_handle(), up_.bytes.data(),
                                                     up_.bytes.size(), MSG_DONTWAIT));
    if (count > 0) return take(static_cast<std::size_t>(count));
    if (!tls_ && count < 0) return blocked_plainly(outer_read_);
    if (tls_ && SSL_get_error(tls_.get(), count) != SSL_ERROR_ZERO_RETURN) return blocked(count);
    up_.ended = true;
    return Step::kProgress;
  }

  Step take(std::size_t count) {
    up_.begin = 0;
    up_.end = count;
    const char* const why = guard_.inspect({up_.bytes.data(), count}, mono_now());
    if (!why) return Step::kProgress;
    log::warn("closed a client connection", {{"address", address_}, {"reason", why}});
    return Step::kBroken;
  }

  /// Records that a plain socket would block.
  static Step blocked_plainly(bool& wait) {
    wait = errno == EAGAIN || errno == EINTR;
    return wait ? Step::kBlocked : Step::kBroken;
  }

  Step write_inner() {
    if (up_.empty()) {
      if (!up_.ended || up_.passed) return Step::kBlocked;
      // Propagate the half-close, so that a reply to the last request can still pass.
      up_.passed = true;
      ::shutdown(inner_.native_handle(), SHUT_WR);
      return Step::kProgress;
    }
    const ssize_t count = ::send(inner_.native_handle(), up_.bytes.data() + up_.begin, up_.end - up_.begin,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return blocked_plainly(inner_write_);
    up_.begin += static_cast<std::size_t>(count);
    return Step::kProgress;
  }

  Step read_inner() {
    if (!down_.empty() || down_.ended) return Step::kBlocked;
    const ssize_t count =
        ::recv(inner_.native_handle(), down_.bytes.data(), down_.bytes.size(), MSG_DONTWAIT);
    if (count < 0) return blocked_plainly(inner_read_);
    down_.begin = 0;
    down_.end = static_cast<std::size_t>(count);
    down_.ended = count == 0;
    return Step::kProgress;
  }

  Step write_outer() {
    if (down_.empty()) {
      if (!down_.ended || down_.passed) return Step::kBlocked;
      down_.passed = true;
      if (tls_) SSL_shutdown(tls_.get());
      ERR_clear_error();
      ErrorCode ignored;
      outer_.shutdown(tcp::socket::shutdown_send, ignored);
      return Step::kProgress;
    }
    if (!tls_) {
      const ssize_t count = ::send(outer_.native_handle(), down_.bytes.data() + down_.begin,
                                   down_.end - down_.begin, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count < 0) return blocked_plainly(outer_write_);
      down_.begin += static_cast<std::size_t>(count);
      return Step::kProgress;
    }
    std::size_t count = 0;
    const int result =
        SSL_write_ex(tls_.get(), down_.bytes.data() + down_.begin, down_.end - down_.begin, &count);
    if (result != 1) return blocked(result);
    down_.begin += count;
    return Step::kProgress;
  }

  /// Arms at most one wait per socket and direction.
  void wait() {
    arm(outer_, tcp::socket::wait_read, outer_read_, waits_[0]);
    arm(outer_, tcp::socket::wait_write, outer_write_, waits_[1]);
    if (!open_) return;
    arm(inner_, Inner::wait_read, inner_read_, waits_[2]);
    arm(inner_, Inner::wait_write, inner_write_, waits_[3]);
  }
  template <typename Socket>
  void arm(Socket& socket, asio::socket_base::wait_type what, bool wanted, bool& waiting) {
    if (!wanted || waiting) return;
    waiting = true;
    socket.async_wait(what, [self = shared_from_this(), &waiting](ErrorCode error) {
      waiting = false;
      if (self->closed_) return;
      if (error) return self->close();
      self->pump();
    });
  }

  void close() {
    if (closed_) return;
    closed_ = true;
    ErrorCode ignored;
    timer_.cancel();
    outer_.close(ignored);
    inner_.close(ignored);
    opened_ = nullptr;
    lease_.reset();
  }

  const TlsServer server_;
  const std::unique_ptr<SSL, decltype(&SSL_free)> tls_;
  tcp::socket outer_;
  Inner inner_;
  asio::steady_timer timer_;
  const std::string address_;
  std::function<void(UniqueFd, const Peer&)> opened_;
  std::shared_ptr<void> lease_;
  Flow up_, down_;
  Http2Guard guard_;
  bool open_ = false, closed_ = false;
  bool outer_read_ = false, outer_write_ = false, inner_read_ = false, inner_write_ = false;
  std::array<bool, 4> waits_{};
};

/// Read-only view of `text`.
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

bool use_chain(SSL_CTX* context, const std::string& chain) {
  const Bio bio = reader(chain);
  X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr);
  // The server certificate comes first, then its intermediates.
  const bool own = certificate && SSL_CTX_use_certificate(context, certificate) == 1;
  X509_free(certificate);
  while (own && (certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)))
    SSL_CTX_add0_chain_cert(context, certificate);
  ERR_clear_error();
  return own;
}

bool use_key(SSL_CTX* context, const std::string& text) {
  EVP_PKEY* const key = PEM_read_bio_PrivateKey(reader(text).get(), nullptr, nullptr, nullptr);
  const bool fits =
      key && SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(key);
  ERR_clear_error();
  return fits;
}

bool believe(SSL_CTX* context, const std::string& authority) {
  X509* const certificate = PEM_read_bio_X509(reader(authority).get(), nullptr, nullptr, nullptr);
  // Browsers offer the user only certificates of the authorities listed here.
  const bool good = certificate && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), certificate) == 1 &&
                    SSL_CTX_add_client_CA(context, certificate) == 1;
  X509_free(certificate);
  return good;
}

/// ALPN. Prefers HTTP/1.1: browsers and scripts offer both, gRPC clients offer only h2.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned int count, void*) {
  static constexpr unsigned char kOurs[] = "\x08http/1.1\x02h2";
  const int found =
      SSL_select_next_proto(const_cast<unsigned char**>(out), size, kOurs, sizeof kOurs - 1, offered, count);
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

Result<TlsServer> make_tls_server(const std::string& chain, const std::string& key,
                                  const std::string& clients) {
  TlsServer server(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!server) return fail(Code::kInternal, "OpenSSL does not start");
  SSL_CTX* const context = server.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  // No session resumption: it would restore a certificate that may have been revoked since.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  // Write in pieces, allow a retry from another buffer, and release memory while idle.
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  if (!use_chain(context, chain))
    return fail(Code::kInvalidArgument, "tls.cert holds no certificate in PEM form");
  if (!use_key(context, key))
    return fail(Code::kInvalidArgument, "tls.key is not the private key of tls.cert");
  if (!believe(context, clients)) return fail(Code::kInternal, "the authority's certificate cannot be used");
  // Accept every client certificate; the Peer records whether it is trusted.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  SSL_CTX_set_alpn_select_cb(context, choose_protocol, nullptr);
  return server;
}

void open_tunnel(asio::io_context& io, tcp::socket socket, const TlsServer& server,
                 const std::string& address, std::chrono::milliseconds limit,
                 std::function<void(UniqueFd, const Peer&)> opened, std::shared_ptr<void> lease) {
  std::make_shared<Tunnel>(io, std::move(socket), server, address, std::move(opened), std::move(lease))
      ->start(limit);
}

}  // namespace det::http
