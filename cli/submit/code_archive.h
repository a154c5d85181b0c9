// The code archive of an experiment or command: the model directory and the files of --include as tar.gz.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/output/progress.h"
#include "common/archive/archive.h"
#include "common/base/result.h"
#include "common/client/client.h"

namespace det::cli {

/// A packed code archive, with the figures that `create` prints.
struct CodeArchive {
  std::string bytes;               ///< tar.gz
  std::vector<std::string> files;  ///< paths of the regular files
  std::int64_t content_bytes = 0;  ///< sum of the sizes of `files`
};

/// Reads `directory` ("" for none) and the included files and directories, each under its own base name.
/// Errors: kInvalidArgument (a path does not exist, or two entries have the same name); those of
/// read_directory().
Result<std::vector<ArchiveEntry>> read_code_entries(const std::string& directory,
                                                    const std::vector<std::string>& includes);

/// Packs `directory` ("" for none) and the included files and directories, each under its own base name.
/// Reads everything into memory. Errors: those of read_code_entries().
Result<CodeArchive> pack_code_archive(const std::string& directory, const std::vector<std::string>& includes);

/// Returns the name to print for `directory`: "../<name>" for the current directory, else the argument.
std::string shown_directory(const std::string& directory);

/// Maximum size of a chunk, and the archive size from which a progress bar is shown, in bytes.
inline constexpr std::size_t kArchiveChunk = 1 << 20, kArchiveProgressFrom = 4 << 20;
/// Time during which an upload is repeated while the master is unavailable.
inline constexpr Duration kUploadPatience = std::chrono::seconds(30);

/// Streams `first`, then `archive` in chunks, to `method` of a service. Repeats the whole stream while the
/// master is unavailable, so `first` needs a request id. Errors: those of Client::retry().
template <typename Part, typename Response>
Result<Response> upload(Client& client, ClientStreamMethod<Part, Response> method, const Part& first,
                        const std::string& archive) {
  Response response;
  TRY(client.retry([&] {
    grpc::ClientContext context;
    client.prepare(context, Duration(0));
    response.Clear();
    const auto writer = wire::open(client.channel(), method, context, response);
    ProgressBar bar("uploading");
    bool open = writer->Write(first);
    for (std::size_t at = 0; open && at < archive.size(); at += kArchiveChunk) {
      Part part;
      part.set_chunk(archive.substr(at, kArchiveChunk));
      open = writer->Write(part);
      if (archive.size() >= kArchiveProgressFrom)
        bar.show(static_cast<double>(at) / static_cast<double>(archive.size()));
    }
    if (open) writer->WritesDone();
    return writer->Finish();
  }));
  return response;
}

}  // namespace det::cli
