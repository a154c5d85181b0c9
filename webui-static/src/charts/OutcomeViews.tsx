// Charts of outcomes: the metric of each trial with the best so far, and two metrics with their Pareto front.
import { useQuery } from '../address';
import { counted, metric } from '../format';
import type { Trial } from '../wire';
import { front, history, points, readGoals, staircase, validationNames, writeGoals, type Goal } from './outcomes';
import { usePainting } from './paint';
import { isConstant, padded, share, type Dimension } from './dimensions';
import { Scatter } from './Scatter';

const linear = (name: string, values: readonly number[]): Dimension =>
  padded({ name, kind: 'linear', words: [], min: Math.min(...values), max: Math.max(...values) });

export interface Props {
  trials: readonly Trial[];
  metricName: string;
  smallerIsBetter: boolean;
}

function History({ trials, metricName, smallerIsBetter }: Props) {
  const all = history(trials, smallerIsBetter);
  const painting = usePainting(trials, smallerIsBetter);
  const y = linear(metricName, all.map(({ value }) => value));
  if (all.length < 2 || isConstant(y)) return null;
  const x = { ...linear('trials in the order of their start', [1, all.length]), isWhole: true };
  const dots = all.map(({ trial, value }, at) => ({
    trial,
    x: share(x, at + 1),
    y: share(y, value),
    paint: painting.of(trial.id),
    title: `trial ${trial.id}: ${metric(value)}`,
  }));
  // Steps: the best value stays until a better one.
  const path = all.flatMap(({ best }, at) => {
    const [here, next] = [share(x, at + 1), share(x, Math.min(all.length, at + 2))];
    return [{ x: here, y: share(y, best) }, { x: next, y: share(y, best) }];
  });
  return <Scatter title={`${metricName || 'Metric'} by trial`} note="line: best so far" panel="history" x={x} y={y} dots={dots} path={path} />;
}

// Metrics whose values differ between trials.
const varying = (trials: readonly Trial[]): string[] =>
  validationNames(trials).filter((name) => {
    const goal: Goal = { name, smaller: true };
    const values = points(trials, [goal, goal]).map(({ x }) => x);
    return values.length > 1 && !isConstant(linear(name, values));
  });

// Names of metrics that are better when smaller.
const SMALLER = /loss|error|perplexity|time|latency|mse|mae/i;

function Pareto({ trials, metricName, smallerIsBetter }: Props) {
  const { query, setQuery } = useQuery();
  const painting = usePainting(trials, smallerIsBetter);
  const names = varying(trials);
  const [other] = names.filter((name) => name !== metricName);
  if (names.length < 2 || other === undefined) return null;
  const own: Goal = names.includes(metricName) ? { name: metricName, smaller: smallerIsBetter } : { name: names[1] ?? '', smaller: SMALLER.test(names[1] ?? '') };
  const wanted = readGoals(query.pareto);
  const goals = wanted?.every(({ name }) => names.includes(name)) ? wanted : ([{ name: other, smaller: SMALLER.test(other) }, own] as [Goal, Goal]);
  const all = points(trials, goals);
  const best = front(all, goals);
  const set = (at: number, goal: Partial<Goal>): void =>
    setQuery({ pareto: writeGoals(goals.map((one, index) => (index === at ? { ...one, ...goal } : one))) });
  const choice = (at: 0 | 1, label: string) => (
    <span class="check">
      <label class="check">
        {label}{' '}
        <select value={goals[at].name} onChange={(event) => set(at, { name: event.currentTarget.value })}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <button type="button" class="chip" title={`Better ${goals[at].name}`} onClick={() => set(at, { smaller: !goals[at].smaller })}>
        {goals[at].smaller ? 'smaller is better' : 'larger is better'}
      </button>
    </span>
  );
  // No trial may have both metrics.
  const axis = (name: string, values: number[]): Dimension => linear(name, values.length > 0 ? values : [0, 1]);
  const [x, y] = [axis(goals[0].name, all.map((one) => one.x)), axis(goals[1].name, all.map((one) => one.y))];
  return (
    <Scatter
      title={`${goals[1].name} over ${goals[0].name}`}
      note={`line: Pareto front, ${counted(best.length, 'trial')}`}
      panel="pareto"
      x={x}
      y={y}
      path={staircase(best, goals).map((one) => ({ x: share(x, one.x), y: share(y, one.y) }))}
      dots={all.map((one) => ({
        trial: one.trial,
        x: share(x, one.x),
        y: share(y, one.y),
        paint: painting.of(one.trial.id),
        title: `trial ${one.trial.id}: ${goals[0].name} ${metric(one.x)}, ${goals[1].name} ${metric(one.y)}`,
      }))}
    >
      <div class="controls">
        {choice(0, 'X')}
        {choice(1, 'Y')}
      </div>
    </Scatter>
  );
}

export const Outcomes = (props: Props) => (
  <section aria-label="Outcomes" class="charts outcomes">
    <History {...props} />
    <Pareto {...props} />
  </section>
);
