// Widths of the columns of a run table, and where it scrolls to. Pure.

interface Sized {
  key: string;
  width: number; // pixels
}

// Least width of the name where another column would not fit beside it.
const NAME_LEAST = 220;
// Columns that name a row.
export const NAMES: readonly string[] = ['name', 'experiment'];

// Widens the name, or all columns after id and state, so that a column ends at the right edge of the frame: half of a
// column tells nothing. Narrows the name if another column fits then. `room` is the width of the frame without the column
// of choices; a name that would leave less than `kept` of it to columns that scroll shares the rest with them.
export function fitted<T extends Sized>(columns: readonly T[], room: number, kept = 0): T[] {
  const spare = Math.max(0, (columns.find(({ key }) => NAMES.includes(key))?.width ?? NAME_LEAST) - NAME_LEAST);
  let used = 0;
  const end = columns.findIndex(({ width }) => {
    if (used + width > room + spare) return true;
    used += width;
    return false;
  });
  const visible = end < 0 ? columns : columns.slice(0, end);
  const [names, others] = [visible.filter(({ key }) => NAMES.includes(key)), visible.filter(({ key }) => !NAMES.includes(key) && key !== 'id' && key !== 'state')];
  const left = room - used;
  const most = end < 0 ? Infinity : Math.max(NAME_LEAST, room - kept);
  const byName = names.length === 0 ? 0 : Math.min(Math.floor(left / names.length), most - (names[0]?.width ?? 0));
  const byOther = (names.length > 0 && byName < 0) || others.length === 0 ? 0 : Math.floor((left - byName * names.length) / others.length);
  return columns.map((column) => {
    const more = names.includes(column) ? byName : others.includes(column) ? byOther : 0;
    return more === 0 ? column : { ...column, width: column.width + more };
  });
}

// Scroll positions at which a column that scrolls begins beside the pinned ones, and the width that has to follow the
// last column so that the right end is such a position. `room` is the width between the pinned columns and the frame.
export function edges(widths: readonly number[], room: number): { at: number[]; filler: number } {
  const total = widths.reduce((sum, width) => sum + width, 0);
  const overflow = total - room;
  if (overflow <= 0) return { at: [0], filler: 0 };
  const at = [0];
  let sum = 0;
  for (const width of widths) {
    sum += width;
    at.push(sum);
    if (sum >= overflow) break;
  }
  return { at, filler: sum - overflow };
}

// The scroll position that shows a column whole, or its start if it is wider than the room: the present one if it does.
export function revealed(widths: readonly number[], column: number, room: number, now: number): number {
  const left = widths.slice(0, column).reduce((sum, width) => sum + width, 0);
  const right = left + (widths[column] ?? 0);
  if (left >= now && right <= now + room) return now;
  if (left < now) return left;
  const { at } = edges(widths, room);
  return Math.min(left, at.find((one) => one >= right - room) ?? left);
}
