// Places of equal tiles on a wall: as large as possible while all of them fit into the window. Pure.
export const LABEL = 20; // pixels of the name below an image
export const GAP = 8;
const MIN_TILE = 56; // pixels of a side
const MAX_TILE = 240;

export interface Tiling {
  columns: number;
  side: number; // pixels of an image's place
  height: number; // of the wall
}

function tiling(count: number, columns: number, width: number): Tiling {
  const side = Math.min(MAX_TILE, Math.floor((width - (columns - 1) * GAP) / columns));
  return { columns, side, height: Math.ceil(count / columns) * (side + LABEL + GAP) - GAP };
}

// Without such a size the tiles have the least one, and the wall is higher than `room`.
export function tiled(count: number, width: number, room: number): Tiling {
  const most = Math.max(1, Math.floor((width + GAP) / (MIN_TILE + GAP)));
  for (let columns = Math.max(1, Math.ceil((width + GAP) / (MAX_TILE + GAP))); columns < most; columns++) {
    const found = tiling(count, columns, width);
    if (found.height <= room) return found;
  }
  return tiling(count, most, width);
}

export interface Place {
  x: number;
  y: number;
  width: number;
  height: number;
}

// The left upper corner of a tile.
export const cornerOf = ({ columns, side }: Tiling, at: number): { x: number; y: number } => ({
  x: (at % columns) * (side + GAP),
  y: Math.floor(at / columns) * (side + LABEL + GAP),
});

// The place of an image within its tile: centered, as large as possible.
export function within(tiling: Tiling, at: number, width: number, height: number): Place {
  const { x, y } = cornerOf(tiling, at);
  const scale = tiling.side / Math.max(width, height, 1);
  const [w, h] = [width * scale, height * scale];
  return { x: x + Math.round((tiling.side - w) / 2), y: y + Math.round((tiling.side - h) / 2), width: w, height: h };
}

// Names without the words that all of them begin with: a tile has no room for these.
export function distinct(names: readonly string[]): string[] {
  const first = names[0] ?? '';
  let shared = names.length > 1 ? first.length : 0;
  for (const name of names) while (!name.startsWith(first.slice(0, shared))) shared--;
  // Back to the beginning of a word that is not shared as a whole.
  while (shared > 0 && !/[\s_/]/.test(first[shared - 1] ?? '')) shared--;
  return names.map((name) => name.slice(shared) || name);
}
