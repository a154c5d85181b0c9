// Owns how the daemons and the CLI speak of failure: a value or an Error, never an exception across a border.
// The codes are gRPC's sixteen, so that both borders (gRPC, HTTP) are a table and nothing more.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace det {

/// gRPC's status codes, with gRPC's numbers (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
enum class Code {
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

/// One thing wrong with a user's document; a bad document yields all of its problems at once.
struct Problem {
  std::string code;     ///< stable, for programs: "E-CFG-RANGE"
  std::string path;     ///< dotted path into the document: "searcher.max_trials", "labels[0]"; "" is the top
  std::string message;  ///< names the thing and the mend
  std::string file;     ///< as the user named it; "" when unknown
  int line = 0;         ///< from 1; 0 when unknown
  int column = 0;       ///< from 1; 0 when unknown

  bool operator==(const Problem&) const = default;
};

/// `const.yaml:14:16  searcher.max_trials  E-CFG-RANGE  must be an integer >= 1, got 0`
std::string to_string(const Problem& problem);

/// A failure. `message` names the thing and the mend, in one sentence without a full stop.
struct Error {
  Code code = Code::kUnknown;
  std::string message;
  std::vector<Problem> problems;  ///< only for kInvalidArgument, when a document was refused

  bool operator==(const Error&) const = default;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected(Error{code, std::move(message), {}});
}
/// Refuses a document: the message lists every problem, a line each.
tl::unexpected<Error> fail(std::vector<Problem> problems);

/// gRPC's name of the code in CamelCase, as upstream's HTTP errors carry it in `reason`: "NotFound".
std::string_view code_name(Code code);
/// The HTTP status the gateway answers with (grpc-gateway's table).
int http_status(Code code);

}  // namespace det

#define DET_CONCAT_(a, b) a##b
#define DET_CONCAT(a, b) DET_CONCAT_(a, b)
/// TRY(expression): returns its error from this function, else goes on.
#define TRY(expression)                                                                                      \
  do {                                                                                                       \
    if (auto&& try_result = (expression); !try_result) return tl::unexpected(std::move(try_result).error()); \
  } while (false)
/// TRY_ASSIGN(auto x, expression): the value, or returns the error from this function.
#define TRY_ASSIGN_(temporary, declaration, expression)                \
  auto temporary = (expression);                                       \
  if (!temporary) return tl::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_(DET_CONCAT(try_result_, __LINE__), declaration, expression)
