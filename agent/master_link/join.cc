#include "agent/master_link/join.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "agent/master_link/link.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/client/calls.h"
#include "common/crypto/certificates.h"
#include "common/crypto/tls_probe.h"
#include "det/v1/join.methods.h"

namespace det::agent {
namespace {

using namespace std::chrono_literals;

constexpr Duration kJoinTimeout = 10s;  // limit of one call to the master
constexpr Duration kProbe = 2s;
constexpr Duration kMasterPatience = 30s, kJoinRetry = 250ms;  // while the master cannot be reached
constexpr Duration kMaxCheckInterval = 1h;                     // between two checks of the certificate
constexpr Duration kMinCheckInterval = 1s;                     // also after a failure
constexpr std::int64_t kMaxFileBytes = 1 << 20;

/// Files of the agent's identity.
struct Files {
  explicit Files(const std::string& in)
      : directory(in),
        key(in + "/agent.key"),
        cert(in + "/agent.pem"),
        ca(in + "/ca.pem"),
        token(in + "/agent.token"),
        new_token(in + "/agent.token.new") {}
  std::string directory, key, cert, ca;
  std::string token;      ///< without TLS; exists once the agent has joined
  std::string new_token;  ///< a token that the master may not have admitted yet
};

Result<std::string> read_join_token(const Settings& settings) {
  const std::string& file = settings.join_token_file;
  if (!path_exists(file)) {
    return fail(
        Code::kFailedPrecondition,
        "no join token: " + file +
            " does not exist, and this agent has not joined yet; on the master's machine pass "
            "--join-token-file DATA_DIR/agent-join-token (of the master), elsewhere get a token with `det "
            "join-token create`");
  }
  TRY_ASSIGN(const std::string text, read_file(file, 4096));
  const std::string token(trim(text));
  if (token.starts_with("det_j_")) return token;
  return fail(Code::kInvalidArgument,
              "join_token_file: " + file + " has no join token; create one with `det join-token create`");
}

/// Returns the pin of a token "det_j_SECRET.PIN": the fingerprint of the certificate to trust.
Result<std::string> pin_of(const std::string& token) {
  const std::size_t dot = token.find('.');
  const std::string pin = dot == std::string::npos ? "" : token.substr(dot + 1);
  if (pin.size() == 64 && pin.find_first_not_of("0123456789abcdef") == std::string::npos) return pin;
  return fail(
      Code::kInvalidArgument,
      "join_token_file: not a join token of a master with TLS; create one with `det join-token create`");
}

struct Address {
  std::string host;
  int port = 0;
};
Address split_address(const std::string& master) {
  const std::string plain = without_scheme(master);
  const std::size_t colon = plain.rfind(':');
  std::string host = plain.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return {host, std::stoi(plain.substr(colon + 1))};
}

/// Returns the certificate pinned by the token from the chain that the master presents.
Result<std::string> find_anchor(const Settings& settings, const std::string& pin) {
  const Address at = split_address(settings.master);
  const std::string name = settings.master_cert_name.empty() ? at.host : settings.master_cert_name;
  // The first probe trusts nothing; the second verifies the chain against the pinned certificate.
  TRY_ASSIGN(const TlsPeer shown, probe_tls(at.host, at.port, name, "", kJoinTimeout));
  for (const std::string& certificate : shown.chain) {
    TRY_ASSIGN(const CertificateFacts facts, read_certificate(certificate));
    if (facts.fingerprint != pin) continue;
    TRY_ASSIGN(const TlsPeer again, probe_tls(at.host, at.port, name, certificate, kJoinTimeout));
    if (again.problem.empty()) return certificate;
    return fail(Code::kPermissionDenied,
                "the certificate of " + settings.master + " is not valid for " + name + " (" + again.problem +
                    "); use a name of the certificate, or set security.tls.names of the master");
  }
  return fail(Code::kPermissionDenied,
              settings.master +
                  " is not the master that created this join token, or the connection is "
                  "intercepted; no data was sent");
}

/// Returns the agent's private key, created at the first call. It survives failed attempts to join.
Result<std::string> own_key(const Files& files) {
  if (path_exists(files.key)) return read_file(files.key, kMaxFileBytes);
  TRY(make_directories(files.directory, 0700));
  TRY_ASSIGN(const std::string key, make_private_key());
  TRY(write_file_atomic(files.key, key, 0600));
  return key;
}

void set_deadline(grpc::ClientContext& context) {
  context.set_deadline(gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_seconds(std::chrono::duration_cast<std::chrono::seconds>(kJoinTimeout).count(),
                            GPR_TIMESPAN)));
}

/// Sends the join request. Errors: those of the master.
Result<v1::JoinResponse> send_join(const Settings& settings, const MasterTrust& trust,
                                   const v1::JoinRequest& request) {
  TRY_ASSIGN(const auto channel, open_channel(settings.master, trust));
  grpc::ClientContext context;
  set_deadline(context);
  v1::JoinResponse response;
  const grpc::Status status = wire::call(channel, v1::JoinService::Join, context, request, response);
  if (!status.ok())
    return fail(static_cast<Code>(status.error_code()),
                "the master rejected the join: " + status.error_message());
  log::info("joined the cluster", {{"master", settings.master}, {"agent", settings.id}});
  return response;
}

Status join_with_tls(const Settings& settings, const Files& files) {
  TRY_ASSIGN(const std::string token, read_join_token(settings));
  // The master is verified before the token is sent.
  TRY_ASSIGN(const std::string pin, pin_of(token));
  TRY_ASSIGN(const std::string anchor, find_anchor(settings, pin));
  TRY_ASSIGN(const std::string key, own_key(files));
  TRY(write_file_atomic(files.ca, anchor, 0644));
  v1::JoinRequest request;
  request.set_token(token);
  request.set_agent_id(settings.id);
  TRY_ASSIGN(*request.mutable_request(), make_request(key, settings.id));
  const MasterTrust trust{.tls = true, .cert_file = files.ca, .cert_name = settings.master_cert_name};
  TRY_ASSIGN(const v1::JoinResponse response, send_join(settings, trust, request));
  return write_file_atomic(files.cert, response.certificate(), 0600);
}

/// Joins without TLS: the master admits a secret of the agent's own, which survives failed attempts to join.
Status join_in_plain_text(const Settings& settings, const Files& files) {
  v1::JoinRequest request;
  TRY_ASSIGN(*request.mutable_token(), read_join_token(settings));
  request.set_agent_id(settings.id);
  TRY(make_directories(files.directory, 0700));
  const std::string& known = path_exists(files.token) ? files.token : files.new_token;
  if (!path_exists(known)) TRY(write_file_atomic(known, random_token(), 0600));
  TRY_ASSIGN(*request.mutable_secret(), read_file(known, 4096));
  TRY(send_join(settings, {}, request));
  if (known == files.token) return {};
  TRY(write_file_atomic(files.token, request.secret(), 0600));
  ::unlink(files.new_token.c_str());
  return {};
}

/// Repeats `join` while the master cannot be reached: agent and master often start together.
Status join_patiently(const std::function<Status()>& join) {
  const MonoTime deadline = mono_now() + kMasterPatience;
  bool warned = false;
  for (;;) {
    Status done = join();
    if (done || done.error().code != Code::kUnavailable || mono_now() >= deadline) return done;
    if (!std::exchange(warned, true))
      log::warn("joining waits for the master", {{"reason", done.error().message}});
    (void)Event().wait_for(kJoinRetry);
  }
}

bool has_expired(const std::string& cert_file) {
  const auto pem = read_file(cert_file, kMaxFileBytes);
  const auto facts = pem ? read_certificate(*pem) : Result<CertificateFacts>(tl::unexpected(pem.error()));
  return facts && facts->expires <= wall_now();
}

/// Renews once: on success the new certificate is stored.
Status renew(const std::shared_ptr<grpc::Channel>& channel, const MasterTrust& trust,
             const std::string& agent_id) {
  TRY_ASSIGN(const std::string key, read_file(trust.own_key, kMaxFileBytes));
  v1::RenewRequest request;
  TRY_ASSIGN(*request.mutable_request(), make_request(key, agent_id));
  grpc::ClientContext context;
  set_deadline(context);
  v1::JoinResponse response;
  const grpc::Status status = wire::call(channel, v1::JoinService::Renew, context, request, response);
  if (!status.ok()) return fail(static_cast<Code>(status.error_code()), status.error_message());
  return write_file_atomic(trust.own_cert, response.certificate(), 0600);
}

/// Returns the time until a third of the lifetime is left.
Duration until_renewal(const std::string& path, Duration life) {
  const auto pem = read_file(path, kMaxFileBytes);
  const auto facts = pem ? read_certificate(*pem) : Result<CertificateFacts>(tl::unexpected(pem.error()));
  if (!facts) return kMaxCheckInterval;
  return Duration(facts->expires.micros - wall_now().micros) - life / 3;
}

}  // namespace

