#include "master/api/auth/agent_auth.h"

#include "master/api/auth/authorize.h"
#include "master/db/accounts/join.h"

namespace det::api {

Status AgentCaller::check_name(const std::string& name) const {
  if (!agent || agent->value == name) return {};
  return fail(Code::kPermissionDenied, "this certificate belongs to agent " + agent->value);
}

Peer peer_of(const grpc::ServerContextBase& context) {
  // The TLS listener forwards connections over an abstract socket and put the peer into its name.
  constexpr std::string_view kNamed = "unix-abstract:";
  const std::string peer = context.peer();
  if (peer.starts_with(kNamed))
    return read_peer_name(std::string_view(peer).substr(kNamed.size())).value_or(Peer{});
  return {.address = read_credentials(context).address};
}

Status may_be_agent(const Peer& peer) {
  if (!peer.tls) {
    if (is_loopback(peer.address)) return {};
    return fail(Code::kPermissionDenied,
                "agents are accepted from this machine only while the master speaks no TLS; set "
                "security.tls.enabled");
  }
  if (peer.certificate.empty()) {
    return fail(
        Code::kPermissionDenied,
        "the agent has no certificate: make a token with `det join-token create` and give it to the agent "
        "with --join-token-file");
  }
  if (peer.believed) return {};
  return fail(
      Code::kPermissionDenied,
      "the agent's certificate has expired, or another authority issued it; join again with a new token");
}

Result<AgentCaller> authorize_agent(const Peer& peer, db::Pool& pool) {
  TRY(may_be_agent(peer));
  // On loopback without TLS there is no certificate to bind the agent to.
  if (!peer.tls) return AgentCaller{.address = peer.address};
  // The lookup, unlike the TLS handshake, also sees revoked certificates.
  auto found = db::find_agent_certificate(pool, peer.certificate);
  if (!found && found.error().code == Code::kNotFound)
    return fail(Code::kPermissionDenied,
                "the agent's certificate is not known here; join again with a new token");
  if (!found) return tl::unexpected(found.error());
  return AgentCaller{.address = peer.address, .agent = found->agent, .pool = found->pool};
}

}  // namespace det::api
