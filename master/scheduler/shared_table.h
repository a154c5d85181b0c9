// Owns a hash table of which a copy costs little however much is in it: the copy shares its pieces, and the
// table makes one of its own before it changes it. So a copy may be read on any thread while the table goes
// on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace det::scheduler {

/// Values by number. A look touches one or two lines of memory of one piece.
template <typename Value>
class SharedTable {
  static constexpr std::int64_t kNone = INT64_MIN;
  struct Cell {
    std::int64_t key = kNone;
    Value value{};
  };
  struct Piece {
    std::vector<Cell> cells;  ///< as many as a power of two, at least a quarter of them empty
    std::size_t used = 0;
  };

 public:
  /// The table as it was when `share` was called.
  class Copy {
   public:
    std::size_t size() const { return size_; }
    /// In no order that means anything.
    template <typename Visit>
    void each(const Visit& visit) const {
      for (const auto& piece : pieces_) {
        for (const Cell& cell : piece->cells) {
          if (cell.key != kNone) visit(cell.value);
        }
      }
    }

   private:
    friend SharedTable;
    std::vector<std::shared_ptr<const Piece>> pieces_;
    std::size_t size_ = 0;
  };

  SharedTable() : places_(kPieces) {}
  std::size_t size() const { return size_; }
  bool contains(std::int64_t key) const { return find(key) != nullptr; }
  /// Null when it is not there; else until the next change.
  const Value* find(std::int64_t key) const {
    const std::uint64_t hash = hash_of(key);
    const Piece* piece = places_[piece_of(hash)].piece.get();
    if (!piece) return nullptr;
    const Cell& cell = piece->cells[cell_of(*piece, hash, key)];
    return cell.key == key ? &cell.value : nullptr;
  }
  /// Adds or replaces.
  void put(std::int64_t key, Value value) {
    const std::uint64_t hash = hash_of(key);
    Piece& piece = own(places_[piece_of(hash)]);
    if ((piece.used + 1) * 4 > piece.cells.size() * 3) grow(piece);
    Cell& cell = piece.cells[cell_of(piece, hash, key)];
    if (cell.key != key) {
      ++piece.used;
      ++size_;
    }
    cell.key = key;
    cell.value = std::move(value);
  }
  void erase(std::int64_t key) {
    if (!contains(key)) return;
    const std::uint64_t hash = hash_of(key);
    Piece& piece = own(places_[piece_of(hash)]);
    const std::size_t mask = piece.cells.size() - 1;
    std::size_t hole = cell_of(piece, hash, key);
    // What was pushed past the hole comes back to it, so that a look may end at the first empty cell.
    for (std::size_t at = (hole + 1) & mask; piece.cells[at].key != kNone; at = (at + 1) & mask) {
      const std::size_t home = hash_of(piece.cells[at].key) & mask;
      if (((at - home) & mask) < ((at - hole) & mask)) continue;
      piece.cells[hole] = std::move(piece.cells[at]);
      hole = at;
    }
    piece.cells[hole] = Cell();
    --piece.used;
    --size_;
  }
  /// As long as there are pieces; what changes afterwards copies the piece that it is in, once.
  Copy share() {
    Copy copy;
    copy.size_ = size_;
    copy.pieces_.reserve(kPieces);
    for (Place& place : places_) {
      if (!place.piece) continue;
      place.shared = true;
      copy.pieces_.push_back(place.piece);
    }
    return copy;
  }

 private:
  struct Place {
    std::shared_ptr<Piece> piece;  ///< null: empty
    bool shared = false;           ///< a copy may read it: it never changes again
  };
  /// With 100,000 values a piece is copied in two microseconds, and the whole is shared in some tens.
  static constexpr std::size_t kPieces = 512;

  /// Numbers come in sequence; the upper half of the product spreads them.
  static std::uint64_t hash_of(std::int64_t key) {
    return (static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15U) >> 24;
  }
  static std::size_t piece_of(std::uint64_t hash) { return (hash >> 31) % kPieces; }
  /// Where it is, or would be.
  static std::size_t cell_of(const Piece& piece, std::uint64_t hash, std::int64_t key) {
    const std::size_t mask = piece.cells.size() - 1;
    std::size_t at = hash & mask;
    while (piece.cells[at].key != key && piece.cells[at].key != kNone) at = (at + 1) & mask;
    return at;
  }
  static Piece& own(Place& place) {
    if (!place.piece) {
      place.piece = std::make_shared<Piece>();
      place.piece->cells.resize(4);
    } else if (place.shared) {
      place.piece = std::make_shared<Piece>(*place.piece);
    }
    place.shared = false;
    return *place.piece;
  }
  static void grow(Piece& piece) {
    std::vector<Cell> before(piece.cells.size() * 2);
    before.swap(piece.cells);
    for (Cell& cell : before) {
      if (cell.key != kNone) piece.cells[cell_of(piece, hash_of(cell.key), cell.key)] = std::move(cell);
    }
  }

  std::vector<Place> places_;
  std::size_t size_ = 0;
};

}  // namespace det::scheduler
