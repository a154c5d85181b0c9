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
import { dimensions, marks, metricOf, objective, position, ranks, share, type Dimension } from './search';
import { brushed, brushTests } from './brush';

const HEIGHT = 300;
const TOP = 40;
const BOTTOM = 24;
const SIDE = 70;
// Pixels of a character of an axis's name.
const NAME_WIDTH = 7;
// Pixels between axes that a mark beside one needs.
const MARK_ROOM = 96;
// Pixels between axes below which only the marks at the ends of an axis are drawn.
const LEAST_ROOM = 60;
interface ParallelProps {
  trials: Trial[];
  all: Dimension[];
  metricAxis: Dimension | undefined; // drawn on the right
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

function Parallel({ trials, all, metricAxis, rank, query, setTests }: ParallelProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const pointed = trials.find(({ id }) => id === hovered.value);
  const axes = metricAxis ? [...all, metricAxis] : all;
  const last = axes.length - 1;
  const side = Math.min(SIDE, width / 9); // less beside the outer axes on a phone
  const place = (i: number): number => side + (i * (width - 2 * side)) / Math.max(1, last);
  const height = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  // A curve that crosses each axis level, so that trials of one value keep apart between axes; with a gap at each axis on
  // which the trial has no value.
  const line = (trial: Trial): string => {
    const parts = all.map((dimension) => position(dimension, trial));
    const value = metricOf(trial);
    if (metricAxis && value !== undefined) parts.push(share(metricAxis, value));
    const drawn = (part: number | undefined): part is number => part !== undefined && !Number.isNaN(part);
    return parts
      .map((part, i) => {
        const before = parts[i - 1];
        if (!drawn(part)) return '';
        if (!drawn(before)) return `M${place(i)},${height(part)}`;
        const middle = (place(i - 1) + place(i)) / 2;
        return `C${middle},${height(before)} ${middle},${height(part)} ${place(i)},${height(part)}`;
      })
      .join('');
  };
  // Names that would overlap are in two rows.
  const room = (width - 2 * side) / Math.max(1, last);
  const crowded = axes.some(({ name }, i) => (name.length + (axes[i + 1]?.name.length ?? 0)) / 2 > room / NAME_WIDTH);
  // Marks within the last axis are on the side of the other axes, where there may be no room for them.
  const isTight = room < MARK_ROOM;
  // The best trials are drawn last, on top.
  const order = [...trials].sort((a, b) => (rank.get(b.id) ?? 2) - (rank.get(a.id) ?? 2));
  return (
    <figure class="chart wide" aria-label={`Hyperparameters of ${trials.length} trials, side by side`} data-panel="parallel">
      <figcaption>
        All hyperparameters{' '}
        <span class="quiet">
          {pointed
            ? `trial ${pointed.id}: ${metric(metricOf(pointed)) || 'no metric yet'}`
            : 'best trials in the strongest color; drag along an axis to filter'}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {order.map((trial) => (
            <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
              <path
                class={`line ${shade(rank.get(trial.id))} ${trial === pointed ? 'pointed' : ''}`}
                d={line(trial)}
                onPointerEnter={() => (hovered.value = trial.id)}
                onPointerLeave={() => (hovered.value = undefined)}
              />
            </a>
          ))}
          {axes.map((dimension, i) => (
            <g key={`${i} ${dimension.name}`}>
              <line class="axis" x1={place(i)} x2={place(i)} y1={TOP} y2={HEIGHT - BOTTOM} />
              <text x={place(i)} y={crowded && i % 2 === 0 ? 10 : 22} text-anchor="middle" class="axis-name">
                {dimension.name}
              </text>
              {marks(dimension).filter(({ at }) => at === 0 || at === 1 || !isTight || (i < last && room >= LEAST_ROOM)).map((mark) => (
                <text
                  key={mark.at}
                  class="on-lines"
                  x={place(i)}
                  y={mark.at === 1 ? height(1) - 6 : mark.at === 0 ? height(0) + 14 : height(mark.at) + 4}
                  dx={mark.at > 0 && mark.at < 1 ? (i === last ? -6 : 6) : 0}
                  text-anchor={mark.at > 0 && mark.at < 1 ? (i === last ? 'end' : 'start') : 'middle'}
                >
                  {mark.text}
                </text>
              ))}
              <Brush
                dimension={dimension}
                column={dimension === metricAxis ? 'searcherMetricsVal' : `hp.${dimension.name}`}
                x={place(i)}
                height={height}
                query={query}
                setTests={setTests}
              />
            </g>
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
  return (
    <>
      <Parallel
        trials={trials}
        all={all}
        metricAxis={objective(trials, metricName || 'metric')}
        rank={rank}
        query={query}
        setTests={setTests}
      />
      <ImportanceBars trials={trials} all={all} />
      {rank.size > 0 && (
        <HeatMap trials={trials} all={all} name={metricName || 'metric'} smallerIsBetter={smallerIsBetter} />
      )}
      {rank.size > 0 && (
        <div class="charts">
          {all.map((one) => (
            <OverOne key={one.name} trials={trials} dimension={one} rank={rank} name={metricName || 'metric'} />
          ))}
        </div>
      )}
    </>
  );
}
