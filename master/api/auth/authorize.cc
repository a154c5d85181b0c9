#include "master/api/auth/authorize.h"

#include <sodium.h>

#include <algorithm>

#include "common/base/log.h"
#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/crypto/peer.h"
#include "det/v1/tunnel.pb.h"
#include "master/api/auth/audit_record.h"
#include "master/api/auth/role_names.h"
#include "master/db/queries/commands.h"

namespace det::api {
namespace {

// Objects of one request.
constexpr std::size_t kMaxObjectsPerCall = 10'000;

std::string metadata(const grpc::ServerContextBase& context, const char* key) {
  const auto& all = context.client_metadata();
  auto it = all.find(key);
  return it == all.end() ? "" : std::string(it->second.data(), it->second.size());
}

std::string bearer(std::string_view header) {
  constexpr std::string_view kPrefix = "bearer ";
  if (to_lower(header.substr(0, kPrefix.size())) != kPrefix) return "";
  return std::string(trim(header.substr(kPrefix.size())));
}

db::Role needed(Action action) {
  switch (action) {
    case Action::kViewModel:
      return db::Role::kModelRegistryViewer;
    case Action::kView:
    case Action::kUseBoards:
      return db::Role::kViewer;
    case Action::kCreateWorkspace:
    case Action::kEdit:
      return db::Role::kEditorRestricted;
    case Action::kRunTasks:
      return db::Role::kEditor;
    case Action::kManage:
      return db::Role::kWorkspaceAdmin;
    case Action::kAdminister:
      break;
  }
  return db::Role::kClusterAdmin;
}

/// Role from which on objects are visible. Models have a role of their own.
db::Role seeing(Target target) {
  return target == Target::kModel ? db::Role::kModelRegistryViewer : db::Role::kViewer;
}

/// Whether the caller has the role of an action somewhere.
bool may_anywhere(const Caller& caller, Action action) {
  if (action == Action::kCreateWorkspace && caller.grants.creates_workspaces()) return true;
  return caller.grants.anywhere() >= needed(action);
}

/// Targets with a workspace. Nothing for the others.
std::optional<db::Placed> placed(Target target) {
  switch (target) {
    case Target::kWorkspace:
      return db::Placed::kWorkspace;
    case Target::kProject:
      return db::Placed::kProject;
    case Target::kExperiment:
      return db::Placed::kExperiment;
    case Target::kTrial:
      return db::Placed::kTrial;
    case Target::kCheckpoint:
      return db::Placed::kCheckpoint;
    case Target::kTemplate:
      return db::Placed::kTemplate;
    case Target::kTask:
    case Target::kConnection:
      return db::Placed::kTask;
    case Target::kModel:
      return db::Placed::kModel;
    case Target::kAllocation:
      return db::Placed::kAllocation;
    default:
      return std::nullopt;
  }
}

/// The message is the one of the queries, so that a hidden object looks like one that does not exist.
tl::unexpected<Error> not_found(Target target, const std::string& id) {
  const bool quoted = target == Target::kTemplate || target == Target::kModel;
  return fail(Code::kNotFound, std::string(target_name(target)) + " " +
                                   (quoted ? "\"" + make_utf8(id) + "\"" : make_utf8(id)) + " not found");
}

tl::unexpected<Error> denied(const Caller& caller, Action action, Target target, const std::string& id) {
  const std::string who = caller.limited ? "this access token" : "user " + caller.user.name;
  return fail(Code::kPermissionDenied, "access denied: " + who + " may look at " +
                                           std::string(target_name(target)) + " " + make_utf8(id) +
                                           " but not do this; it needs the role " +
                                           std::string(shown_name(needed(action))));
}

Status authorize_cluster(const Caller& caller, Action action) {
  if (caller.grants.everywhere() >= needed(action)) return {};
  return fail(Code::kPermissionDenied, "this is for admins; user " + caller.user.name + " is none");
}

/// Users may change their own account, but not with a limited access token: it could raise its own rights.
Status authorize_own(const Caller& caller, Action action, Target target, const std::string& id, bool own) {
  if (caller.grants.everywhere() == db::Role::kClusterAdmin) return {};
  // Tokens of other users are hidden, not refused.
  if (!own && target == Target::kToken) return not_found(target, id);
  if (!own) return denied(caller, Action::kAdminister, target, id);
  if (caller.limited && action != Action::kView) return denied(caller, Action::kAdminister, target, id);
  return {};
}

Status authorize_tokens(const Caller& caller, Action action, const std::vector<std::string>& ids,
                        db::Pool& pool) {
  db::TokenFilter filter{.user = caller.user.id, .ended = true};
  TRY_ASSIGN(const auto own, db::list_tokens(pool, filter));
  for (const std::string& id : ids) {
    bool found = false;
    for (const db::TokenRow& row : own.rows) found = found || std::to_string(row.id) == id;
    TRY(authorize_own(caller, action, Target::kToken, id, found));
  }
  return {};
}

/// First part of the user token of a task; the id of the allocation, a dot and its token follow.
constexpr std::string_view kTaskPrefix = "task-";

Result<db::Session> find_session(const Caller& caller, Sessions& sessions) {
  const std::string_view token = caller.credentials.user_token;
  const std::size_t dot = token.rfind('.');
  if (!token.starts_with(kTaskPrefix) || dot == std::string_view::npos)
    return sessions.find(caller.token_hash);
  const AllocationId allocation{std::string(token.substr(kTaskPrefix.size(), dot - kTaskPrefix.size()))};
  return sessions.find_task(allocation, token_hash(token.substr(dot + 1)));
}

Result<Caller> identify(Credentials credentials, Sessions& sessions) {
  Caller caller{.credentials = std::move(credentials)};
  if (caller.credentials.user_token.empty()) return fail(Code::kUnauthenticated, "not logged in");
  caller.token_hash = token_hash(caller.credentials.user_token);
  auto session = find_session(caller, sessions);
  if (!session && session.error().code == Code::kNotFound)
    return fail(Code::kUnauthenticated, "the session has ended; log in again");
  if (!session) return tl::unexpected(session.error());
  caller.user = std::move(session->user);
  caller.grants = std::move(session->grants);
  caller.limited = session->limited;
  return caller;
}

/// Checks the credentials of a process: the token of an allocation, or of the owner of a trial outside the
/// cluster.
Status check_process(const Credentials& credentials, Sessions& sessions) {
  if (!credentials.allocation_token.empty())
    return sessions.check_allocation(token_hash(credentials.allocation_token));
  if (credentials.user_token.empty())
    return fail(Code::kUnauthenticated, "the allocation's token is missing (metadata x-allocation-token)");
  // The user stays out of the caller: its roles allow nothing here.
  TRY(identify(credentials, sessions));
  return {};
}

/// Token of an allocation in releases that stored none.
std::string derived_token(std::string_view secret, const AllocationId& id) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(secret.data()), secret.size());
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(id.value.data()),
                                id.value.size());
  std::string mac(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data()));
  return to_base64url(mac);
}

}  // namespace

