#include "harness/src/checkpoint/state_optimizer.h"

#include <deque>
#include <map>
#include <tuple>
#include <type_traits>

#include "harness/src/base/torch_compat.h"
#include "harness/src/checkpoint/optimizer_archive.h"
#include "harness/src/optim/optimizer_fields.h"

namespace det {
namespace {

using pickle::Dict;
using pickle::expect;
using pickle::List;
using pickle::misfit;
using pickle::Value;

/// Adds each field to a dictionary; undefined tensors are omitted.
struct SaveField {
  Dict& out;
  template <typename T>
  void operator()(const char* name, const T& value) const {
    out.add(name, Value(value));
  }
  void operator()(const char* name, const torch::Tensor& value) const {
    if (value.defined()) out.add(name, Value(value));
  }
  void operator()(const char* name, const AnyShape& value) const { (*this)(name, value.tensor); }
  void operator()(const char* name, const std::tuple<double, double>& value) const {
    out.add(name, Value(List{Value(std::get<0>(value)), Value(std::get<1>(value))}));
  }
  void operator()(const char* name, const std::vector<double>& value) const {
    out.add(name, Value(List(value.begin(), value.end())));
  }
  void operator()(const char* name, const std::deque<torch::Tensor>& value) const {
    out.add(name, Value(List(value.begin(), value.end())));
  }
  template <typename T>
  void operator()(const char* name, const c10::optional<T>& value) const {
    out.add(name, value ? Value(*value) : Value());
  }
};

/// Reads the fields that SaveField or Python wrote. Python's variants are accepted: integers for floats,
/// one-element tensors for numbers, None for tensors that do not exist yet.
struct LoadField {
  const Dict& in;
  const std::string& owner;
  const torch::Tensor* like = nullptr;  ///< the parameter: gives device and shape of its state
  bool* any = nullptr;                  ///< set when a tensor or counter was read

  void operator()(const char* name, double& value) const { value = number(need(name), name); }
  void operator()(const char* name, std::int64_t& value) const {
    value = static_cast<std::int64_t>(number(need(name), name));
    if (any != nullptr) *any = true;
  }
  void operator()(const char* name, bool& value) const { value = expect<bool>(need(name), path(name)); }
  void operator()(const char* name, std::string& value) const {
    value = expect<std::string>(need(name), path(name));
  }
  template <typename T>
  void operator()(const char* name, c10::optional<T>& value) const {
    value = c10::nullopt;
    if (need(name).as<std::monostate>() == nullptr) (*this)(name, *(value = T{}));
  }
  void operator()(const char* name, std::vector<double>& value) const {
    value.clear();
    for (const Value& item : expect<List>(need(name), path(name))) value.push_back(number(item, name));
  }
  void operator()(const char* name, std::deque<torch::Tensor>& value) const {
    value.clear();
    for (const Value& item : expect<List>(need(name), path(name)))
      value.push_back(copy_of(expect<torch::Tensor>(item, path(name))));
  }
  void operator()(const char* name, const AnyShape& value) const {
    const Value* saved = in.find(name);
    if (saved == nullptr || saved->as<std::monostate>() != nullptr) return;
    // Python's LBFGS begins with a number.
    const auto* tensor = saved->as<torch::Tensor>();
    value.tensor =
        tensor != nullptr ? copy_of(*tensor) : torch::full({}, number(*saved, name), like->options());
    *any = true;
  }
  void operator()(const char* name, torch::Tensor& value) const {
    const Value* saved = in.find(name);
    // Absent or None: the optimizer had not created the tensor when the state was saved.
    if (saved == nullptr || saved->as<std::monostate>() != nullptr) return;
    const auto& tensor = expect<torch::Tensor>(*saved, path(name));
    if (tensor.sizes() != like->sizes()) {
      misfit(path(name) + " is " + compat::shape_text(tensor) + ", the parameter " +
             compat::shape_text(*like));
    }
    value = copy_of(tensor);
    *any = true;
  }
  void operator()(const char* name, std::tuple<double, double>& value) const {
    const auto& pair = expect<List>(need(name), path(name));
    if (pair.size() != 2) misfit(path(name) + " has " + std::to_string(pair.size()) + " numbers, not 2");
    // Adafactor's eps is (None, number) in Python: None is the default.
    if (pair[0].as<std::monostate>() == nullptr) std::get<0>(value) = number(pair[0], name);
    std::get<1>(value) = number(pair[1], name);
  }