Result<MasterTrust> establish_trust(const Settings& settings, const std::string& directory) {
  MasterTrust trust{.tls = is_tls(settings.master),
                    .cert_file = settings.master_cert,
                    .cert_name = settings.master_cert_name};
  const Files files(directory);
  if (!trust.tls) {
    // The probe detects a master that requires TLS, for a helpful message.
    const Address at = split_address(settings.master);
    if (probe_tls(at.host, at.port, at.host, "", kProbe)) {
      return fail(Code::kInvalidArgument,
                  "master: it accepts only TLS; write it as https://" + without_scheme(settings.master));
    }
    if (!path_exists(files.token)) {
      TRY(join_patiently([&] { return join_in_plain_text(settings, files); }));
    } else if (path_exists(settings.join_token_file)) {
      // Joining again with the same secret readmits the agent to a master with a new database.
      if (const Status again = join_in_plain_text(settings, files); !again)
        log::debug("the agent did not join again", {{"reason", again.error().message}});
    }
    TRY_ASSIGN(trust.own_token, read_file(files.token, 4096));
    return trust;
  }
  const auto join = [&] { return join_with_tls(settings, files); };
  if (!path_exists(files.cert)) {
    TRY(join_patiently(join));
  } else if (has_expired(files.cert) && path_exists(settings.join_token_file)) {
    // With the old certificate the agent still enforces the lease of its allocations.
    if (const Status again = join_patiently(join); !again)
      log::warn("the agent's certificate has expired, and the join token was not accepted",
                {{"reason", again.error().message}, {"join_token_file", settings.join_token_file}});
  }
  if (trust.cert_file.empty() && path_exists(files.ca)) trust.cert_file = files.ca;
  trust.own_cert = files.cert;
  trust.own_key = files.key;
  return trust;
}

