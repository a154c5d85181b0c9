// A search over time: one chart per bracket ("schedule"), in which every trial is a line that rises with its
// validations, and the rungs ("stages") at which trials are compared.
import * as api from '../api';
import { brackets } from '../calls/brackets';
import { paths } from '../address';
import { ErrorNote } from '../components/notes';
import { useWidth } from '../components/width';
import { counted, grouped, metric, digits } from '../format';
import { useLive } from '../live';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import { passes, placedLabels, roomFor } from './ends';
import { colorBar, usePainting, type Painting } from './paint';
import { bestOf, farthest, fromBegin, lanes, lengthScale, metricOf, objective, reached, timeTicks, type Lane, type LengthScale } from './search';
import { timeTexts } from './series';

const HEIGHT = 320;
// Height of a chart when there are several.
const LOWER = 208;
// Half of the bar at the end of a stopped trial.
const STOP = 5;
const SIDE = 56;
const RIGHT = 40; // with the ids of trials that train to the end
// Below the plot are the labels and the name of the axis, above it the name of the other axis.
const BOTTOM = 36;
const TOP = 36;
// Minimum distance of axis labels, in pixels.
const APART = 13;
const TIMES_APART = 80;
const MAX_TRIALS = 100;
const POINTS = 64;

export interface Props {
  experimentId: number;
  trials: Trial[];
  metricName: string;
  smallerIsBetter: boolean;
}

interface Line {
  trial: Trial;
  points: { length: number; seconds: number }[];
}

interface LaneProps {
  lane: Lane;
  lines: Line[];
  unit: string;
  latest: number; // seconds; shared by all charts so that they are comparable, like the scale
  scale: LengthScale;
  painting: Painting;
  metricName: string;
  smallerIsBetter: boolean;
  height: number;
}

interface AxesProps extends Pick<LaneProps, 'lane' | 'unit' | 'latest' | 'scale' | 'height'> {
  width: number;
  x: (seconds: number) => number;
  y: (length: number) => number;
}

// The stages, and both axes with their names.
function Axes({ lane, unit, latest, scale, width, height, x, y }: AxesProps) {
  const marks = [...new Set([...lane.rungs.map((one) => one.length), scale.longest, ...(scale.isLog ? [] : [0])])].sort((a, b) => b - a);
  const named = marks.reduce<number[]>((kept, mark) => {
    const above = kept[kept.length - 1];
    return above === undefined || y(mark) - y(above) >= APART ? [...kept, mark] : kept;
  }, []);
  const times = timeTicks(latest, Math.max(1, Math.floor((width - SIDE - RIGHT) / TIMES_APART)));
  const texts = timeTexts(times);
  return (
    <>
      {marks.map((mark) => (
        <line key={mark} class="grid" x1={SIDE} x2={width - RIGHT} y1={y(mark)} y2={y(mark)} />
      ))}
      {times.map((time) => (
        <line key={time} class="grid" x1={x(time)} x2={x(time)} y1={TOP} y2={height - BOTTOM} />
      ))}
      {named.map((mark) => (
        <text key={mark} x={SIDE - 8} y={y(mark) + 4} text-anchor="end">
          {grouped(mark)}
        </text>
      ))}
      {times.map((time, at) => (
        <text key={time} x={x(time)} y={height - BOTTOM + 16} text-anchor="middle">
          {texts[at]}
        </text>
      ))}
      <text x={0} y={12} class="axis-name">
        {unit}
        {scale.isLog && ', log scale'}
      </text>
      <text x={(SIDE + width - RIGHT) / 2} y={height - 4} text-anchor="middle" class="axis-name">
        time since the training began
      </text>
    </>
  );
}

