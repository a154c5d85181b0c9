// A search over time: one chart per bracket, in which every trial is a line that rises with its validations,
// and the rungs at which trials are compared.
import * as api from '../api';
import { brackets } from '../calls/brackets';
import { paths } from '../address';
import { ErrorNote } from '../components/notes';
import { Table } from '../components/Table';
import { useWidth } from '../components/width';
import { counted, duration, grouped, metric } from '../format';
import { useLive } from '../live';
import type { Trial } from '../wire';
import { bestOf, farthest, fromBegin, lanes, lengthScale, ranks, reached, timeTicks, type Lane, type LengthScale } from './search';
import { shade } from './Scatter';

const HEIGHT = 320;
// Height of a chart when there are several.
const LOWER = 240;
const SIDE = 72;
const RIGHT = 16;
// Below the plot are the labels and the name of the axis, above it the name of the other axis.
const BOTTOM = 40;
const TOP = 28;
// Minimum distance of axis labels, in pixels.
const APART = 13;
const TIMES_APART = 80;
const MAX_TRIALS = 100;
const POINTS = 64;

export interface Props {
  experimentId: number;
  trials: Trial[];
  startTime: string | null | undefined;
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
  latest: number; // seconds; shared by all charts so that they are comparable
  rank: ReadonlyMap<number, number>;
  metricName: string;
  smallerIsBetter: boolean;
  height: number;
}

interface AxesProps extends Pick<LaneProps, 'lane' | 'unit' | 'latest' | 'height'> {
  scale: LengthScale;
  width: number;
  x: (seconds: number) => number;
  y: (length: number) => number;
}

// The rungs, and both axes with their names.
function Axes({ lane, unit, latest, scale, width, height, x, y }: AxesProps) {
  const marks = [...new Set([...lane.rungs.map((one) => one.length), scale.longest, ...(scale.isLog ? [] : [0])])].sort((a, b) => b - a);
  const named = marks.reduce<number[]>((kept, mark) => {
    const above = kept[kept.length - 1];
    return above === undefined || y(mark) - y(above) >= APART ? [...kept, mark] : kept;
  }, []);
  const times = timeTicks(latest, Math.max(1, Math.floor((width - SIDE - RIGHT) / TIMES_APART)));
  return (
    <>
      {lane.rungs.map((rung) => (
        <line key={rung.length} class="rung" x1={SIDE} x2={width - RIGHT} y1={y(rung.length)} y2={y(rung.length)}>
          <title>
            {grouped(rung.length)} {unit}: {rung.came} reached it
            {rung.wentOn === undefined ? '' : `, ${rung.wentOn} continued`}
          </title>
        </line>
      ))}
      {named.map((mark) => (
        <text key={mark} x={SIDE - 8} y={y(mark) + 4} text-anchor="end">
          {grouped(mark)}
        </text>
      ))}
      <line class="axis" x1={SIDE} x2={width - RIGHT} y1={height - BOTTOM} y2={height - BOTTOM} />
      {times.map((time) => (
        <text key={time} x={x(time)} y={height - BOTTOM + 15} text-anchor="middle">
          {duration(time)}
        </text>
      ))}
      <text x={0} y={12} class="axis-name">
        {unit}
        {scale.isLog && ', log scale'}
      </text>
      <text x={(SIDE + width - RIGHT) / 2} y={height - 6} text-anchor="middle" class="axis-name">
        time since the start
      </text>
    </>
  );
}

