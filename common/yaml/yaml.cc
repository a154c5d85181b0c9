#include "common/yaml/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "common/base/text.h"
#include "common/yaml/yaml_scalar.h"

namespace det {
namespace {

constexpr std::size_t kMaxProblems = 20;

struct Position {
  int line = 0, column = 0;
};

/// Thrown through yaml-cpp to stop parsing at a limit or a fatal problem; caught in parse_yaml.
struct Stop {};

/// Cost of copying a subtree.
struct Cost {
  int nodes = 1;
  int depth = 0;  ///< nesting of lists and maps
  std::size_t bytes = 0;
};

/// Computes the cost of a subtree.
Cost cost_of(const YamlNode& node) {
  Cost cost{1, 0, node.text.size()};
  const auto add = [&](const YamlNode& child) {
    const Cost below = cost_of(child);
    cost.nodes += below.nodes;
    cost.bytes += below.bytes;
    cost.depth = std::max(cost.depth, below.depth);
  };
  for (const YamlNode& item : node.items) add(item);
  for (const YamlEntry& entry : node.entries) {
    cost.bytes += entry.key.size();
    add(entry.value);
  }
  if (node.is_list() || node.is_map()) ++cost.depth;
  return cost;
}

/// Builds the tree from yaml-cpp's events and stops at the first exceeded limit.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::string_view text, std::string file, const YamlLimits& limits)
      : text_(text), file_(std::move(file)), limits_(limits) {}

  YamlNode root;
  std::vector<Problem> problems;

  void report(const char* code, std::string message, Position at, std::string path) {
    if (problems.size() < kMaxProblems) {
      problems.push_back({code, std::move(path), std::move(message), file_, at.line, at.column});
    }
  }

  /// Converts a mark (bytes, from 0) into a line and column (characters, from 1).
  Position position(const YAML::Mark& mark) {
    if (mark.is_null()) return {1, 1};
    const std::size_t end = offset(mark);
    const std::size_t start = end - std::min(end, static_cast<std::size_t>(std::max(mark.column, 0)));
    // Continues counting from the previous node on the same line: long lines stay linear instead of
    // quadratic.
    if (counted_.start != start || counted_.end > end) counted_ = {start, start, 1};
    for (; counted_.end < end; ++counted_.end) counted_.column += (text_[counted_.end] & 0xC0) != 0x80;
    return {mark.line + 1, counted_.column};
  }

  /// Returns the name of the alias at `mark`.
  std::string alias_name(const YAML::Mark& mark) const {
    const std::string_view rest = text_.substr(std::min(offset(mark) + 1, text_.size()));
    return std::string(rest.substr(0, rest.find_first_of(" \t\r\n,[]{}")));
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    // yaml-cpp starts a second document also for stray text after the first one.
    const bool marker = text_.substr(std::min<std::size_t>(mark.pos, text_.size())).starts_with("---");
    if (marker) {
      stop("E-YAML-MULTI", "only one document is allowed; remove what follows", position(mark));
    }
    stop("E-YAML-SYNTAX", "unexpected text after the end of the document", position(mark));
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node = start_node(mark);
    finish(std::move(node), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = start_node(mark);
    node.text = value;
    bytes_ += value.size();
    if (value.find('\0') != std::string::npos) {
      stop("E-YAML-ENCODING", "the text holds a NUL character", {node.line, node.column});
    }
    // yaml-cpp reports "?" for a plain scalar and "!" for a quoted one.
    if (tag == "?") {
      type_plain_scalar(node);
    } else if (tag == "!") {
      node.kind = YamlNode::Kind::kString;
      node.quoted = true;
      check_closed(mark, node);
    } else {
      apply_tag(node, tag);
    }
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const Position at = position(mark);
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) stop("E-YAML-ALIAS", "the alias refers to itself", at);
    if (++aliases_ > limits_.aliases) {
      stop("E-YAML-ALIAS", "more than " + std::to_string(limits_.aliases) + " aliases", at);
    }
    // Charges the expansion before copying, so that nested aliases (a "billion laughs" bomb) fail early.
    const Cost cost = cost_of(found->second);
    nodes_ += cost.nodes;
    bytes_ += cost.bytes;
    if (nodes_ > limits_.nodes || bytes_ > most_bytes()) {
      stop("E-YAML-ALIAS",
           "expands to more than " + count(limits_.nodes) + " nodes or " + count(most_bytes()) + " bytes",
           at);
    }
    check_depth(static_cast<int>(open_.size()) + cost.depth, at);
    YamlNode node = found->second;
    node.line = at.line;
    node.column = at.column;
    finish(std::move(node), YAML::NullAnchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(YamlNode::Kind::kList, "tag:yaml.org,2002:seq", mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(YamlNode::Kind::kMap, "tag:yaml.org,2002:map", mark, tag, anchor, style);
  }
  void OnMapEnd() override { close(); }

 private:
  /// A list or map that is not closed yet.
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    bool flow;
    bool key_next;                    ///< map: the next node is a key
    bool skip_value = false;          ///< map: the key was rejected, so its value is discarded
    YamlEntry entry;                  ///< map: the key of the next value
    std::map<std::string, int> keys;  ///< map: line of each key, for duplicates
  };

  [[noreturn]] void stop(const char* code, std::string message, Position at) {
    report(code, std::move(message), at, path());
    throw Stop{};
  }

  std::size_t offset(const YAML::Mark& mark) const {
    return std::min(static_cast<std::size_t>(std::max(mark.pos, 0)), text_.size());
  }

  static std::string count(std::size_t number) {
    const std::string digits = std::to_string(number);
    std::string grouped;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
      grouped += digits[i];
    }
    return grouped;
  }

