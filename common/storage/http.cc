#include "common/storage/http.h"

#include <netdb.h>
#include <sys/socket.h>

#include <exception>
#include <memory>
#include <utility>

#include "common/base/process.h"
#include "common/base/text.h"
#include "common/storage/curl.h"
#include "common/storage/egress_policy.h"

namespace det::storage {
namespace {

constexpr std::size_t kMaxRefusalBytes = 1 << 20;  // bytes of an error response's body

struct FreeCurl {
  const Curl* curl = nullptr;
  void operator()(CURL* handle) const { curl->easy_cleanup(handle); }
};
struct FreeList {
  const Curl* curl = nullptr;
  void operator()(curl_slist* list) const { curl->slist_free_all(list); }
};
using Headers = std::unique_ptr<curl_slist, FreeList>;

/// State of a running request, passed to libcurl's callbacks.
struct Incoming {
  const Curl& curl;
  CURL* handle;
  const Exchange& request;
  Answer answer = {};
  bool refused = false, too_long = false;
  curl_off_t bytes = 0;               ///< total of both directions
  std::string internal_address = {};  ///< the forbidden address, if the connection was refused
};

/// Returns the handle of this thread for trusted or for untrusted hosts. The two are separate so that an
/// untrusted request never reuses a connection to an inner address that bypassed the check.
CURL* handle_of_thread(const Curl& curl, bool internal_allowed) {
  using Handle = std::unique_ptr<CURL, FreeCurl>;
  thread_local const Handle any(curl.easy_init(), FreeCurl{&curl}), outer(curl.easy_init(), FreeCurl{&curl});
  const Handle& handle = internal_allowed ? any : outer;
  if (handle) curl.easy_reset(handle.get());  // keeps the connections
  return handle.get();
}

std::size_t take_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  const std::string_view line(data, size * count);
  if (line.starts_with("HTTP/")) incoming.answer.headers.clear();  // drops those of "100 Continue"
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return size * count;
  incoming.answer.headers[to_lower(line.substr(0, colon))] = trim(line.substr(colon + 1));
  return size * count;
}

std::size_t take_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& incoming = *static_cast<Incoming*>(user);
  const std::string_view piece(data, size * count);
  long status = 0;
  incoming.curl.easy_getinfo(incoming.handle, CURLINFO_RESPONSE_CODE, &status);
  // Error bodies never reach the sink, which may be writing a file.
  if (incoming.request.sink && status / 100 == 2) {
    incoming.refused = !incoming.request.sink(piece);
    return incoming.refused ? 0 : piece.size();
  }
  const std::size_t most = status / 100 == 2 ? incoming.request.most_bytes : kMaxRefusalBytes;
  incoming.too_long = incoming.answer.body.size() + piece.size() > most;
  if (incoming.too_long) return 0;
  incoming.answer.body += piece;
  return piece.size();
}

/// libcurl's progress callback. Non-zero ends the request.
int watch_progress(void* user, curl_off_t, curl_off_t in, curl_off_t, curl_off_t out) {
  auto& incoming = *static_cast<Incoming*>(user);
  if (std::exchange(incoming.bytes, in + out) != in + out && incoming.request.moved) incoming.request.moved();
  return incoming.request.expired && incoming.request.expired() ? 1 : 0;
}

