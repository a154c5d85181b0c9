// Copy-on-write hash table: a copy shares the pieces of the table and costs the same however many values
// there are; the table duplicates a shared piece before it changes it. One thread changes the table, any
// thread may read a copy meanwhile.
//
// Images of a pool (Scheduler::image) need it: an explanation reads the whole queue, up to 100,000 requests,
// on another thread, and copying the queue would stall the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace det::scheduler {

/// Values by integer key: open addressing with linear probing, split into kPieces pieces by hash. A lookup
/// touches one or two cache lines of one piece.
template <typename Value>
class SharedTable {
  static constexpr std::int64_t kNone = INT64_MIN;
  /// A slot of the hash table. kNone marks an empty one, so INT64_MIN is no valid key.
  struct Cell {
    std::int64_t key = kNone;
    Value value{};
  };
  /// A small hash table of its own: the unit of sharing and copying.
  struct Piece {
    std::vector<Cell> cells;  ///< a power of two of them, at least a quarter empty
    std::size_t used = 0;     ///< occupied cells
  };

 public:
  /// The immutable contents of the table when `share` was called. May be read and destroyed on any thread.
  class Copy {
   public:
    std::size_t size() const { return size_; }
    /// Calls `visit` for every value, in no particular order.
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
  /// Number of values.
  std::size_t size() const { return size_; }
  bool contains(std::int64_t key) const { return find(key) != nullptr; }
  /// Returns the value, or null. The pointer is valid until the next change of the table.
  const Value* find(std::int64_t key) const {
    const std::uint64_t hash = hash_of(key);
    const Piece* piece = places_[piece_of(hash)].piece.get();
    if (!piece) return nullptr;
    const Cell& cell = piece->cells[cell_of(*piece, hash, key)];
    return cell.key == key ? &cell.value : nullptr;
  }
  /// Adds or replaces a value. O(1), plus the copy of one piece when it is shared.
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
  /// Removes a value. No effect on an absent key.
  void erase(std::int64_t key) {
    if (!contains(key)) return;
    const std::uint64_t hash = hash_of(key);
    Piece& piece = own(places_[piece_of(hash)]);
    const std::size_t mask = piece.cells.size() - 1;
    std::size_t hole = cell_of(piece, hash, key);
    // Backward-shift deletion: later cells of the probe sequence move into the hole. Without tombstones a
    // lookup ends at the first empty cell.
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
  /// Returns a copy in O(kPieces). The first later change of a value copies the piece that contains it.
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
  /// A piece as the table refers to it.
  struct Place {
    std::shared_ptr<Piece> piece;  ///< null when empty
    bool shared = false;           ///< a copy refers to it: it is immutable
  };
  /// With 100,000 values copying one piece takes about 2 us, and share() a few tens of us.
  static constexpr std::size_t kPieces = 512;

  /// Fibonacci hashing: keys are sequential, and the upper bits of the product spread them.
  static std::uint64_t hash_of(std::int64_t key) {
    return (static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15U) >> 24;
  }
  /// Returns the index of the piece. Takes bits of the hash above those that cell_of uses.
  static std::size_t piece_of(std::uint64_t hash) { return (hash >> 31) % kPieces; }
  /// Returns the index of the key's cell, or of the empty cell where it belongs.
  static std::size_t cell_of(const Piece& piece, std::uint64_t hash, std::int64_t key) {
    const std::size_t mask = piece.cells.size() - 1;
    std::size_t at = hash & mask;
    while (piece.cells[at].key != key && piece.cells[at].key != kNone) at = (at + 1) & mask;
    return at;
  }
  /// Returns the piece for writing: creates it, or replaces a shared one by a private copy.
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
  /// Doubles the cells of a piece.
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
