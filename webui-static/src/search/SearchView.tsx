// A search: one chart per bracket ("schedule"), in which every trial is a line through its validations, and the rungs
// ("stages") at which trials are compared. The metric over the length of training, or the length over time. A search without
// brackets has one chart with the best value of each trial over time, and the best so far: panel Curves has all values.
import * as api from '../api';
import { paths, useQuery } from '../address';
import type { Brackets } from '../calls/brackets';
import { Drawn } from '../charts/ChartTitle';
import { bestOf, metricOf, objective, padded, share, type Dimension } from '../charts/dimensions';
import { HALF, lengthOf, passes, placedLabels, roomFor, type Label } from '../charts/ends';
import { colorBar, usePainting, type Painting } from '../charts/paint';
import { ErrorNote } from '../components/notes';
import { useWidth } from '../components/width';
import { counted, digits, grouped, metric } from '../format';
import { useLive, type Live } from '../live';
import { onPhone } from '../phone';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import { BOTTOM, LengthAxes, MetricAxes, RIGHT, SIDE, Stages, TimeAxes, TOP, xOf, yOf, type AxesProps } from './Axes';
import { atValidations, bestSoFar, citedIn, earlyText, farthest, fromBegin, inSight, lanes, lengthScale, reached, wentOnEarly, type Lane, type LengthScale, type Report, type Value } from './lanes';

// What the charts show: the metric over the length, the length over time, the metric over time.
const WITH_STAGES = ['length', 'time'] as const;
const WITHOUT_STAGES = ['metric', 'time'] as const;
type Over = (typeof WITH_STAGES | typeof WITHOUT_STAGES)[number];

// Least and most height of a single chart, and pixels of the window above and below it.
const HEIGHT = 320;
const MAX_HEIGHT = 560;
const BESIDE = 376;
// Height of a chart when there are several: lengths above each other need less than a metric.
const LOWER = { length: 240, metric: 240, time: 208 };
// Pixels between the end of a line and a label that would name it.
const BESIDE_END = 12;
// The top of the labels where there are no stages.
const LABELS_TOP = 8;
// Half of the bar at the end of a stopped trial.
const STOP = 5;
const MAX_TRIALS = 100;
const POINTS = 64;
const STAGES_NOTE =
  'Each schedule (bracket) has its own trials. After a stage (rung) only the best of those that reached it so far go on; a stage ends at the first validation at or after its configured length. A trial may train a little past a stage before it stops.';
// Trials at the last stage, of which each has its id, drawn or not.
const MAX_ENDED = 8;

export interface Props {
  experimentId: number;
  plan: Live<Brackets>;
  trials: Trial[];
  metricName: string;
  smallerIsBetter: boolean;
}

interface Line {
  trial: Trial;
  points: Report[];
}

// Shared by all charts of a search, so that they are comparable.
interface Ranges {
  latest: number; // seconds
  scale: LengthScale;
  values: Dimension | undefined; // of the metric; undefined without reports
}

interface LaneProps extends Ranges {
  lane: Lane;
  lines: Line[];
  bests: readonly Value[]; // best so far, of the metric over time
  isCropped: boolean; // first values are out of sight
  unit: string;
  over: Over;
  painting: Painting;
  metricName: string;
  smallerIsBetter: boolean;
  height: number;
}

// In pixels of the picture.
interface Place {
  x: number;
  y: number;
}

// The places of the reports of a trial; those without a value have none beside the metric.
function placesOf(points: readonly Report[], over: Over, { latest, scale, values }: Ranges, width: number, height: number): Place[] {
  if (over === 'time') return points.map((point) => ({ x: xOf(point.seconds / latest, width), y: yOf(scale.part(point.length), height) }));
  const part = (point: Report): number => (over === 'metric' ? point.seconds / latest : scale.part(point.length));
  return points.flatMap((point) => (point.value === undefined || !values ? [] : [{ x: xOf(part(point), width), y: yOf(share(values, point.value), height) }]));
}

// The place of the best value; undefined without values. Pixels count from the top.
const bestPlace = (places: readonly Place[], smallerIsBetter: boolean): Place | undefined =>
  places.reduce<Place | undefined>((best, one) => (best === undefined || (smallerIsBetter ? one.y > best.y : one.y < best.y) ? one : best), undefined);

