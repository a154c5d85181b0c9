#include "master/api/accounts/join.h"

#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "det/v1/join.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/accounts/audit.h"

namespace det::api {
namespace {

constexpr Duration kDefaultJoinLifespan = std::chrono::hours(1),
                   kMaxJoinLifespan = std::chrono::hours(24 * 30);
constexpr int kMaxJoinUses = 1000;
constexpr std::size_t kMaxAgentName = 128;
/// Length of the secret that an agent chooses: 256 bits in base64url, and room for other forms.
constexpr std::size_t kMinAgentSecret = 43, kMaxAgentSecret = 128;
/// Validity of an agent's token. It is not renewed; `det agent revoke` ends it.
constexpr Duration kAgentTokenLifetime = std::chrono::hours(24 * 3650);

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
    : Service(context, v1::JoinService::full_name), authority_(std::move(authority)) {
  unary(v1::JoinService::PostJoinToken, &JoinService::PostJoinToken);
  unary(v1::JoinService::GetJoinTokens, &JoinService::GetJoinTokens);
  unary(v1::JoinService::DeleteJoinToken, &JoinService::DeleteJoinToken);
  unary(v1::JoinService::RevokeAgent, &JoinService::RevokeAgent);
  unary(v1::JoinService::Join, &JoinService::Join);
  deferred(v1::JoinService::Renew, &JoinService::Renew);
}

Status JoinService::PostJoinToken(const Caller& caller, const v1::PostJoinTokenRequest& request,
                                  v1::PostJoinTokenResponse* response) {
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
  response->set_token(secret + (authority_ ? "." + authority_->pin : ""));
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

Result<bool> JoinService::is_local(const Caller& caller, const std::string& hash) const {
  const std::string& local = context_.settings.local_join_hash;
  // The file is readable by the operator of the master's machine only, and useless elsewhere.
  if (!local.empty() && equal_secret(local, hash) && is_loopback(caller.credentials.address)) return true;
  TRY(db::check_join_token(context_.pool, hash));
  return false;
}

Result<std::pair<std::string, db::AgentCertificate>> JoinService::issue(const v1::JoinRequest& request,
                                                                        const AgentId& agent) const {
  if (authority_) return sign(*authority_, request.request(), agent);
  const std::string& secret = request.secret();
  if (secret.size() < kMinAgentSecret || secret.size() > kMaxAgentSecret || has_control_characters(secret)) {
    return fail(Code::kInvalidArgument,
                "secret: this master speaks no TLS, so an agent joins with a random text of 43 to 128 "
                "characters; upgrade the agent");
  }
  const std::string fingerprint = agent_token_fingerprint(secret);
  return std::pair(std::string(),
                   db::AgentCertificate{.fingerprint = fingerprint,
                                        .agent = agent,
                                        .key_digest = fingerprint,
                                        .expires = {wall_now().micros + kAgentTokenLifetime.count()}});
}

Status JoinService::Join(const Caller& caller, const v1::JoinRequest& request, v1::JoinResponse* response) {
  if (!is_name(request.agent_id()))
    return fail(Code::kInvalidArgument, "agent_id: 1 to 128 characters, no control characters");
  if (!authority_ && !is_loopback(caller.credentials.address)) {
    return fail(
        Code::kPermissionDenied,
        "this master speaks no TLS, so agents of other machines cannot join; set security.tls.enabled");
  }
  const AgentId agent(request.agent_id());
  // The part after the dot is the pin, which the database does not store.
  const std::string hash = token_hash(request.token().substr(0, request.token().find('.')));
  // Signing costs more than the lookup, so callers without a token are refused before it. Their refusals are
  // not recorded in the table, which they could fill.
  TRY_ASSIGN(const bool local, is_local(caller, hash));
  TRY_ASSIGN(const auto identity, issue(request, agent));
  Status admitted = local ? db::admit_local_agent(context_.pool, identity.second)
                          : db::admit_agent(context_.pool, hash, identity.second);
  const std::string outcome(admitted ? "OK" : code_name(admitted.error().code));
  log::info("audit", {{"action", "JoinService/Join"},
                      {"object", "agent " + agent.value},
                      {"outcome", outcome},
                      {"address", caller.credentials.address}});
  if (!admitted && admitted.error().code == Code::kUnauthenticated) return admitted;
  const Status kept = db::add_audit(context_.pool, {.action = "JoinService/Join",
                                                    .object = "agent " + agent.value,
                                                    .outcome = outcome,
                                                    .address = caller.credentials.address});
  if (!kept) log::error("audit log could not be written", {{"error", kept.error().message}});
  if (admitted) response->set_certificate(identity.first);
  return admitted;
}

Status JoinService::renew(const v1::RenewRequest& request, const AgentCaller& caller,
                          v1::JoinResponse* response) const {
  if (!authority_)
    return fail(Code::kFailedPrecondition, "without TLS an agent has a token, which is not renewed");
  // The id comes from the present certificate, never from the request.
  TRY_ASSIGN(const auto signature, sign(*authority_, request.request(), caller.agent));
  TRY(db::renew_agent(context_.pool, signature.second));
  response->set_certificate(signature.first);
  return {};
}

void JoinService::Renew(const Deferred& call, const v1::RenewRequest* request, v1::JoinResponse* response) {
  call.reactor->Finish(to_grpc(renew(*request, call.agent, response)));
}

}  // namespace det::api
