// Access table of the API: the required credentials, action and objects of every RPC. The build runs
// access_check over it and fails while a method has no entry; a method without an entry is also refused at
// run time.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace google::protobuf {
class Message;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace det::api {

/// Credentials that a call must carry. Checked by authenticate() before the request is parsed.
enum class Requirement {
  kNone,              ///< no credentials
  kUser,              ///< a login or access token; the rules of the method decide the rest
  kUserOrAllocation,  ///< as kUser, or as kAllocation
  /// The token of the allocation that the call names. For a trial outside the cluster: the token of its
  /// owner. authenticate() refuses invalid tokens; the handler checks whose they are, because only it
  /// resolves the ids.
  kAllocation,
  /// An agent with a certificate or token of this master; its handlers authenticate it (agent_auth.h).
  kAgent,
};

/// Each action needs a role. The order is that of the roles. Actions after kView are changes.
enum class Action {
  kViewModel,        ///< ModelRegistryViewer
  kView,             ///< Viewer
  kUseBoards,        ///< Viewer: start TensorBoards and use their pages
  kCreateWorkspace,  ///< WorkspaceCreator, or EditorRestricted of the default workspace
  kEdit,             ///< EditorRestricted
  kRunTasks,         ///< Editor: start and change tasks that are no trials, and use their ports
  kManage,           ///< WorkspaceAdmin
  kAdminister        ///< ClusterAdmin
};

/// Kind of object a rule protects. Rules up to kCluster do not depend on the ids in the request.
enum class Target {
  kNothing,  ///< open to every user, or the caller's own session
  kListed,   ///< a list; the SQL query filters out rows that the caller may not see
  /// The object is only known to the handler, which calls authorize() itself; a field names it in the audit
  /// log.
  kInside,
  kCluster,  ///< users, agents, settings; the field only names the object in the audit log
  kUser,     ///< an account: of the user itself or for cluster admins
  kToken,    ///< an access token: of its owner or for cluster admins
  // The caller's role in the workspace of the object decides about the following ones.
  kWorkspace,
  kProject,
  kExperiment,
  kTrial,
  kCheckpoint,
  kTemplate,
  kTask,
  kConnection,  ///< a port or shell of a task; only pages of TensorBoards are open to kUseBoards
  kModel,
  kAllocation,
};

/// One condition of a method. `field` is the request field that holds the id of the object; it may be
/// repeated. A dot selects a nested field, of every element of a repeated one: "user.username".
struct Rule {
  Action action = Action::kAdminister;
  Target target = Target::kCluster;
  const char* field = "";
};

/// Entry of a method in the table.
struct Access {
  Requirement requirement = Requirement::kUser;
  std::array<Rule, 3> all = {};
  std::size_t count = 0;
  /// All rules must allow the call. Methods with Requirement::kUser have at least one.
  std::span<const Rule> rules() const { return {all.data(), count}; }
};

/// Returns the entry of a method ("/det.v1.AuthService/Login"), or null when the table has none. Any thread.
const Access* access(std::string_view method);
/// Whether any rule needs more than kView. Changes are recorded in the audit log, reads are not.
bool is_change(const Access& access);
/// Returns the ids in the field of the rule as text: "7", a uuid, a name. Empty when the request type has no
/// such field.
std::vector<std::string> object_ids(const Rule& rule, const google::protobuf::Message& request);
/// Singular noun of an object, e.g. "experiment". "" for targets up to kCluster.
std::string_view target_name(Target target);

/// Descriptors of all services of the server.
std::vector<const google::protobuf::ServiceDescriptor*> services();

/// Returns the defects of the table, one line each: methods without an entry, entries without a method, rules
/// with a field that does not exist or is neither a number nor a string.
std::vector<std::string> access_gaps();

}  // namespace det::api
