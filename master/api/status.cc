// Serialization of errors for gRPC.
#include "master/api/status.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "det/status.pb.h"
#include "det/v1/common.pb.h"

namespace det::api {
namespace {

constexpr std::size_t kMaxStatusMessageBytes = 1024;
constexpr std::size_t kDetailBytes = 4 * 1024;

/// Valid UTF-8 in which names of users cannot reorder or hide text: each control character but a line end,
/// and each mark without width or for direction becomes U+FFFD.
std::string harmless(const std::string& text) {
  std::string valid = make_utf8(text);
  if (!has_control_characters(valid)) return valid;
  std::string out;
  for (std::size_t at = 0; at < valid.size();) {
    const auto byte = static_cast<unsigned char>(valid[at]);
    const std::string one = valid.substr(at, byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4);
    out += one != "\n" && has_control_characters(one) ? "\uFFFD" : one;
    at += one.size();
  }
  return out;
}

/// Summary of all problems, cut to kMaxStatusMessageBytes.
std::string short_message(const Error& error) {
  std::string message = error.message;
  if (!error.problems.empty()) {
    message = error.problems.size() == 1 ? to_string(error.problems[0])
                                         : std::to_string(error.problems.size()) +
                                               " problems, the first: " + to_string(error.problems[0]);
  }
  // gRPC requires valid UTF-8 in status messages.
  message = harmless(message);
  if (message.size() > kMaxStatusMessageBytes)
    message = make_utf8(message.substr(0, kMaxStatusMessageBytes)) + "…";
  return message;
}

}  // namespace

grpc::Status to_grpc(const Error& error) {
  if (error.code == Code::kInternal || error.code == Code::kUnknown) {
    log::error("call failed", {{"error", error.message}});
  }
  const std::string message = short_message(error);
  const auto code = static_cast<grpc::StatusCode>(error.code);
  if (error.problems.empty()) return grpc::Status(code, message);
  v1::Problems problems;
  for (const Problem& problem : error.problems) {
    v1::Problem* out = problems.add_problems();
    out->set_code(problem.code);
    out->set_path(harmless(problem.path));
    out->set_message(harmless(problem.message));
    out->set_file(make_utf8(problem.file));
    out->set_line(problem.line);
    out->set_column(problem.column);
    // At least one problem is kept, however long it is.
    if (problems.ByteSizeLong() > kDetailBytes && problems.problems_size() > 1) {
      problems.mutable_problems()->RemoveLast();
      break;
    }
  }
  google::rpc::Status details;
  details.set_code(static_cast<int>(error.code));
  details.set_message(message);
  details.add_details()->PackFrom(problems);
  return grpc::Status(code, message, details.SerializeAsString());
}

grpc::Status to_grpc(const Status& status) { return status ? grpc::Status::OK : to_grpc(status.error()); }

Error busy() { return {Code::kUnavailable, "the master is busy; try again in a moment", {}}; }

Error shutting_down() { return {Code::kUnavailable, "the master is shutting down", {}}; }

}  // namespace det::api
