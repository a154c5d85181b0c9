// Owns the table of who may call what on which object: an entry for every method of every service. The build
// runs access_check over it and stops at a method without an entry, so nothing can be offered that nobody
// thought about; a method that is in no table is refused at run time too.
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

/// Who gets through the door at all.
enum class Requirement {
  kNobody,            ///< anyone who can connect
  kUser,              ///< a valid login or access token; the rules say the rest
  kUserOrAllocation,  ///< a user by the rules, or else the token of an allocation, which the handler checks
  kAllocation,        ///< the token of the allocation the call names, or of its trial's owner when that runs
                      ///< outside the cluster (both checked where the ids are known)
  kAgent,             ///< an agent: of this machine, or with a certificate of ours (agent_auth.h)
};

/// In the order of the roles that may: viewer, editor, workspace admin, cluster admin.
enum class Action { kView, kEdit, kManage, kAdminister };

enum class Target {
  kNothing,    ///< what is everybody's, or the caller's own login
  kListed,     ///< a list, from which SQL leaves out what the caller may not see
  kInside,     ///< known only in the handler, which calls authorize() itself
  kCluster,    ///< users, agents, settings; the field only names the object in the audit log
  kUser,       ///< a user's account: the user's own, and cluster admins'
  kToken,      ///< an access token: its owner's, and cluster admins'
  kWorkspace,  ///< from here on: by the caller's role in the object's workspace
  kProject,
  kExperiment,
  kTrial,
  kCheckpoint,
  kTemplate,
  kTask,
  kModel,
  kAllocation,
};

/// `field` of the request holds the object's id, or several; "user.username" is a field of a field.
struct Rule {
  Action action = Action::kAdminister;
  Target target = Target::kCluster;
  const char* field = "";
};

struct Access {
  Requirement who = Requirement::kUser;
  std::array<Rule, 3> all = {};
  std::size_t count = 0;
  /// All of them must allow it; of kUser there is at least one.
  std::span<const Rule> rules() const { return {all.data(), count}; }
};

/// `method` is "/det.v1.AuthService/Login". Null for a method that is not in the table.
const Access* access(std::string_view method);
/// Changes are noted in the audit log, reads are not.
bool is_change(const Access& access);
/// What the request's fields name by the rule, as text: "7", a uuid, a name.
std::vector<std::string> object_ids(const Rule& rule, const google::protobuf::Message& request);
/// "experiment 7, project 2"; "" when the request names none.
std::string object_text(const Access& access, const google::protobuf::Message& request);
/// "experiment".
std::string_view target_name(Target target);

/// Every service that the server offers, by descriptor.
std::vector<const google::protobuf::ServiceDescriptor*> services();

/// What is wrong with the table, a line each: methods without an entry, entries without a method, rules
/// without the field they speak of.
std::vector<std::string> access_gaps();

}  // namespace det::api
