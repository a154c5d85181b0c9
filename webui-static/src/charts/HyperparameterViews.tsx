// Charts of a search's hyperparameters: parallel coordinates, and a scatter plot per hyperparameter.
import { counted, digits, metric } from '../format';
import type { JsonValue, Trial } from '../wire';
import type { Query } from '../workbench/query';
import { HeatMap, ImportanceBars } from './ImportanceView';
import { MIN_TRIALS } from './importance';
import { usePainting, type Painting } from './paint';
import { Parallel, type SetTests } from './Parallel';
import { Scatter } from './Scatter';
import { dimensions, isConstant, metricOf, objective, padded, position, share, shared, type Dimension } from './dimensions';

function OverOne({ trials, dimension, y, painting }: { trials: Trial[]; dimension: Dimension; y: Dimension; painting: Painting }) {
  const scored = trials.filter((trial) => metricOf(trial) !== undefined && !Number.isNaN(position(dimension, trial)));
  const dots = painting.order(scored).map((trial) => ({
    trial,
    x: position(dimension, trial),
    y: share(y, metricOf(trial) ?? y.min),
    paint: painting.of(trial.id),
    title: `trial ${trial.id}: ${metric(metricOf(trial))}`,
  }));
  return <Scatter title={`${y.name} over ${dimension.name}`} x={dimension} y={y} dots={dots} />;
}

export interface Props {
  trials: Trial[];
  failed: number; // runs that are left out
  waiting: number; // and those that have not started
  running: ReadonlySet<number>; // trials whose metric may still change
  hyperparameters: JsonValue | undefined; // of the resolved configuration
  metricName: string;
  smallerIsBetter: boolean;
  query: Query | undefined; // of the table
  setTests: SetTests;
}

export function HyperparameterViews({ trials, failed, waiting, running, hyperparameters, metricName, smallerIsBetter, query, setTests }: Props) {
  const declared = dimensions(trials, hyperparameters);
  const all = hyperparameters === undefined ? shared(declared, trials) : declared;
  const rare = declared.filter((one) => !all.includes(one)).map(({ name }) => name);
  const painting = usePainting(trials, smallerIsBetter);
  if (all.length === 0) {
    return (
      <p class="quiet">
        No hyperparameter differs between the runs. A search varies them: see <code>searcher</code> in the
        configuration, or <code>det preview-search</code>.
      </p>
    );
  }
  const scored = trials.filter((trial) => metricOf(trial) !== undefined).length;
  const axis = objective(trials, metricName || 'metric');
  const metricAxis = axis && padded(axis);
  const isEqual = scored > 1 && axis !== undefined && isConstant(axis);
  const drawn = all.map(padded);
  // The values of running trials change, and with them the order of the hyperparameters.
  const ended = trials.filter((trial) => !running.has(trial.id) && metricOf(trial) !== undefined);
  const settled = ended.length >= MIN_TRIALS ? ended : trials;
  const isSettled = settled === ended && running.size > 0;
  const left = [failed > 0 ? counted(failed, 'failed run') : '', waiting > 0 ? `${counted(waiting, 'run')} without a trial` : '', rare.length > 0 ? `${rare.join(', ')} (fewer than half of the runs have it)` : ''].filter((part) => part !== '');
  return (
    <>
      <Parallel
        trials={trials}
        left={left}
        all={drawn}
        metricAxis={metricAxis}
        smallerIsBetter={smallerIsBetter}
        painting={painting}
        query={query}
        setTests={setTests}
      />
      {isEqual ? (
        <p class="quiet">
          {scored === 2 ? 'Both' : 'All'} runs have the same {metricName || 'metric'}, {digits(axis.max)}, so no hyperparameter explains it.
        </p>
      ) : (
        <ImportanceBars trials={settled} all={all} isSettled={isSettled} smallerIsBetter={smallerIsBetter} />
      )}
      {scored > 0 && !isEqual && (
        <HeatMap trials={settled} all={all} name={metricName || 'metric'} smallerIsBetter={smallerIsBetter} />
      )}
      {scored > 0 && !isEqual && (
        <div class="charts">
          {metricAxis && drawn.map((one) => <OverOne key={one.name} trials={trials} dimension={one} y={metricAxis} painting={painting} />)}
        </div>
      )}
    </>
  );
}
