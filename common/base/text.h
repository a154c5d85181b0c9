// String helpers: splitting, ASCII case, UTF-8 validation, spelling suggestions. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace det {

/// Splits at each separator and keeps empty pieces: split("a,,b", ',') is {"a", "", "b"}; split("", ',') is
/// {""}.
std::vector<std::string> split(std::string_view text, char separator);
/// Concatenates the pieces with the separator between them.
std::string join(const std::vector<std::string>& pieces, std::string_view separator);
/// Removes spaces, tabs, CR and LF at both ends.
std::string_view trim(std::string_view text);
/// Converts ASCII letters; other bytes are unchanged.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

/// Returns the offset of the first byte that is not well-formed UTF-8 (RFC 3629: no surrogates, no overlong
/// forms).
std::optional<std::size_t> find_bad_utf8(std::string_view text);
/// Replaces each ill-formed byte by U+FFFD and NUL by U+2400, so that JSON and PostgreSQL accept the text.
std::string make_utf8(std::string_view text);
/// True if the text contains a control character (C0, DEL, C1) or a bidi override or isolate. Used to reject
/// names.
bool has_control_characters(std::string_view text);

/// True for a name of an environment variable that every shell accepts: letters, digits and `_`, no digit
/// first.
bool is_variable_name(std::string_view text);

/// True for an entrypoint that is a compiled step: a relative path of letters, digits and `_-./` that ends in
/// .pt2 and has no part "..".
bool is_compiled_step(std::string_view entrypoint);

/// Levenshtein distance in bytes. O(|a| * |b|).
int edit_distance(std::string_view a, std::string_view b);
/// Returns the candidate with the smallest edit distance to `word`, at most 2 and less than the length of
/// `word`; "" if there is none.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);
/// Returns `; did you mean "x"?`, or "" without a near candidate.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace det
