// The metric over two numeric hyperparameters: colored steps of the surface, its lines, and the trials.
import { paths } from '../address';
import { useWidth } from '../components/width';
import { metric } from '../format';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import { finer, isoLines, levels, step, surface } from './surface';
import { marks, metricOf, position, type Dimension } from './search';

const HEIGHT = 320;
const SIDE = 56;
const TOP = 8;
const BOTTOM = 36;
// Cells of the computed surface; drawn are FINER times as many in either direction.
const COLUMNS = 60;
const ROWS = 40;
const FINER = 4;
const STEPS = 5;

interface Props {
  trials: readonly Trial[];
  x: Dimension;
  y: Dimension;
  smallerIsBetter: boolean;
}

type Place = (part: number) => number;

// The areas between the levels as paths, by shade. Cells of a row with the same step are one rectangle.
function bands(grid: (number | undefined)[][], all: readonly number[], smallerIsBetter: boolean, along: Place, up: Place): string[] {
  const fine = finer(grid, FINER);
  const [columns, rows] = [COLUMNS * FINER, ROWS * FINER];
  const out: string[] = Array.from({ length: STEPS }, () => '');
  fine.slice(0, rows).forEach((row, at) => {
    const steps = row.slice(0, columns).map((value) => (value === undefined ? undefined : step(value, all)));
    for (let from = 0; from < columns; ) {
      let to = from + 1;
      while (to < columns && steps[to] === steps[from]) to++;
      const own = steps[from];
      const shade = own === undefined ? undefined : smallerIsBetter ? STEPS - 1 - own : own;
      const [left, right] = [along(from / columns), along(to / columns)].map((x) => x.toFixed(1));
      if (shade !== undefined) out[shade] += `M${left},${up(at / rows).toFixed(1)}H${right}V${(up((at + 1) / rows) - 0.4).toFixed(1)}H${left}Z`;
      from = to;
    }
  });
  return out;
}

interface ScoredTrial {
  trial: Trial;
  x: number;
  y: number;
  value: number;
}

// Apart from the surface, which is not computed again when the pointer moves.
const Dots = ({ all, along, up }: { all: readonly ScoredTrial[]; along: Place; up: Place }) => (
  <>
    {all.map((one) => (
      <a key={one.trial.id} href={paths.trial(one.trial.id)} aria-label={`Trial ${one.trial.id}`} tabIndex={-1}>
        <circle
          class={`contour-dot ${hovered.value === one.trial.id ? 'pointed' : ''}`}
          cx={along(one.x)}
          cy={up(one.y)}
          r={4}
          onPointerEnter={() => (hovered.value = one.trial.id)}
          onPointerLeave={() => (hovered.value = undefined)}
        >
          <title>
            trial {one.trial.id}: {metric(one.value)}
          </title>
        </circle>
      </a>
    ))}
  </>
);

export function Contour({ trials, x, y, smallerIsBetter }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const scored = trials.flatMap((trial): ScoredTrial[] => {
    const value = metricOf(trial);
    const own = { trial, x: position(x, trial), y: position(y, trial), value };
    return value === undefined || Number.isNaN(own.x + own.y) ? [] : [{ ...own, value }];
  });
  const grid = surface(scored, COLUMNS, ROWS);
  const all = levels(grid, STEPS);
  const along = (part: number): number => SIDE + part * (width - SIDE - 12);
  const up = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  const cells = bands(grid, all, smallerIsBetter, along, up);
  return (
    <div ref={host}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
        {cells.map((path, shade) => path !== '' && <path key={shade} class={`contour heat-${shade}`} d={path} />)}
        {all.map((level) => (
          <path
            key={level}
            class="contour-line"
            d={isoLines(grid, level)
              .map(({ x1, y1, x2, y2 }) => `M${along(x1).toFixed(1)},${up(y1).toFixed(1)}L${along(x2).toFixed(1)},${up(y2).toFixed(1)}`)
              .join('')}
          />
        ))}
        <line class="axis" x1={SIDE} x2={width - 12} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
        <line class="axis" x1={SIDE} x2={SIDE} y1={TOP} y2={HEIGHT - BOTTOM} />
        {marks(y).map((mark) => (
          <text key={mark.at} x={SIDE - 6} y={Math.max(TOP + 8, up(mark.at) + 4)} text-anchor="end">
            {mark.text}
          </text>
        ))}
        {marks(x).map((mark) => (
          <text key={mark.at} x={along(mark.at)} y={HEIGHT - BOTTOM + 14} text-anchor={mark.at === 1 ? 'end' : mark.at === 0 ? 'start' : 'middle'}>
            {mark.text}
          </text>
        ))}
        <text class="axis-name" x={along(0.5)} y={HEIGHT - 4} text-anchor="middle">
          {x.name}
        </text>
        <Dots all={scored} along={along} up={up} />
      </svg>
    </div>
  );
}
