// Timeline of a trial: a bar per run with agent and result, a mark per checkpoint.
import { useWidth } from '../components/width';
import { duration, stateName } from '../format';
import type { Allocation, Checkpoint } from '../wire';

const ROW = 26;
const LEFT = 90;
const BOTTOM = 26;

// The tone of an attempt and its name in the key.
const TONES = { good: 'Completed', busy: 'Running', idle: 'Preempted or stopped', bad: 'Failed' } as const;

export function attemptTone(one: Allocation): keyof typeof TONES {
  if (!one.endTime) return 'busy';
  if (/succeeded/i.test(one.exitKind)) return 'good';
  return one.exitKind === '' || /preempted|stopped/i.test(one.exitKind) ? 'idle' : 'bad';
}

interface Props {
  attempts: readonly Allocation[];
  checkpoints: readonly Checkpoint[];
  nowMs: number;
}

export function Timeline({ attempts, checkpoints, nowMs }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const begun = attempts.filter((one) => one.startTime).sort((a, b) => a.run - b.run);
  if (begun.length === 0) return null;
  const start = Math.min(...begun.map((one) => Date.parse(one.startTime ?? '')));
  const end = Math.max(start + 1000, ...begun.map((one) => (one.endTime ? Date.parse(one.endTime) : nowMs)));
  const x = (ms: number): number => LEFT + ((ms - start) / (end - start)) * (width - LEFT - 12);
  const height = begun.length * ROW + BOTTOM;
  const marks = checkpoints.filter((one) => one.reportTime).map((one) => ({ one, at: Date.parse(one.reportTime ?? '') }));
  return (
    <figure class="chart wide" aria-label={`${begun.length} attempts over ${duration((end - start) / 1000)}`} data-panel="timeline">
      <figcaption>
        <span class="panel-name">Timeline</span>
        <span class="panel-facts">
          <span>one bar per attempt; marks are checkpoints</span>
        </span>
        <span class="timeline-key">
          {Object.entries(TONES)
            .filter(([tone]) => begun.some((one) => attemptTone(one) === tone))
            .map(([tone, name]) => (
              <span key={tone} class={`state state-${tone}`}>
                {name}
              </span>
            ))}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          {begun.map((one, row) => {
            const [from, to] = [Date.parse(one.startTime ?? ''), one.endTime ? Date.parse(one.endTime) : nowMs];
            const own = marks.filter(({ at }) => at >= from && at <= to + 1000);
            return (
              <g key={one.id}>
                <text x={LEFT - 8} y={row * ROW + 17} text-anchor="end">
                  run {one.run}
                </text>
                <rect
                  class={`bar bar-${attemptTone(one)}`}
                  x={x(from)}
                  y={row * ROW + 5}
                  width={Math.max(2, x(to) - x(from))}
                  height={ROW - 10}
                  rx={3}
                >
                  <title>
                    run {one.run} on {one.agentId}: {duration((to - from) / 1000)}
                    {one.endTime ? `, ${stateName(one.exitKind)} ${one.exitMessage}` : ', runs'}
                  </title>
                </rect>
                {own.map(({ one: saved, at }) => (
                  <circle key={saved.uuid} class="saved" cx={x(at)} cy={row * ROW + ROW / 2} r={4}>
                    <title>checkpoint at batch {saved.stepsCompleted}</title>
                  </circle>
                ))}
              </g>
            );
          })}
          <line class="axis" x1={LEFT} x2={width - 12} y1={height - BOTTOM + 4} y2={height - BOTTOM + 4} />
          <text x={LEFT} y={height - 6}>
            0s
          </text>
          <text x={width - 12} y={height - 6} text-anchor="end">
            {duration((end - start) / 1000)}
          </text>
        </svg>
      </div>
    </figure>
  );
}
