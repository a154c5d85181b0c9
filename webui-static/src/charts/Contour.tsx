// The metric over two numeric hyperparameters: colored steps of the surface, its lines, and the trials. The steps are those
// of the trials' colors.
import { paths } from '../address';
import { useWidth } from '../components/width';
import { metric, metricColumn } from '../format';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import { levelsOf, usePainting, type Painting } from './paint';
import { metricOf, position, type Dimension } from './dimensions';
import { isoLines, step, surface, unknownParts, type Grid } from './surface';
import { ticks } from './ticks';

const HEIGHT = 296;
const LEAST_SIDE = 40; // left of the plot
const SIGN = 7; // width of a digit of the ticks
const NOTE_WIDTH = 190; // of the notes beside the key
// Below the plot are the ticks, the name of the axis and the key of the colors, above it the name of the other axis.
const TOP = 24;
const BOTTOM = 76;
// Ticks of the y axis, and pixels of the x axis for each of its ticks.
const Y_TICKS = 5;
const APART = 72;
// Pixels of a color in the key.
const KEY_WIDTH = 52;
const KEY_HEIGHT = 10;
// Cells of the surface; the samples are looked at for each FINER-th corner.
const COLUMNS = 240;
const ROWS = 160;
const FINER = 4;

interface Props {
  trials: readonly Trial[];
  x: Dimension;
  y: Dimension;
  name: string; // of the metric
  smallerIsBetter: boolean;
}

const nameOf = ({ name, kind }: Dimension): string => (kind === 'log' ? `${name}, log scale` : name);

type Place = (part: number) => number;