std::string task_user_token(const AllocationId& allocation, std::string_view token) {
  return std::string(kTaskPrefix) + allocation.value + "." + std::string(token);
}

std::string peer_address(std::string_view peer) {
  constexpr std::string_view kNamed = "unix-abstract:";
  if (peer.starts_with(kNamed)) {
    const auto named = read_peer_name(peer.substr(kNamed.size()));
    return named ? named->address : "";
  }
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return "";
  std::string_view rest = peer.substr(5);
  rest = rest.substr(0, rest.rfind(':'));
  std::string address(rest);
  // gRPC escapes the brackets of IPv6 addresses.
  for (const auto& [from, to] :
       {std::pair<std::string, std::string>{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}}) {
    if (const std::size_t at = address.find(from); at != std::string::npos)
      address.replace(at, from.size(), to);
  }
  // IPv4 clients of a dual-stack socket.
  if (address.starts_with("::ffff:") && address.find('.') != std::string::npos) address = address.substr(7);
  return address;
}

bool is_loopback(std::string_view address) { return address == "::1" || address.starts_with("127."); }

Credentials read_credentials(const grpc::ServerContextBase& context) {
  Credentials credentials;
  credentials.user_token = bearer(metadata(context, "authorization"));
  if (credentials.user_token.empty()) credentials.user_token = bearer(metadata(context, "x-user-token"));
  credentials.allocation_token = bearer(metadata(context, "x-allocation-token"));
  credentials.agent_token = bearer(metadata(context, "x-agent-token"));
  const std::string peer = context.peer();
  credentials.address = peer_address(peer);
  // Only the gateway in this process may name the client it calls for.
  const bool inside = credentials.address.empty() && !peer.starts_with("unix");
  if (inside) credentials.address = metadata(context, "x-det-peer");
  return credentials;
}

