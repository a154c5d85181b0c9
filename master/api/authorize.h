// Owns who may call what: one table, one function, default deny. A test walks the descriptors and fails on a
// method without an entry.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "master/db/accounts.h"

namespace google::protobuf {
class ServiceDescriptor;
}

namespace det::api {

enum class Requirement {
  kNobody,      ///< anyone who can connect
  kUser,        ///< a valid session
  kAdmin,       ///< a valid session of an admin
  kAllocation,  ///< the token of the allocation the call names, or of its trial's owner when that runs outside the
                ///< cluster (both checked where the ids are known)
  kUserOrAllocation,  ///< a valid session, or else the token of an allocation, which the handler checks
  kLoopbackAgent,  ///< an agent on this machine (join tokens come with remote agents)
};

/// `method` is "/det.v1.AuthService/Login". Nothing for a method that is not in the table: it is refused.
std::optional<Requirement> requirement(std::string_view method);

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
  db::User user;           ///< of kUser and kAdmin
  std::string token_hash;  ///< likewise: names the session
  Credentials credentials;
};
/// kUnauthenticated without valid credentials, kPermissionDenied for an agent from elsewhere, for a user who
/// is no admin, or an unknown method. Asks the database for kUser and kAdmin.
Result<Caller> authorize(std::string_view method, Credentials credentials, db::Pool& pool);

/// What the database keeps of a session token.
std::string token_hash(std::string_view token);
/// base64url(HMAC-SHA256(cluster secret, allocation id)).
std::string allocation_token(std::string_view secret, const AllocationId& id);

/// Every service that the server offers, by descriptor.
std::vector<const google::protobuf::ServiceDescriptor*> services();

}  // namespace det::api
