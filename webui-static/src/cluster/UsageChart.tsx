// Slot usage over time: a stacked bar per interval and a line for the available slots.
import { useWidth } from '../components/width';
import { dayMonth, metric, minute, monthYear } from '../format';
import { available, firstKnown, usageStart } from './account';
import { average, type By, type Cell } from './held';

const HEIGHT = 220;
const LEFT = 44;
const RIGHT = 8;
const TOP = 10;
const BOTTOM = 22;
// Approximate distance of axis labels, in pixels.
const APART = 90;
// Half the width of "14:05", and what cannot be seen.
const NARROW = 16;
const NEAR = 4;
// Least width of a bar with its value above it.
const LABELED = 32;

// Axis values in steps of 1, 2 or 5 times a power of ten; about four at most.
export function ticks(most: number): number[] {
  const rough = most / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((one) => one * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, at) => at * step);
}

// Axis values like those of ticks(); the last one is not below `most`.
function ticksOver(most: number): number[] {
  const marks = ticks(most);
  const step = marks[1] ?? most;
  const last = marks[marks.length - 1] ?? 0;
  return last < most - 1e-9 * step ? [...marks, marks.length * step] : marks;
}

const MINUTE = 60_000;
const STEPS = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440].map((minutes) => minutes * MINUTE);

// Round times of the local day within a range, at most `count`; steps of a divisor of the day.
export function timeTicks(fromMs: number, toMs: number, count: number): number[] {
  const step = STEPS.find((one) => (toMs - fromMs) / one <= count) ?? STEPS[STEPS.length - 1] ?? MINUTE;
  const zone = new Date(fromMs).getTimezoneOffset() * MINUTE;
  const out: number[] = [];
  for (let at = Math.ceil((fromMs - zone) / step) * step + zone; at <= toMs; at += step) out.push(at);
  return out;
}

// "26 Nov" of a day, "Nov 2026" of a month, "14:05" of a shorter interval.
const nameOf = ({ label, fromMs }: Cell): string =>
  label === '' ? minute(fromMs) : label.length === 'yyyy-mm'.length ? monthYear(Date.parse(label)) : dayMonth(Date.parse(label));

// Places on the axis with their texts: the middle of days and months, round times and the end of shorter intervals.
function axisTexts(cells: readonly Cell[], x: (at: number) => number, width: number): [number, string, 'middle' | 'end'][] {
  const [first, last] = [cells[0], cells[cells.length - 1]];
  if (!first || !last) return [];
  const most = Math.max(2, Math.floor((width - LEFT - RIGHT) / APART));
  const every = Math.ceil(cells.length / most);
  if (first.label !== '')
    return cells.flatMap((cell, at): [number, string, 'middle'][] => ((cells.length - 1 - at) % every === 0 ? [[x(at + 0.5), nameOf(cell), 'middle']] : []));
  const place = (ms: number): number => x(((ms - first.fromMs) / (last.toMs - first.fromMs)) * cells.length);
  // The end has a text if its place is that of its minute.
  const isNamed = width - RIGHT - place(Math.floor(last.toMs / MINUTE) * MINUTE) < NEAR;
  const round = timeTicks(first.fromMs, last.toMs, most).filter((ms) => place(ms) < width - RIGHT - (isNamed ? APART : NARROW) && place(ms) > LEFT);
  const texts = round.map((ms): [number, string, 'middle'] => [place(ms), minute(ms), 'middle']);
  return isNamed || texts.length === 0 ? [...texts, [width - RIGHT, minute(last.toMs), 'end']] : texts;
}

const slotsText = (value: number): string => metric(Number(value.toPrecision(2)));
// Above a bar: one too low to be seen has a text too.
const barText = (value: number): string => (value < 0.1 ? '<0.1' : slotsText(value));

// Room above the highest bar or line.
const HEADROOM = 1.05;

// Begin of what is drawn of a partly recorded interval, in intervals; a part stays visible.
const LEAST = 0.15;
const drawnFrom = ({ fromMs, toMs }: Cell, sinceMs: number, at: number): number => at + Math.min(1 - LEAST, (sinceMs - fromMs) / Math.max(1, toMs - fromMs));

interface Props {
  cells: readonly Cell[];
  by: By;
  keys: readonly string[]; // keys with their own color, in color order; the others share one
}

interface Bar {
  cell: Cell;
  sinceMs: number; // since when its interval is recorded
  heights: number[]; // average slots, by place of the colors; the last one is that of all others
}

