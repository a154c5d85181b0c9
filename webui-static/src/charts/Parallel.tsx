// Parallel coordinates: an axis per hyperparameter, a curve per trial. Dragging along an axis filters the table.
import { useSignal } from '@preact/signals';
import { paths } from '../address';
import { useWidth } from '../components/width';
import { metric } from '../format';
import { onPhone } from '../phone';
import type { Trial } from '../wire';
import type { Query } from '../workbench/query';
import { hovered } from '../workbench/selection';
import { brushed, brushTests } from './brush';
import { colorBar, type Painting } from './paint';
import { isConstant, metricOf, position, share, type Dimension } from './dimensions';
import { ticks, usedTicks } from './ticks';

const HEIGHT = onPhone() ? 280 : 232;
const TOP = 40;
const BOTTOM = 16;
// Pixels of an axis beyond the ends of its range: curves along these do not read as a frame.
const INSET = 10;
// With at most this many trials, dots mark the values on the axes.
const MAX_DOTTED = 12;
const TICKS = 5;
// Pixels between ticks at least.
const TICK_APART = 14;
// Pixels of a character of an axis's name, and of a tick; between an axis and its ticks.
const NAME_WIDTH = 7;
const TICK_WIDTH = 6.5;
const TICK_GAP = 8;
// Pixels beside the outer axes.
const LEAST_SIDE = 32;
const MAX_SIDE = 112;
const BAR_WIDTH = 6;
// Pixels between axes below which only every second tick is drawn.
const LEAST_ROOM = 76;

interface ParallelProps {
  trials: Trial[];
  left: readonly string[]; // out, in words
  all: Dimension[];
  metricAxis: Dimension | undefined; // drawn on the right
  smallerIsBetter: boolean;
  painting: Painting;
  query: Query | undefined;
  setTests: SetTests;
}

// Replaces the conditions on some columns.
export type SetTests = (columns: readonly string[], tests: readonly Query[]) => void;

// Width of an axis for the pointer, in pixels, and the shortest stretch that is a brush.
const GRIP = 28;
const SHORTEST = 4;

interface BrushProps {
  dimension: Dimension;
  column: string;
  x: number;
  height: (part: number) => number;
  query: Query | undefined;
  setTests: SetTests;
}

// Dragging along an axis filters by its values; a click removes the filter.
function Brush({ dimension, column, x, height, query, setTests }: BrushProps) {
  const from = useSignal<number | undefined>(undefined);
  const to = useSignal(0);
  const part = (event: PointerEvent): number => {
    const svg = (event.currentTarget as SVGElement).ownerSVGElement;
    const y = event.clientY - (svg?.getBoundingClientRect().top ?? 0);
    return Math.min(1, Math.max(0, (height(0) - y) / (height(0) - height(1))));
  };
  const end = (event: PointerEvent): void => {
    if (from.value === undefined) return;
    const [low, high] = [Math.min(from.value, part(event)), Math.max(from.value, part(event))];
    from.value = undefined;
    setTests([column], (high - low) * (height(0) - height(1)) < SHORTEST ? [] : brushTests(dimension, column, low, high));
  };
  const held = from.value === undefined ? brushed(query, column, dimension) : [Math.min(from.value, to.value), Math.max(from.value, to.value)];
  return (
    <>
      {held && <rect class="brush" x={x - 7} width={14} y={height(held[1] ?? 1)} height={Math.max(2, height(held[0] ?? 0) - height(held[1] ?? 1))} />}
      <rect
        class="brush-grip"
        data-axis={dimension.name}
        x={x - GRIP / 2}
        width={GRIP}
        y={height(1)}
        height={height(0) - height(1)}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          from.value = to.value = part(event);
        }}
        onPointerMove={(event) => from.value !== undefined && (to.value = part(event))}
        onPointerUp={end}
      >
        <title>Drag to filter by {dimension.name}</title>
      </rect>
    </>
  );
}

interface AxisProps extends BrushProps {
  isLast: boolean;
  nameY: number;
  room: number; // pixels between axes
  trials: readonly Trial[];
}

// An axis with its name above and its ticks on the left, on the right of the last one.
function ParallelAxis({ nameY, room, isLast, trials, ...brush }: AxisProps) {
  const { dimension, x, height } = brush;
  const marks = usedTicks(dimension, trials, TICK_APART / (HEIGHT - TOP - BOTTOM)) ?? ticks(dimension, room < LEAST_ROOM ? 2 : TICKS);
  // No curve passes right of the last axis.
  const side = isLast ? 1 : -1;
  return (
    <g>
      <line class="axis" x1={x} x2={x} y1={TOP} y2={HEIGHT - BOTTOM} />
      <text x={x} y={nameY} text-anchor="middle" class="axis-name">
        {dimension.name}
      </text>
      {marks.map((mark) => (
        <g key={mark.at}>
          <line class="axis" x1={x + 4 * side} x2={x} y1={height(mark.at)} y2={height(mark.at)} />
          <rect
            class="under"
            x={side > 0 ? x + (TICK_GAP + BAR_WIDTH) : x - TICK_GAP - TICK_WIDTH * mark.text.length}
            y={height(mark.at) - 7}
            width={TICK_WIDTH * mark.text.length}
            height={14}
          />
          <text class="over" x={x + (TICK_GAP + (isLast ? BAR_WIDTH : 0)) * side} y={height(mark.at) + 4} text-anchor={side > 0 ? 'start' : 'end'}>
            {mark.text}
          </text>
        </g>
      ))}
      {!isConstant(dimension) && <Brush {...brush} />}
    </g>
  );
}

