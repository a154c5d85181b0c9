// Owns who may call what: credentials become a caller, the caller and the request's objects a yes or a no;
// what is not allowed is refused. The table is access.h's.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "master/api/access.h"
#include "master/api/sessions.h"
#include "master/db/accounts.h"

namespace det::api {

/// What a call brought with it.
struct Credentials {
  std::string user_token;        ///< metadata `authorization` or `x-user-token`, without "Bearer "
  std::string allocation_token;  ///< metadata `x-allocation-token`, without "Bearer "
  std::string address;           ///< the client's address without port
  bool loopback = false;
};
Credentials read_credentials(const grpc::ServerContextBase& context);
/// The part of read_credentials that reads gRPC's name of a peer: "ipv4:127.0.0.1:5000",
/// "ipv6:%5B::1%5D:5000". "" for peers without an address (calls inside this process).
std::string peer_address(std::string_view peer);
bool is_loopback(std::string_view address);

struct Caller {
  db::User user;           ///< of kUser
  db::Grants grants;       ///< likewise
  bool limited = false;    ///< it came with an access token that reaches less far than its user
  std::string token_hash;  ///< likewise: names the session
  Credentials credentials;
};

/// May the caller do `action` to each of `ids`? kNotFound for what does not exist or may not be seen, in the
/// same words; kPermissionDenied for what may be seen but not so treated. Asks the database only when the
/// caller's roles differ between workspaces.
Status authorize(const Caller& caller, Action action, Target target, const std::vector<std::string>& ids,
                 db::Pool& pool);

/// Which of `ids` may the caller look at? As long as `ids`.
Result<std::vector<bool>> may_see(const Caller& caller, db::Placed kind, const std::vector<std::string>& ids,
                                  db::Pool& pool);

/// Identifies the caller of `method` by its credentials alone. Errors: kUnauthenticated without valid
/// credentials, kPermissionDenied for a remote agent without a certificate and for an unknown method. May ask
/// the database.
Result<Caller> authenticate(std::string_view method, Credentials credentials, Sessions& sessions);
/// Applies the rules of `method` to the objects that `request` names, and records a refusal in the audit log.
/// `request` may be null for a stream whose first message has not arrived; then rules about objects refuse
/// the call. Callers without a user (agents, processes of a trial) pass: the handler checks them.
Status check_rules(std::string_view method, const Caller& caller, const google::protobuf::Message* request,
                   db::Pool& pool);
/// authenticate, then check_rules.
Result<Caller> authorize(std::string_view method, Credentials credentials, Sessions& sessions,
                         const google::protobuf::Message* request = nullptr);

/// Notes in the audit log (the table and the master's log) how a change came out, when the method is one. Not
/// for callers that are nobody: strangers must not fill tables.
void audit(db::Pool& pool, const Caller& caller, std::string_view method,
           const google::protobuf::Message* request, const Status& outcome);

/// What the database keeps of a session token.
std::string token_hash(std::string_view token);
/// base64url(HMAC-SHA256(cluster secret, allocation id)).
std::string allocation_token(std::string_view secret, const AllocationId& id);

}  // namespace det::api
