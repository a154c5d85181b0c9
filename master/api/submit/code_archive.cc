#include "master/api/submit/code_archive.h"

namespace det::api {
namespace {

// Type flag of a directory in tar headers, used by the clients of Determined AI.
constexpr int kTarDirectory = '5';

}  // namespace

Result<CodeArchive> code_archive_of(const google::protobuf::RepeatedPtrField<v1::File>& files,
                                    std::optional<std::string> archive) {
  CodeArchive result;
  if (archive) {
    if (!files.empty())
      return fail(Code::kInvalidArgument, "there must be no files when the code archive comes in chunks");
    TRY_ASSIGN(result.items, check_archive(*archive));
    result.bytes = std::move(*archive);
    return result;
  }
  if (files.empty()) return result;
  std::vector<ArchiveEntry> entries;
  for (const v1::File& file : files) {
    entries.push_back({.path = file.path(),
                       .content = file.content(),
                       .directory = file.type() == kTarDirectory,
                       .mode = static_cast<mode_t>(file.mode())});
    ArchiveEntry& entry = entries.back();
    // Some clients send directories as "name/".
    if (entry.path.ends_with('/')) entry.path.pop_back();
    result.items.push_back(
        {entry.path, static_cast<std::int64_t>(entry.content.size()), entry.directory, entry.mode});
  }
  TRY_ASSIGN(result.bytes, pack_entries(std::move(entries)));
  return result;
}

Status add_chunk(const std::string& chunk, std::string& archive) {
  if (chunk.size() > kArchiveChunk) return fail(Code::kInvalidArgument, "a chunk is larger than 1 MiB");
  // The limit holds while chunks arrive, so that memory stays bounded.
  if (archive.size() + chunk.size() > static_cast<std::size_t>(ArchiveLimits{}.packed_bytes)) {
    return fail(
        {Problem{.code = "E-CTX-LIMIT",
                 .path = "",
                 .message = "the code archive is larger than 96 MiB; move data out of the directory or "
                            "list it in .detignore"}});
  }
  archive += chunk;
  return {};
}

tl::unexpected<Error> too_many_uploads() {
  return fail(Code::kResourceExhausted,
              "the uploads under way hold too much memory; try again when one has ended");
}

}  // namespace det::api