Credentials read_credentials(std::string_view authorization, std::string_view allocation_token,
                             std::string address) {
  return {.user_token = bearer(authorization),
          .allocation_token = bearer(allocation_token),
          .agent_token = "",
          .address = std::move(address)};
}

Status authorize(const Caller& caller, Action action, Target target, const std::vector<std::string>& ids,
                 db::Pool& pool) {
  if (ids.size() > kMaxObjectsPerCall)
    return fail(Code::kInvalidArgument, "at most " + std::to_string(kMaxObjectsPerCall) + " objects at once");
  if (target == Target::kNothing || target == Target::kListed || target == Target::kInside) return {};
  if (target == Target::kCluster) return authorize_cluster(caller, action);
  if (target == Target::kToken) return authorize_tokens(caller, action, ids, pool);
  if (target == Target::kUser) {
    for (const std::string& id : ids)
      TRY(authorize_own(caller, action, target, id, id == std::to_string(caller.user.id.value)));
    return {};
  }
  const auto kind = placed(target);
  if (!kind) return fail(Code::kPermissionDenied, "open to nobody");
  if (caller.grants.everywhere() >= needed(action)) return {};
  TRY_ASSIGN(const auto workspaces, db::workspaces_of(pool, *kind, ids));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const db::Role role = workspaces[i] ? caller.grants.in(*workspaces[i]) : db::Role::kNone;
    if (role < seeing(target)) return not_found(target, ids[i]);
    if (role < needed(action)) return denied(caller, action, target, ids[i]);
  }
  return {};
}

Status authorize_deletion(const Caller& caller, UserId owner, Target target, const std::string& id,
                          db::Pool& pool) {
  if (caller.user.id == owner) return {};
  return authorize(caller, Action::kManage, target, std::vector<std::string>{id}, pool);
}

Status authorize_storing(const Caller& caller, std::int64_t workspace, db::Pool& pool) {
  const std::string id = std::to_string(workspace);
  Status allowed = authorize(caller, Action::kEdit, Target::kWorkspace, {id}, pool);
  if (allowed || allowed.error().code != Code::kNotFound) return allowed;
  return no_role_in("workspace " + id);
}

tl::unexpected<Error> no_role_in(const std::string& workspace) {
  return fail(Code::kPermissionDenied,
              "access denied: " + workspace + " does not exist, or you have no role in it that allows this");
}

Result<std::vector<bool>> may_see(const Caller& caller, db::Placed kind, const std::vector<std::string>& ids,
                                  db::Pool& pool) {
  if (!caller.grants.visible()) return std::vector<bool>(ids.size(), true);
  TRY_ASSIGN(const auto workspaces, db::workspaces_of(pool, kind, ids));
  std::vector<bool> seen(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i)
    seen[i] = workspaces[i] && caller.grants.in(*workspaces[i]) >= db::Role::kViewer;
  return seen;
}

Result<Caller> authenticate(std::string_view method, Credentials credentials, Sessions& sessions) {
  const Access* const entry = access(method);
  if (!entry) return fail(Code::kPermissionDenied, std::string(method) + " is open to nobody");
  // Processes of a trial have no user.
  const bool by_allocation = entry->requirement == Requirement::kUserOrAllocation &&
                             credentials.user_token.empty() && !credentials.allocation_token.empty();
  if (!by_allocation &&
      (entry->requirement == Requirement::kUser || entry->requirement == Requirement::kUserOrAllocation)) {
    return identify(std::move(credentials), sessions);
  }
  Caller caller{.credentials = std::move(credentials)};
  if (by_allocation || entry->requirement == Requirement::kAllocation)
    TRY(check_process(caller.credentials, sessions));
  if (entry->requirement == Requirement::kAgent)
    return fail(Code::kPermissionDenied, "only an agent may call " + std::string(method));
  return caller;
}

