#include "master/api/auth/agent_auth.h"

#include "master/api/auth/authorize.h"
#include "master/db/accounts/join.h"

namespace det::api {

Status AgentCaller::check_name(const std::string& name) const {
  if (agent.value == name) return {};
  return fail(Code::kPermissionDenied, "this identity belongs to agent " + agent.value);
}

AgentPeer peer_of(const grpc::ServerContextBase& context) {
  // The acceptor forwards connections over an abstract socket and put the peer into its name.
  constexpr std::string_view kNamed = "unix-abstract:";
  const std::string name = context.peer();
  const Credentials credentials = read_credentials(context);
  if (name.starts_with(kNamed)) {
    Peer peer = read_peer_name(std::string_view(name).substr(kNamed.size())).value_or(Peer{});
    // A connection with TLS is identified by its certificate alone.
    return {peer, peer.tls ? "" : credentials.agent_token};
  }
  return {{.address = credentials.address}, credentials.agent_token};
}

Status may_be_agent(const AgentPeer& peer) {
  if (!peer.tls) {
    if (!is_loopback(peer.address)) {
      return fail(Code::kPermissionDenied,
                  "agents are accepted from this machine only while the master speaks no TLS; set "
                  "security.tls.enabled");
    }
    if (!peer.token.empty()) return {};
    return fail(
        Code::kPermissionDenied,
        "the agent has no token: give it a join token with --join-token-file, DATA_DIR/agent-join-token "
        "of the master or one of `det join-token create`");
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
      "the agent's certificate has expired, or another authority issued it: store a new token of `det "
      "join-token create` in the agent's join_token_file (DATA_DIR/join-token) and restart the agent; if the "
      "authority has changed, remove DATA_DIR/tls of the agent first");
}

Result<AgentCaller> authorize_agent(const AgentPeer& peer, db::Pool& pool) {
  TRY(may_be_agent(peer));
  // The lookup, unlike the TLS handshake, also sees revoked certificates.
  auto found =
      db::find_agent_certificate(pool, peer.tls ? peer.certificate : agent_token_fingerprint(peer.token));
  if (!found && found.error().code == Code::kNotFound)
    return fail(Code::kPermissionDenied,
                "the agent's " + std::string(peer.tls ? "certificate" : "token") +
                    " is not known here; remove DATA_DIR/tls of the agent and join again with a new token");
  if (!found) return tl::unexpected(found.error());
  return AgentCaller{.address = peer.address, .agent = found->agent, .pool = found->pool};
}

std::string agent_token_fingerprint(std::string_view token) { return "token:" + token_hash(token); }

}  // namespace det::api
