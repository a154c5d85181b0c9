// Marks one of many curves on a canvas of its own above the chart: a veil over all curves, and that curve again. A
// redraw of all curves would take longer than a frame.
import type uPlot from 'uplot';
import { themeColor } from '../colors';

// With more series the chart is not redrawn when the pointer moves.
export const MANY_SERIES = 32;
const VEIL = 0.7;
const WIDTH = 2.5;

const canvases = new WeakMap<uPlot, HTMLCanvasElement>();
const marked = new WeakMap<uPlot, number>();

function canvasOf(plot: uPlot): HTMLCanvasElement {
  let own = canvases.get(plot);
  if (!own) {
    own = document.createElement('canvas');
    own.className = 'highlight';
    plot.over.prepend(own);
    canvases.set(plot, own);
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
  ink.fillStyle = themeColor('--card');
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

// Null values are gaps; the line passes over undefined ones.
function line(plot: uPlot, values: ArrayLike<number | null | undefined>): Path2D {
  const path = new Path2D();
  let open = false;
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    if (value === undefined) continue;
    if (value === null) {
      open = false;
      continue;
    }
    const [x, y] = [plot.valToPos(plot.data[0][at] ?? 0, 'x'), plot.valToPos(value, 'y')];
    if (open) path.lineTo(x, y);
    else path.moveTo(x, y);
    open = true;
  }
  return path;
}
