#include "common/yaml/yaml_scalar.h"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "common/base/text.h"

namespace det {
namespace {

constexpr std::string_view kDigits = "0123456789";

/// Consumes the longest prefix of characters in `set` and returns its length.
std::size_t take(std::string_view& text, std::string_view set) {
  const std::size_t end = text.find_first_not_of(set);
  const std::size_t length = end == std::string_view::npos ? text.size() : end;
  text.remove_prefix(length);
  return length;
}

/// Consumes a sign. True if it is a minus.
bool take_sign(std::string_view& text) {
  if (!text.starts_with('-') && !text.starts_with('+')) return false;
  const bool negative = text[0] == '-';
  text.remove_prefix(1);
  return negative;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool is_decimal_integer(std::string_view text) {
  take_sign(text);
  return take(text, kDigits) > 0 && text.empty();
}

/// Matches [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_float(std::string_view text) {
  take_sign(text);
  const std::size_t whole = take(text, kDigits);
  std::size_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    fraction = take(text, kDigits);
  }
  if (whole + fraction == 0) return false;
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    take_sign(text);
    if (take(text, kDigits) == 0) return false;
  }
  return text.empty();
}

void set_double(YamlNode& node, double value) {
  node.kind = YamlNode::Kind::kDouble;
  node.number = value;
}

void set_int(YamlNode& node, std::int64_t value) {
  node.kind = YamlNode::Kind::kInt;
  node.integer = value;
  node.number = static_cast<double>(value);
}

/// Types 0x1F and 0o17. False if `text` is neither.
bool type_radix(YamlNode& node, std::string_view text) {
  const bool hex = text.starts_with("0x"), octal = text.starts_with("0o");
  if (!hex && !octal) return false;
  text.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 8);
  if (error != std::errc() || end != text.data() + text.size() || text.starts_with('-')) return false;
  set_int(node, value);
  return true;
}

}  // namespace

void type_plain_scalar(YamlNode& node) {
  const std::string_view text = node.text;
  if (one_of(text, {"", "~", "null", "Null", "NULL"})) {
    node.kind = YamlNode::Kind::kNull;
  } else if (one_of(text, {"true", "True", "TRUE", "false", "False", "FALSE"})) {
    node.kind = YamlNode::Kind::kBool;
    node.boolean = text[0] == 't' || text[0] == 'T';
  } else if (is_decimal_integer(text)) {
    // from_chars does not accept a leading plus.
    const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
    std::int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec == std::errc()) {
      set_int(node, value);
    } else {
      set_double(node, std::strtod(node.text.c_str(), nullptr));
    }
  } else if (type_radix(node, text)) {
    return;
  } else if (is_float(text)) {
    set_double(node, std::strtod(node.text.c_str(), nullptr));
  } else if (one_of(text, {".nan", ".NaN", ".NAN"})) {
    set_double(node, std::numeric_limits<double>::quiet_NaN());
  } else {
    std::string_view rest = text;
    const bool negative = take_sign(rest);
    if (one_of(rest, {".inf", ".Inf", ".INF"})) {
      const double infinity = std::numeric_limits<double>::infinity();
      set_double(node, negative ? -infinity : infinity);
    } else {
      node.kind = YamlNode::Kind::kString;
    }
  }
}

bool needs_quotes(std::string_view text) {
  YamlNode probe;
  probe.text = std::string(text);
  type_plain_scalar(probe);
  if (probe.kind != YamlNode::Kind::kString) return true;
  // YAML 1.1 reads these as booleans.
  if (one_of(to_lower(text), {"yes", "no", "on", "off", "y", "n"})) return true;
  if (std::string_view("-?:,[]{}#&*!|>'\"%@`=<").find(text.front()) != std::string_view::npos) return true;
  if (text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  if (text.find(": ") != std::string_view::npos || text.find(" #") != std::string_view::npos) return true;
  if (text == "..." || text.starts_with("... ") || has_control_characters(text)) return true;
  if (text.find("\xEF\xBB\xBF") != std::string_view::npos)
    return true;  // a byte order mark, which begins no document
  // YAML 1.1 reads 1_000, 0b1 and 12:30 as numbers and 2020-01-01 as a date.
  return kDigits.find(text.front()) != std::string_view::npos || text.front() == '+' || text.front() == '.';
}

}  // namespace det
