// Charts of outcomes: the metric of each trial with the best so far, and two metrics with their Pareto front.
import { useQuery } from '../address';
import { counted, metric } from '../format';
import type { Trial } from '../wire';
import { front, history, points, readGoals, validationNames, writeGoals, type Goal } from './outcomes';
import { isConstant, ranks, share, type Dimension } from './search';
import { Scatter, shade } from './Scatter';

const linear = (name: string, values: readonly number[]): Dimension => ({
  name,
  kind: 'linear',
  words: [],
  min: Math.min(...values),
  max: Math.max(...values),
});

export interface Props {
  trials: readonly Trial[];
  metricName: string;
  smallerIsBetter: boolean;
}

function History({ trials, metricName, smallerIsBetter }: Props) {
  const all = history(trials, smallerIsBetter);
  const y = linear(metricName, all.map(({ value }) => value));
  if (all.length < 2 || isConstant(y)) return null;
  const rank = ranks(trials, smallerIsBetter);
  const x = { ...linear('trials in the order of their start', [1, all.length]), isWhole: true };
  const dots = all.map(({ trial, value }, at) => ({
    trial,
    x: share(x, at + 1),
    y: share(y, value),
    shade: shade(rank.get(trial.id)),
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
  const names = varying(trials);
  const [other] = names.filter((name) => name !== metricName);
  if (names.length < 2 || other === undefined) return null;
  const own: Goal = names.includes(metricName) ? { name: metricName, smaller: smallerIsBetter } : { name: names[1] ?? '', smaller: SMALLER.test(names[1] ?? '') };
  const wanted = readGoals(query.pareto);
  const goals = wanted?.every(({ name }) => names.includes(name)) ? wanted : ([{ name: other, smaller: SMALLER.test(other) }, own] as [Goal, Goal]);
  const all = points(trials, goals);
  const best = front(all, goals);
  const onFront = new Set(best.map(({ trial }) => trial.id));
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
      note={`Pareto front: ${counted(best.length, 'trial')}`}
      panel="pareto"
      x={x}
      y={y}
      path={best.map((one) => ({ x: share(x, one.x), y: share(y, one.y) }))}
      dots={all.map((one) => ({
        trial: one.trial,
        x: share(x, one.x),
        y: share(y, one.y),
        shade: onFront.has(one.trial.id) ? 'shade-0' : 'shade-3',
        title: `trial ${one.trial.id}: ${goals[0].name} ${metric(one.x)}, ${goals[1].name} ${metric(one.y)}`,
      }))}
    >
      <div class="controls">
        {choice(0, 'X metric')}
        {choice(1, 'Y metric')}
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
