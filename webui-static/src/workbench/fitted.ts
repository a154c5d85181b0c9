// Widths of the columns of a run table. Pure.

interface Sized {
  key: string;
  width: number; // pixels
}

// Least width of the name where the metric would not fit beside it.
const NAME_LEAST = 144;
const METRIC = 'searcherMetricsVal';
// Columns that name a row.
export const NAMES: readonly string[] = ['name', 'experiment'];

// Widens the name, or all columns after id and state, so that a column ends at the right edge of the frame: half of a
// column tells nothing. Narrows the name if the metric fits then. `room` is the width of the frame without the column
// of choices.
export function fitted<T extends Sized>(columns: readonly T[], room: number): T[] {
  const spare = (columns.find(({ key }) => NAMES.includes(key))?.width ?? NAME_LEAST) - NAME_LEAST;
  let used = 0;
  const end = columns.findIndex(({ key, width }) => {
    if (used + width > room + (key === METRIC ? spare : 0)) return true;
    used += width;
    return false;
  });
  const visible = end < 0 ? columns : columns.slice(0, end);
  const named = visible.filter(({ key }) => NAMES.includes(key));
  const wider = named.length > 0 ? named : visible.filter(({ key }) => key !== 'id' && key !== 'state');
  const more = wider.length > 0 ? Math.floor((room - used) / wider.length) : 0;
  return columns.map((column) => (wider.includes(column) ? { ...column, width: column.width + more } : column));
}
