// Stacked bars of the time per batch by phase, one bar per interval of batches.
import { ticks } from '../cluster/UsageChart';
import { useWidth } from '../components/width';
import { apportion, axisNumber, grouped, metric } from '../format';
import type { Phases } from './phases';
import { HEIGHTS } from './series';

// The plot and its key are as high as the metric chart beside them.
const KEY = 28;
const HEIGHT = HEIGHTS.medium - KEY;
const LEFT = 56;
const RIGHT = 16;
const TOP = 8;
const BOTTOM = 46;

const color = (name: string, at: number): string => (name === 'other' || at >= 8 ? 'others' : String(at + 1));
const digits = (value: number): string => metric(Number(value.toPrecision(3)));
const span = (seconds: number): string => (seconds < 1 ? `${digits(seconds * 1000)} ms` : `${digits(seconds)} s`);

// "12.5%" for each phase; they add up to 100 %.
function sharesOf({ names, shares }: Phases): Map<string, string> {
  const own = names.map((name) => shares.get(name) ?? 0);
  const tenths = apportion(own, 1000);
  return new Map(names.map((name, at) => [name, (own[at] ?? 0) < 0.001 ? '<0.1%' : `${(tenths[at] ?? 0) / 10}%`]));
}

const sum = (seconds: ReadonlyMap<string, number>): number => [...seconds.values()].reduce((all, one) => all + one, 0);

type Scale = (value: number) => number;

// The phases of some batches above each other.
function Stack({ bar, names, gap, x, y }: { bar: Phases['bars'][number]; names: readonly string[]; gap: number; x: Scale; y: Scale }) {
  let below = 0;
  const said = names.map((name) => `${name} ${span(bar.seconds.get(name) ?? 0)}`).join('\n');
  return (
    <g>
      <title>{`batches ${bar.from + 1} to ${bar.to}: ${span(sum(bar.seconds))} each\n${said}`}</title>
      {names.map((name, at) => {
        const own = bar.seconds.get(name) ?? 0;
        below += own;
        return (
          own > 0 && (
            <rect
              key={name}
              class={`stack-${color(name, at)}`}
              x={x(bar.from)}
              y={y(below)}
              width={Math.max(0.5, x(bar.to) - x(bar.from) - gap)}
              height={y(below - own) - y(below)}
            />
          )
        );
      })}
    </g>
  );
}

export function PhaseChart({ phases }: { phases: Phases }) {
  const [host, width] = useWidth<HTMLDivElement>();
  const { names, bars, perBatch } = phases;
  const shares = sharesOf(phases);
  const [first, last] = [bars[0]?.from ?? 0, bars[bars.length - 1]?.to ?? 1];
  const most = Math.max(1e-9, ...bars.map((bar) => sum(bar.seconds)));
  const x = (batches: number): number => LEFT + ((batches - first) / Math.max(1, last - first)) * (width - LEFT - RIGHT);
  const y = (seconds: number): number => HEIGHT - BOTTOM - (seconds / most) * (HEIGHT - TOP - BOTTOM);
  // About eight labels on a wide chart and four on a narrow one; none that the edge would cut off.
  const step = Math.max(1, ticks((last - first) / (width > 400 ? 2 : 1))[1] ?? 1);
  const marks = Array.from({ length: Math.floor(last / step) + 1 }, (_, at) => at * step).filter(
    (mark) => mark >= first && x(mark) <= width - RIGHT - 16,
  );
  const said = names.map((name) => `${name} ${shares.get(name)}`).join(', ');
  return (
    <figure class="chart" data-panel="phases" aria-label={`Phases of a batch: ${said}`}>
      <figcaption>
        <span class="panel-name">Time of a batch</span>
        <span class="panel-facts">
          <span>{span(perBatch)} on average</span>
        </span>
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {ticks(most).map((tick) => (
            <g key={tick}>
              <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(tick)} y2={y(tick)} />
              <text x={LEFT - 6} y={y(tick) + 4} text-anchor="end">
                {most < 1 ? `${axisNumber(Number((tick * 1000).toPrecision(6)))} ms` : `${axisNumber(tick)} s`}
              </text>
            </g>
          ))}
          {bars.map((bar) => (
            <Stack key={bar.to} bar={bar} names={names} gap={bars.length < width / 12 ? 1 : 0} x={x} y={y} />
          ))}
          {marks.map((mark) => (
            <text key={mark} x={x(mark)} y={HEIGHT - BOTTOM + 24} text-anchor="middle">
              {grouped(mark)}
            </text>
          ))}
          <text x={(LEFT + width) / 2} y={HEIGHT - 8} text-anchor="middle">
            batches
          </text>
        </svg>
      </div>
      <ul class="plain-list legend">
        {names.map((name, at) => (
          <li key={name}>
            <span class={`swatch swatch-${color(name, at)}`} aria-hidden="true" />
            {name} <span class="quiet">{`${span(perBatch * (phases.shares.get(name) ?? 0))}, ${shares.get(name)}`}</span>
          </li>
        ))}
      </ul>
    </figure>
  );
}