  /// Limit on scalar bytes, including expanded aliases and the copies kept for anchors.
  std::size_t most_bytes() const { return 4 * limits_.bytes; }

  /// Dotted path of the current position, for problems.
  std::string path() const {
    std::string text;
    for (const Open& open : open_) {
      if (open.node.is_list()) {
        text += '[' + std::to_string(open.node.items.size()) + ']';
      } else if (!open.key_next) {
        if (!text.empty()) text += '.';
        text += open.entry.key;
      }
    }
    return text;
  }

  void check_depth(int depth, Position at) {
    if (depth > limits_.depth)
      stop("E-YAML-LIMIT", "nested deeper than " + std::to_string(limits_.depth), at);
  }

  YamlNode start_node(const YAML::Mark& mark) {
    YamlNode node;
    const Position at = position(mark);
    node.line = at.line;
    node.column = at.column;
    if (++nodes_ > limits_.nodes) stop("E-YAML-LIMIT", "more than " + count(limits_.nodes) + " nodes", at);
    check_indent(mark, at);
    return node;
  }

  /// Rejects tabs in indentation, which yaml-cpp accepts in places where YAML forbids them.
  void check_indent(const YAML::Mark& mark, Position at) {
    if (open_.empty() || open_.back().flow) return;
    const auto pos = static_cast<std::size_t>(std::max(mark.pos, 0));
    if (pos > text_.size() || mark.column <= 0) return;
    const std::string_view before = text_.substr(pos - static_cast<std::size_t>(mark.column), mark.column);
    const std::size_t indent = std::min(before.find_first_not_of(" \t"), before.size());
    if (before.substr(0, indent).find('\t') != std::string_view::npos) {
      stop("E-YAML-SYNTAX", "a tab indents this line; use spaces", at);
    }
  }

  /// Detects a missing closing quote: yaml-cpp accepts the end of the text as one if a newline precedes it.
  void check_closed(const YAML::Mark& mark, const YamlNode& node) {
    std::string_view rest = text_.substr(offset(mark));
    // Skips the anchor and the tag in front of the quote.
    while (rest.starts_with('&') || rest.starts_with('!')) {
      rest.remove_prefix(std::min(rest.find_first_of(" \t\r\n"), rest.size()));
      rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    }
    if (!rest.starts_with('"') && !rest.starts_with('\'')) return;
    const char quote = rest[0];
    for (std::size_t i = 1; i < rest.size(); ++i) {
      if (quote == '"' && rest[i] == '\\') {
        ++i;
        check_escape(rest.substr(i, 1), node);
      } else if (rest[i] == quote) {
        const bool doubled = quote == '\'' && i + 1 < rest.size() && rest[i + 1] == quote;
        if (!doubled) return;
        ++i;
      }
    }
    stop("E-YAML-SYNTAX", "the quoted text that starts here is not closed", {node.line, node.column});
  }