function barOf(cell: Cell, by: By, keys: readonly string[], sinceMs: number): Bar {
  const parts = cell.parts.get(by) ?? new Map<string, number>();
  const own = keys.map((key) => parts.get(key) ?? 0);
  const others = [...parts.values()].reduce((sum, one) => sum + one, 0) - own.reduce((sum, one) => sum + one, 0);
  return { cell, sinceMs, heights: [...own, others].map((one) => average(one, sinceMs, cell.toMs)) };
}

interface StackProps extends Bar {
  colors: number;
  left: number;
  right: number;
  gap: number;
  isLabeled: boolean;
  y: (slots: number) => number;
}

// The bar of an interval: its parts above each other.
function Stack({ cell, sinceMs, heights, colors, left, right, gap, isLabeled, y }: StackProps) {
  let below = 0;
  const isPart = sinceMs > cell.fromMs;
  const since = isPart ? ` since ${minute(sinceMs)}` : '';
  const used = average(cell.total, sinceMs, cell.toMs);
  return (
    <g>
      <title>
        {nameOf(cell)}
        {since}: {slotsText(used)}
        {cell.capacity > 0 && ` of ${slotsText(available(cell))}`} slots
      </title>
      {heights.map((value, place) => {
        if (value <= 0) return null;
        below += value;
        return (
          <rect
            key={place}
            class={`stack-${place === colors ? 'others' : (place % 8) + 1}`}
            x={left}
            y={Math.min(y(below), y(below - value) - 1)}
            width={Math.max(0.5, right - left - gap)}
            height={Math.max(1, y(below - value) - y(below))}
          />
        );
      })}
      {isLabeled && below > 0 && (
        <text x={isPart ? right : (left + right) / 2} y={Math.max(TOP, y(below) - 4)} text-anchor={isPart ? 'end' : 'middle'}>
          {barText(used)}
          {since}
        </text>
      )}
    </g>
  );
}

export function UsageChart({ cells, by, keys }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  // Only the first interval of which something is known may be recorded in part.
  const unknown = Math.max(0, firstKnown(cells));
  const bars = cells.map((cell, at) => barOf(cell, by, keys, at === unknown ? usageStart(cell) : cell.fromMs));
  const there = cells.map(available);
  const most = Math.max(1, ...there, ...bars.map((bar) => bar.heights.reduce((sum, one) => sum + one, 0)));
  const marks = ticksOver(HEADROOM * most);
  const top = marks[marks.length - 1] ?? most;
  const x = (at: number): number => LEFT + (at / Math.max(1, cells.length)) * (width - LEFT - RIGHT);
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  const wide = x(1) - x(0) >= LABELED;
  // A step line with gaps where the capacity is unknown.
  const line = cells
    .map((cell, at) => {
      const slots = there[at] ?? 0;
      return slots > 0 ? `${(there[at - 1] ?? 0) > 0 ? 'L' : 'M'}${x(drawnFrom(cell, cell.knownMs ?? cell.fromMs, at))},${y(slots)}L${x(at + 1)},${y(slots)}` : '';
    })
    .join('');
  const gap = cells.length > width / 6 ? 0 : 1;
  return (
    <div ref={host}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
        {marks.map((tick) => (
          <g key={tick}>
            <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
            <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
              {metric(tick)}
            </text>
          </g>
        ))}
        {unknown > 0 && (
          <rect class="unrecorded" x={LEFT} width={x(unknown) - LEFT} y={TOP} height={HEIGHT - BOTTOM - TOP}>
            <title>not recorded</title>
          </rect>
        )}
        {x(unknown) - LEFT >= 3 * LABELED && (
          <text x={(LEFT + x(unknown)) / 2} y={(TOP + HEIGHT - BOTTOM) / 2} text-anchor="middle">
            no record
          </text>
        )}
        {bars.map((bar, at) => (
          <Stack key={bar.cell.fromMs} {...bar} colors={keys.length} left={x(drawnFrom(bar.cell, bar.sinceMs, at))} right={x(at + 1)} gap={gap} isLabeled={wide} y={y} />
        ))}
        {axisTexts(cells, x, width).map(([at, text, anchor]) => (
          <text key={at} x={at} y={HEIGHT - 6} text-anchor={anchor}>
            {text}
          </text>
        ))}
        {line !== '' && <path class="most" d={line} />}
        <line class="axis" x1={LEFT} x2={width - RIGHT} y1={y(0)} y2={y(0)} />
      </svg>
    </div>
  );
}
