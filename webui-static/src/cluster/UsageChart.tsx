// Slot usage over time: a stacked bar per interval and a line for the available slots.
import { useWidth } from '../components/width';
import { clock, metric } from '../format';
import { average, type By, type Cell } from './held';

const HEIGHT = 220;
const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 22;
// Approximate distance of axis labels, in pixels.
const APART = 90;

// Axis values in steps of 1, 2 or 5 times a power of ten; about four at most.
export function ticks(most: number): number[] {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

// Axis values like those of ticks(); the last one is not below `most`.
export function ticksOver(most: number): number[] {
  const marks = ticks(most);
  const step = marks[1] ?? most;
  const last = marks[marks.length - 1] ?? 0;
  return last < most - 1e-9 * step ? [...marks, marks.length * step] : marks;
}

interface Props {
  cells: readonly Cell[];
  by: By;
  keys: readonly string[]; // keys with their own color, in color order; the others share one
}

export function UsageChart({ cells, by, keys }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const bars = cells.map((cell) => {
    const parts = cell.parts.get(by) ?? new Map<string, number>();
    const own = keys.map((key) => parts.get(key) ?? 0);
    const others = [...parts.values()].reduce((sum, one) => sum + one, 0) - own.reduce((sum, one) => sum + one, 0);
    return { cell, heights: [...own, others].map((one) => average(one, cell.fromMs, cell.toMs)) };
  });
  const there = cells.map((cell) => average(cell.capacity, cell.fromMs, cell.toMs));
  const most = Math.max(1, ...there, ...bars.map((bar) => bar.heights.reduce((sum, one) => sum + one, 0)));
  const marks = ticksOver(most);
  const top = marks[marks.length - 1] ?? most;
  const x = (at: number): number => LEFT + (at / Math.max(1, cells.length)) * (width - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const every = Math.max(1, Math.ceil(APART / ((width - LEFT - RIGHT) / Math.max(1, cells.length))));
  const name = (cell: Cell): string => cell.label || clock(new Date(cell.fromMs).toISOString()).slice(0, 'hh:mm'.length);
  // A step line with gaps where the capacity is unknown.
  const line = there
    .map((slots, at) =>
      slots > 0 ? `${(there[at - 1] ?? 0) > 0 ? 'L' : 'M'}${x(at)},${y(slots)}L${x(at + 1)},${y(slots)}` : '',
    )
    .join('');
  const gap = cells.length > width / 6 ? 0 : 1;
  return (
    <div ref={host}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
        {marks.map((tick) => (
          <g key={tick}>
            <line class="rung" x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {metric(tick)}
            </text>
          </g>
        ))}
        {bars.map(({ cell, heights }, at) => {
          let below = 0;
          return (
            <g key={cell.fromMs}>
              <title>
                {name(cell)}: {metric(average(cell.total, cell.fromMs, cell.toMs))}
                {cell.capacity > 0 && ` of ${metric(average(cell.capacity, cell.fromMs, cell.toMs))}`} slots
              </title>
              {heights.map((value, place) => {
                if (value <= 0) return null;
                below += value;
                return (
                  <rect
                    key={place}
                    class={`stack-${place === keys.length ? 'others' : (place % 8) + 1}`}
                    x={x(at)}
                    y={Math.min(y(below), y(below - value) - 1)}
                    width={Math.max(0.5, x(at + 1) - x(at) - gap)}
                    height={Math.max(1, y(below - value) - y(below))}
                  />
                );
              })}
              {at % every === 0 && x(at) + 0.7 * APART < width && (
                <text x={x(at)} y={HEIGHT - 6}>
                  {name(cell)}
                </text>
              )}
            </g>
          );
        })}
        {line !== '' && <path class="most" d={line} />}
        <line class="axis" x1={LEFT} x2={width - RIGHT} y1={y(0)} y2={y(0)} />
      </svg>
    </div>
  );
}