  /// Rejects four escapes that yaml-cpp decodes to ill-formed UTF-8 or to other characters.
  void check_escape(std::string_view letter, const YamlNode& node) {
    if (letter.find_first_of("N_LP") == std::string_view::npos) return;
    stop("E-YAML-SYNTAX",
         "the escape \\" + std::string(letter) + " is not supported; write the character itself",
         {node.line, node.column});
  }

  /// Applies a scalar tag of the core schema; reports any other tag.
  void apply_tag(YamlNode& node, const std::string& tag) {
    using Kind = YamlNode::Kind;
    if (tag == "tag:yaml.org,2002:str") {
      node.kind = Kind::kString;
      node.quoted = true;
      return;
    }
    type_plain_scalar(node);
    if (tag == "tag:yaml.org,2002:float" && node.kind == Kind::kInt) node.kind = Kind::kDouble;
    const bool fits = (tag == "tag:yaml.org,2002:int" && node.kind == Kind::kInt) ||
                      (tag == "tag:yaml.org,2002:float" && node.kind == Kind::kDouble) ||
                      (tag == "tag:yaml.org,2002:bool" && node.kind == Kind::kBool) ||
                      (tag == "tag:yaml.org,2002:null" && node.kind == Kind::kNull);
    if (!fits) refuse_tag(tag, node);
  }

  void refuse_tag(const std::string& tag, const YamlNode& node) {
    constexpr std::string_view kStandard = "tag:yaml.org,2002:";
    const std::string name = tag.starts_with(kStandard) ? "!!" + tag.substr(kStandard.size()) : tag;
    report("E-YAML-SYNTAX", "tags are not supported: " + name, {node.line, node.column}, path());
  }

  void open(YamlNode::Kind kind, const char* own_tag, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    YamlNode node = start_node(mark);
    node.kind = kind;
    check_depth(static_cast<int>(open_.size()) + 1, {node.line, node.column});
    if (!tag.empty() && tag != "?" && tag != "!" && tag != own_tag) refuse_tag(tag, node);
    const bool flow = style == YAML::EmitterStyle::Flow || (!open_.empty() && open_.back().flow);
    open_.push_back({std::move(node), anchor, flow, kind == YamlNode::Kind::kMap, false, {}, {}});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    finish(std::move(done.node), done.anchor);
  }

  /// Attaches a complete node to its parent as an item, key or value, or makes it the root.
  void finish(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) keep(node, anchor);
    if (open_.empty()) {
      root = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (parent.key_next) {
      take_key(parent, std::move(node));
    } else {
      parent.key_next = true;
      parent.entry.value = std::move(node);
      if (!parent.skip_value) parent.node.entries.push_back(std::move(parent.entry));
      parent.entry = {};
    }
  }

  /// Registers a map key. A bad key is reported and its value discarded, so that parsing can find further
  /// problems.
  void take_key(Open& map, YamlNode key) {
    const Position at{key.line, key.column};
    const std::string where = path();
    map.key_next = false;
    map.skip_value = true;
    map.entry = {key.text, key.line, key.column, {}};
    if (key.is_list() || key.is_map() || key.is_null()) {
      // A key without quotes that is longer than 1,024 characters is no key in YAML; it reads as nothing.
      report("E-CFG-TYPE",
             "keys must be strings" + std::string(key.is_null() ? " of at most 1,024 characters" : "") +
                 ", found " + std::string(kind_name(key.kind)),
             at, where);
    } else if (key.text == "<<") {
      report("E-YAML-SYNTAX", "merge keys (<<) are not supported; write the fields out", at, where);
    } else if (const auto [first, added] = map.keys.emplace(key.text, key.line); !added) {
      report("E-YAML-DUP", '"' + key.text + "\" is already set at line " + std::to_string(first->second), at,
             path());
    } else {
      map.skip_value = false;
    }
  }