// The names of the stages, below their lengths on the axis.
function Stages({ lane, y }: Pick<AxesProps, 'lane' | 'y'>) {
  const named = lane.rungs
    .map((rung, at) => ({ rung, name: `Stage ${at + 1}`, below: lane.rungs[at - 1] }))
    .filter(({ rung, below }) => !below || y(below.length) - y(rung.length) >= 2 * APART);
  return (
    <>
      {named.map(({ rung, name }) => (
        <text key={rung.length} x={SIDE - 8} y={y(rung.length) + 4 + APART} text-anchor="end">
          {name}
          <title>
            {counted(rung.came, 'trial')} reached this stage (a rung)
            {rung.wentOn === undefined ? '' : `, ${rung.wentOn} continued`}
          </title>
        </text>
      ))}
    </>
  );
}

// In pixels of the plot.
interface Place {
  x: number;
  y: number;
}

interface IdsProps extends Pick<LaneProps, 'lines' | 'painting' | 'height'>, Pick<AxesProps, 'width' | 'x' | 'y'> {
  named: readonly Line[];
}

// The ids of the drawn runs at the ends of their lines.
function Ids({ named, lines, painting, width, height, x, y }: IdsProps) {
  const placesOf = ({ points }: Line): Place[] => points.map((point) => ({ x: x(point.seconds) - SIDE, y: y(point.length) - TOP }));
  const ends = named.flatMap((line) => placesOf(line).slice(-1).map((last) => ({ id: line.trial.id, text: String(line.trial.id), ...last })));
  const all = lines.map(placesOf);
  // With the points before and after the box: a line may cross it between two.
  const near = (places: readonly Place[], left: number, right: number): readonly Place[] =>
    places.filter((place, at) => (places[at + 1] ?? place).x >= left && (places[at - 1] ?? place).x <= right);
  const behind = (left: number, right: number, top: number, bottom: number): number =>
    all.filter((places) => passes(near(places, left, right).map(({ y: height }) => height), top, bottom)).length;
  return (
    <>
      {placedLabels(ends, width - SIDE - RIGHT, height - TOP - BOTTOM, behind).map(({ id, text, left, middle, isJoined, x: right, y: end }) => (
        <g key={id} {...painting.of(id)} class={`end-id ${painting.of(id).class}`}>
          {isJoined && <line x1={SIDE + right + 1} y1={TOP + end} x2={SIDE + left - 1} y2={TOP + middle} />}
          <text class="over" x={SIDE + left} y={TOP + middle + 4}>
            {text}
          </text>
        </g>
      ))}
    </>
  );
}

function Picture({ lane, lines, unit, latest, scale, painting, metricName, smallerIsBetter, height }: LaneProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const best = bestOf(lane.trials, smallerIsBetter);
  const ties = lane.trials.filter((trial) => metricOf(trial) === best?.value).length;
  const x = (seconds: number): number => SIDE + (seconds / latest) * (width - SIDE - RIGHT);
  const y = (length: number): number => height - BOTTOM - scale.part(length) * (height - TOP - BOTTOM);
  const byId = new Map(lines.map((one) => [one.trial.id, one]));
  const most = Math.max(0, ...lane.rungs.map(({ length }) => length));
  const stopped = new Set(lines.filter(({ trial, points }) => trial.state === 'STATE_COMPLETED' && (points[points.length - 1]?.length ?? most) < most).map(({ trial }) => trial.id));
  const drawn = lines.filter(({ trial }) => painting.isDrawn(trial.id));
  return (
    <figure
      class="chart wide"
      aria-label={`${lane.title || 'Search'}: progress of ${lines.length} trials over time`}
      data-panel="search"
    >
      <figcaption>
        <span class="panel-name">{lane.title || 'Trials over time'}</span>
        <span class="panel-facts">
          <span>
            {counted(lane.trials.length, 'trial')}
            {lane.maxTrials !== undefined && lane.maxTrials !== lane.trials.length && ` of ${lane.maxTrials}`}
          </span>
          {lane.title !== '' && <span>{counted(lane.rungs.length, 'stage')}</span>}
          {best && (
            <span>
              best {metricName} {digits(best.value)} by{' '}
              {ties > 1 ? counted(ties, 'trial') : <a href={paths.trial(best.id)}>trial {best.id}</a>}
            </span>
          )}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          <Axes lane={lane} unit={unit} latest={latest} scale={scale} width={width} height={height} x={x} y={y} />
          {painting.order(lines.map(({ trial }) => trial)).map(({ id }) => (
            <TrialLine key={id} id={id} points={byId.get(id)?.points ?? []} isStopped={lane.title !== '' && stopped.has(id)} painting={painting} x={x} y={y} />
          ))}
          {roomFor(drawn.map(({ trial }) => String(trial.id)), 1) > 0 && <Ids named={drawn} lines={lines} painting={painting} width={width} height={height} x={x} y={y} />}
          {lane.title !== '' && <Stages lane={lane} y={y} />}
        </svg>
      </div>
    </figure>
  );
}

