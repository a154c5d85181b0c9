#include "common/base/result.h"

namespace det {

std::string to_string(const Problem& problem) {
  std::string text;
  if (!problem.file.empty()) text += problem.file + ':';
  if (problem.line > 0) text += std::to_string(problem.line) + ':' + std::to_string(problem.column);
  if (!text.empty()) text += "  ";
  if (!problem.path.empty()) text += problem.path + "  ";
  return text + problem.code + "  " + problem.message;
}

tl::unexpected<Error> fail(std::vector<Problem> problems) {
  std::string message;
  for (const Problem& problem : problems) {
    if (!message.empty()) message += '\n';
    message += to_string(problem);
  }
  return tl::unexpected(Error{Code::kInvalidArgument, std::move(message), std::move(problems)});
}

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kCancelled:
      return "Canceled";  // gRPC spells it with one "l"
    case Code::kUnknown:
      return "Unknown";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kPermissionDenied:
      return "PermissionDenied";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kFailedPrecondition:
      return "FailedPrecondition";
    case Code::kAborted:
      return "Aborted";
    case Code::kOutOfRange:
      return "OutOfRange";
    case Code::kUnimplemented:
      return "Unimplemented";
    case Code::kInternal:
      return "Internal";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kDataLoss:
      return "DataLoss";
    case Code::kUnauthenticated:
      return "Unauthenticated";
  }
  return "Unknown";
}

int http_status(Code code) {
  switch (code) {
    case Code::kCancelled:
      return 499;  // nginx: client closed request
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kUnauthenticated:
      return 401;
    case Code::kPermissionDenied:
      return 403;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      return 500;
  }
  return 500;
}

}  // namespace det
