#include "common/crypto/tls_probe.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "common/base/fd.h"
#include "common/crypto/openssl.h"

namespace det {
namespace {

using namespace openssl;
using Context = std::unique_ptr<SSL_CTX, ReleaseWith<SSL_CTX_free>>;
using Tls = std::unique_ptr<SSL, ReleaseWith<SSL_free>>;

/// Polls one descriptor. False at the deadline.
bool wait_for(int fd, short events, MonoTime deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - mono_now()).count();
  pollfd entry{fd, events, 0};
  return left > 0 && ::poll(&entry, 1, static_cast<int>(left)) > 0;
}

Result<UniqueFd> connect_to(const std::string& host, int port, MonoTime deadline) {
  const std::string where = host + ":" + std::to_string(port);
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
    return fail(Code::kUnavailable, where + ": " + ::gai_strerror(code));
  // Tries every address within one common deadline.
  const std::unique_ptr<addrinfo, ReleaseWith<::freeaddrinfo>> all(found);
  std::string why = "no address";
  for (const addrinfo* each = found; each; each = each->ai_next) {
    UniqueFd fd(::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    int error = ::connect(fd.get(), each->ai_addr, each->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      // A non-blocking connect reports its outcome in SO_ERROR once the socket is writable.
      error = ETIMEDOUT;
      if (wait_for(fd.get(), POLLOUT, deadline)) ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) return fd;
    why = std::strerror(error);
  }
  return fail(Code::kUnavailable, where + ": " + why);
}

bool add_anchors(SSL_CTX* context, const std::string& anchors) {
  if (anchors.empty()) return SSL_CTX_set_default_verify_paths(context) == 1;
  const Bio bio = reader(anchors);
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  // A trusted certificate ends the chain even if it is not self-signed.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  bool some = false;
  while (const Certificate certificate = read_next(bio.get()))
    some = X509_STORE_add_cert(store, certificate.get()) == 1 || some;
  return some;
}

Status shake_hands(SSL* tls, int fd, const std::string& where, MonoTime deadline) {
  for (;;) {
    const int result = SSL_connect(tls);
    if (result == 1) return {};
    const int why = SSL_get_error(tls, result);
    ERR_clear_error();
    if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE)
      return fail(Code::kUnavailable, where + " does not speak TLS");
    if (!wait_for(fd, why == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, deadline))
      return fail(Code::kUnavailable, where + " did not answer in time");
  }
}

}  // namespace

Result<TlsPeer> probe_tls(const std::string& host, int port, const std::string& name,
                          const std::string& anchors, Duration timeout) {
  const MonoTime deadline = mono_now() + timeout;
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1)
    return fail(Code::kInternal, "OpenSSL does not start");
  if (!add_anchors(context.get(), anchors))
    return fail(Code::kInvalidArgument, "the trusted certificates cannot be read: PEM is needed");
  TRY_ASSIGN(const UniqueFd fd, connect_to(host, port, deadline));
  const Tls tls(SSL_new(context.get()));
  X509_VERIFY_PARAM* const rules = SSL_get0_param(tls.get());
  // SNI carries host names only, never addresses (RFC 6066).
  if (X509_VERIFY_PARAM_set1_ip_asc(rules, name.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(rules, name.c_str(), 0);
    SSL_set_tlsext_host_name(tls.get(), name.c_str());
  }
  ERR_clear_error();
  // The handshake continues despite verification errors; the result is read afterwards.
  SSL_set_verify(tls.get(), SSL_VERIFY_NONE, nullptr);
  SSL_set_fd(tls.get(), fd.get());
  TRY(shake_hands(tls.get(), fd.get(), host + ":" + std::to_string(port), deadline));
  TlsPeer peer;
  if (const long result = SSL_get_verify_result(tls.get()); result != X509_V_OK)
    peer.problem = X509_verify_cert_error_string(result);
  STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(tls.get());
  for (int i = 0; chain && i < sk_X509_num(chain); ++i) {
    TRY_ASSIGN(std::string pem, certificate_text(sk_X509_value(chain, i)));
    peer.chain.push_back(std::move(pem));
  }
  if (peer.chain.empty()) return fail(Code::kUnavailable, host + " shows no certificate");
  return peer;
}

}  // namespace det