// A bar marks the end of a trial that its search stopped.
function TrialLine({ id, points, isStopped, painting, x, y }: { id: number; points: Line['points']; isStopped: boolean; painting: Painting } & Pick<AxesProps, 'x' | 'y'>) {
  const paint = painting.of(id);
  const isPointed = hovered.value === id ? 'pointed' : '';
  const end = points[points.length - 1];
  return (
    <a
      href={paths.trial(id)}
      aria-label={`Trial ${id}`}
      tabIndex={-1}
      onPointerEnter={() => (hovered.value = id)}
      onPointerLeave={() => (hovered.value = undefined)}
    >
      <polyline {...paint} class={`line ${paint.class} ${isPointed}`} points={points.map((point) => `${x(point.seconds)},${y(point.length)}`).join(' ')}>
        <title>trial {id}</title>
      </polyline>
      {points.slice(1).map((point) => (
        <circle key={point.length} {...paint} class={`dot ${paint.class}`} cx={x(point.seconds)} cy={y(point.length)} r={2} />
      ))}
      {isStopped && end && <line {...paint} class={`stop ${paint.class}`} x1={x(end.seconds) - STOP} x2={x(end.seconds) + STOP} y1={y(end.length)} y2={y(end.length)} />}
    </a>
  );
}

// The colors of the metric with the values between them.
function ColorKey({ trials, metricName, smallerIsBetter }: Pick<Props, 'trials' | 'metricName' | 'smallerIsBetter'>) {
  const axis = objective(trials, metricName);
  const steps = axis ? colorBar(trials, axis, smallerIsBetter) : [];
  if (!axis || steps.length === 0) return null;
  return (
    <p class="quiet color-key">
      {metricName} {metric(smallerIsBetter ? axis.max : axis.min)}
      <svg viewBox="0 0 120 10" aria-hidden="true">
        {steps.map((step, at) => (
          <rect key={step.class} class={`bar ${step.class}`} x={(steps.length - 1 - at) * 24} width={24} y={0} height={10} />
        ))}
      </svg>
      {metric(smallerIsBetter ? axis.min : axis.max)}, best · a fifth of the trials in each color
    </p>
  );
}