namespace {

/// Action that a connection to a task needs. A shell is one to every program of the task.
Result<Action> action_of(const google::protobuf::Message* request, db::Pool& pool) {
  const auto* const message = dynamic_cast<const v1::TunnelMessage*>(request);
  if (message == nullptr || message->target().has_shell()) return Action::kRunTasks;
  TRY_ASSIGN(const bool board, db::is_tensorboard(pool, TaskId(message->target().task_id())));
  return board ? Action::kUseBoards : Action::kRunTasks;
}

/// Checks one rule of a method.
Status check_rule(const Rule& rule, std::string_view method, const Caller& caller,
                  const google::protobuf::Message* request, db::Pool& pool) {
  if (rule.target <= Target::kCluster) return authorize(caller, rule.action, rule.target, {}, pool);
  // Object rules need the ids of a request.
  if (!request) return fail(Code::kPermissionDenied, std::string(method) + " names no object");
  Action action = rule.action;
  // Most callers may run tasks; the kind of the task is of no interest then.
  if (rule.target == Target::kConnection && caller.grants.everywhere() < needed(Action::kRunTasks)) {
    TRY_ASSIGN(action, action_of(request, pool));
  }
  return authorize(caller, action, rule.target, object_ids(rule, *request), pool);
}

/// check_roles() without the audit log.
Status roles_allow(const Access& access, const Caller& caller) {
  for (const Rule& rule : access.rules()) {
    if (rule.target == Target::kCluster) TRY(authorize_cluster(caller, rule.action));
    // Every user may read lists, and change its own account and tokens.
    const bool own = rule.target == Target::kNothing || rule.target == Target::kListed ||
                     rule.target == Target::kUser || rule.target == Target::kToken;
    if (own || may_anywhere(caller, rule.action)) continue;
    return fail(Code::kPermissionDenied, "access denied: user " + caller.user.name + " has the role " +
                                             std::string(shown_name(needed(rule.action))) +
                                             " in no workspace; ask an administrator for it");
  }
  return {};
}

}  // namespace

Status check_roles(std::string_view method, const Caller& caller, db::Pool& pool) {
  const Access* const entry = access(method);
  if (!entry) return fail(Code::kPermissionDenied, std::string(method) + " is open to nobody");
  // Callers without a user have no roles; the handler checks them.
  if (caller.token_hash.empty()) return {};
  Status allowed = roles_allow(*entry, caller);
  if (!allowed) audit(pool, caller, method, nullptr, allowed);
  return allowed;
}

std::string budget_owner(const Caller& caller) {
  if (caller.user.id.value != 0) return "user " + std::to_string(caller.user.id.value);
  const Credentials& its = caller.credentials;
  return "token " + (its.allocation_token.empty() ? its.user_token : its.allocation_token);
}

Status check_rules(std::string_view method, const Caller& caller, const google::protobuf::Message* request,
                   db::Pool& pool) {
  const Access* const entry = access(method);
  // Callers without a user have no roles; the handler checks them.
  if (!entry || caller.token_hash.empty()) return {};
  Status allowed;
  for (const Rule& rule : entry->rules()) {
    if (!allowed) break;
    allowed = check_rule(rule, method, caller, request, pool);
  }
  if (!allowed) audit(pool, caller, method, request, allowed);
  return allowed;
}

Result<Caller> authorize(std::string_view method, Credentials credentials, Sessions& sessions,
                         const google::protobuf::Message* request) {
  TRY_ASSIGN(Caller caller, authenticate(method, std::move(credentials), sessions));
  TRY(check_rules(method, caller, request, sessions.pool()));
  return caller;
}

std::string token_hash(std::string_view token) { return sha256_hex(token); }

void accept_derived_tokens(std::string_view cluster_secret, std::vector<core::Allocation>& allocations) {
  for (core::Allocation& allocation : allocations) {
    for (core::AllocationPart& part : allocation.parts)
      if (part.token_hash.empty()) part.token_hash = token_hash(derived_token(cluster_secret, allocation.id));
  }
}

}  // namespace det::api