/// Checks the address that libcurl connects to, not an earlier lookup of the name: prevents DNS rebinding.
curl_socket_t open_outward(void* user, curlsocktype, curl_sockaddr* to) {
  const bool private_allowed = static_cast<Incoming*>(user)->request.private_allowed;
  if (is_internal(to->addr) || (!private_allowed && is_private(to->addr))) {
    char text[NI_MAXHOST] = "";
    (void)::getnameinfo(&to->addr, to->addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    static_cast<Incoming*>(user)->internal_address = text;
    return CURL_SOCKET_BAD;
  }
  return ::socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

void set_method(const Curl& curl, CURL* handle, const Exchange& request) {
  if (request.method == "GET") {
    curl.easy_setopt(handle, CURLOPT_HTTPGET, 1L);
  } else if (request.method == "HEAD") {
    curl.easy_setopt(handle, CURLOPT_NOBODY, 1L);
  } else {
    // POSTFIELDS carries the body of PUT too; the custom method replaces POST.
    if (request.method != "DELETE" || !request.body.empty()) {
      curl.easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl.easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    curl.easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
}

Headers headers_of(const Curl& curl, const Exchange& request) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl.slist_append(list, line.c_str()); };
  for (const auto& [name, value] : request.headers) {
    if (name != "host") add(name + ": " + value);  // libcurl derives the same value from the URL
  }
  add("Expect:");  // sends the body without waiting for "100 Continue"
  // Suppresses libcurl's default Content-Type of POST, which the signature does not cover.
  if (!request.headers.contains("content-type")) add("Content-Type:");
  return Headers(list, FreeList{&curl});
}

/// Sets the PEM texts of the connection. libcurl copies them, and shares connections of equal ones only.
void set_identity(const Curl& curl, CURL* handle, const TlsIdentity& tls) {
  const auto set = [&](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
    curl.easy_setopt(handle, option, &blob);
  };
  set(CURLOPT_CAINFO_BLOB, tls.authorities);
  set(CURLOPT_SSLCERT_BLOB, tls.certificate);
  set(CURLOPT_SSLKEY_BLOB, tls.key);
}

}  // namespace

Result<Answer> exchange(const Exchange& request) {
  TRY_ASSIGN(const Curl* const functions, storage::curl());
  const Curl& curl = *functions;
  CURL* handle = handle_of_thread(curl, request.internal_allowed);
  if (handle == nullptr) return fail(Code::kResourceExhausted, "libcurl does not start");
  Incoming incoming{curl, handle, request};
  char reason[CURL_ERROR_SIZE] = "";
  const Headers headers = headers_of(curl, request);
  curl.easy_setopt(handle, CURLOPT_URL, request.url.c_str());
  curl.easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  // The path is signed as it is, so libcurl must not normalize it.
  curl.easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  // Signals are not safe in a multi-threaded process.
  curl.easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl.easy_setopt(handle, CURLOPT_ERRORBUFFER, reason);
  curl.easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_timeout.count()));
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout.count()));
  curl.easy_setopt(handle, CURLOPT_HTTPHEADER, headers.get());
  curl.easy_setopt(handle, CURLOPT_HEADERFUNCTION, take_header);
  curl.easy_setopt(handle, CURLOPT_HEADERDATA, &incoming);
  curl.easy_setopt(handle, CURLOPT_WRITEFUNCTION, take_body);
  curl.easy_setopt(handle, CURLOPT_WRITEDATA, &incoming);
  curl.easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
  curl.easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, watch_progress);
  curl.easy_setopt(handle, CURLOPT_XFERINFODATA, &incoming);
  if (!request.internal_allowed) {
    curl.easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open_outward);
    curl.easy_setopt(handle, CURLOPT_OPENSOCKETDATA, &incoming);
  }
  // AWS_CA_BUNDLE is the variable of Amazon's tools for private certificate authorities.
  if (const std::string bundle = environment_variable("AWS_CA_BUNDLE"); !bundle.empty())
    curl.easy_setopt(handle, CURLOPT_CAINFO, bundle.c_str());
  if (!request.unix_socket.empty())
    curl.easy_setopt(handle, CURLOPT_UNIX_SOCKET_PATH, request.unix_socket.c_str());
  set_identity(curl, handle, request.tls);
  set_method(curl, handle, request);
  const CURLcode code = curl.easy_perform(handle);
  // A callback that cancels also makes libcurl fail, so the flags are tested before the code.
  if (incoming.refused) return fail(Code::kCancelled, "the download was broken off");
  if (incoming.too_long) return fail(Code::kResourceExhausted, "the store's answer is too long");
  if (code != CURLE_OK && !incoming.internal_address.empty())
    return fail(Code::kFailedPrecondition, internal_address_message(incoming.internal_address));
  if (code != CURLE_OK) return fail(Code::kUnavailable, *reason != '\0' ? reason : curl.easy_strerror(code));
  long status = 0;
  curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
  incoming.answer.status = static_cast<int>(status);
  return std::move(incoming.answer);
}

}  // namespace det::storage
