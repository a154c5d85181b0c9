// Lists of columns. An entry joins a column of SQL with a member of a struct; the statements, their
// parameters and the reading of results follow from the list. A list is built once and is immutable, hence
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "master/db/pg/pg.h"

namespace det::db {

/// Adds a value to the parameters. Overloads store other types of the core as text or arrays.
template <typename V>
void put(Params& out, const V& value) {
  out.add(value);
}
/// Reads the next column. Overloads read other types of the core; kDataLoss when the value is malformed.
template <typename V>
Status take(Rows::Row& row, V& value) {
  row.into(value);
  return {};
}

template <typename T, typename V>
T class_of(V T::*);
/// The struct that the member pointer `member` belongs to.
template <auto member>
using ClassOf = decltype(class_of(member));
/// Returns the member at the end of a path of member pointers.
template <auto... path, typename T>
auto& at(T& row) {
  return (row.*....*path);
}

/// An SQL expression and the member of T that it is read into.
template <typename T>
struct Column {
  std::string sql;
  Status (*read)(Rows::Row&, T&);
};
/// Column for a member, or for a member of a member.
template <auto first, auto... rest>
auto column(std::string sql) {
  using T = ClassOf<first>;
  return Column<T>{std::move(sql), [](Rows::Row& row, T& out) { return take(row, at<first, rest...>(out)); }};
}

/// Columns that a query returns.
template <typename T>
class Columns {
 public:
  template <typename... C>
  explicit Columns(C... columns) : columns_{std::move(columns)...} {
    for (const Column<T>& one : columns_) sql_ += (sql_.empty() ? "" : ", ") + one.sql;
  }
  /// The expressions for SELECT, in order.
  const std::string& sql() const { return sql_; }
  /// SELECT of these expressions, followed by `rest`.
  std::string select(const std::string& rest) const { return "SELECT " + sql_ + rest; }
  /// Reads the columns of a row; more columns may follow them.
  Status read(Rows::Row& row, T& out) const {
    for (const Column<T>& one : columns_) TRY(one.read(row, out));
    return {};
  }
  /// Reads all rows of a result.
  Result<std::vector<T>> read(const Result<Rows>& rows) const {
    TRY(rows);
    std::vector<T> all;
    for (Rows::Row row : *rows) TRY(read(row, all.emplace_back()));
    return all;
  }
  /// Reads the first row. kNotFound, naming `named`, when there is none.
  Result<T> one(const Result<Rows>& rows, const std::string& named) const {
    TRY(rows);
    if (rows->empty()) return fail(Code::kNotFound, named + " not found");
    Rows::Row row = (*rows)[0];
    T out;
    TRY(read(row, out));
    return out;
  }

 private:
  std::vector<Column<T>> columns_;
  std::string sql_;
};

/// Writes that set a column of a table.
enum class Written {
  kKey,     ///< The insert. The column is part of the key.
  kFirst,   ///< The insert.
  kAlways,  ///< The insert, and every later write of the row.
};
/// A column of a table.
template <typename T>
struct Field {
  std::string name;
  Written written;
  void (*bind)(const T&, Params&);
  Status (*read)(Rows::Row&, T&) = nullptr;  ///< Null: the column is not read back.
  std::string cast = {};                     ///< Cast of the parameter, such as "::json".
  std::string expression = {};               ///< Read in place of the column, if not empty.
};
/// Field for a member, or for a member of a member.
template <auto first, auto... rest>
auto field(std::string name, Written written = Written::kAlways, std::string cast = "",
           std::string expression = "") {
  using T = ClassOf<first>;
  return Field<T>{std::move(name),
                  written,
                  [](const T& row, Params& out) { put(out, at<first, rest...>(row)); },
                  [](Rows::Row& row, T& out) { return take(row, at<first, rest...>(out)); },
                  std::move(cast),
                  std::move(expression)};
}

/// A table with rows of type T. The address of its statements is constant, as Statement requires.
template <typename T>
class Table {
 public:
  Table(const std::string& name, std::vector<Field<T>> fields) : fields_(std::move(fields)) {
    std::string names, values, key, replaced, changed, found;
    int inserted = 0, bound = 0;
    const auto append = [](std::string& list, const char* separator, const std::string& item) {
      list += (list.empty() ? "" : separator) + item;
    };
    for (const Field<T>& one : fields_) {
      append(names, ", ", one.name);
      append(values, ", ", "$" + std::to_string(++inserted) + one.cast);
      if (one.written == Written::kFirst) continue;
      const std::string equals = one.name + " = $" + std::to_string(++bound) + one.cast;
      if (one.written == Written::kKey) {
        append(key, ", ", one.name);
        append(found, " AND ", equals);
      } else {
        append(replaced, ", ", one.name + " = EXCLUDED." + one.name);
        append(changed, ", ", equals);
      }
    }
    upsert_ = "INSERT INTO " + name + " (" + names + ") VALUES (" + values + ") ON CONFLICT (" + key +
              ") DO " + (replaced.empty() ? "NOTHING" : "UPDATE SET " + replaced);
    update_ = "UPDATE " + name + " SET " + changed + " WHERE " + found;
  }

  /// Inserts a row, or updates the columns written kAlways of the row with this key.
  Statement upsert(const T& row) const {
    Params params;
    for (const Field<T>& one : fields_) one.bind(row, params);
    return {upsert_.c_str(), std::move(params)};
  }
  /// Updates the columns written kAlways of an existing row. Fails when there is none.
  Statement update(const T& row) const {
    Params params;
    for (const Field<T>& one : fields_)
      if (one.written != Written::kFirst) one.bind(row, params);
    return {update_.c_str(), std::move(params), true};
  }
  /// The columns that read() reads, each behind `prefix`, such as "t.".
  std::string sql(std::string_view prefix = "") const {
    std::string list;
    for (const Field<T>& one : fields_) {
      if (one.read == nullptr) continue;
      list += list.empty() ? "" : ", ";
      list += one.expression.empty() ? std::string(prefix) + one.name : one.expression;
    }
    return list;
  }
  /// Reads a row; more columns may follow.
  Status read(Rows::Row& row, T& out) const {
    for (const Field<T>& one : fields_)
      if (one.read != nullptr) TRY(one.read(row, out));
    return {};
  }

 private:
  std::vector<Field<T>> fields_;
  std::string upsert_, update_;
};

}  // namespace det::db