function Picture({ lane, lines, unit, latest, rank, metricName, smallerIsBetter, height }: LaneProps) {
  const [host, width] = useWidth<HTMLDivElement>();
  const best = bestOf(lane.trials, smallerIsBetter);
  const scale = lengthScale(lane.rungs.map((one) => one.length), lines.flatMap((one) => one.points.map((point) => point.length)));
  const x = (seconds: number): number => SIDE + (seconds / latest) * (width - SIDE - RIGHT);
  const y = (length: number): number => height - BOTTOM - scale.part(length) * (height - TOP - BOTTOM);
  // The best trials are drawn last, on top.
  const order = [...lines].sort((a, b) => (rank.get(b.trial.id) ?? 2) - (rank.get(a.trial.id) ?? 2));
  return (
    <figure
      class="chart wide"
      aria-label={`${lane.title || 'Search'}: progress of ${lines.length} trials over time`}
      data-panel="search"
    >
      <figcaption>
        {lane.title || 'Trials over time'}{' '}
        <span class="quiet">
          {counted(lane.trials.length, 'trial')}
          {lane.maxTrials !== undefined && ` of ${lane.maxTrials}`}
          {lane.title !== '' && `, ${counted(lane.rungs.length, 'rung')}`}
          {best && (
            <>
              , best {metricName} {metric(best.value)} of <a href={paths.trial(best.id)}>trial {best.id}</a>
            </>
          )}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          <Axes lane={lane} unit={unit} latest={latest} scale={scale} width={width} height={height} x={x} y={y} />
          {order.map(({ trial, points }) => (
            <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
              <polyline
                class={`line ${shade(rank.get(trial.id))}`}
                points={points.map((point) => `${x(point.seconds)},${y(point.length)}`).join(' ')}
              >
                <title>trial {trial.id}</title>
              </polyline>
              {points.slice(1).map((point) => (
                <circle
                  key={point.length}
                  class={`dot ${shade(rank.get(trial.id))}`}
                  cx={x(point.seconds)}
                  cy={y(point.length)}
                  r={2.5}
                />
              ))}
            </a>
          ))}
        </svg>
      </div>
    </figure>
  );
}

export function SearchView({ experimentId, trials, startTime, metricName, smallerIsBetter }: Props) {
  const drawn = farthest(trials, MAX_TRIALS);
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
  const start = Date.parse(startTime ?? '') || 0;
  const seconds = (time: string | null | undefined): number => (Date.parse(time ?? '') - start) / 1000;
  const lines = new Map(
    (live.data ?? []).map(({ trial, metrics }): [number, Line] => [
      trial.id,
      {
        trial,
        points: fromBegin(
          (metrics[0]?.data ?? [])
            .map((point) => ({ length: reached(point, timeMetric) ?? NaN, seconds: seconds(point.time) }))
            .filter((point) => Number.isFinite(point.seconds) && Number.isFinite(point.length)),
          Math.max(0, seconds(trial.startTime) || 0),
        ),
      },
    ]),
  );
  const latest = Math.max(1, ...[...lines.values()].flatMap((one) => one.points.map((point) => point.seconds)));
  const rank = ranks(trials, smallerIsBetter);
  return (
    <>
      {error}
      <p class="quiet">
        The best trials have the strongest color.{' '}
        {bracketed
          ? 'Dashed are the rungs: lengths of training at which a trial goes on only if it is among the best of its bracket so far.'
          : 'Dashed: where trials ended.'}
        {trials.length > MAX_TRIALS && ` The ${MAX_TRIALS} that trained longest are drawn, all are counted.`}
      </p>
      {all.map((lane) => (
        <Picture
          key={lane.title}
          lane={lane}
          lines={lane.trials.map((trial) => lines.get(trial.id)).filter((line) => line !== undefined)}
          unit={timeMetric}
          latest={latest}
          rank={rank}
          metricName={metricName}
          smallerIsBetter={smallerIsBetter}
          height={all.length > 1 ? LOWER : HEIGHT}
        />
      ))}
      <Rungs all={all} unit={timeMetric} bracketed={bracketed} />
    </>
  );
}

function Rungs({ all, unit, bracketed }: { all: Lane[]; unit: string; bracketed: boolean }) {
  if (all.every((lane) => lane.rungs.length === 0))
    return <p class="quiet">No trial has ended yet; rungs show where trials end.</p>;
  const heads = [`#${unit.charAt(0).toUpperCase()}${unit.slice(1)}`, '#Reached', '#Continued'];
  return (
    <Table label="Rungs" heads={bracketed ? ['Bracket', '#Rung', ...heads] : heads}>
      {all.flatMap((lane, at) =>
        lane.rungs.map((rung, level) => (
          <tr key={`${at} ${rung.length}`}>
            {bracketed && <td>{at + 1}</td>}
            {bracketed && <td class="number">{level + 1}</td>}
            <td class="number">{grouped(rung.length)}</td>
            <td class="number">{rung.came}</td>
            <td class="number">{rung.wentOn ?? ''}</td>
          </tr>
        )),
      )}
    </Table>
  );
}