// The place of the best value of each trial: over time it is marked, and the way to it is pale.
const marksOf = (lines: ReadonlyMap<number, readonly Place[]>, smallerIsBetter: boolean): Map<number, readonly Place[]> =>
  new Map([...lines].flatMap(([id, places]) => {
    const best = bestPlace(places, smallerIsBetter);
    return best ? [[id, [best]] as const] : [];
  }));

interface IdsProps extends Pick<LaneProps, 'painting' | 'height'>, Pick<AxesProps, 'width'> {
  lines: ReadonlyMap<number, readonly Place[]>; // the last place of each has the id
  bests: readonly Place[]; // the corners of their line
  named: readonly number[];
  mayCover: boolean; // lines, where there is no free place
}

type Named = Label & { id: number };
type Covers = (end: { id: number }, left: number, right: number, above: number, below: number) => boolean;

// The ids of these runs at the ends of their lines.
function Ids({ lines, bests, named, mayCover, painting, width, height }: IdsProps) {
  // Without the names of stages the room above the plot is free.
  const top = mayCover ? TOP : LABELS_TOP;
  const inPlot = (places: readonly Place[]): Place[] => places.map(({ x, y }) => ({ x: x - SIDE, y: y - top }));
  const ends = [...lines].filter(([id]) => named.includes(id)).flatMap(([id, places]) => inPlot(places.slice(-1)).map((last) => ({ id, text: String(id), ...last })));
  // Also the line of the best values, which names no trial.
  const all = [...[...lines].map(([id, places]) => ({ id, places: inPlot(places) })), { id: 0, places: inPlot(bests) }];
  // With the points before and after the box: a line may cross it between two.
  const near = (places: readonly Place[], left: number, right: number): readonly Place[] =>
    places.filter((place, at) => (places[at + 1] ?? place).x >= left && (places[at - 1] ?? place).x <= right);
  // A label beside the end of another line would name that one.
  const isBeside = (places: readonly Place[], left: number, top: number, bottom: number): boolean =>
    places.slice(-1).some(({ x, y }) => x <= left && x >= left - BESIDE_END && y >= top && y <= bottom);
  const covers = (some: typeof all): Covers => (end, left, right, above, below) =>
    some.some(({ id, places }) => id !== end.id && (passes(near(places, left, right).map(({ y }) => y), above, below) || isBeside(places, left, above, below)));
  const placed = (of: Covers): Named[] =>
    placedLabels(ends, width - SIDE - RIGHT, height - top - BOTTOM, of).filter((one) => mayCover || !of(one, one.left, one.left + lengthOf(one), one.middle - HALF, one.middle + HALF));
  // Labels may cover the pale lines if there is no other room for all.
  const [free, more] = [placed(covers(all)), placed(covers(all.filter(({ id }) => id === 0 || painting.isDrawn(id))))];
  const labels = more.length > free.length ? more : free;
  return (
    <>
      {labels.map((label) => (
        <g key={label.id} {...painting.of(label.id)} class={`end-id ${painting.of(label.id).class}`}>
          {label.isJoined && <line x1={SIDE + label.x} y1={top + label.y} x2={SIDE + label.left - 1} y2={top + label.middle} />}
          <text class="over" x={SIDE + label.left} y={top + label.middle + 4}>
            {label.text}
          </text>
        </g>
      ))}
    </>
  );
}