const widest = (axis: Dimension | undefined): number => (axis ? Math.max(0, ...ticks(axis, TICKS).map(({ text }) => text.length)) : 0);

// Positions of axes and values.
function layout(axes: readonly Dimension[], width: number) {
  const [first, end] = [axes[0], axes[axes.length - 1]];
  const limit = Math.min(MAX_SIDE, width / 4);
  const left = Math.min(limit, Math.max(LEAST_SIDE, TICK_GAP + 8 + TICK_WIDTH * widest(first), (NAME_WIDTH * (first?.name.length ?? 0)) / 2));
  const outside = TICK_GAP + BAR_WIDTH + TICK_WIDTH * widest(end);
  const right = Math.min(limit, Math.max(LEAST_SIDE, outside, (NAME_WIDTH * (end?.name.length ?? 0)) / 2));
  const room = (width - left - right) / Math.max(1, axes.length - 1);
  return {
    room,
    place: (i: number): number => left + i * room,
    height: (part: number): number => HEIGHT - BOTTOM - INSET - part * (HEIGHT - TOP - BOTTOM - 2 * INSET),
    // Names that would overlap are in two rows.
    isCrowded: axes.some(({ name }, i) => (name.length + (axes[i + 1]?.name.length ?? 0)) / 2 > room / NAME_WIDTH),
  };
}

interface Curved {
  line: string;
  passing: string; // over axes on which the trial has no value
  dots: { x: number; y: number }[];
}

// A curve that crosses each axis level, so that trials of one value keep apart between axes.
function curveOf(trial: Trial, all: readonly Dimension[], metricAxis: Dimension | undefined, { place, height }: ReturnType<typeof layout>): Curved {
  const parts = all.map((dimension) => position(dimension, trial));
  const value = metricOf(trial);
  if (metricAxis && value !== undefined) parts.push(share(metricAxis, value));
  const known = parts.flatMap((part, i) => (Number.isNaN(part) ? [] : [{ i, x: place(i), y: height(part) }]));
  const stretches = known.slice(1).map((to, at) => {
    const from = known[at] ?? to;
    const middle = (from.x + to.x) / 2;
    return { isPassing: to.i - from.i > 1, path: `M${from.x},${from.y}C${middle},${from.y} ${middle},${to.y} ${to.x},${to.y}` };
  });
  const pathOf = (passing: boolean): string => stretches.filter(({ isPassing }) => isPassing === passing).map(({ path }) => path).join('');
  return { line: pathOf(false), passing: pathOf(true), dots: known };
}

function Line({ trial, curve, painting, dotted }: { trial: Trial; curve: Curved; painting: Painting; dotted: boolean }) {
  const paint = painting.of(trial.id);
  const isPointed = trial.id === hovered.value;
  const path = (d: string, more: string) => (
    <path
      {...paint}
      class={`line ${more} ${paint.class} ${isPointed ? 'pointed' : ''}`}
      d={d}
      onPointerEnter={() => (hovered.value = trial.id)}
      onPointerLeave={() => (hovered.value = undefined)}
    />
  );
  return (
    <a href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
      {path(curve.line, '')}
      {curve.passing !== '' && path(curve.passing, 'passing')}
      {dotted && curve.dots.map(({ x, y }) => <circle key={x} {...paint} class={`dot ${paint.class}`} cx={x} cy={y} r={3.5} />)}
    </a>
  );
}

export function Parallel({ trials, left, all, metricAxis, smallerIsBetter, painting, query, setTests }: ParallelProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const pointed = trials.find(({ id }) => id === hovered.value);
  const axes = metricAxis ? [...all, metricAxis] : all;
  const own = layout(axes, width);
  const bar = painting.byMetric && metricAxis ? colorBar(trials, metricAxis, smallerIsBetter) : [];
  const barX = own.place(axes.length - 1) + 4;
  const curves = new Map(trials.map((trial) => [trial, curveOf(trial, all, metricAxis, own)]));
  const passes = [...curves.values()].some(({ passing }) => passing !== '');
  return (
    <figure class="chart wide" aria-label={`Hyperparameters of ${trials.length} trials, side by side`} data-panel="parallel">
      <figcaption>
        <span class="panel-name">Hyperparameters that differ</span>
        <span class="panel-facts">
          <span>{pointed ? `trial ${pointed.id}: ${metric(metricOf(pointed)) || 'no metric yet'}` : 'Drag along an axis to filter'}</span>
          {painting.byMetric && <span>colors: best to worst fifth of the trials</span>}
          {left.length > 0 && <span title={`Left out: ${left.join('; ')}`}>without {left.join('; ')}</span>}
          {passes && <span>dotted: past an axis without a value</span>}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {painting.order(trials).map((trial) => (
            <Line key={trial.id} trial={trial} curve={curves.get(trial) as Curved} painting={painting} dotted={trials.length <= MAX_DOTTED} />
          ))}
          {bar.map((step) => (
            <rect key={step.class} class={`bar ${step.class}`} x={barX} width={BAR_WIDTH} y={own.height(step.to)} height={Math.max(1, own.height(step.from) - own.height(step.to))} />
          ))}
          {axes.map((dimension, i) => (
            <ParallelAxis
              key={`${i} ${dimension.name}`}
              dimension={dimension}
              column={dimension === metricAxis ? 'searcherMetricsVal' : `hp.${dimension.name}`}
              x={own.place(i)}
              nameY={own.isCrowded && i % 2 === 0 ? 12 : 26}
              height={own.height}
              room={own.room}
              isLast={i === axes.length - 1}
              trials={dimension === metricAxis ? [] : trials}
              query={query}
              setTests={setTests}
            />
          ))}
        </svg>
      </div>
    </figure>
  );
}
