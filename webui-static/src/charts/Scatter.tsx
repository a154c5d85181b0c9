// A scatter plot of trials, as SVG. Positions are parts 0..1 of the axes.
import { paths } from '../address';
import { useWidth } from '../components/width';
import type { Trial } from '../wire';
import { hovered } from '../workbench/selection';
import { marks, type Dimension } from './search';

const HEIGHT = 240;
const LEAST_SIDE = 64; // left of the plot
const SIGN = 7; // width of a digit of the marks
const TOP = 12;
const BOTTOM = 32;

// Five steps from best to worst. Classes, because the Content-Security-Policy forbids inline styles.
export const shade = (rank: number | undefined): string =>
  rank === undefined ? 'shade-none' : `shade-${Math.min(4, Math.floor(rank * 5))}`;

export interface Dot {
  trial: Trial;
  x: number; // 0..1
  y: number;
  shade: string;
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
}

export function Scatter({ title, note, panel, x, y, dots, path = [] }: Props) {
  const [host, width] = useWidth<HTMLDivElement>();
  const side = Math.max(LEAST_SIDE, 16 + SIGN * Math.max(...marks(y).map(({ text }) => text.length)));
  // Margins keep the dots off the axes.
  const along = (part: number): number => side + 10 + part * (width - side - 26);
  const up = (part: number): number => HEIGHT - BOTTOM - 8 - part * (HEIGHT - TOP - BOTTOM - 8);
  return (
    <figure class="chart" aria-label={title} data-panel={panel}>
      <figcaption>
        {title}
        {x.kind === 'log' && <span class="quiet"> logarithmic</span>}
        {note && <span class="quiet"> {note}</span>}
      </figcaption>
      <div ref={host}>
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="presentation">
          <line class="axis" x1={side} x2={width - 8} y1={HEIGHT - BOTTOM} y2={HEIGHT - BOTTOM} />
          <line class="axis" x1={side} x2={side} y1={TOP} y2={HEIGHT - BOTTOM} />
          {marks(y).map((mark) => (
            <g key={mark.at}>
              {mark.at > 0 && <line class="rung" x1={side} x2={width - 8} y1={up(mark.at)} y2={up(mark.at)} />}
              <text x={side - 8} y={up(mark.at) + 4} text-anchor="end">
                {mark.text}
              </text>
            </g>
          ))}
          {marks(x).map((mark) => (
            <text key={mark.at} x={along(mark.at)} y={HEIGHT - 8} text-anchor={mark.at === 1 ? 'end' : mark.at === 0 ? 'start' : 'middle'}>
              {mark.text}
            </text>
          ))}
          {path.length > 1 && <polyline class="front" points={path.map((one) => `${along(one.x)},${up(one.y)}`).join(' ')} />}
          {dots.map((dot) => (
            <a key={dot.trial.id} href={paths.trial(dot.trial.id)} aria-label={`Trial ${dot.trial.id}`} tabIndex={-1}>
              <circle
                class={`dot ${dot.shade} ${hovered.value === dot.trial.id ? 'pointed' : ''}`}
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
