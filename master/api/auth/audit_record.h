// Records changes and refusals in the audit log.
#pragma once

#include <string_view>

#include "common/base/result.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace det::db {
class Pool;
}  // namespace det::db

namespace det::api {

struct Caller;

/// Records the outcome of a change in the audit log (the table and the master's log). Does nothing for reads.
/// Must not be called for unauthenticated callers: they could fill the table. May block on the database.
/// The entry names the objects of `request` by the rules of `method`, and those of `response`: what was
/// created, and each object of a change to several with "(refused)" where it failed. Either may be null. At
/// most 2,000 bytes of names are kept.
void audit(db::Pool& pool, const Caller& caller, std::string_view method,
           const google::protobuf::Message* request, const Status& outcome,
           const google::protobuf::Message* response = nullptr);

}  // namespace det::api
