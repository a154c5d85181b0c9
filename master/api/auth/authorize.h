// Authentication and authorization: turns the credentials of a call into a Caller, and checks the rules of
// access.h against the objects of its request.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/ids.h"
#include "common/base/result.h"
#include "master/api/auth/access.h"
#include "master/api/auth/sessions.h"
#include "master/core/model.h"
#include "master/db/accounts/sessions.h"
#include "master/db/accounts/users.h"

namespace det::api {

/// Credentials and address of a call.
struct Credentials {
  std::string user_token;        ///< metadata `authorization` or `x-user-token`, without "Bearer "
  std::string allocation_token;  ///< metadata `x-allocation-token`, without "Bearer "
  std::string agent_token;       ///< metadata `x-agent-token`, without "Bearer "
  std::string address;           ///< IP address of the client without port
};
/// Reads the metadata of a call. The address is taken from the metadata only for calls of the gateway in this
/// process.
Credentials read_credentials(const grpc::ServerContextBase& context);
/// Credentials of a client of the gateway: both tokens with "Bearer ".
Credentials read_credentials(std::string_view authorization, std::string_view allocation_token,
                             std::string address);
/// Address in the peer name of gRPC ("ipv4:127.0.0.1:5000", "ipv6:%5B::1%5D:5000"), without port. "" for
/// peers without an address, such as calls inside this process.
std::string peer_address(std::string_view peer);
/// Whether an address without port is ::1 or in 127.0.0.0/8.
bool is_loopback(std::string_view address);

/// An authenticated caller. Agents and processes of a trial have credentials only. The handlers check those
/// of agents, and that the token of a process is one of the objects of its request.
struct Caller {
  db::User user;           ///< set for users
  db::Grants grants;       ///< roles of the user
  bool limited = false;    ///< the access token has fewer rights than its user
  std::string token_hash;  ///< identifies the session of a user; "" otherwise
  Credentials credentials;
};

/// Checks that the caller may delete an object: its owner may, others need the role WorkspaceAdmin. Call it
/// after authorize(), which hides objects. Errors: kPermissionDenied.
Status authorize_deletion(const Caller& caller, UserId owner, Target target, const std::string& id,
                          db::Pool& pool);
/// Checks that the caller may do `action` to each of `ids`. Errors: kNotFound for an object that does not
/// exist or that the caller may not see, with the same message; kPermissionDenied for an object that the
/// caller may see but not change in this way; kInvalidArgument for more than 10,000 ids. Queries the database
/// only for Target::kToken and when the caller's roles differ between workspaces.
Status authorize(const Caller& caller, Action action, Target target, const std::vector<std::string>& ids,
                 db::Pool& pool);

/// authorize() for the workspace in which a template, a webhook or a model is stored. As in Determined AI, a
/// hidden workspace is refused, and so is one that does not exist. Errors: kPermissionDenied.
Status authorize_storing(const Caller& caller, std::int64_t workspace, db::Pool& pool);
/// kPermissionDenied for a workspace, as named in the message, that is hidden or does not exist.
tl::unexpected<Error> no_role_in(const std::string& workspace);

/// Returns for each of `ids` whether the caller may see it, in the same order. Queries the database unless
/// the caller may see everything.
Result<std::vector<bool>> may_see(const Caller& caller, db::Placed kind, const std::vector<std::string>& ids,
                                  db::Pool& pool);

/// Identifies the caller of `method` by its credentials alone. Errors: kUnauthenticated without valid
/// credentials, kPermissionDenied for an unknown method. Calls of agents are authenticated by their handlers
/// (agent_auth.h) and refused here. The token of a process must be that of any running allocation; the
/// handler checks that it is the right one. May block on the database and the core.
Result<Caller> authenticate(std::string_view method, Credentials credentials, Sessions& sessions);
/// Checks what is known of an authenticated caller before the request is read: whether its roles could allow
/// `method` on any object. Records a refusal in the audit log. Errors: kPermissionDenied, which names the
/// role that is missing. Blocks for a refusal.
Status check_roles(std::string_view method, const Caller& caller, db::Pool& pool);
/// Key of the caller in a Budget: its user, or else its token.
std::string budget_owner(const Caller& caller);
/// Applies the rules of `method` to the objects that `request` names, and records a refusal in the audit log.
/// `request` may be null for a stream before its first message; then rules about objects refuse the call.
/// Callers without a user (agents, processes of a trial) pass: the handler checks them.
Status check_rules(std::string_view method, const Caller& caller, const google::protobuf::Message* request,
                   db::Pool& pool);
/// authenticate, then check_rules.
Result<Caller> authorize(std::string_view method, Credentials credentials, Sessions& sessions,
                         const google::protobuf::Message* request = nullptr);

/// Token of a task's owner, from the token of one of its allocations.
std::string task_user_token(const AllocationId& allocation, std::string_view token);
/// The form in which tokens are stored: SHA-256 in hex.
std::string token_hash(std::string_view token);
/// Keeps the tokens of allocations that a release with derived tokens has started:
/// base64url(HMAC-SHA256(cluster secret, allocation id)). Sets the hashes of parts that have none; later
/// allocations always have one.
void accept_derived_tokens(std::string_view cluster_secret, std::vector<core::Allocation>& allocations);

}  // namespace det::api