 private:
  torch::Tensor copy_of(const torch::Tensor& tensor) const {
    return torch::empty_like(tensor, tensor.options().device(like->device())).copy_(tensor);
  }
  std::string path(const char* name) const { return owner + "." + name; }
  const Value& need(const char* name) const {
    const Value* value = in.find(name);
    if (value == nullptr) misfit(path(name) + " is missing");
    return *value;
  }
  double number(const Value& value, const char* name) const {
    if (const auto* v = value.as<double>()) return *v;
    if (const auto* v = value.as<std::int64_t>()) return static_cast<double>(*v);
    if (const auto* v = value.as<torch::Tensor>(); v != nullptr && v->numel() == 1) return v->item<double>();
    pickle::wrong_kind(value, path(name));
  }
};

/// The key of the group's `index`-th parameter in the saved state: its number in Python's files, its
/// name in those of this library.
std::string saved_name(const List& members, std::size_t index, const ParameterNames& names,
                       const torch::Tensor& parameter) {
  if (const auto* number = members[index].as<std::int64_t>()) return std::to_string(*number);
  return names.at(parameter.unsafeGetTensorImpl());
}

/// Refuses Python's options that change the step and that LibTorch's optimizers do not have. `is_decoupled`:
/// the optimizer is AdamW, which PyTorch stores as an Adam with decoupled weight decay since 2.7.
void refuse_foreign_options(const Dict& group, const std::string& owner, bool is_decoupled) {
  const auto flag = [&](const char* name) {
    const Value* value = group.find(name);
    return value == nullptr ? nullptr : value->as<bool>();
  };
  if (const bool* set = flag("maximize"); set != nullptr && *set)
    misfit(owner + ".maximize is set, which is not supported");
  const bool* decoupled = flag("decoupled_weight_decay");
  if (decoupled != nullptr && *decoupled != is_decoupled) {
    misfit(owner + ".decoupled_weight_decay is " + (*decoupled ? "set" : "not set") +
           (is_decoupled ? ": the state is one of Adam, not of AdamW"
                         : ", which is not supported by this optimizer; AdamW has it"));
  }
}

/// A tensor of a whole parameter from its parts, which must cover it.
torch::Tensor joined_tensor(const List& parts, const std::string& field, const torch::Tensor& parameter,
                            const std::string& path) {
  torch::Tensor whole;
  std::int64_t filled = 0;
  for (const Value& part : parts) {
    const Value* value = expect<Dict>(pickle::member(part, "state"), path).find(field);
    if (value == nullptr) continue;
    const auto& elements = expect<torch::Tensor>(*value, path);
    if (!whole.defined()) {
      std::vector<std::int64_t> strides;
      for (const Value& item : expect<List>(pickle::member(part, "strides"), path))
        strides.push_back(expect<std::int64_t>(item, path));
      if (strides.size() != static_cast<std::size_t>(parameter.dim()))
        misfit(path + "." + field + " has another number of dimensions than the parameter");
      whole = torch::empty_strided(parameter.sizes(), strides, elements.options());
      if (!whole.is_non_overlapping_and_dense()) misfit(path + "." + field + " has another shape");
    }
    const auto begin = expect<std::int64_t>(pickle::member(part, "begin"), path);
    if (begin < 0 || begin + elements.numel() > whole.numel())
      misfit(path + "." + field + " is larger than the parameter");
    whole.as_strided({elements.numel()}, {1}, begin).copy_(elements);
    filled += elements.numel();
  }
  if (filled != parameter.numel()) {
    misfit(path + "." + field + " has " + std::to_string(filled) + " of " +
           std::to_string(parameter.numel()) + " elements: a part is missing");
  }
  return whole;
}

/// The state of a whole parameter from the parts of the ranks. Other fields than tensors are equal in all.
Dict joined(const Value& parts, const torch::Tensor& parameter, const std::string& path) {
  const List& list = expect<List>(parts, path);
  if (list.empty()) misfit(path + " has no parts");
  Dict whole;
  for (const auto& [field, value] : expect<Dict>(pickle::member(list.front(), "state"), path).items) {
    whole.add(field,
              value.as<torch::Tensor>() == nullptr ? value : joined_tensor(list, field, parameter, path));
  }
  return whole;
}

bool is_known_optimizer(torch::optim::Optimizer& optimizer) {
  return with_kind(optimizer, []<typename Options, typename State>() {});
}

}  // namespace

void check_can_be_saved(const ParameterNames& names, torch::optim::Optimizer& optimizer) {
  if (!is_known_optimizer(optimizer)) collect_optimizer_archive(names, optimizer);
}

Value collect_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer) {
  if (!is_known_optimizer(optimizer)) return collect_optimizer_archive(names, optimizer);
  Dict states;
  List groups;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    for (auto& group : optimizer.param_groups()) {
      List members;
      for (const torch::Tensor& parameter : group.params()) {
        const std::string& name = names.at(parameter.unsafeGetTensorImpl());
        if (const auto found = kept.find(compat::state_key(optimizer, parameter)); found != kept.end()) {
          Dict state;
          fields(static_cast<State&>(*found->second), SaveField{state});
          states.add(name, std::move(state));
        }
        members.emplace_back(name);
      }
      Dict entry;
      fields(static_cast<Options&>(group.options()), SaveField{entry});
      entry.add("params", std::move(members));
      groups.emplace_back(std::move(entry));
    }
  });
  Dict out;
  out.add("state", std::move(states));
  out.add("param_groups", std::move(groups));
  return out;
}

