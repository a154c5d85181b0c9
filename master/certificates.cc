#include "certificates.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/text.h"

namespace det {
namespace {

constexpr Duration kAuthorityLifetime = std::chrono::hours(24 * 3650);
/// Longer than a master runs without restart. Some clients reject certificates that are valid for longer.
constexpr Duration kServerLifetime = std::chrono::hours(24 * 825);
constexpr std::int64_t kMaxPemBytes = 1 << 20;

Result<Identity> load_authority(const MasterConfig& config) {
  const std::string directory = config.data_dir + "/tls";
  const std::string certificate = directory + "/ca.pem", key = directory + "/ca.key";
  Identity authority;
  if (path_exists(certificate)) {
    TRY_ASSIGN(authority.certificate, read_file(certificate, kMaxPemBytes));
    TRY_ASSIGN(authority.key, read_file(key, kMaxPemBytes));
    return authority;
  }
  TRY(make_directories(directory, 0700));
  const std::string cluster = config.cluster_name.empty() ? "cluster" : config.cluster_name;
  TRY_ASSIGN(authority, make_authority("Authority of " + cluster, kAuthorityLifetime));
  // The certificate is written last: its existence implies the key's.
  TRY(write_file_atomic(key, authority.key, 0600));
  TRY(write_file_atomic(certificate, authority.certificate, 0644));
  log::info("created the certificate authority", {{"file", certificate}});
  return authority;
}

void add_addresses(std::vector<std::string>& names) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* each = all; each; each = each->ifa_next) {
    char text[INET6_ADDRSTRLEN] = "";
    if (!each->ifa_addr) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text,
                  sizeof text);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
      // Link-local addresses are useless in a certificate: they need a scope.
      if (!IN6_IS_ADDR_LINKLOCAL(&address)) ::inet_ntop(AF_INET6, &address, text, sizeof text);
    }
    if (*text != '\0') names.emplace_back(text);
  }
  ::freeifaddrs(all);
}

/// Returns the names and addresses of this machine without duplicates. The first becomes the subject.
std::vector<std::string> server_names(const MasterConfig& config) {
  std::vector<std::string> names = config.tls.names;
  char host[256] = "";
  if (::gethostname(host, sizeof host - 1) == 0 && *host != '\0') names.emplace_back(host);
  names.insert(names.end(), {"localhost", "127.0.0.1", "::1"});
  add_addresses(names);
  std::vector<std::string> once;
  for (const std::string& name : names)
    if (std::find(once.begin(), once.end(), name) == once.end()) once.push_back(name);
  return once;
}

}  // namespace

Result<Certificates> load_certificates(const MasterConfig& config) {
  api::Authority authority;
  TRY_ASSIGN(authority.identity, load_authority(config));
  authority.lifetime = config.tls.agent_lifetime;
  Certificates made;
  if (config.tls.cert.empty()) {
    auto server = issue_server(authority.identity, server_names(config), kServerLifetime);
    if (!server) return fail(server.error().code, "security.tls.names: " + server.error().message);
    made.server = std::move(*server);
    made.server.certificate += authority.identity.certificate;
  } else {
    TRY_ASSIGN(made.server.certificate, read_file(config.tls.cert, kMaxPemBytes));
    TRY_ASSIGN(made.server.key, read_file(config.tls.key, kMaxPemBytes));
  }
  // Agents pin the last certificate of the chain.
  const auto chain = split_chain(made.server.certificate);
  if (!chain) return fail(Code::kInvalidArgument, config.tls.cert + ": " + chain.error().message);
  TRY_ASSIGN(const CertificateFacts anchor, read_certificate(chain->back()));
  authority.pin = anchor.fingerprint;
  log::info("TLS", {{"certificate", anchor.subject}, {"sha256", shown_fingerprint(anchor.fingerprint)}});
  made.authority = std::make_shared<const api::Authority>(std::move(authority));
  return made;
}

}  // namespace det
