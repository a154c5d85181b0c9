// Slots in use over the last hour: one bar per minute, as high as the part of the slots that were in use.
import { held } from '../calls/usage';
import { average, fromHeld, lastHour } from './held';
import { clock, metric, minute } from '../format';
import { useLive } from '../live';
import { useMinute } from '../components/clock';

const SPAN_MS = 3_600_000;
const CELLS = 60;
const WIDTH = 240;
const HEIGHT = 32;
const NONE = 2; // height of a minute without slots
const GAP_MS = 10_000;

// Running allocations have no end, so the strip moves on without another request.
export function SlotStrip() {
  const nowMs = useMinute();
  const live = useLive(
    'slots of the last hour',
    async (signal) => {
      const toMs = Date.now();
      return { toMs, ...(await held(toMs - SPAN_MS, toMs, signal)) };
    },
    (change) => change === 'everything' || change.kind === 'agent' || (change.kind === 'trial' && !change.sameState),
    GAP_MS,
  );
  if (!live.data) return <div class="slot-strip" />;
  const toMs = Math.max(nowMs, live.data.toMs);
  const cells = fromHeld(live.data.resourceEntries, live.data.capacity, toMs - SPAN_MS, toMs, CELLS);
  const width = WIDTH / CELLS;
  const used = cells.map((cell) => (cell.capacity > 0 ? Math.min(1, cell.total / cell.capacity) : 0));
  const text = lastHour(cells);
  return (
    <figure class="slot-strip" aria-label={`Slots: ${text}`}>
      <figcaption>
        Last hour <span class="quiet">{text}</span>
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="presentation">
        {cells.map((cell, at) => {
          const height = Math.max(cell.total > 0 ? 1 : 0, (used[at] ?? 0) * HEIGHT);
          return (
            <g key={at}>
              <rect class={cell.capacity > 0 ? 'strip-there' : 'strip-none'} x={at * width} y={cell.capacity > 0 ? 0 : HEIGHT - NONE} width={width - 0.8} height={cell.capacity > 0 ? HEIGHT : NONE}>
                <title>
                  {clock(new Date(cell.fromMs).toISOString())}: {metric(Number(average(cell.total, cell.fromMs, cell.toMs).toPrecision(2)))} of{' '}
                  {metric(Number(average(cell.capacity, cell.fromMs, cell.toMs).toPrecision(2)))} slots
                </title>
              </rect>
              {height > 0 && <rect class="strip-used" x={at * width} y={HEIGHT - height} width={width - 0.8} height={height} />}
            </g>
          );
        })}
      </svg>
      <div class="strip-axis quiet" aria-hidden="true">
        <span>{minute(toMs - SPAN_MS)}</span>
        <span>{minute(toMs - SPAN_MS / 2)}</span>
        <span>{minute(toMs)}</span>
      </div>
    </figure>
  );
}
