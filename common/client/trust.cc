#include "common/client/trust.h"

#include <algorithm>
#include <filesystem>

#include "common/base/files.h"
#include "common/client/channel.h"
#include "common/client/tokens.h"
#include "common/crypto/certificates.h"
#include "common/crypto/tls_probe.h"

namespace det::cli {
namespace {

constexpr Duration kProbeTimeout = std::chrono::seconds(10);
constexpr std::int64_t kMaxTrustFileBytes = 1 << 20;

/// Path of the certificate that was accepted for this master; "" without a home directory.
std::string kept_file(const Address& address) {
  const std::string logins = TokenFile::default_path();
  if (logins.empty()) return "";
  // An IPv6 address contains characters that are unusual in file names.
  std::string name = address.host + "_" + std::to_string(address.port);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '/' || c == '%'; }, '-');
  return std::filesystem::path(logins).parent_path() / "certs" / (name + ".pem");
}

/// Shows the fingerprint of the chain's last certificate and prompts. Returns that certificate when it is
/// accepted. Errors: kUnauthenticated.
Result<std::string> ask_user(const Address& address, const TlsPeer& shown, const Confirm& confirm) {
  const std::string& anchor = shown.chain.back();
  TRY_ASSIGN(const CertificateFacts facts, read_certificate(anchor));
  const std::string fingerprint = shown_fingerprint(facts.fingerprint);
  const std::string mend =
      "; compare its SHA-256 fingerprint " + fingerprint +
      " with the master's log, and give its file with --cert-file or DET_MASTER_CERT_FILE";
  const std::string untrusted =
      "the certificate of the master at " + address.url() + " is not trusted (" + shown.problem + ")";
  if (!confirm) return fail(Code::kUnauthenticated, untrusted + mend);
  TRY_ASSIGN(const bool trusted,
             confirm(untrusted + ". Its SHA-256 fingerprint is\n\n  " + fingerprint +
                     "\n\nOn a network that you do not trust, compare it with the one in the "
                     "master's log.\nTrust it from now on? [y/N] "));
  if (!trusted) return fail(Code::kUnauthenticated, untrusted + mend);
  return anchor;
}

}  // namespace

MasterTrust known_trust(const Address& address) {
  MasterTrust trust = trust_from_environment(address.url());
  // A file in the environment has precedence over the stored one.
  if (!trust.tls || !trust.cert_file.empty()) return trust;
  const std::string kept = kept_file(address);
  if (!kept.empty() && path_exists(kept)) trust.cert_file = kept;
  return trust;
}

Status establish_trust(const Address& address, const Confirm& confirm) {
  const MasterTrust trust = known_trust(address);
  if (!trust.tls || trust.cert_file == "noverify") return {};
  if (!trust.cert_file.empty()) {
    // A missing or unreadable file is reported here, with its name.
    TRY(read_file(trust.cert_file, kMaxTrustFileBytes));
    return {};
  }
  const std::string name = trust.cert_name.empty() ? address.host : trust.cert_name;
  const auto shown = probe_tls(address.host, address.port, name, "", kProbeTimeout);
  // An unreachable master is reported by the first RPC, which also waits for it.
  if (!shown || shown->problem.empty()) return {};
  TRY_ASSIGN(const std::string anchor, ask_user(address, *shown, confirm));
  // The accepted certificate must also be valid for this host name. Only then is it stored.
  TRY_ASSIGN(const TlsPeer again, probe_tls(address.host, address.port, name, anchor, kProbeTimeout));
  if (!again.problem.empty()) {
    return fail(Code::kUnauthenticated, "the certificate of the master at " + address.url() +
                                            " is no good (" + again.problem +
                                            "); call the master by a name that it is for, or name that "
                                            "with DET_MASTER_CERT_NAME");
  }
  const std::string kept = kept_file(address);
  if (kept.empty())
    return fail(Code::kFailedPrecondition, "no place for certificates: set HOME or XDG_CONFIG_HOME");
  TRY(make_directories(std::filesystem::path(kept).parent_path().string(), 0700));
  return write_file_atomic(kept, anchor, 0600);
}

}  // namespace det::cli
