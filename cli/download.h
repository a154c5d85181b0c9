// Owns fetching checkpoints: the master's stream of an archive, unpacked safely into a new directory.
#pragma once

#include <string>
#include <vector>

#include "cli/session.h"
#include "det/v1/checkpoint.grpc.pb.h"

namespace det::cli {

Result<v1::Checkpoint> get_checkpoint(Client& client, const std::string& uuid);

/// The files of the checkpoint below `directory`, which is made and must be empty.
Status download_checkpoint(Client& client, const std::string& uuid, const std::string& directory);

/// The same from the storage itself, when it is a directory that this machine sees, or a bucket for which
/// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set (its files are checked); else kFailedPrecondition, or
/// with `or_download` through the master.
Status copy_checkpoint(Client& client, const std::string& uuid, const std::string& directory,
                       bool or_download);

/// The searcher's metric of the checkpoint's validation, or of `metric` when it is named.
std::optional<double> metric_of(const v1::Checkpoint& checkpoint, const std::string& metric);

/// Completed checkpoints, best first; those without the metric are left out.
std::vector<v1::Checkpoint> best_first(std::vector<v1::Checkpoint> checkpoints, const std::string& metric,
                                       bool smaller_is_better);

/// Of the experiment's configuration.
bool smaller_is_better(const google::protobuf::Struct& config);

}  // namespace det::cli
