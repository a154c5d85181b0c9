// Widths of the columns of a run table. Pure.

interface Sized {
  key: string;
  width: number; // pixels
}

// Widens the name, or all columns after id and state, so that a column ends at the right edge of the frame: half of a
// column tells nothing. `room` is the width of the frame without the column of choices.
export function fitted<T extends Sized>(columns: readonly T[], room: number): T[] {
  let [count, used] = [0, 0];
  while (count < columns.length && used + (columns[count]?.width ?? 0) <= room) used += columns[count++]?.width ?? 0;
  const visible = columns.slice(0, count);
  const named = visible.filter(({ key }) => key === 'name');
  const wider = named.length > 0 ? named : visible.filter(({ key }) => key !== 'id' && key !== 'state');
  const more = wider.length > 0 ? Math.floor((room - used) / wider.length) : 0;
  return columns.map((column) => (wider.includes(column) ? { ...column, width: column.width + more } : column));
}
