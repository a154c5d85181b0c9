// Owns the search drawn over time: each trial a line that climbs with its validations, rungs where trials ended.
import * as api from '../api';
import { paths } from '../address';
import { ErrorNote } from '../components/notes';
import { useWidth } from '../components/width';
import { duration, metric } from '../format';
import { useLive } from '../live';
import type { Trial } from '../wire';
import { ranks, rungs } from './search';
import { shade } from './HyperparameterViews';

const kHeight = 340;
const kSide = 60;
const kBottom = 28;
const kTop = 12;
// What one read of series gives.
const kMostTrials = 100;
const kPoints = 64;

interface Props {
  experimentId: number;
  trials: Trial[];
  startTime: string | null | undefined;
  smallerIsBetter: boolean;
}

export function SearchView({ experimentId, trials, startTime, smallerIsBetter }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const ids = trials.slice(0, kMostTrials).map((trial) => trial.id);
  const live = useLive(
    `search ${experimentId} ${ids.join()}`,
    (signal) => api.series(ids, { points: kPoints, group: 'validation' }, signal),
    (change) => change === 'everything' || (change.experimentId === experimentId && change.kind === 'trial'),
    1000,
  );
  const start = Date.parse(startTime ?? '') || 0;
  const lines = (live.data ?? []).map(({ trial, metrics }) => ({
    trial,
    points: [
      { batches: 0, seconds: (Date.parse(trial.startTime ?? '') - start) / 1000 },
      ...(metrics[0]?.data ?? []).map((point) => ({
        batches: point.batches,
        seconds: (Date.parse(point.time ?? '') - start) / 1000,
      })),
    ].filter((point) => Number.isFinite(point.seconds)),
  }));
  const steps = rungs(trials, smallerIsBetter);
  const rank = ranks(trials, smallerIsBetter);
  const longest = Math.max(1, ...lines.flatMap((one) => one.points.map((point) => point.batches)), ...steps.map((one) => one.batches));
  const latest = Math.max(1, ...lines.flatMap((one) => one.points.map((point) => point.seconds)));
  const x = (seconds: number): number => kSide + (seconds / latest) * (width - kSide - 12);
  // Rungs lie apart by factors: a square root shows the lowest and the highest at once.
  const y = (batches: number): number => kHeight - kBottom - Math.sqrt(batches / longest) * (kHeight - kTop - kBottom);
  return (
    <>
      <ErrorNote error={live.error} retry={live.reload} />
      {trials.length > kMostTrials && <p class="quiet">The first {kMostTrials} trials are drawn.</p>}
      <figure class="chart wide" aria-label={`Progress of ${lines.length} trials over time`} data-panel="search">
        <figcaption>
          Batches over time <span class="quiet">best trials in the strongest color; dashed: where trials ended</span>
        </figcaption>
        <div ref={host}>
          <svg viewBox={`0 0 ${width} ${kHeight}`} role="presentation">
            {steps.slice(0, 12).map((rung) => (
              <g key={rung.batches}>
                <line class="rung" x1={kSide} x2={width - 12} y1={y(rung.batches)} y2={y(rung.batches)} />
                <text x={kSide - 6} y={y(rung.batches) + 4} text-anchor="end">
                  {metric(rung.batches)}
                </text>
              </g>
            ))}
            {steps.every((rung) => rung.batches !== longest) && (
              <text x={kSide - 6} y={y(longest) + 4} text-anchor="end">
                {metric(longest)}
              </text>
            )}
            <line class="axis" x1={kSide} x2={width - 12} y1={kHeight - kBottom} y2={kHeight - kBottom} />
            <text x={kSide} y={kHeight - 8}>
              0s
            </text>
            <text x={width - 12} y={kHeight - 8} text-anchor="end">
              {duration(latest)}
            </text>
            {lines.map(({ trial, points }) => (
              <a key={trial.id} href={paths.trial(trial.id)} aria-label={`Trial ${trial.id}`} tabIndex={-1}>
                <polyline
                  class={`line ${shade(rank.get(trial.id))}`}
                  points={points.map((point) => `${x(point.seconds)},${y(point.batches)}`).join(' ')}
                >
                  <title>trial {trial.id}</title>
                </polyline>
                {points.slice(1).map((point) => (
                  <circle
                    key={point.batches}
                    class={`dot ${shade(rank.get(trial.id))}`}
                    cx={x(point.seconds)}
                    cy={y(point.batches)}
                    r={2.5}
                  />
                ))}
              </a>
            ))}
          </svg>
        </div>
      </figure>
      <Rungs steps={steps} />
    </>
  );
}

function Rungs({ steps }: { steps: ReturnType<typeof rungs> }) {
  if (steps.length === 0) return <p class="quiet">No trial has ended yet; rungs show where trials end.</p>;
  return (
    <div class="table-frame" role="region" aria-label="Rungs" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Batches
            </th>
            <th scope="col" class="number">
              Trials that came so far
            </th>
            <th scope="col" class="number">
              Ended here
            </th>
            <th scope="col" class="number">
              Best of these
            </th>
          </tr>
        </thead>
        <tbody>
          {steps.map((rung) => (
            <tr key={rung.batches}>
              <td class="number">{rung.batches.toLocaleString()}</td>
              <td class="number">{rung.reached}</td>
              <td class="number">{rung.ended}</td>
              <td class="number">{metric(rung.best)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
