// Hyperparameter importance, and a heat map of the metric over two hyperparameters.
import { useQuery } from '../address';
import { counted, metric, metricColumn, percent } from '../format';
import { onPhone } from '../phone';
import type { Trial } from '../wire';
import { Contour } from './Contour';
import { asChoice, bestCell, heatMap, importance, MIN_TRIALS, type BestValues, type HeatCell } from './importance';
import { shadesOf } from './paint';
import { metricOf, padded, type Dimension } from './dimensions';
import { uniform } from './series';

// Smaller shares would be shown as 0%. A larger one makes a choice more telling in a map than a range.
const MIN_SHARE = 0.005;
const TELLING_SHARE = 0.1;
const EDGE_DIGITS = 2;
// Shares of fewer runs change with each further one.
const FEW = 20;

// Not the direction in which the metric becomes better: the best value of a learning rate is seldom the largest one.
function bestText(best: BestValues): string {
  if ('isMixed' in best) return `best ${best.count}: mixed`;
  if ('words' in best) return `best ${best.count}: ${best.words.join(', ')}`;
  const [low, high] = [best.low, best.high].map((value) => metric(Number(value.toPrecision(EDGE_DIGITS))));
  return `best ${best.count}: ${low === high ? low : `${low} – ${high}`}`;
}

// `isSettled`: runs that have not ended are left out, as in the map.
export function ImportanceBars({ trials, all, isSettled, smallerIsBetter }: { trials: Trial[]; all: Dimension[]; isSettled: boolean; smallerIsBetter: boolean }) {
  const found = importance(trials, all, smallerIsBetter);
  const count = trials.filter((trial) => metricOf(trial) !== undefined).length;
  const telling = found.filter(({ share }) => share >= MIN_SHARE);
  const silent = found.filter((one) => !telling.includes(one));
  const isNone = telling.length === 0;
  return (
    <figure class="chart wide" aria-label="Importance of hyperparameters" data-panel="importance">
      <figcaption>
        <span class="panel-name">Importance</span>
        <span class="panel-facts">
          <span>variance of the metric that each explains alone; shares may overlap</span>
          <span>
            {isSettled ? `the ${counted(count, 'run')} that have ended, as in the map` : counted(count, 'run')}
            {found.length > 0 && count < FEW && ': few, a rough order'}
          </span>
        </span>
      </figcaption>
      {found.length === 0 && <p class="quiet">At least {MIN_TRIALS} runs with a metric are needed.</p>}
      {found.length > 0 && isNone && (
        <p class="quiet">
          No hyperparameter alone explains the metric of these {counted(count, 'run')} better than chance. More runs can show an effect.
        </p>
      )}
      {!isNone && (
        <>
          <ul class="plain-list importance">
            {telling.map((one) => (
              <li key={one.name}>
                <span>{one.name}</span>
                <progress max={1} value={one.share} aria-label={`Importance of ${one.name}`} />
                <span>{percent(one.share)}</span>
                <span class="quiet">{bestText(one.best)}</span>
              </li>
            ))}
          </ul>
          {silent.length > 0 && <p class="quiet">No effect seen: {silent.map(({ name }) => name).join(', ')}</p>}
        </>
      )}
    </figure>
  );
}

// Numbers are rounded if one has more characters.
const LONG_NUMBER = 8;

const MEAN_DIGITS = 4;
// Ranges of a number on a phone, where more of them would be out of sight.
const PHONE_RANGES = 4;

// The ranges of the cells along a dimension, or its words. A range may break after its dash only.
function edges(one: Dimension, count: number): string[] {
  const cells = Array.from({ length: count }, (_, at) => at);
  if (one.kind === 'words') {
    const words = cells.map((at) => one.words[Math.round((at * (one.words.length - 1)) / Math.max(1, count - 1))] ?? '');
    const numbers = one.words.map(Number);
    const isLong = numbers.every(Number.isFinite) && one.words.some(({ length }) => length > LONG_NUMBER);
    return isLong ? words.map(Number).map(metricColumn(numbers)) : words;
  }
  const value = (part: number): number =>
    one.kind === 'log' ? one.min * (one.max / one.min) ** part : one.min + part * (one.max - one.min);
  const texts = uniform([...cells, count].map((at) => Number(value(at / count).toPrecision(EDGE_DIGITS))));
  return cells.map((at) => `${texts[at]}\u00a0– ${texts[at + 1]}`);
}

