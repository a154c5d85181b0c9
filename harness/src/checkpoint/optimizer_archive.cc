#include "harness/src/checkpoint/optimizer_archive.h"

#include <torch/serialize/archive.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "harness/src/base/torch_compat.h"

namespace det {
namespace {

using pickle::Dict;
using pickle::expect;
using pickle::List;
using pickle::member;
using pickle::misfit;
using pickle::Value;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

/// Replacements of whole keys and strings.
using Renames = std::unordered_map<std::string, std::string>;

std::string renamed(const std::string& text, const Renames& renames) {
  const auto found = renames.find(text);
  return found == renames.end() ? text : found->second;
}

/// The addresses of parameters as LibTorch writes them, each with the name of the parameter.
Renames names_of_addresses(const ParameterNames& names, torch::optim::Optimizer& optimizer) {
  Renames renames;
  for (const auto& [parameter, name] : names)
    renames.emplace(compat::archive_key(optimizer, parameter), name);
  return renames;
}
Renames reversed(const Renames& renames) {
  Renames result;
  for (const auto& [from, to] : renames) result.emplace(to, from);
  return result;
}

/// A value with a kind that plain data does not distinguish.
Value tagged(const char* kind, List items) {
  Dict dict;
  dict.add("kind", Value(std::string(kind)));
  dict.add("items", std::move(items));
  return dict;
}

template <typename Items>
List list_of(const Items& items) {
  List list;
  for (const auto& item : items) list.emplace_back(item);
  return list;
}

Value to_value(const torch::IValue& value, const Renames& renames, const std::string& path) {
  if (value.isNone()) return {};
  if (value.isTensor()) return value.toTensor().defined() ? Value(value.toTensor()) : Value();
  if (value.isBool()) return value.toBool();
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isString()) return renamed(value.toStringRef(), renames);
  if (value.isIntList()) return tagged("ints", list_of(value.toIntVector()));
  if (value.isDoubleList()) return tagged("doubles", list_of(value.toDoubleVector()));
  if (value.isTensorList()) return tagged("tensors", list_of(value.toTensorVector()));
  if (value.isTuple()) {
    List items;
    for (const auto& item : value.toTupleRef().elements()) items.push_back(to_value(item, renames, path));
    return tagged("tuple", std::move(items));
  }
  throw std::invalid_argument("the optimizer's save() writes \"" + path + "\" as " + value.tagKind() +
                              ", which a checkpoint cannot hold; write tensors, numbers and text");
}

/// Entries are sorted: LibTorch writes states in the order of a hash table over addresses.
Value to_value(InputArchive& archive, const Renames& renames, const std::string& path) {
  Dict dict;
  for (const std::string& key : archive.keys()) {
    InputArchive nested;
    const std::string name = path + "/" + key;
    if (archive.try_read(key, nested)) {
      dict.add(renamed(key, renames), to_value(nested, renames, name));
      continue;
    }
    torch::IValue value;
    archive.read(key, value);
    dict.add(renamed(key, renames), to_value(value, renames, name));
  }
  std::sort(dict.items.begin(), dict.items.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  Dict out;
  out.add("kind", Value(std::string("archive")));
  out.add("items", std::move(dict));
  return out;
}

/// The content of an archive that `write` fills.
template <typename Write>
Value archived(const Renames& renames, const Write& write) {
  OutputArchive out;
  write(out);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  return to_value(in, renames, "");
}

/// Copies a tensor: those of a checkpoint are views of a file.
torch::IValue to_ivalue(const Value& value, const Renames& renames, const std::string& path) {
  if (value.as<std::monostate>() != nullptr) return {};
  if (const auto* v = value.as<torch::Tensor>()) return v->clone();
  if (const auto* v = value.as<bool>()) return *v;
  if (const auto* v = value.as<std::int64_t>()) return *v;
  if (const auto* v = value.as<double>()) return *v;
  if (const auto* v = value.as<std::string>()) return renamed(*v, renames);
  const auto& kind = expect<std::string>(member(value, "kind"), path);
  const auto& items = expect<List>(member(value, "items"), path);
  const auto all = [&]<typename T>() {
    std::vector<T> values;
    for (const Value& item : items) values.push_back(expect<T>(item, path));
    return values;
  };
  if (kind == "ints") return all.template operator()<std::int64_t>();
  if (kind == "doubles") return all.template operator()<double>();
  if (kind == "tensors") {
    std::vector<torch::Tensor> copies;
    for (const Value& item : items) copies.push_back(expect<torch::Tensor>(item, path).clone());
    return copies;
  }
  std::vector<torch::IValue> elements;
  for (const Value& item : items) elements.push_back(to_ivalue(item, renames, path));
  return c10::ivalue::Tuple::create(std::move(elements));
}

void write_archive(OutputArchive& out, const Value& value, const Renames& renames, const std::string& path) {
  for (const auto& [key, item] : expect<Dict>(member(value, "items"), path).items) {
    const std::string name = path + "/" + key;
    const auto* dict = item.as<Dict>();
    const Value* kind = dict == nullptr ? nullptr : dict->find("kind");
    if (kind != nullptr && expect<std::string>(*kind, name) == "archive") {
      OutputArchive nested(out.compilation_unit());
      write_archive(nested, item, renames, name);
      out.write(renamed(key, renames), nested);
    } else {
      out.write(renamed(key, renames), to_ivalue(item, renames, name));
    }
  }
}

/// Calls read(archive) with an archive of the saved content, its tensors on `device`.
template <typename Read>
void with_archive(const Value& saved, const Renames& renames, const torch::Device& device,
                  const std::string& owner, const Read& read) {
  OutputArchive out;
  write_archive(out, saved, renames, owner);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream, device);
  read(in);
}

}  // namespace

