// Charts of a search's hyperparameters: parallel coordinates, and a scatter plot per hyperparameter.
import { useSignal } from '@preact/signals';
import { paths } from '../address';
import { useWidth } from '../components/width';
import { metric } from '../format';
import type { JsonValue, Trial } from '../wire';
import { HeatMap, ImportanceBars } from './ImportanceView';
import { dimensions, marks, metricOf, objective, position, ranks, share, type Dimension } from './search';

const HEIGHT = 300;
const TOP = 40;
const BOTTOM = 24;
const SIDE = 70;
const SMALL = { height: 240, side: 64, bottom: 32, top: 12 };

// Five steps from best to worst. Classes, because the Content-Security-Policy forbids inline styles.
export const shade = (rank: number | undefined): string =>
  rank === undefined ? 'shade-none' : `shade-${Math.min(4, Math.floor(rank * 5))}`;

interface ParallelProps {
  trials: Trial[];
  all: Dimension[];
  metricAxis: Dimension | undefined; // drawn on the right
  rank: Map<number, number>;
}

function Parallel({ trials, all, metricAxis, rank }: ParallelProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const pointed = useSignal<Trial | undefined>(undefined);
  const axes = metricAxis ? [...all, metricAxis] : all;
  const last = axes.length - 1;
  const place = (i: number): number => SIDE + (i * (width - 2 * SIDE)) / Math.max(1, last);
  const height = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  const points = (trial: Trial): string => {
    const parts = all.map((dimension) => position(dimension, trial));
    const value = metricOf(trial);
    if (metricAxis && value !== undefined) parts.push(share(metricAxis, value));
    return parts.map((part, i) => `${place(i)},${height(part)}`).join(' ');
  };
  // The best trials are drawn last, on top.
  const order = [...trials].sort((a, b) => (rank.get(b.id) ?? 2) - (rank.get(a.id) ?? 2));
  return (
    <figure class="chart wide" aria-label={`Hyperparameters of ${trials.length} trials, side by side`} data-panel="parallel">
      <figcaption>
        All hyperparameters{' '}
        <span class="quiet">
          {pointed.value
            ? `trial ${pointed.value.id}: ${metric(metricOf(pointed.value)) || 'no metric yet'}`
            : 'best trials in the strongest color'}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {order.map((trial) => (
            <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
              <polyline
                class={`line ${shade(rank.get(trial.id))}`}
                points={points(trial)}
                onPointerEnter={() => (pointed.value = trial)}
                onPointerLeave={() => (pointed.value = undefined)}
              />
            </a>
          ))}
          {axes.map((dimension, i) => (
            <g key={`${i} ${dimension.name}`}>
              <line class="axis" x1={place(i)} x2={place(i)} y1={TOP} y2={HEIGHT - BOTTOM} />
              <text x={place(i)} y={14} text-anchor="middle" class="axis-name">
                {dimension.name}
              </text>
              {marks(dimension).map((mark) => (
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
            </g>
          ))}
        </svg>
      </div>
    </figure>
  );
}

function Scatter({ trials, dimension, rank, name }: { trials: Trial[]; dimension: Dimension; rank: Map<number, number>; name: string }) {
  const scored = trials.filter((trial) => metricOf(trial) !== undefined);
  const values = scored.map((trial) => metricOf(trial) ?? 0);
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const [host, width] = useWidth<HTMLDivElement>();
  const { height, side, top, bottom } = SMALL;
  // Margins keep the dots off the axes.
  const along = (part: number): number => side + 10 + part * (width - side - 26);
  const up = (part: number): number => height - bottom - 8 - part * (height - top - bottom - 8);
  const x = (trial: Trial): number => along(position(dimension, trial));
  const y = (trial: Trial): number => up(share({ kind: 'linear', min, max }, metricOf(trial) ?? min));
  return (
    <figure class="chart" aria-label={`${name} over ${dimension.name}`}>
      <figcaption>
        {name} over {dimension.name}
        {dimension.kind === 'log' && <span class="quiet"> logarithmic</span>}
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          <line class="axis" x1={side} x2={width - 8} y1={height - bottom} y2={height - bottom} />
          <line class="axis" x1={side} x2={side} y1={top} y2={height - bottom} />
          {marks({ kind: 'linear', words: [], min, max }).map((mark) => (
            <g key={mark.at}>
              {mark.at > 0 && <line class="rung" x1={side} x2={width - 8} y1={up(mark.at)} y2={up(mark.at)} />}
              <text x={side - 8} y={up(mark.at) + 4} text-anchor="end">
                {mark.text}
              </text>
            </g>
          ))}
          {marks(dimension).map((mark) => (
            <text key={mark.at} x={along(mark.at)} y={height - 8} text-anchor={mark.at === 1 ? 'end' : mark.at === 0 ? 'start' : 'middle'}>
              {mark.text}
            </text>
          ))}
          {scored.map((trial) => (
            <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
              <circle class={`dot ${shade(rank.get(trial.id))}`} cx={x(trial)} cy={y(trial)} r={4}>
                <title>
                  trial {trial.id}: {metric(metricOf(trial))}
                </title>
              </circle>
            </a>
          ))}
        </svg>
      </div>
    </figure>
  );
}

interface Props {
  trials: Trial[];
  hyperparameters: JsonValue | undefined; // of the resolved configuration
  metricName: string;
  smallerIsBetter: boolean;
}

export function HyperparameterViews({ trials, hyperparameters, metricName, smallerIsBetter }: Props) {
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
      <Parallel trials={trials} all={all} metricAxis={objective(trials, metricName || 'metric')} rank={rank} />
      <ImportanceBars trials={trials} all={all} />
      {rank.size > 0 && (
        <HeatMap trials={trials} all={all} name={metricName || 'metric'} smallerIsBetter={smallerIsBetter} />
      )}
      {rank.size > 0 && (
        <div class="charts">
          {all.map((one) => (
            <Scatter key={one.name} trials={trials} dimension={one} rank={rank} name={metricName || 'metric'} />
          ))}
        </div>
      )}
    </>
  );
}