function Picture({ lane, lines, bests, isCropped, unit, over, latest, scale, values, painting, metricName, smallerIsBetter, height }: LaneProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const best = bestOf(lane.trials, smallerIsBetter);
  const ties = lane.trials.filter((trial) => metricOf(trial) === best?.value).length;
  const ranges = { latest, scale, values };
  const places = new Map(lines.map(({ trial, points }) => [trial.id, placesOf(points, over, ranges, width, height)] as const));
  // Steps: the best value stays until a better one, the last one to the right end.
  const bestPlaces = placesOf(bests.map((one) => ({ ...one, length: 0 })), over, ranges, width, height);
  const bestLine = bestPlaces.flatMap((one, at): Place[] => [one, { x: bestPlaces[at + 1]?.x ?? width - RIGHT, y: one.y }]);
  const marks = over === 'metric' ? marksOf(places, smallerIsBetter) : undefined;
  const gray = painting.byMetric ? 0 : lines.filter(({ trial }) => !painting.isDrawn(trial.id)).length;
  const axes = { lane, unit, latest, scale, values, width, height };
  const most = Math.max(0, ...lane.rungs.map(({ length }) => length));
  const stopped = new Set(lines.filter(({ trial, points }) => trial.state === 'STATE_COMPLETED' && (points[points.length - 1]?.length ?? most) < most).map(({ trial }) => trial.id));
  // Also those that reached the last stage without being drawn.
  const ended = lines.filter(({ points }) => lane.title !== '' && (points[points.length - 1]?.length ?? 0) >= most).map(({ trial }) => trial.id);
  const reports = new Map(lines.map(({ trial, points }) => [trial.id, points]));
  const early = lane.title === '' ? [] : wentOnEarly(lane, ({ id }) => reports.get(id) ?? [], smallerIsBetter);
  const cited = citedIn(early);
  const named = [...places.keys()].filter((id) => painting.isDrawn(id) || cited.includes(id) || (ended.length <= MAX_ENDED && ended.includes(id)));
  return (
    <figure
      class="chart wide"
      aria-label={`${lane.title || 'Search'}: ${over === 'time' ? `progress of ${lines.length} trials over time` : `${metricName} of ${lines.length} trials over ${over === 'metric' ? 'time' : unit}`}`}
      data-panel="search"
    >
      <figcaption>
        {/* The choice above has the name of the chart. */}
        <span class="panel-name">{lane.title || counted(lane.trials.length, 'trial')}</span>
        <span class="panel-facts">
          {lane.title !== '' && (
            <span>
              {counted(lane.trials.length, 'trial')}
              {lane.maxTrials !== undefined && lane.maxTrials !== lane.trials.length && ` of ${lane.maxTrials}`}
            </span>
          )}
          {lane.title !== '' && <span>{counted(lane.rungs.length, 'stage')}</span>}
          {best && (
            <span>
              best {metricName} {digits(best.value)} by{' '}
              {ties > 1 ? counted(ties, 'trial') : <a href={paths.trial(best.id)}>trial {best.id}</a>}
            </span>
          )}
          {isCropped && <Drawn text="cropped" title="The first values are out of sight" other={{ y: 'all' }} offer="show all values" />}
          {bests.length > 0 && <span>dots: best of each trial</span>}
          {bests.length > 0 && <span>line: best so far</span>}
          {gray > 0 && <span>gray: {counted(gray, 'other')}</span>}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          {over === 'time' ? <TimeAxes {...axes} /> : over === 'metric' ? <MetricAxes {...axes} name={metricName} /> : <LengthAxes {...axes} />}
          {isCropped && (
            <>
              <clipPath id="in-sight">
                <rect width={width} height={height - BOTTOM} />
              </clipPath>
              <line class="stage" x1={SIDE} x2={width - RIGHT} y1={height - BOTTOM} y2={height - BOTTOM} />
            </>
          )}
          <g clip-path={isCropped ? 'url(#in-sight)' : undefined}>
            <polyline class="front" points={bestLine.map(({ x, y }) => `${x},${y}`).join(' ')} />
            {painting.order(lines.map(({ trial }) => trial)).map(({ id }) => (
              <TrialLine key={id} id={id} places={places.get(id) ?? []} best={marks?.get(id)} isStopped={lane.title !== '' && stopped.has(id)} over={over} painting={painting} />
            ))}
          </g>
          {roomFor(named.map(String), 1) > 0 && <Ids lines={marks ?? places} bests={bestLine} named={named} mayCover={over !== 'metric'} painting={painting} width={width} height={height} />}
          {lane.title !== '' && over === 'time' && <Stages lane={lane} scale={scale} height={height} />}
        </svg>
      </div>
      {early.length > 0 && <p class="quiet search-note">{earlyText(early)}</p>}
    </figure>
  );
}

