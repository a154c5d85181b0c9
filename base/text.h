// Owns small work on strings that several rooms need: splitting, UTF-8 checks, "did you mean".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace det {

/// Pieces between separators, empty ones kept: split("a,,b", ',') is {"a", "", "b"}; split("", ',') is {""}.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& pieces, std::string_view separator);
/// Without spaces, tabs, CR and LF at both ends.
std::string_view trim(std::string_view text);
/// ASCII only; other bytes are kept.
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

/// Offset of the first byte that is not well-formed UTF-8 (RFC 3629: no surrogates, nothing overlong).
std::optional<std::size_t> find_bad_utf8(std::string_view text);
/// The text with each ill-formed byte replaced by U+FFFD and NUL by U+2400, so that every store and JSON
/// takes it.
std::string make_utf8(std::string_view text);
/// True when the text holds a control character (C0, DEL, C1) or a bidi override: not for names.
bool has_control_characters(std::string_view text);

/// Levenshtein distance, in bytes.
int edit_distance(std::string_view a, std::string_view b);
/// The candidate nearest to `word` within edit distance 2 (and shorter than the word itself); "" when none.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);
/// `; did you mean "x"?` or "".
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace det
