#include "master/api/accounts/join.h"

#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "master/api/convert/convert.h"
#include "master/db/accounts/audit.h"
#include "master/db/accounts/join.h"

namespace det::api {
namespace {

constexpr Duration kDefaultJoinLifespan = std::chrono::hours(1),
                   kMaxJoinLifespan = std::chrono::hours(24 * 30);
constexpr int kMaxJoinUses = 1000;
constexpr std::size_t kMaxAgentName = 128;

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kMaxAgentName && !has_control_characters(text) &&
         !find_bad_utf8(text);
}

void to_proto(const db::JoinToken& token, v1::JoinTokenInfo* out) {
  out->set_id(token.id);
  out->set_pool(token.pool);
  out->set_agent_id(token.agent);
  out->set_uses_left(static_cast<int>(token.uses_left));
  out->set_created_by(token.created_by);
  api::to_proto(token.created, out->mutable_created_at());
  api::to_proto(token.expires, out->mutable_expiry());
}

/// Signs a certificate for the key in the request and prepares its row.
Result<std::pair<std::string, db::AgentCertificate>> sign(const Authority& authority,
                                                          const std::string& request, const AgentId& agent) {
  db::AgentCertificate row{.agent = agent};
  TRY_ASSIGN(row.key_digest, request_key_digest(request));
  TRY_ASSIGN(std::string certificate,
             sign_client(authority.identity, request, agent.value, authority.lifetime));
  TRY_ASSIGN(const CertificateFacts facts, read_certificate(certificate));
  row.fingerprint = facts.fingerprint;
  row.expires = facts.expires;
  return std::pair(std::move(certificate), std::move(row));
}

}  // namespace

JoinService::JoinService(const Context& context, std::shared_ptr<const Authority> authority)
    : Service(context, "det.v1.JoinService"), authority_(std::move(authority)) {
  unary("PostJoinToken", &JoinService::PostJoinToken);
  unary("GetJoinTokens", &JoinService::GetJoinTokens);
  unary("DeleteJoinToken", &JoinService::DeleteJoinToken);
  unary("RevokeAgent", &JoinService::RevokeAgent);
  unary("Join", &JoinService::Join);
  deferred("Renew", &JoinService::Renew);
}

Result<const Authority*> JoinService::authority() const {
  if (authority_) return authority_.get();
  return fail(Code::kFailedPrecondition,
              "this master speaks no TLS, so agents of other machines cannot join; set security.tls.enabled");
}

Status JoinService::PostJoinToken(const Caller& caller, const v1::PostJoinTokenRequest& request,
                                  v1::PostJoinTokenResponse* response) {
  TRY_ASSIGN(const Authority* authority, this->authority());
  for (const auto& [field, text] :
       {std::pair{"pool", request.pool()}, std::pair{"agent_id", request.agent_id()}}) {
    if (!text.empty() && !is_name(text))
      return fail(Code::kInvalidArgument,
                  std::string(field) + ": at most 128 characters, none of them control characters");
  }
  // 0 is the default, a single use.
  if (request.uses() < 0 || request.uses() > kMaxJoinUses)
    return fail(Code::kInvalidArgument,
                "uses: must be from 1 to 1000, got " + std::to_string(request.uses()));
  Duration lifetime = kDefaultJoinLifespan;
  if (!request.lifespan().empty()) {
    const auto read = parse_duration(request.lifespan());
    if (!read || *read <= Duration(0) || *read > kMaxJoinLifespan)
      return fail(Code::kInvalidArgument, "lifespan: must be a time such as 1h, up to 30 days (720h)");
    lifetime = *read;
  }
  // The prefix shows the kind of a token: det_j_ join, det_p_ access, det_u_ login.
  const std::string secret = "det_j_" + random_token();
  TRY_ASSIGN(const db::JoinToken token, db::create_join_token(context_.pool,
                                                              {.pool = request.pool(),
                                                               .agent = request.agent_id(),
                                                               .uses_left = std::max(1, request.uses()),
                                                               .created_by = caller.user.name},
                                                              token_hash(secret), lifetime));
  // The pin lets the agent authenticate the master before it sends the secret.
  response->set_token(secret + "." + authority->pin);
  to_proto(token, response->mutable_info());
  return {};
}

Status JoinService::GetJoinTokens(const Caller&, const v1::GetJoinTokensRequest&,
                                  v1::GetJoinTokensResponse* response) {
  TRY_ASSIGN(const auto tokens, db::list_join_tokens(context_.pool));
  for (const db::JoinToken& token : tokens) to_proto(token, response->add_tokens());
  return {};
}

Status JoinService::DeleteJoinToken(const Caller&, const v1::DeleteJoinTokenRequest& request,
                                    v1::DeleteJoinTokenResponse*) {
  return db::delete_join_token(context_.pool, request.id());
}

Status JoinService::RevokeAgent(const Caller&, const v1::RevokeAgentRequest& request,
                                v1::RevokeAgentResponse*) {
  return db::revoke_agent(context_.pool, AgentId(make_utf8(request.agent_id())));
}

Status JoinService::Join(const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response) {
  if (!is_name(request.agent_id()))
    return fail(Code::kInvalidArgument, "agent_id: 1 to 128 characters, no control characters");
  TRY_ASSIGN(const Authority* authority, this->authority());
  const AgentId agent(request.agent_id());
  // Signing is harmless before the check: the certificate is only valid once its row exists.
  TRY_ASSIGN(const auto signature, sign(*authority, request.request(), agent));
  // The part after the dot is the pin, which the database does not store.
  const std::string hash = token_hash(request.token().substr(0, request.token().find('.')));
  const Status admitted = db::admit_agent(context_.pool, hash, signature.second);
  const std::string outcome(admitted ? "OK" : code_name(admitted.error().code));
  log::info("audit", {{"action", "JoinService/Join"},
                      {"object", "agent " + agent.value},
                      {"outcome", outcome},
                      {"address", caller.credentials.address}});
  if (!admitted && admitted.error().code == Code::kUnauthenticated)
    // Not recorded in the table: unauthenticated callers could fill it.
    return admitted;
  const Status kept = db::add_audit(context_.pool, {.action = "JoinService/Join",
                                                    .object = "agent " + agent.value,
                                                    .outcome = outcome,
                                                    .address = caller.credentials.address});
  if (!kept) log::error("audit log could not be written", {{"error", kept.error().message}});
  if (admitted) response->set_certificate(signature.first);
  return admitted;
}

Status JoinService::renew(const v1::RenewRequest& request, const Peer& peer,
                          v1::JoinResponse* response) const {
  TRY_ASSIGN(const AgentCaller caller, authorize_agent(peer, context_.pool));
  TRY_ASSIGN(const Authority* authority, this->authority());
  if (!caller.agent)
    return fail(Code::kFailedPrecondition, "this agent has no certificate that could be renewed");
  // The id comes from the present certificate, never from the request.
  TRY_ASSIGN(const auto signature, sign(*authority, request.request(), *caller.agent));
  TRY(db::renew_agent(context_.pool, signature.second));
  response->set_certificate(signature.first);
  return {};
}

grpc::ServerUnaryReactor* JoinService::Renew(grpc::CallbackServerContext* call,
                                             const v1::RenewRequest* request, v1::JoinResponse* response) {
  grpc::ServerUnaryReactor* reactor = call->DefaultReactor();
  post(context_.pools.steer, reactor, [this, reactor, request, response, peer = peer_of(*call)] {
    reactor->Finish(to_grpc(renew(*request, peer, response)));
  });
  return reactor;
}

}  // namespace det::api
