// Charts of a search's hyperparameters: parallel coordinates, and a scatter plot per hyperparameter.
import { useSignal } from '@preact/signals';
import { paths } from '../address';
import { useWidth } from '../components/width';
import { metric } from '../format';
import type { JsonValue, Trial } from '../wire';
import type { Query } from '../workbench/query';
import { hovered } from '../workbench/selection';
import { HeatMap, ImportanceBars } from './ImportanceView';
import { Scatter, shade } from './Scatter';
import { dimensions, isConstant, metricOf, objective, position, ranks, share, type Dimension } from './search';
import { brushed, brushTests } from './brush';
import { endMarks } from './ticks';

const HEIGHT = 300;
const TOP = 40;
const BOTTOM = 24;
const SIDE = 70;
// Pixels of an axis beyond the ends of its range: curves along these do not read as a frame.
const INSET = 10;
// With at most this many trials, dots mark the values on the axes.
const MAX_DOTTED = 12;
// Pixels of a character of an axis's name, and of a mark.
const NAME_WIDTH = 7;
const MARK_WIDTH = 6.5;
// Pixels between an axis and a mark beside it, and within the chip of a mark.
const MARK_GAP = 6;
const CHIP_PADDING = 4;
// Pixels between axes that a mark beside one needs.
const MARK_ROOM = 96;
// Pixels between axes below which only the marks at the ends of an axis are drawn.
const LEAST_ROOM = 60;
interface ParallelProps {
  trials: Trial[];
  all: Dimension[];
  metricAxis: Dimension | undefined; // drawn on the right
  isEqual: boolean; // all trials have the same metric
  rank: Map<number, number>;
  query: Query | undefined;
  setTests: SetTests;
}

// Replaces the conditions on some columns.
type SetTests = (columns: readonly string[], tests: readonly Query[]) => void;

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

interface MarkProps {
  text: string;
  x: number;
  y: number;
  side: number; // pixels outside of the outer axes
  at: 'first' | 'inner' | 'last';
  hasRoom: boolean; // between the axes
  chip: number; // width of the chips of all axes
}

const chipWidth = (text: string): number => text.length * MARK_WIDTH + 2 * CHIP_PADDING;

// A mark between the ends of an axis: outside of an outer axis, or on a chip that covers the curves.
function InnerMark({ text, x, y, side, at, hasRoom, chip }: MarkProps) {
  const isOutside = at !== 'inner' && chipWidth(text) + MARK_GAP <= side;
  if (!isOutside && !hasRoom) return null;
  const isLeft = (at === 'first') === isOutside && at !== 'inner';
  const width = Math.max(chip, chipWidth(text));
  const left = isLeft ? x - MARK_GAP - width : x + MARK_GAP;
  const edge = MARK_GAP + CHIP_PADDING;
  return (
    <>
      {!isOutside && <rect class="chip-back" x={left} y={y - 8} width={width} height={16} rx={4} />}
      <text
        x={!isOutside ? left + width / 2 : isLeft ? x - edge : x + edge}
        y={y + 4}
        text-anchor={!isOutside ? 'middle' : isLeft ? 'end' : 'start'}
      >
        {text}
      </text>
    </>
  );
}

interface AxisProps extends BrushProps, Pick<MarkProps, 'side' | 'at' | 'chip'> {
  nameY: number;
  room: number; // pixels between axes
}

function ParallelAxis({ nameY, side, at, room, chip, ...brush }: AxisProps) {
  const { dimension, x, height } = brush;
  // Without room beside it, a mark within the last axis is on the side of the other axes.
  const isTight = room < MARK_ROOM;
  return (
    <g>
      <line class="axis" x1={x} x2={x} y1={TOP} y2={HEIGHT - BOTTOM} />
      {!isConstant(dimension) && [0, 1].map((end) => <line key={end} class="axis" x1={x - 4} x2={x + 4} y1={height(end)} y2={height(end)} />)}
      <text x={x} y={nameY} text-anchor="middle" class="axis-name">
        {dimension.name}
      </text>
      {endMarks(dimension).map((mark) =>
        // The only mark of a constant axis is below it where there is no room beside it.
        mark.at === 0 || mark.at === 1 || (isConstant(dimension) && isTight) ? (
          <text key={mark.at} x={x} y={mark.at === 1 ? TOP - 6 : HEIGHT - BOTTOM + 14} text-anchor="middle">
            {mark.text}
          </text>
        ) : (
          <InnerMark
            key={mark.at}
            text={mark.text}
            x={x}
            y={height(mark.at)}
            side={side}
            at={at}
            hasRoom={!isTight || (at !== 'last' && room >= LEAST_ROOM)}
            chip={chip}
          />
        ),
      )}
      {!isConstant(dimension) && <Brush {...brush} />}
    </g>
  );
}

