// Marks one of many curves on a canvas of its own above the chart: a veil over all curves, and that curve again. A
// redraw of all curves would take longer than a frame.
import type uPlot from 'uplot';
import { themeColor } from '../colors';

// With more series the chart is not redrawn when the pointer moves.
export const MANY_SERIES = 32;
const VEIL = 0.7;
const WIDTH = 2.5;

const canvases = new WeakMap<uPlot, HTMLCanvasElement>();
// The color of the veil: reading it makes the browser compute styles. A chart is made again when the theme changes.
const veils = new WeakMap<uPlot, string>();
const marked = new WeakMap<uPlot, number>();

function canvasOf(plot: uPlot): HTMLCanvasElement {
  let own = canvases.get(plot);
  if (!own) {
    own = document.createElement('canvas');
    own.className = 'highlight';
    plot.over.prepend(own);
    canvases.set(plot, own);
    veils.set(plot, themeColor('--card'));
  }
  const [width, height] = [Math.round(plot.over.clientWidth * devicePixelRatio), Math.round(plot.over.clientHeight * devicePixelRatio)];
  if (own.width !== width || own.height !== height) [own.width, own.height] = [width, height];
  return own;
}

// Marks the series at these indices of `plot.series`; none removes the mark. The first call makes the canvas.
export function highlight(plot: uPlot, at: readonly number[]): void {
  const key = at.reduce((sum, one) => sum * 1021 + one, 0);
  if ((marked.get(plot) ?? 0) === key) return;
  marked.set(plot, key);
  const canvas = canvasOf(plot);
  const ink = canvas.getContext('2d');
  if (!ink) return;
  ink.setTransform(1, 0, 0, 1, 0, 0);
  ink.clearRect(0, 0, canvas.width, canvas.height);
  if (at.length === 0) return;
  ink.globalAlpha = VEIL;
  ink.fillStyle = veils.get(plot) ?? '';
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.globalAlpha = 1;
  ink.scale(devicePixelRatio, devicePixelRatio);
  ink.lineWidth = WIDTH;
  ink.lineJoin = 'round';
  for (const index of at) {
    const series = plot.series[index];
    ink.strokeStyle = typeof series?.stroke === 'function' ? String(series.stroke(plot, index)) : String(series?.stroke ?? '');
    ink.setLineDash(series?.dash ?? []);
    ink.stroke(line(plot, plot.data[index] ?? []));
  }
}

interface Places {
  key: string;
  data: ArrayLike<number>;
  x: Float64Array; // pixels
}
const known = new WeakMap<uPlot, Places>();

// The positions of the x values: the same for each curve until data, size or range change.
function placesOf(plot: uPlot): Float64Array {
  const data = plot.data[0];
  const { min, max } = plot.scales.x ?? {};
  const key = [min, max, plot.over.clientWidth].join();
  const before = known.get(plot);
  if (before?.key === key && before.data === data) return before.x;
  const x = Float64Array.from(data, (value) => plot.valToPos(value, 'x'));
  known.set(plot, { key, data, x });
  return x;
}

// The position of a value on the y axis; a linear axis needs two positions for all.
function heightOf(plot: uPlot): (value: number) => number {
  const { min, max, distr } = plot.scales.y ?? {};
  if (distr === 3 || min == null || max == null || min === max) return (value) => plot.valToPos(value, 'y');
  const [low, high] = [plot.valToPos(min, 'y'), plot.valToPos(max, 'y')];
  return (value) => low + ((value - min) / (max - min)) * (high - low);
}

// Null values are gaps; the line passes over undefined ones.
function line(plot: uPlot, values: ArrayLike<number | null | undefined>): Path2D {
  const path = new Path2D();
  const places = placesOf(plot);
  const height = heightOf(plot);
  let open = false;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value === undefined) continue;
    if (value === null) {
      open = false;
      continue;
    }
    if (open) path.lineTo(places[at] ?? 0, height(value));
    else path.moveTo(places[at] ?? 0, height(value));
    open = true;
  }
  return path;
}