Renewal::Renewal(std::shared_ptr<grpc::Channel> channel, const MasterTrust& trust, std::string agent_id)
    : channel_(std::move(channel)), trust_(trust), agent_id_(std::move(agent_id)) {
  if (!trust_.own_cert.empty()) thread_ = std::thread([this] { run(); });
}

Renewal::~Renewal() {
  stop_.set();
  if (thread_.joinable()) thread_.join();
}

void Renewal::run() {
  std::string last_trouble;
  // The remaining time stands for the lifetime until the first renewal; renewing early does no harm.
  Duration life = until_renewal(trust_.own_cert, Duration(0));
  while (!stop_.is_set()) {
    Duration nap = until_renewal(trust_.own_cert, life);
    if (nap <= Duration(0)) {
      const Status done = renew(channel_, trust_, agent_id_);
      if (done) {
        life = until_renewal(trust_.own_cert, Duration(0));
        log::info("renewed the agent's certificate");
      } else if (done.error().message != last_trouble) {
        log::warn("certificate of the agent could not be renewed", {{"reason", done.error().message}});
      }
      last_trouble = done ? "" : done.error().message;
      nap = life / 30;
    }
    (void)stop_.wait_for(std::clamp<Duration>(nap, kMinCheckInterval, kMaxCheckInterval));
  }
}

}  // namespace det::agent