interface TrialLineProps extends Pick<LaneProps, 'over' | 'painting'> {
  id: number;
  places: readonly Place[];
  best: readonly Place[] | undefined; // in place of the other dots
  isStopped: boolean;
}

// Dots are reports; of a run that is not drawn the last one. A bar marks the end of a trial that its search stopped.
function TrialLine({ id, places, best, isStopped, over, painting }: TrialLineProps) {
  const paint = painting.of(id);
  const isPointed = hovered.value === id ? 'pointed' : '';
  const end = places[places.length - 1];
  const isDrawn = painting.byMetric || painting.isDrawn(id);
  const dots = best ?? places.slice(over === 'time' ? 1 : 0).slice(isDrawn ? 0 : -1);
  const radius = !best ? 2 : isDrawn ? 4 : 3;
  // Across the direction in which the length grows.
  const [dx, dy] = over === 'time' ? [STOP, 0] : [0, STOP];
  return (
    <a
      href={paths.trial(id)}
      aria-label={`Trial ${id}`}
      tabIndex={-1}
      onPointerEnter={() => (hovered.value = id)}
      onPointerLeave={() => (hovered.value = undefined)}
    >
      <polyline {...paint} class={`line ${best ? 'course' : ''} ${paint.class} ${isPointed}`} points={places.map(({ x, y }) => `${x},${y}`).join(' ')}>
        <title>trial {id}</title>
      </polyline>
      {dots.map(({ x, y }, at) => (
        <circle key={at} {...paint} class={`dot ${paint.class}`} cx={x} cy={y} r={radius} />
      ))}
      {isStopped && end && <line {...paint} class={`stop ${paint.class}`} x1={end.x - dx} x2={end.x + dx} y1={end.y - dy} y2={end.y + dy} />}
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

function OverChoice({ all, over, metricName, unit }: { all: readonly Over[]; over: Over; metricName: string; unit: string }) {
  const { setQuery } = useQuery();
  return (
    <div class="segments over" role="group" aria-label="Chart of the search">
      {all.map((one) => (
        <button type="button" key={one} aria-pressed={one === over} onClick={() => setQuery({ over: one })}>
          {one === 'time' ? unit : metricName} over {one === 'length' ? unit : 'time'}
        </button>
      ))}
    </div>
  );
}

const numberOr = (value: unknown): number | undefined => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

// The lines of trials by their ids, and their best values so far. Time counts from the first training, without the time that
// the search waited for slots.
function linesOf(trials: readonly Trial[], series: readonly api.TrialSeries[], timeMetric: string, metricName: string, smallerIsBetter: boolean): { lines: Map<number, Line>; bests: Value[] } {
  const first = Math.min(...trials.map((trial) => Date.parse(trial.startTime ?? '')).filter(Number.isFinite));
  const seconds = (time: string | null | undefined): number => (Date.parse(time ?? '') - first) / 1000;
  const reported = series.map(({ trial, metrics }): Line => ({
    trial,
    points: fromBegin(
      (metrics[0]?.data ?? [])
        .map((point) => ({ length: reached(point, timeMetric) ?? NaN, seconds: seconds(point.time), value: numberOr(point.values?.[metricName]) }))
        .filter((point) => Number.isFinite(point.seconds) && Number.isFinite(point.length)),
      Math.max(0, seconds(trial.startTime) || 0),
    ),
  }));
  const begun = Math.min(...reported.flatMap(({ points }) => points.slice(0, 1).filter(() => points.length > 1).map((point) => point.seconds)));
  const waited = Number.isFinite(begun) ? begun : 0;
  const since = <T extends { seconds: number }>(one: T): T => ({ ...one, seconds: Math.max(0, one.seconds - waited) });
  const lines = new Map(reported.map(({ trial, points }) => [trial.id, { trial, points: points.map(since) }]));
  // Also of trials without a line, and of reports that their line leaves out.
  const own = trials.map(({ bestValidation: best }) => since({ seconds: seconds(best?.endTime), value: numberOr(best?.metrics?.avgMetrics?.[metricName]) }));
  return { lines, bests: bestSoFar([...own, ...[...lines.values()].flatMap(({ points }) => points)], smallerIsBetter) };
}

export function SearchView({ experimentId, plan, trials, metricName, smallerIsBetter }: Props) {
  const { query } = useQuery();
  const drawn = farthest(trials, MAX_TRIALS);
  const painting = usePainting(trials, smallerIsBetter);
  const ids = drawn.map((trial) => trial.id);
  const live = useLive(
    `search ${experimentId} ${ids.join()}`,
    (signal) => api.series(ids, { points: POINTS, group: 'validation' }, signal),
    (change) => change === 'everything' || (change.experimentId === experimentId && change.kind === 'trial'),
    1000,
  );
  const error = <ErrorNote error={live.error ?? plan.error} retry={plan.error ? plan.reload : live.reload} />;
  if (!plan.data) return plan.error ? error : <p role="status">Loading…</p>;
  const bracketed = plan.data.brackets.length > 0;
  const offered: readonly Over[] = bracketed ? WITH_STAGES : WITHOUT_STAGES;
  const over = offered.find((one) => one === query.over) ?? offered[0] ?? 'time';
  const timeMetric = bracketed ? plan.data.timeMetric : 'batches';
  const { lines, bests } = linesOf(trials, live.data ?? [], timeMetric, metricName, smallerIsBetter);
  const pointsOf = ({ id }: Trial): Report[] => lines.get(id)?.points ?? [];
  const all = lanes(plan.data, trials).map((lane) => (bracketed ? atValidations(lane, lane.trials.map((trial) => pointsOf(trial).filter(({ value }) => value !== undefined).map(({ length }) => length))) : lane));
  const latest = Math.max(1, ...[...lines.values()].flatMap((one) => one.points.map((point) => point.seconds)));
  const scale = lengthScale(
    all.flatMap((lane) => lane.rungs.map((one) => one.length)),
    [...lines.values()].flatMap((one) => one.points.map((point) => point.length)),
  );
  const sight = inSight([...lines.values()].map(({ points }) => points), bests, over === 'metric' && query.y !== 'all');
  const values = sight && padded({ name: metricName, kind: 'linear', words: [], min: sight.min, max: sight.max });
  const ends = all.reduce((sum, lane) => sum + lane.rungs.length, 0);
  const lengths = `${ends === 1 ? 'Upper horizontal line: the length' : 'Labeled horizontal lines: lengths'} at which trials ended.`;
  const note = [
    bracketed ? STAGES_NOTE : over === 'metric' ? '' : lengths,
    trials.length > MAX_TRIALS ? `The ${MAX_TRIALS} that trained longest are drawn, all are counted.` : '',
  ].filter(Boolean).join(' ');
  return (
    <>
      {error}
      <OverChoice all={offered} over={over} metricName={metricName} unit={timeMetric} />
      {painting.byMetric && <ColorKey trials={trials} metricName={metricName} smallerIsBetter={smallerIsBetter} />}
      {all.map((lane) => (
        <Picture
          key={lane.title}
          lane={lane}
          lines={lane.trials.map((trial) => lines.get(trial.id)).filter((line) => line !== undefined)}
          bests={over === 'metric' ? bests : []}
          isCropped={sight?.isCropped === true}
          unit={timeMetric}
          over={over}
          values={values}
          latest={latest}
          scale={scale}
          painting={painting}
          metricName={metricName}
          smallerIsBetter={smallerIsBetter}
          height={all.length > 1 ? LOWER[over] : onPhone() ? HEIGHT : Math.max(HEIGHT, Math.min(MAX_HEIGHT, innerHeight - BESIDE))}
        />
      ))}
      {note !== '' && <p class="quiet search-note">{note}</p>}
      <StageTable all={all} unit={timeMetric} bracketed={bracketed} />
    </>
  );
}

function StageTable({ all, unit, bracketed }: { all: Lane[]; unit: string; bracketed: boolean }) {
  // All trials end at one length.
  if (!bracketed && all.every((lane) => lane.rungs.length === 1)) return null;
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
              <tr key={`${at} ${level}`}>
                {bracketed && <td>{at + 1}</td>}
                {bracketed && <td>{level + 1}</td>}
                <td class="number">{grouped(rung.length)}</td>
                <td class="number">{rung.came}</td>
                <td class="number">{rung.wentOn ?? '–'}</td>
              </tr>
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}
