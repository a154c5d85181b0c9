// Values of the series at the pointer: search, order, and the box that shows them.
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import type { Panel, Series } from './series';

// Rows of the box; with more series the ones around the focused one.
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

interface HoverRow {
  at: number; // index of the series in the panel
  label: string;
  value: number;
  raw: number | undefined; // value before smoothing
}

// The label of a series in a panel with one group of metrics: the name of its trial.
const ungrouped = ({ label, group }: Pick<Series, 'label' | 'group'>): string => {
  const at = label.lastIndexOf(` · ${group}`);
  return at > 0 ? label.slice(0, at) : label;
};

// The values at the indices `idxs` (as uPlot reports them: x first), largest first, at most MAX_ROWS. The tables
// of `data` are x, the drawn series, and with smoothing the raw series.
export function hoverRows(
  data: ArrayLike<Values>,
  idxs: ArrayLike<number | null | undefined>,
  panel: Pick<Panel, 'series'>,
  focused: number | undefined,
): HoverRow[] {
  const count = panel.series.length;
  const oneGroup = panel.series.every(({ group }) => group === panel.series[0]?.group);
  const rows = panel.series
    .flatMap((series, at): HoverRow[] => {
      const label = oneGroup ? ungrouped(series) : series.label;
      const index = idxs[at + 1];
      const value = index == null ? undefined : data[at + 1]?.[index];
      if (index == null || value == null) return [];
      return [{ at, label, value, raw: data[at + 1 + count]?.[index] ?? undefined }];
    })
    .sort((a, b) => b.value - a.value);
  const middle = rows.findIndex((row) => row.at === focused);
  const from = Math.max(0, Math.min(rows.length - MAX_ROWS, middle - MAX_ROWS / 2));
  return rows.slice(from, from + MAX_ROWS);
}

export interface Hover {
  left: number; // of the pointer, pixels of the window
  middle: number; // of the plot
  top: number;
  bottom: number;
  chart: readonly [number, number]; // left and right edge
  charts: readonly [number, number]; // of the charts beside each other
  floor: number; // lower edge of the chart, with the texts of its x axis
  isHigh: boolean; // the values at the pointer are in the upper half of the plot
  free: number; // pixels of the chart above or below these values, where there are more
  title: string;
  ended: string[]; // tags of the curves without a value that far
  gray: number; // trials without a color, which are not among the rows
  rows: { label: string; color: string; focused: boolean; value: string; raw: string }[];
}

const DISTANCE = 14; // from the pointer, pixels
const ROOM = 340; // of the box beside the pointer
const BESIDE = 200; // least width of the box in one of several columns of charts
const IN_CHART = 320; // of the box beside the pointer within a chart
const INSET = 6; // from the edges of its chart
const LINE = 17.5; // of text, pixels
const AROUND = 14; // the lines

// Lines of the box.
const linesOf = ({ rows, gray, ended }: Pick<Hover, 'rows' | 'gray' | 'ended'>): number => 1 + rows.length + Number(gray > 0) + Number(ended.length > 0);

// Styles that keep the box within the window and off the values at the pointer: of charts beside each other within its own
// chart, above or below the values, beside the pointer or, in a narrow one, at the right edge; without the room for that over
// the chart beside it. A chart alone
// has it on the side of the pointer where the middle of the plot is, in the half of it without the values.
export function placed({ left, middle, top, bottom, floor, isHigh, free, chart, charts }: Omit<Hover, 'title' | 'ended' | 'gray' | 'rows'>, lines: number, width: number, height: number): Record<string, string> {
  const [before, after] = [chart[0] - charts[0], charts[1] - chart[1]];
  if (Math.max(before, after) >= BESIDE && LINE * lines + AROUND <= free && (isHigh ? floor <= height : top >= 0)) {
    const [isRight, isLeft] = [chart[1] - left >= IN_CHART, left - chart[0] >= IN_CHART];
    return {
      ...(isRight ? { left: `${left + DISTANCE}px` } : { right: `${width - (isLeft ? left - DISTANCE : chart[1] - INSET)}px` }),
      ...(isHigh ? { bottom: `${height - floor + INSET}px` } : { top: `${top}px` }),
      maxWidth: `${(isRight ? chart[1] - left - DISTANCE : isLeft ? left - chart[0] - DISTANCE : chart[1] - chart[0] - INSET) - INSET}px`,
    };
  }
  if (Math.max(before, after) >= BESIDE)
    return {
      ...(after >= BESIDE ? { left: `${chart[1] + DISTANCE}px` } : { right: `${width - chart[0] + DISTANCE}px` }),
      ...(top + bottom > height ? { bottom: `${Math.max(0, height - bottom)}px` } : { top: `${Math.max(0, top)}px` }),
      maxWidth: `${(after >= BESIDE ? after : before) - DISTANCE}px`,
    };
  const [fitsRight, fitsLeft] = [width - left >= ROOM, left >= ROOM];
  const isRight = fitsRight === fitsLeft ? left < (fitsLeft ? middle : width / 2) : fitsRight;
  const room = Math.max(0, (isRight ? width - left : left) - 2 * DISTANCE);
  return {
    ...(isRight ? { left: `${left + DISTANCE}px` } : { right: `${width - left + DISTANCE}px` }),
    ...(isHigh ? { bottom: `${Math.max(0, height - bottom)}px` } : { top: `${Math.max(0, top)}px` }),
    maxWidth: `${room}px`,
  };
}

// "14, 15, 16: not there yet", the first of more than MAX_ENDED.
const MAX_ENDED = 6;
const endedText = (tags: readonly string[]): string =>
  `${tags.slice(0, MAX_ENDED).join(', ')}${tags.length > MAX_ENDED ? ` and ${tags.length - MAX_ENDED} more` : ''}: not there yet`;

export function HoverValues({ at }: { at: Hover | undefined }) {
  if (!at || at.rows.length === 0) return null;
  return (
    <div class="hover-values" style={placed(at, linesOf(at), innerWidth, innerHeight)}>
      <div class="quiet">{at.title}</div>
      <table>
        <tbody>
          {at.rows.map((row, place) => (
            <tr key={place} class={row.focused ? 'focused' : ''}>
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
      {at.gray > 0 && <div class="quiet">{at.gray} more in gray</div>}
      {at.ended.length > 0 && <div class="quiet">{endedText(at.ended)}</div>}
    </div>
  );
}
