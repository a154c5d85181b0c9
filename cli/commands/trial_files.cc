// `det trial files` and `det trial download-files`: files that a trial wrote beside its checkpoints.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/experiment/experiment_verbs.h"
#include "cli/output/print.h"
#include "common/base/files.h"
#include "common/storage/checkpoint_files.h"
#include "det/v1/media.methods.h"

namespace det::cli {
namespace {

struct TrialFilesOptions {
  int id = 0;
  Output output;
  void declare(CLI::App& app) {
    add_id(app, id, "Trial id.");
    output.declare_list(app);
  }
};

struct DownloadFilesOptions {
  int id = 0;
  std::vector<std::string> paths;
  std::string directory;
  void declare(CLI::App& app) {
    add_id(app, id, "Trial id.");
    app.add_option("PATH", paths, "Files, or directories with all their files (default: all).");
    app.add_option("-o,--output-dir", directory, "Destination directory (default: trial_ID).");
  }
};

/// Lists the files; prints the master's note about missing ones to stderr.
Result<v1::GetTrialFilesResponse> get_files(Client& client, int trial) {
  v1::GetTrialFilesRequest request;
  request.set_trial_id(trial);
  TRY_ASSIGN(v1::GetTrialFilesResponse response, client.call(v1::MediaService::GetTrialFiles, request));
  if (!response.note().empty()) std::cerr << "note: " << printable(response.note()) << '\n';
  if (response.truncated()) std::cerr << "note: only the first " << response.files_size() << " files\n";
  return response;
}

Status list_files(Client& client, const TrialFilesOptions& options) {
  TRY_ASSIGN(const auto response, get_files(client, options.id));
  Table table{.columns = {"Path", "Bytes", "Changed"}, .rows = {}};
  for (const v1::TrialFile& file : response.files())
    table.rows.push_back(
        {file.path(), std::to_string(file.size()), time_text(file.change_time(), file.has_change_time())});
  return options.output.print(table, [&] { return list_to_json(response.files()); });
}

bool is_selected(const std::string& path, const std::vector<std::string>& selected) {
  return selected.empty() || std::any_of(selected.begin(), selected.end(), [&](const std::string& one) {
           return path == one || path.starts_with(one.ends_with('/') ? one : one + "/");
         });
}

Status download_file(Client& client, int trial, const std::string& path, const std::string& target) {
  TRY(make_directories(std::filesystem::path(target).parent_path().string()));
  const std::string partial = target + ".partial";
  std::ofstream out(partial, std::ios::binary | std::ios::trunc);
  v1::DownloadTrialFileRequest request;
  request.set_trial_id(trial);
  request.set_path(path);
  const Status done = client.stream(
      v1::MediaService::DownloadTrialFile, request,
      [&](const v1::DownloadTrialFileResponse& part) { return static_cast<bool>(out << part.chunk()); });
  out.close();
  std::error_code error;
  if (!done || !out) {
    std::filesystem::remove(partial, error);
    return done ? fail(Code::kUnavailable, target + " could not be written") : done;
  }
  std::filesystem::rename(partial, target, error);
  if (error) return fail(Code::kUnavailable, target + ": " + error.message());
  return {};
}

Status download_files(Client& client, const DownloadFilesOptions& options) {
  const std::string directory =
      options.directory.empty() ? "trial_" + std::to_string(options.id) : options.directory;
  TRY_ASSIGN(const auto response, get_files(client, options.id));
  int count = 0;
  for (const v1::TrialFile& file : response.files()) {
    if (!is_selected(file.path(), options.paths)) continue;
    // Names come from the trial: none may lead out of the directory.
    TRY(storage::check_file_name(file.path()));
    TRY(download_file(client, options.id, file.path(), directory + "/" + file.path()));
    ++count;
  }
  if (count == 0)
    return fail(Code::kNotFound, "trial " + std::to_string(options.id) +
                                     " has no such files; det trial files " + std::to_string(options.id) +
                                     " lists those that exist");
  std::cout << "Downloaded " << count << (count == 1 ? " file" : " files") << " to " << directory << '\n';
  return {};
}

}  // namespace

std::vector<Command> trial_file_verbs() {
  return {{{"files"}, "List TensorBoard files, traces and media of a trial.", action(list_files)},
          {{"download-files"}, "Download files of a trial.", action(download_files)}};
}

}  // namespace det::cli