function Parallel({ trials, all, metricAxis, isEqual, rank, query, setTests }: ParallelProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const pointed = trials.find(({ id }) => id === hovered.value);
  const axes = metricAxis ? [...all, metricAxis] : all;
  const last = axes.length - 1;
  const side = Math.min(SIDE, width / 9); // less beside the outer axes on a phone
  const place = (i: number): number => side + (i * (width - 2 * side)) / Math.max(1, last);
  const height = (part: number): number => HEIGHT - BOTTOM - INSET - part * (HEIGHT - TOP - BOTTOM - 2 * INSET);
  // A curve that crosses each axis level, so that trials of one value keep apart between axes. It passes axes on which
  // the trial has no value: `passing` has these stretches, `line` the others.
  const curve = (trial: Trial): { line: string; passing: string; dots: { x: number; y: number }[] } => {
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
    return { line: pathOf(false), passing: pathOf(true), dots: trials.length <= MAX_DOTTED ? known : [] };
  };
  // Names that would overlap are in two rows.
  const room = (width - 2 * side) / Math.max(1, last);
  const crowded = axes.some(({ name }, i) => (name.length + (axes[i + 1]?.name.length ?? 0)) / 2 > room / NAME_WIDTH);
  const inner = axes.flatMap((axis) => endMarks(axis).filter(({ at }) => at > 0 && at < 1));
  const chip = Math.min(room - 2 * MARK_GAP, Math.max(0, ...inner.map(({ text }) => chipWidth(text))));
  // The best trials are drawn last, on top.
  const order = [...trials].sort((a, b) => (rank.get(b.id) ?? 2) - (rank.get(a.id) ?? 2));
  return (
    <figure class="chart wide" aria-label={`Hyperparameters of ${trials.length} trials, side by side`} data-panel="parallel">
      <figcaption>
        All hyperparameters{' '}
        <span class="quiet">
          {pointed
            ? `trial ${pointed.id}: ${metric(metricOf(pointed)) || 'no metric yet'}`
            : `${isEqual ? '' : 'best trials in the strongest color; '}drag along an axis to filter`}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {order.map((trial) => {
            const { line, passing, dots } = curve(trial);
            const path = (d: string, more: string) => (
              <path
                class={`line ${more} ${shade(rank.get(trial.id))} ${trial === pointed ? 'pointed' : ''}`}
                d={d}
                onPointerEnter={() => (hovered.value = trial.id)}
                onPointerLeave={() => (hovered.value = undefined)}
              />
            );
            return (
              <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
                {path(line, '')}
                {passing !== '' && path(passing, 'passing')}
                {dots.map(({ x, y }) => (
                  <circle key={x} class={`dot ${shade(rank.get(trial.id))}`} cx={x} cy={y} r={3.5} />
                ))}
              </a>
            );
          })}
          {axes.map((dimension, i) => (
            <ParallelAxis
              key={`${i} ${dimension.name}`}
              dimension={dimension}
              column={dimension === metricAxis ? 'searcherMetricsVal' : `hp.${dimension.name}`}
              x={place(i)}
              nameY={crowded && i % 2 === 0 ? 10 : 22}
              height={height}
              side={side}
              at={i === 0 ? 'first' : i === last ? 'last' : 'inner'}
              room={room}
              chip={chip}
              query={query}
              setTests={setTests}
            />
          ))}
        </svg>
      </div>
    </figure>
  );
}

function OverOne({ trials, dimension, rank, name }: { trials: Trial[]; dimension: Dimension; rank: Map<number, number>; name: string }) {
  const scored = trials.filter((trial) => metricOf(trial) !== undefined && !Number.isNaN(position(dimension, trial)));
  const y = objective(trials, name);
  if (!y) return null;
  const dots = scored.map((trial) => ({
    trial,
    x: position(dimension, trial),
    y: share(y, metricOf(trial) ?? y.min),
    shade: shade(rank.get(trial.id)),
    title: `trial ${trial.id}: ${metric(metricOf(trial))}`,
  }));
  return <Scatter title={`${name} over ${dimension.name}`} x={dimension} y={y} dots={dots} />;
}

export interface Props {
  trials: Trial[];
  hyperparameters: JsonValue | undefined; // of the resolved configuration
  metricName: string;
  smallerIsBetter: boolean;
  query: Query | undefined; // of the table
  setTests: SetTests;
}

export function HyperparameterViews({ trials, hyperparameters, metricName, smallerIsBetter, query, setTests }: Props) {
  const all = dimensions(trials, hyperparameters);
  if (all.length === 0) {
    return (
      <p class="quiet">
        No hyperparameter differs between the trials. A search varies them: see <code>searcher</code> in the
        configuration, or <code>det preview-search</code>.
      </p>
    );
  }
  const rank = ranks(trials, smallerIsBetter);
  const metricAxis = objective(trials, metricName || 'metric');
  const isEqual = rank.size > 1 && metricAxis !== undefined && isConstant(metricAxis);
  return (
    <>
      <Parallel
        trials={trials}
        all={all}
        metricAxis={metricAxis}
        isEqual={isEqual}
        rank={rank}
        query={query}
        setTests={setTests}
      />
      {isEqual ? (
        <p class="quiet">
          All trials have the same {metricName || 'metric'}, {metric(metricAxis.max)}, so no hyperparameter explains it.
        </p>
      ) : (
        <ImportanceBars trials={trials} all={all} />
      )}
      {rank.size > 0 && !isEqual && (
        <HeatMap trials={trials} all={all} name={metricName || 'metric'} smallerIsBetter={smallerIsBetter} />
      )}
      {rank.size > 0 && !isEqual && (
        <div class="charts">
          {all.map((one) => (
            <OverOne key={one.name} trials={trials} dimension={one} rank={rank} name={metricName || 'metric'} />
          ))}
        </div>
      )}
    </>
  );
}