  /// Stores a copy of an anchored node. Copies count toward the same limits as the tree.
  void keep(const YamlNode& node, YAML::anchor_t anchor) {
    const Cost cost = cost_of(node);
    kept_nodes_ += cost.nodes;
    bytes_ += cost.bytes;
    if (kept_nodes_ > limits_.nodes || bytes_ > most_bytes()) {
      stop("E-YAML-ALIAS",
           "anchors hold more than " + count(limits_.nodes) + " nodes or " + count(most_bytes()) + " bytes",
           {node.line, node.column});
    }
    anchors_.emplace(anchor, node);
  }

  const std::string_view text_;
  const std::string file_;
  const YamlLimits limits_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  int documents_ = 0, nodes_ = 0, kept_nodes_ = 0, aliases_ = 0;
  std::size_t bytes_ = 0;
  // The line of the last position() call and the characters counted on it so far.
  struct {
    std::size_t start, end;
    int column;
  } counted_{0, 0, 1};
};

tl::unexpected<Error> refuse(const char* code, std::string message, const std::string& file, Position at) {
  return fail(std::vector<Problem>{{code, "", std::move(message), file, at.line, at.column}});
}

Position position_of_byte(std::string_view text, std::size_t offset) {
  Position at{1, 1};
  for (std::size_t i = 0; i < offset; ++i) {
    if (text[i] == '\n') {
      ++at.line;
      at.column = 1;
    } else if ((text[i] & 0xC0) != 0x80) {
      ++at.column;
    }
  }
  return at;
}

/// Rejects input that yaml-cpp would accept or transcode: byte order marks, UTF-16, NUL, control characters,
/// bad UTF-8.
Status check_encoding(std::string_view text, const std::string& file) {
  const auto bad = [&](std::size_t offset, const std::string& what) {
    return refuse("E-YAML-ENCODING",
                  what + " at byte offset " + std::to_string(offset) + "; save the file as plain UTF-8", file,
                  position_of_byte(text, offset));
  };
  if (text.starts_with("\xEF\xBB\xBF")) return bad(0, "byte order mark");
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return bad(0, "UTF-16 byte order mark");
  const std::size_t nul = text.find('\0');
  const auto broken = find_bad_utf8(text);
  if (broken && *broken < nul) return bad(*broken, "invalid UTF-8");
  if (nul != std::string_view::npos) return bad(nul, "NUL byte (is the file UTF-16?)");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) {
      return bad(i, "control character");
    }
  }
  return {};
}

std::string plain_message(const YAML::Exception& error, const Builder& builder) {
  if (!error.msg.starts_with(YAML::ErrorMsg::UNKNOWN_ANCHOR)) return error.msg;
  return "anchor \"" + builder.alias_name(error.mark) + "\" is not defined";
}

}  // namespace

Result<YamlNode> parse_yaml(std::string_view text, const std::string& file, const YamlLimits& limits) {
  if (text.size() > limits.bytes) {
    const std::string most = limits.bytes % 1024 == 0 ? std::to_string(limits.bytes / 1024) + " KiB"
                                                      : std::to_string(limits.bytes) + " bytes";
    return refuse("E-YAML-LIMIT", most + " is the maximum, found " + std::to_string(text.size()) + " bytes",
                  file, {1, 1});
  }
  TRY(check_encoding(text, file));

  Builder builder(text, file, limits);
  builder.root.line = builder.root.column = 1;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    // The second call detects a further document or trailing text.
    if (parser.HandleNextDocument(builder)) parser.HandleNextDocument(builder);
  } catch (const Stop&) {
    // The problem is already in the list.
  } catch (const YAML::Exception& error) {
    builder.report("E-YAML-SYNTAX", plain_message(error, builder), builder.position(error.mark), "");
  }
  if (!builder.problems.empty()) return fail(std::move(builder.problems));
  return std::move(builder.root);
}

}  // namespace det
