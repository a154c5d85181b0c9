// Values of the series at the pointer: search, order, and the box that shows them.
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import type { Panel, Series } from './series';

// Rows of the box, at most; of more the ones around the focused one.
const MAX_ROWS = 12;

type Values = ArrayLike<number | null | undefined>;

// The index nearest to `at` (in x) at which a series has a value. Null before its first and after its last point:
// a trial that ended has no value at later batches.
export function nearest(x: ArrayLike<number>, values: Values, at: number): number | null {
  let left = at;
  let right = at;
  while (left >= 0 && values[left] == null) left--;
  while (right < values.length && values[right] == null) right++;
  if (left < 0 || right >= values.length) return null;
  const middle = x[at] ?? 0;
  return middle - (x[left] ?? 0) <= (x[right] ?? 0) - middle ? left : right;
}

export interface HoverRow {
  at: number; // index of the series in the panel
  label: string;
  isFocused: boolean;
  value: number;
  raw: number | undefined; // value before smoothing
}

// The label of a series in a panel with one group of metrics: the name of its trial.
const ungrouped = ({ label, group }: Pick<Series, 'label' | 'group'>): string => {
  const at = label.lastIndexOf(` · ${group}`);
  return at > 0 ? label.slice(0, at) : label;
};

// At most MAX_ROWS rows, around the focused one.
function around<T>(rows: readonly T[], isFocused: (row: T) => boolean): T[] {
  const from = Math.max(0, Math.min(rows.length - MAX_ROWS, rows.findIndex(isFocused) - MAX_ROWS / 2));
  return rows.slice(from, from + MAX_ROWS);
}

// The values at the indices `idxs` (as uPlot reports them: x first), largest first. The tables of `data` are x, the drawn
// series, and with smoothing the raw series. `focused` is the index of the curve that is pointed at.
export function hoverRows(data: ArrayLike<Values>, idxs: ArrayLike<number | null | undefined>, { series: all }: Pick<Panel, 'series'>, focused: number | undefined): HoverRow[] {
  const oneGroup = all.every(({ group }) => group === all[0]?.group);
  const rows = all
    .flatMap((series, at): HoverRow[] => {
      const label = oneGroup ? ungrouped(series) : series.label;
      const index = idxs[at + 1];
      const value = index == null ? undefined : data[at + 1]?.[index];
      if (index == null || value == null) return [];
      return [{ at, label, isFocused: at === focused, value, raw: data[at + 1 + all.length]?.[index] ?? undefined }];
    })
    .sort((a, b) => b.value - a.value);
  return around(rows, ({ isFocused }) => isFocused);
}

export interface Hover {
  left: number; // of the pointer, pixels of the window
  plot: { left: number; right: number; top: number; bottom: number };
  right: number; // edge of the chart, beyond the labels at the ends of curves
  // Pixels without curves at the top and at the bottom of the plot, beside the pointer.
  free: Record<'left' | 'right', readonly [number, number]>;
  title: string;
  ended: string[]; // tags of the curves without a value that far
  gray: number; // trials without a color, which are not among the rows
  rows: { label: string; color: string; isFocused: boolean; value: string; raw: string }[];
}

const DISTANCE = 12; // from the pointer, pixels
const INSET = 4; // from the edges of chart and plot
const LINE = 16; // of text, pixels
const AROUND = 10; // the lines
// Pixels of a digit, of a letter of a note, of the color before a label with the padding of the box, and between columns.
const CHARACTER = 6.7;
const LETTER = 5.8;
const COLOR = 28;
const GAP = 8;
const MAX_LABEL = 226; // chart.css
// Covering labels at the ends of curves counts as much as covering this many pixels of curves.
const LABELS = 24;
// The same of a pixel over the pointer and beyond it.
const POINTER = 4;

// "14, 15, 16: not there yet", the first of more than MAX_ENDED.
const MAX_ENDED = 6;
const endedText = (tags: readonly string[]): string =>
  `${tags.slice(0, MAX_ENDED).join(', ')}${tags.length > MAX_ENDED ? ` and ${tags.length - MAX_ENDED} more` : ''}: not there yet`;
const notesOf = ({ gray, ended }: Pick<Hover, 'gray' | 'ended'>): string[] => [...(gray > 0 ? [`${gray} more in gray`] : []), ...(ended.length > 0 ? [endedText(ended)] : [])];

// About the size of the box, in pixels. Its notes have as many lines as they need in its width.
export function sizeOf(at: Pick<Hover, 'title' | 'rows' | 'gray' | 'ended'>): { width: number; height: number } {
  const longest = (texts: readonly string[]): number => CHARACTER * Math.max(0, ...texts.map(({ length }) => length));
  const raw = longest(at.rows.map((row) => row.raw));
  const columns = [Math.min(MAX_LABEL, longest(at.rows.map(({ label }) => label))), longest(at.rows.map(({ value }) => value)), ...(raw > 0 ? [raw] : [])];
  const row = COLOR + columns.reduce((sum, one) => sum + one + GAP, 0);
  const width = Math.max(row, longest([at.title]) + GAP);
  const lines = 1 + at.rows.length + notesOf(at).reduce((sum, note) => sum + Math.ceil((LETTER * note.length) / (width - GAP)), 0);
  return { width, height: LINE * lines + AROUND };
}

// Styles that keep the box in its chart, beside the pointer and off the y axis: on the side, and at the top or the bottom of
// the plot, where it covers least of the curves.
export function placed({ left, plot, right, free }: Pick<Hover, 'left' | 'plot' | 'right' | 'free'>, { width, height }: { width: number; height: number }, windowWidth: number, windowHeight: number): Record<string, string> {
  const room = { left: left - DISTANCE - plot.left, right: right - INSET - left - DISTANCE };
  const places = (['right', 'left'] as const).flatMap((side) =>
    ([0, 1] as const).map((end) => {
      const labels = side === 'right' && left + DISTANCE + width > plot.right ? LABELS : 0;
      // A box that does not fit beside the pointer covers it.
      return { side, isTop: end === 0, covered: Math.max(0, height - free[side][end]) + labels + POINTER * Math.max(0, width - room[side]) };
    }),
  );
  const best = places.reduce((least, one) => (one.covered < least.covered ? one : least));
  const [start, end] = [left + DISTANCE, windowWidth - left + DISTANCE];
  const fits = room[best.side] >= width;
  return {
    ...(best.side === 'right' ? (fits ? { left: `${start}px` } : { right: `${windowWidth - right + INSET}px` }) : fits ? { right: `${end}px` } : { left: `${plot.left}px` }),
    ...(best.isTop ? { top: `${Math.max(0, plot.top)}px` } : { bottom: `${Math.max(0, windowHeight - plot.bottom + INSET)}px` }),
    maxWidth: `${Math.max(0, right - INSET - plot.left)}px`,
  };
}

export function HoverValues({ at }: { at: Hover | undefined }) {
  if (!at || at.rows.length === 0) return null;
  return (
    <div class="hover-values" style={placed(at, sizeOf(at), innerWidth, innerHeight)}>
      <div class="quiet">{at.title}</div>
      <table>
        <tbody>
          {at.rows.map((row, place) => (
            <tr key={place} class={row.isFocused ? 'focused' : ''}>
              <td>
                <span class="hover-label">
                  <Swatch color={row.color} />
                  <Name text={row.label} />
                </span>
              </td>
              <td class="number">{row.value}</td>
              {row.raw !== '' && <td class="number quiet">{row.raw}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {notesOf(at).map((note) => (
        <div key={note} class="quiet hover-note">
          {note}
        </div>
      ))}
    </div>
  );
}