interface CellsProps {
  cells: readonly HeatCell[][];
  x: Dimension;
  y: Dimension;
  shadeOf: (mean: number) => string; // the class of a cell
  best: HeatCell | undefined;
}

function Cells({ cells, x, y, shadeOf, best }: CellsProps) {
  const columns = cells[0]?.length ?? 0;
  const width = `${100 / columns}%`;
  const rounded = (mean: number): number => Number(mean.toPrecision(MEAN_DIGITS));
  const text = metricColumn(cells.flat().flatMap(({ mean }) => (mean === undefined ? [] : rounded(mean))));
  const rows = edges(y, cells.length).reverse();
  return (
    <div class="heat-frame" role="region" aria-label="Heat map" tabIndex={0}>
      <table class="heat">
        <tbody>
          {cells.map((row, at) => (
            <tr key={at}>
              <th scope="row">{rows[at]}</th>
              {row.map((cell, column) => (
                <td key={column} class={cell.mean === undefined ? '' : `${shadeOf(cell.mean)} ${cell === best ? 'best-cell' : ''}`} style={{ width }} title={counted(cell.count, 'run')}>
                  {cell.mean !== undefined && text(rounded(cell.mean))}
                  {cell.count > 1 && `\u00a0×${cell.count}`}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <td />
            {edges(x, columns).map((range, column) => (
              <th scope="col" key={column}>
                {range}
              </th>
            ))}
          </tr>
          <tr>
            <td />
            <th colSpan={columns}>{x.name}</th>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

interface Props {
  trials: Trial[];
  all: Dimension[];
  name: string; // name of the metric
  smallerIsBetter: boolean;
}

export function HeatMap({ trials, all, name, smallerIsBetter }: Props) {
  const { query, setQuery } = useQuery();
  const found = importance(trials, all);
  const order = found.map(({ name: own }) => own);
  // The two most important ones first. With a small effect, ranges come before choices: they show as a surface.
  const isTelling = (one: Dimension): boolean => found.some(({ name: own, share }) => own === one.name && share >= TELLING_SHARE);
  const rank = (one: Dimension): number => (isTelling(one) ? 0 : asChoice(one, trials).kind === 'words' ? 2 : 1);
  const [first, second] = [...all].sort((a, b) => rank(a) - rank(b) || order.indexOf(a.name) - order.indexOf(b.name));
  if (!first || !second) return null;
  const across = all.find((one) => one.name === query.hx) ?? first;
  const up = all.find((one) => one.name === query.hy && one !== across) ?? (across === second ? first : second);
  const [x, y] = [asChoice(across, trials), asChoice(up, trials)];
  // Two ranges are a surface; a choice makes cells.
  const smooth = x.kind !== 'words' && y.kind !== 'words';
  const cells = heatMap(trials, x, y, onPhone() ? PHONE_RANGES : undefined);
  // The steps of the trials' colors.
  const shadeOf = shadesOf(trials, smallerIsBetter);
  const choice = (key: 'hx' | 'hy', label: string, value: Dimension) => (
    <label class="check">
      {label}{' '}
      <select value={value.name} onChange={(e) => setQuery({ [key]: e.currentTarget.value })}>
        {all.map((one) => (
          <option key={one.name}>{one.name}</option>
        ))}
      </select>
    </label>
  );
  return (
    <figure class="chart wide" aria-label={`${name} over ${x.name} and ${y.name}`} data-panel={smooth ? 'contour' : 'heat'}>
      <figcaption>
        <span class="panel-name">
          {smooth ? name : `mean ${name}`} over {x.name} and {y.name}
          {smooth && ', smoothed'}
        </span>
        {!smooth && (
          <span class="panel-facts">
            <span>outlined: the best mean</span>
          </span>
        )}
        <span class="spring" />
        {choice('hx', 'X', x)}
        {choice('hy', 'Y', y)}
      </figcaption>
      {smooth ? <Contour trials={trials} x={padded(x)} y={padded(y)} name={name} smallerIsBetter={smallerIsBetter} /> : <Cells cells={cells} x={x} y={y} shadeOf={shadeOf} best={bestCell(cells, smallerIsBetter)} />}
    </figure>
  );
}
