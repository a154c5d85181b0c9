// Error handling of daemons and CLI: functions return a value or an Error; no exception crosses a module
// boundary. The codes are those of gRPC, so mapping them to gRPC and HTTP is one table each.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace det {

/// gRPC status codes with gRPC's numbers (https://grpc.github.io/grpc/core/md_doc_statuscodes.html).
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

/// One defect of a user's document. Validation reports all problems of a document at once.
struct Problem {
  std::string code;     ///< stable identifier for programs: "E-CFG-RANGE"
  std::string path;     ///< into the document: "searcher.max_trials", "labels[0]"; "" is the top
  std::string message;  ///< what is wrong and how to fix it
  std::string file;     ///< as given by the user; "" if unknown
  int line = 0;         ///< from 1; 0 if unknown
  int column = 0;       ///< from 1; 0 if unknown

  bool operator==(const Problem&) const = default;
};

/// Formats as `const.yaml:14:16  searcher.max_trials  E-CFG-RANGE  must be an integer >= 1, got 0`.
std::string to_string(const Problem& problem);

/// A failure. `message` states what failed and how to fix it, in one sentence without a full stop.
struct Error {
  Code code = Code::kUnknown;
  std::string message;
  std::vector<Problem> problems;  ///< set only for kInvalidArgument, when a document was rejected

  bool operator==(const Error&) const = default;
};

/// Either a value or an Error. Status is the result of functions without a value.
template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// Returns an error, for use in a return statement.
inline tl::unexpected<Error> fail(Code code, std::string message) {
  return tl::unexpected(Error{code, std::move(message), {}});
}
/// Rejects a document: kInvalidArgument with a message that lists every problem, one a line.
tl::unexpected<Error> fail(std::vector<Problem> problems);

/// gRPC's name in CamelCase: "NotFound". Determined AI's HTTP errors carry it in `reason`.
std::string_view code_name(Code code);
/// HTTP status of the gateway, following grpc-gateway's table.
int http_status(Code code);

}  // namespace det

#define DET_CONCAT_(a, b) a##b
#define DET_CONCAT(a, b) DET_CONCAT_(a, b)
/// TRY(expression): evaluates a Result or Status; on failure returns its error from the enclosing function.
#define TRY(expression)                                                                                      \
  do {                                                                                                       \
    if (auto&& try_result = (expression); !try_result) return tl::unexpected(std::move(try_result).error()); \
  } while (false)
/// TRY_ASSIGN(auto x, expression): assigns the value of a Result; on failure returns its error from the
/// enclosing function.
#define TRY_ASSIGN_(temporary, declaration, expression)                \
  auto temporary = (expression);                                       \
  if (!temporary) return tl::unexpected(std::move(temporary).error()); \
  declaration = std::move(*temporary)
#define TRY_ASSIGN(declaration, expression) \
  TRY_ASSIGN_(DET_CONCAT(try_result_, __LINE__), declaration, expression)