void apply_optimizer(const ParameterNames& names, torch::optim::Optimizer& optimizer, const Value& saved,
                     const std::string& owner, const ZeroPartition* partition, bool with_options) {
  if (!is_known_optimizer(optimizer)) return apply_optimizer_archive(names, optimizer, saved, owner);
  const Dict& states = expect<Dict>(pickle::member(saved, "state"), owner + ".state");
  const List& groups = expect<List>(pickle::member(saved, "param_groups"), owner + ".param_groups");
  if (groups.size() != optimizer.param_groups().size()) {
    misfit(owner + " has " + std::to_string(groups.size()) + " parameter groups, the trial's has " +
           std::to_string(optimizer.param_groups().size()));
  }
  torch::NoGradGuard no_grad;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    // A parameter that was never stepped has no saved state and must not keep a current one.
    kept.clear();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      auto& group = optimizer.param_groups()[g];
      const Dict& entry = expect<Dict>(groups[g], owner);
      refuse_foreign_options(entry, owner, std::is_same_v<Options, torch::optim::AdamWOptions>);
      if (with_options) fields(static_cast<Options&>(group.options()), LoadField{entry, owner});
      const List& members = expect<List>(pickle::member(groups[g], "params"), owner + ".params");
      if (members.size() != group.params().size()) {
        misfit(owner + ": parameter group " + std::to_string(g) + " has " + std::to_string(members.size()) +
               " parameters, the trial's has " + std::to_string(group.params().size()));
      }
      for (std::size_t i = 0; i < group.params().size(); ++i) {
        const torch::Tensor& parameter = group.params()[i];
        const std::string name = saved_name(members, i, names, parameter);
        const ZeroPiece* piece = partition == nullptr ? nullptr : partition->piece_of(parameter);
        const Value* own = states.find(name);
        if (own == nullptr || (partition != nullptr && piece == nullptr)) continue;
        auto state = std::make_unique<State>();
        const std::string path = owner + "." + name;
        bool any = false;
        const Dict& dict = expect<Dict>(*own, path);
        const Value* parts = dict.find("parts");
        fields(*state,
               LoadField{parts == nullptr ? dict : joined(*parts, parameter, path), path, &parameter, &any});
        if (!any) continue;
        if (piece != nullptr) fields(*state, DivideField{*piece});
        kept[compat::state_key(optimizer, piece != nullptr ? piece->part : parameter)] = std::move(state);
      }
    }
  });
}

Value collect_optimizer_part(const ParameterNames& names, torch::optim::Optimizer& optimizer,
                             const ZeroPartition& partition) {
  Dict parts;
  with_kind(optimizer, [&]<typename Options, typename State>() {
    auto& kept = optimizer.state();
    for (const auto& group : optimizer.param_groups()) {
      for (const torch::Tensor& parameter : group.params()) {
        const ZeroPiece* piece = partition.piece_of(parameter);
        const auto found =
            piece == nullptr ? kept.end() : kept.find(compat::state_key(optimizer, piece->part));
        if (found == kept.end()) continue;
        Dict state, part;
        fields(static_cast<State&>(*found->second), SaveField{state});
        part.add("begin", piece->begin);
        part.add("strides", List(parameter.strides().begin(), parameter.strides().end()));
        part.add("state", std::move(state));
        parts.add(names.at(parameter.unsafeGetTensorImpl()), std::move(part));
      }
    }
  });
  return parts;
}

void add_optimizer_parts(Value& optimizer, const std::vector<const Value*>& parts) {
  std::map<std::string, List> by_parameter;
  for (const Value* part : parts)
    for (const auto& [name, value] : expect<Dict>(*part, "a part of an optimizer").items)
      by_parameter[name].push_back(value);
  auto* const dict = std::get_if<Dict>(&optimizer.data);
  if (dict == nullptr) pickle::wrong_kind(optimizer, "an optimizer");
  for (auto& [key, value] : dict->items) {
    auto* const states = key == "state" ? std::get_if<Dict>(&value.data) : nullptr;
    if (states == nullptr) continue;
    for (auto& [name, list] : by_parameter) {
      Dict state;
      state.add("parts", std::move(list));
      states->add(name, std::move(state));
    }
    return;
  }
  misfit("an optimizer has no state");
}

}  // namespace det
