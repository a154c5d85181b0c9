// Timeline of a trial: a bar per run with agent and result, a mark per checkpoint.
import { useWidth } from '../components/width';
import { duration, lasted, stateName } from '../format';
import type { Allocation, Checkpoint } from '../wire';

const ROW = 26;
const LEFT = 90;
const BOTTOM = 26;
const RIGHT = 12;
// Radius of a mark and distance of its center to the end of its bar.
const MARK = 4;
const INSET = MARK + 2;
// Least distance of two times on the axis, in pixels.
const APART = 90;
// Steps of the axis in seconds; beyond the last its multiples by powers of two.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

// Round times of the axis in seconds, at most `count` and 0.
export function axisTimes(total: number, count: number): number[] {
  let step = STEPS.find((one) => total / one <= count) ?? 86400;
  while (total / step > Math.max(1, count)) step *= 2;
  return Array.from({ length: Math.floor(total / step) + 1 }, (_, at) => at * step);
}

// "5m" instead of "5m 00s".
const roundTime = (seconds: number): string => duration(seconds).replace(/ 00[smh]$/, '');

const TONES = ['good', 'busy', 'idle', 'bad'] as const;
type Tone = (typeof TONES)[number];

export function attemptTone(one: Allocation): Tone {
  if (!one.endTime) return 'busy';
  if (/succeeded/i.test(one.exitKind)) return 'good';
  return one.exitKind === '' || /preempted|stopped/i.test(one.exitKind) ? 'idle' : 'bad';
}

// The tones of attempts with their states, as in the table of attempts: "Failed · Out of memory"; more than two are cut.
export const keyOf = (attempts: readonly Allocation[]): [Tone, string][] =>
  TONES.flatMap((tone): [Tone, string][] => {
    const own = attempts.filter((one) => attemptTone(one) === tone);
    const names = [...new Set(own.map((one) => stateName((one.endTime && one.exitKind) || one.state)))];
    return names.length > 0 ? [[tone, `${names.slice(0, 2).join(' · ')}${names.length > 2 ? ' …' : ''}`]] : [];
  });

// The checkpoints that an attempt saved. Those of its end are reported up to a second after it.
export function savedIn(one: Allocation, checkpoints: readonly Checkpoint[]): Checkpoint[] {
  const [from, to] = [Date.parse(one.startTime ?? ''), one.endTime ? Date.parse(one.endTime) + 1000 : Infinity];
  return checkpoints.filter(({ reportTime }) => reportTime && Date.parse(reportTime) >= from && Date.parse(reportTime) <= to);
}

// The center of a mark, within its bar if that is wide enough.
const inside = (at: number, from: number, to: number): number =>
  to - from < 2 * INSET ? (from + to) / 2 : Math.min(to - INSET, Math.max(from + INSET, at));

interface Props {
  attempts: readonly Allocation[];
  checkpoints: readonly Checkpoint[];
  nowMs: number;
}

interface AttemptProps {
  one: Allocation;
  row: number;
  saved: readonly Checkpoint[]; // in this attempt
  nowMs: number;
  x: (ms: number) => number;
}

// The bar of an attempt with its checkpoints.
function Attempt({ one, row, saved, nowMs, x }: AttemptProps) {
  const [from, to] = [Date.parse(one.startTime ?? ''), one.endTime ? Date.parse(one.endTime) : nowMs];
  return (
    <g>
      <text x={LEFT - 8} y={row * ROW + 17} text-anchor="end">
        #{one.run}
      </text>
      <rect class={`bar bar-${attemptTone(one)}`} x={x(from)} y={row * ROW + 5} width={Math.max(2, x(to) - x(from))} height={ROW - 10} rx={3}>
        <title>
          attempt {one.run} on {one.agentId}: {lasted((to - from) / 1000)}
          {one.endTime ? `, ${stateName(one.exitKind)} ${one.exitMessage}` : ', runs'}
        </title>
      </rect>
      {saved.map(({ uuid, reportTime, stepsCompleted }) => (
        <circle key={uuid} class="saved" cx={inside(x(Date.parse(reportTime ?? '')), x(from), x(to))} cy={row * ROW + ROW / 2} r={MARK}>
          <title>checkpoint at batch {stepsCompleted}</title>
        </circle>
      ))}
    </g>
  );
}

export function Timeline({ attempts, checkpoints, nowMs }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const begun = attempts.filter((one) => one.startTime).sort((a, b) => b.run - a.run);
  if (begun.length === 0) return null;
  const start = Math.min(...begun.map((one) => Date.parse(one.startTime ?? '')));
  const end = Math.max(start + 1000, ...begun.map((one) => (one.endTime ? Date.parse(one.endTime) : nowMs)));
  const x = (ms: number): number => LEFT + ((ms - start) / (end - start)) * (width - LEFT - RIGHT);
  const height = begun.length * ROW + BOTTOM;
  return (
    <figure class="chart wide" aria-label={`${begun.length} attempts over ${lasted((end - start) / 1000)}`} data-panel="timeline">
      <figcaption>
        <span class="panel-name">Timeline</span>
        <span class="panel-facts">
          <span>{lasted((end - start) / 1000)} in total</span>
          <span class="by-mouse">one bar per attempt, newest first</span>
          <span class="by-mouse">marks are checkpoints</span>
        </span>
        <span class="timeline-key">
          {keyOf(begun).map(([tone, name]) => (
            <span key={tone} class={`state state-${tone}`}>
              {name}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${height}`} role="presentation">
          {begun.map((one, row) => (
            <Attempt key={one.id} one={one} row={row} saved={savedIn(one, checkpoints)} nowMs={nowMs} x={x} />
          ))}
          <line class="axis" x1={LEFT} x2={width - RIGHT} y1={height - BOTTOM + 4} y2={height - BOTTOM + 4} />
          {axisTimes((end - start) / 1000, Math.floor((width - LEFT - RIGHT) / APART)).map((seconds) => (
            <g key={seconds}>
              <line class="axis" x1={x(start + seconds * 1000)} x2={x(start + seconds * 1000)} y1={height - BOTTOM + 4} y2={height - BOTTOM + 8} />
              <text x={x(start + seconds * 1000)} y={height - 4} text-anchor={x(start + seconds * 1000) > width - RIGHT - 16 ? 'end' : 'middle'}>
                {roundTime(seconds)}
              </text>
            </g>
          ))}
        </svg>
      </div>
    </figure>
  );
}