export function SearchView({ experimentId, trials, metricName, smallerIsBetter }: Props) {
  const drawn = farthest(trials, MAX_TRIALS);
  const painting = usePainting(trials, smallerIsBetter);
  const ids = drawn.map((trial) => trial.id);
  const live = useLive(
    `search ${experimentId} ${ids.join()}`,
    (signal) => api.series(ids, { points: POINTS, group: 'validation' }, signal),
    (change) => change === 'everything' || (change.experimentId === experimentId && change.kind === 'trial'),
    1000,
  );
  const plan = useLive(
    `brackets ${experimentId}`,
    (signal) => brackets(experimentId, signal),
    (change) => change === 'everything' || (change.experimentId === experimentId && change.kind === 'trial'),
    1000,
  );
  const error = <ErrorNote error={live.error ?? plan.error} retry={plan.error ? plan.reload : live.reload} />;
  if (!plan.data) return plan.error ? error : <p role="status">Loading…</p>;
  const all = lanes(plan.data, trials);
  const bracketed = plan.data.brackets.length > 0;
  const timeMetric = bracketed ? plan.data.timeMetric : 'batches';
  const first = Math.min(...trials.map((trial) => Date.parse(trial.startTime ?? '')).filter(Number.isFinite));
  const seconds = (time: string | null | undefined): number => (Date.parse(time ?? '') - first) / 1000;
  const reported = (live.data ?? []).map(({ trial, metrics }): Line => ({
    trial,
    points: fromBegin(
      (metrics[0]?.data ?? [])
        .map((point) => ({ length: reached(point, timeMetric) ?? NaN, seconds: seconds(point.time) }))
        .filter((point) => Number.isFinite(point.seconds) && Number.isFinite(point.length)),
      Math.max(0, seconds(trial.startTime) || 0),
    ),
  }));
  // Without the time that the search waited for slots.
  const begun = Math.min(...reported.flatMap(({ points }) => points.slice(0, 1).filter(() => points.length > 1).map((point) => point.seconds)));
  const waited = Number.isFinite(begun) ? begun : 0;
  const lines = new Map(
    reported.map(({ trial, points }) => [trial.id, { trial, points: points.map((point) => ({ ...point, seconds: Math.max(0, point.seconds - waited) })) }]),
  );
  const latest = Math.max(1, ...[...lines.values()].flatMap((one) => one.points.map((point) => point.seconds)));
  const scale = lengthScale(
    all.flatMap((lane) => lane.rungs.map((one) => one.length)),
    [...lines.values()].flatMap((one) => one.points.map((point) => point.length)),
  );
  return (
    <>
      {error}
      {painting.byMetric && <ColorKey trials={trials} metricName={metricName} smallerIsBetter={smallerIsBetter} />}
      {all.map((lane) => (
        <Picture
          key={lane.title}
          lane={lane}
          lines={lane.trials.map((trial) => lines.get(trial.id)).filter((line) => line !== undefined)}
          unit={timeMetric}
          latest={latest}
          scale={scale}
          painting={painting}
          metricName={metricName}
          smallerIsBetter={smallerIsBetter}
          height={all.length > 1 ? LOWER : HEIGHT}
        />
      ))}
      <p class="quiet search-note">
        {bracketed
          ? 'Each schedule (in the configuration: a bracket) has its own trials. After a stage (a rung) a trial goes on only if it is among the best so far; its first report at or after the batches of a stage decides. A bar ends a trial that was stopped.'
          : 'Lines across: lengths at which trials ended.'}
        {trials.length > MAX_TRIALS && ` The ${MAX_TRIALS} that trained longest are drawn, all are counted.`}
      </p>
      <StageTable all={all} unit={timeMetric} bracketed={bracketed} />
    </>
  );
}

function StageTable({ all, unit, bracketed }: { all: Lane[]; unit: string; bracketed: boolean }) {
  if (all.every((lane) => lane.rungs.length === 0)) return <p class="quiet">No trial has ended yet; stages show where trials end.</p>;
  return (
    <div class="table-frame stages" role="region" aria-label="Stages" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {bracketed && <th scope="col">Schedule</th>}
            {bracketed && <th scope="col">Stage</th>}
            <th scope="col" class="number">
              {unit.charAt(0).toUpperCase()}
              {unit.slice(1)}
            </th>
            <th scope="col" class="number">
              Reached
            </th>
            <th scope="col" class="number">
              Continued
            </th>
          </tr>
        </thead>
        <tbody>
          {all.flatMap((lane, at) =>
            lane.rungs.map((rung, level) => (
              <tr key={`${at} ${rung.length}`}>
                {bracketed && <td>{at + 1}</td>}
                {bracketed && <td>{level + 1}</td>}
                <td class="number">{grouped(rung.length)}</td>
                <td class="number">{rung.came}</td>
                <td class="number">{rung.wentOn ?? ''}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}
