// A scatter plot of trials, as SVG. Positions are parts 0..1 of the axes.
import type { ComponentChildren } from 'preact';
import { paths } from '../address';
import { useWidth } from '../components/width';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import type { Paint } from './paint';
import type { Dimension } from './dimensions';
import { ticks } from './ticks';

const HEIGHT = 248;
const LEAST_SIDE = 56; // left of the plot
const RIGHT = 16;
const SIGN = 7; // width of a digit of the ticks
const TOP = 12;
const BOTTOM = 40; // ticks and the name of the axis; the title names the other axis
// Ticks of the y axis, and pixels of the x axis for each of its ticks.
const Y_TICKS = 5;
const APART = 72;

interface Dot {
  trial: Trial;
  x: number; // 0..1
  y: number;
  paint: Paint;
  title: string;
}

interface Props {
  title: string;
  note?: string;
  panel?: string;
  x: Dimension;
  y: Dimension;
  dots: readonly Dot[];
  path?: readonly { x: number; y: number }[]; // a line through some positions
  children?: ComponentChildren; // controls above the plot
}

export function Scatter({ title, note, panel, x, y, dots, path = [], children }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const yTicks = ticks(y, Y_TICKS);
  const side = Math.max(LEAST_SIDE, 16 + SIGN * Math.max(...yTicks.map(({ text }) => text.length)));
  // Words have no range beyond the first and the last one.
  const inset = x.kind === 'words' ? 24 : 0;
  const along = (part: number): number => side + inset + part * (width - side - RIGHT - 2 * inset);
  const up = (part: number): number => HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  return (
    <figure class="chart" aria-label={title} data-panel={panel}>
      <figcaption>
        <span class="panel-name" title={title}>
          {title}
        </span>
        <span class="panel-facts">{note && <span>{note}</span>}</span>
      </figcaption>
      {children}
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          {yTicks.map((tick) => (
            <g key={tick.at}>
              <line class="grid" x1={side} x2={width - RIGHT} y1={up(tick.at)} y2={up(tick.at)} />
              <text x={side - 8} y={up(tick.at) + 4} text-anchor="end">
                {tick.text}
              </text>
            </g>
          ))}
          {ticks(x, Math.max(2, Math.floor((width - side) / APART))).map((tick) => (
            <g key={tick.at}>
              <line class="grid" x1={along(tick.at)} x2={along(tick.at)} y1={TOP} y2={HEIGHT - BOTTOM} />
              <text x={Math.min(along(tick.at), width - (SIGN * tick.text.length) / 2)} y={HEIGHT - BOTTOM + 16} text-anchor="middle">
                {tick.text}
              </text>
            </g>
          ))}
          <text x={(side + width) / 2} y={HEIGHT - 4} text-anchor="middle" class="axis-name">
            {x.name}
            {x.kind === 'log' && ', log scale'}
          </text>
          {path.length > 1 && <polyline class="front" points={path.map((one) => `${along(one.x)},${up(one.y)}`).join(' ')} />}
          {dots.map((dot) => (
            <a key={dot.trial.id} href={paths.trial(dot.trial.id)} aria-label={`Trial ${dot.trial.id}`} tabIndex={-1}>
              <circle
                {...dot.paint}
                class={`dot ${dot.paint.class} ${hovered.value === dot.trial.id ? 'pointed' : ''}`}
                cx={along(dot.x)}
                cy={up(dot.y)}
                r={4}
                onPointerEnter={() => (hovered.value = dot.trial.id)}
                onPointerLeave={() => (hovered.value = undefined)}
              >
                <title>{dot.title}</title>
              </circle>
            </a>
          ))}
        </svg>
      </div>
    </figure>
  );
}