Value collect_optimizer_archive(const ParameterNames& names, torch::optim::Optimizer& optimizer) {
  const Renames renames = names_of_addresses(names, optimizer);
  Dict out;
  out.add("archive", archived(renames, [&](OutputArchive& archive) { optimizer.save(archive); }));
  if (expect<Dict>(member(*out.find("archive"), "items"), "archive").items.empty()) {
    throw std::invalid_argument(
        "the optimizer's state cannot be saved: its save() writes nothing; override save() and load()");
  }
  List groups;
  for (auto& group : optimizer.param_groups()) {
    List members;
    for (const torch::Tensor& parameter : group.params())
      members.emplace_back(names.at(parameter.unsafeGetTensorImpl()));
    Dict entry;
    try {
      entry.add("options", archived({}, [&](OutputArchive& archive) { group.options().serialize(archive); }));
    } catch (const c10::Error& error) {
      throw std::invalid_argument(
          "the optimizer's options cannot be saved; override serialize() of its options: " +
          std::string(error.what_without_backtrace()));
    }
    entry.add("params", std::move(members));
    groups.emplace_back(std::move(entry));
  }
  out.add("param_groups", std::move(groups));
  return out;
}

void apply_optimizer_archive(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                             const Value& saved, const std::string& owner) {
  const Value* archive = expect<Dict>(saved, owner).find("archive");
  if (archive == nullptr) misfit(owner + " is the state of another class of optimizer");
  const List& groups = expect<List>(member(saved, "param_groups"), owner + ".param_groups");
  auto& own = optimizer.param_groups();
  if (groups.size() != own.size()) {
    misfit(owner + " has " + std::to_string(groups.size()) + " parameter groups, the trial's has " +
           std::to_string(own.size()));
  }
  const torch::Device device =
      own.empty() || own[0].params().empty() ? torch::Device(torch::kCPU) : own[0].params()[0].device();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const List& members = expect<List>(member(groups[g], "params"), owner + ".params");
    const auto& parameters = own[g].params();
    const bool same =
        std::equal(members.begin(), members.end(), parameters.begin(), parameters.end(),
                   [&](const Value& name, const torch::Tensor& parameter) {
                     return expect<std::string>(name, owner) == names.at(parameter.unsafeGetTensorImpl());
                   });
    if (!same) misfit(owner + ": parameter group " + std::to_string(g) + " has other parameters");
  }
  torch::NoGradGuard no_grad;
  // LibTorch's load() keeps the state of parameters that the archive does not have.
  optimizer.state().clear();
  try {
    with_archive(*archive, reversed(names_of_addresses(names, optimizer)), device, owner,
                 [&](InputArchive& in) { optimizer.load(in); });
    for (std::size_t g = 0; g < groups.size(); ++g) {
      with_archive(member(groups[g], "options"), {}, device, owner,
                   [&](InputArchive& in) { own[g].options().serialize(in); });
    }
  } catch (const c10::Error& error) {
    misfit(owner + ": " + error.what_without_backtrace());
  }
}

}  // namespace det