// The areas between the levels as paths, by shade. Cells of a row with the same step are one rectangle.
function bands(grid: Grid, all: readonly number[], smallerIsBetter: boolean, along: Place, up: Place): string[] {
  const out: string[] = Array.from({ length: all.length + 1 }, () => '');
  grid.slice(0, ROWS).forEach((row, at) => {
    const steps = row.slice(0, COLUMNS).map((value) => step(value, all));
    for (let from = 0; from < COLUMNS; ) {
      let to = from + 1;
      while (to < COLUMNS && steps[to] === steps[from]) to++;
      const own = steps[from] ?? 0;
      const shade = smallerIsBetter ? own : all.length - own;
      const [left, right] = [along(from / COLUMNS), along(to / COLUMNS)].map((x) => x.toFixed(1));
      out[shade] += `M${left},${up(at / ROWS).toFixed(1)}H${right}V${Math.max(TOP, up((at + 1) / ROWS) - 0.4).toFixed(1)}H${left}Z`;
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
const Dots = ({ all, painting, along, up }: { all: readonly ScoredTrial[]; painting: Painting; along: Place; up: Place }) => (
  <>
    {all.map((one) => (
      <a key={one.trial.id} href={paths.trial(one.trial.id)} aria-label={`Trial ${one.trial.id}`} tabIndex={-1}>
        <circle
          {...painting.of(one.trial.id)}
          class={`contour-dot ${painting.of(one.trial.id).class}`}
          cx={along(one.x)}
          cy={up(one.y)}
          r={hovered.value === one.trial.id ? 7 : 4.5}
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

// Levels as texts with as many digits as make them differ, at most those of the tables.
function levelTexts(all: readonly number[]): string[] {
  for (let digits = 2; digits < 5; digits++) {
    const rounded = all.map((level) => Number(level.toPrecision(digits)));
    if (new Set(rounded).size === all.length) return rounded.map(metricColumn(rounded));
  }
  return all.map(metricColumn(all));
}

// The colors from the lowest to the highest values, with the levels between them.
function Key({ name, all, smallerIsBetter, left, notes }: { name: string; all: readonly number[]; smallerIsBetter: boolean; left: number; notes: readonly string[] }) {
  const texts = levelTexts(all);
  const y = HEIGHT - 28;
  return (
    <g>
      <text class="axis-name" x={left - 8} y={y + KEY_HEIGHT} text-anchor="end">
        {name}
      </text>
      {notes.map((note, at) => (
        <text key={note} class="axis-name" x={left + (all.length + 1) * KEY_WIDTH + 8} y={y + KEY_HEIGHT + 13 * at}>
          {note}
        </text>
      ))}
      {Array.from({ length: all.length + 1 }, (_, at) => (
        <rect key={at} class={`contour key shade-${smallerIsBetter ? at : all.length - at}`} x={left + at * KEY_WIDTH} y={y} width={KEY_WIDTH} height={KEY_HEIGHT} />
      ))}
      {texts.map((text, at) => (
        <text key={at} x={left + (at + 1) * KEY_WIDTH} y={y + KEY_HEIGHT + 13} text-anchor="middle">
          {text}
        </text>
      ))}
    </g>
  );
}

export function Contour({ trials, x, y, name, smallerIsBetter }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const scored = trials.flatMap((trial): ScoredTrial[] => {
    const value = metricOf(trial);
    const own = { trial, x: position(x, trial), y: position(y, trial), value };
    return value === undefined || Number.isNaN(own.x + own.y) ? [] : [{ ...own, value }];
  });
  const grid = surface(scored, COLUMNS, ROWS, FINER);
  const { values } = grid;
  const unknown = unknownParts(grid);
  const painting = usePainting(trials, smallerIsBetter);
  const all = levelsOf(trials, smallerIsBetter);
  const yTicks = ticks(y, Y_TICKS);
  const side = Math.max(LEAST_SIDE, 16 + SIGN * Math.max(...yTicks.map(({ text }) => text.length)));
  const along = (part: number): number => side + part * (width - side - 12);
  const up = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  const cells = bands(values, all, smallerIsBetter, along, up);
  const left = Math.max(0, (side + width - KEY_WIDTH * (all.length + 1)) / 2);
  const notes = ['a fifth of the trials in each', ...(unknown.length > 0 ? ['blank: no trial nearby'] : [])];
  const hasRoom = left + (all.length + 1) * KEY_WIDTH + NOTE_WIDTH <= width;
  return (
    <div ref={host}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
        {cells.map((path, shade) => path !== '' && <path key={shade} class={`contour shade-${shade}`} d={path} />)}
        {all.map((level) => (
          <path
            key={level}
            class="contour-line"
            d={isoLines(values, level)
              .map(({ x1, y1, x2, y2 }) => `M${along(x1).toFixed(1)},${up(y1).toFixed(1)}L${along(x2).toFixed(1)},${up(y2).toFixed(1)}`)
              .join('')}
          />
        ))}
        <path class="contour-unknown" d={unknown.map((part) => `M${part.map(([x1, y1]) => `${along(x1).toFixed(1)},${up(y1).toFixed(1)}`).join('L')}Z`).join('')} />
        <line class="axis" x1={side} x2={width - 12} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
        <line class="axis" x1={side} x2={side} y1={TOP} y2={HEIGHT - BOTTOM} />
        {yTicks.map((tick) => (
          <text key={tick.at} x={side - 6} y={up(tick.at) + 4} text-anchor="end">
            {tick.text}
          </text>
        ))}
        {ticks(x, Math.max(2, Math.floor((width - side) / APART))).map((tick) => (
          <text key={tick.at} x={Math.min(along(tick.at), width - (SIGN * tick.text.length) / 2)} y={HEIGHT - BOTTOM + 14} text-anchor="middle">
            {tick.text}
          </text>
        ))}
        <text class="axis-name" x={0} y={12}>
          {nameOf(y)}
        </text>
        <text class="axis-name" x={(side + width) / 2} y={HEIGHT - BOTTOM + 32} text-anchor="middle">
          {nameOf(x)}
        </text>
        <Key name={name} all={all} smallerIsBetter={smallerIsBetter} left={left} notes={hasRoom ? notes : []} />
        <Dots all={scored} painting={painting} along={along} up={up} />
      </svg>
      {!hasRoom && <p class="quiet">{notes.join('; ')}</p>}
    </div>
  );
}
