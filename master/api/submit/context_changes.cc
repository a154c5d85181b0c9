#include "master/api/submit/context_changes.h"

#include <optional>
#include <set>

#include "common/archive/archive.h"
#include "common/crypto/digest.h"
#include "master/api/submit/create.h"
#include "master/db/queries/code_archives.h"

namespace det::api {
namespace {

/// Returns the archive with this digest if the caller has submitted it before.
Result<std::optional<std::string>> find_own(const Context& context, const Caller& caller,
                                            const std::string& digest) {
  auto found = db::get_own_code_archive(context.pool, digest, caller.user.id);
  if (found) return std::move(*found);
  if (found.error().code == Code::kNotFound) return std::optional<std::string>();
  return tl::unexpected(found.error());
}

/// Applies the changes to the base archive. Packs with the same settings as a client, so that the digests
/// agree.
Result<std::string> apply_changes(const std::string& base, const v1::CreateFromContextRequest& request) {
  TRY_ASSIGN(std::vector<ArchiveEntry> entries, read_archive(base));
  std::vector<ArchiveEntry> changes;
  if (!request.changes().empty()) {
    TRY_ASSIGN(changes, read_archive(request.changes()));
  }
  std::set<std::string> gone(request.removed().begin(), request.removed().end());
  for (const ArchiveEntry& entry : changes) gone.insert(entry.path);
  std::erase_if(entries, [&](const ArchiveEntry& entry) { return gone.contains(entry.path); });
  entries.insert(entries.end(), std::make_move_iterator(changes.begin()),
                 std::make_move_iterator(changes.end()));
  return pack_entries(std::move(entries));
}

Result<std::optional<std::string>> find_context(const Context& context, const Caller& caller,
                                                const v1::CreateFromContextRequest& request) {
  TRY_ASSIGN(auto whole, find_own(context, caller, request.digest()));
  if (whole || request.base().empty()) return whole;
  TRY_ASSIGN(const auto base, find_own(context, caller, request.base()));
  if (!base) return std::optional<std::string>();
  TRY_ASSIGN(std::string made, apply_changes(*base, request));
  // The digest may differ with another version of zlib. The client then uploads the archive.
  if (sha256_hex(made) != request.digest()) return std::optional<std::string>();
  return std::optional<std::string>(std::move(made));
}

}  // namespace

ContextService::ContextService(const Context& context) : Service(context, "det.v1.ContextService") {
  unary("CreateFromContext", &ContextService::CreateFromContext);
}

Status ContextService::CreateFromContext(const Caller& caller, const v1::CreateFromContextRequest& request,
                                         v1::CreateFromContextResponse* response) {
  TRY_ASSIGN(auto archive, find_context(context_, caller, request));
  if (!archive) {
    response->set_unknown(true);
    return {};
  }
  return create_experiment(context_, caller, request.create(), std::move(archive),
                           response->mutable_created());
}

}  // namespace det::api
