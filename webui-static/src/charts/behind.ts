// Pale curves behind those of a chart: the runs of groups, and trials of a search that are not shown. They are drawn on
// the canvas of the chart, between its grid and its curves.
import type uPlot from 'uplot';
import { faint } from '../colors';
import { hovered } from '../workbench/selection';
import { smooth, smoothCentered, type Look, type Panel, type Series } from './series';

const OPACITY = 0.5;
const POINTED = 0.9;
// Beside a curve that is pointed at.
const DIMMED = 0.5;

// The curves, smoothed like those before them.
export function paleOf({ behind = [] }: Pick<Panel, 'behind'>, { smoothing = 0, isCentered }: Pick<Look, 'smoothing' | 'isCentered'>): readonly Series[] {
  return smoothing === 0 ? behind : behind.map((one) => ({ ...one, y: (isCentered ? smoothCentered : smooth)(one.y, smoothing) }));
}

// The range of these values and of those of the curves behind above `least`: a logarithmic axis has positive ones only.
export const withPale = (range: readonly [number | null, number | null], pale: readonly Series[], least = -Infinity): [number | null, number | null] =>
  pale.reduce<[number | null, number | null]>(
    (all, { y }) => y.reduce(([low, high], value) => (value === null || value <= least ? [low, high] : [Math.min(low ?? value, value), Math.max(high ?? value, value)]), all),
    [...range],
  );

// Draws the curves in the colors of their groups, by place, or else in `plain`. That of the trial under the pointer of
// the table is dark.
export function drawBehind(plot: uPlot, pale: readonly Series[], colors: readonly string[], plain: string): void {
  if (pale.length === 0) return;
  const { ctx, bbox } = plot;
  const isBeside = plot.series.some(({ alpha = 1 }) => alpha < 1);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineJoin = 'round';
  ctx.setLineDash([]);
  for (const { x, y, trial, place } of pale) {
    const isPointed = trial === hovered.value;
    ctx.lineWidth = (isPointed ? 2 : 1) * devicePixelRatio;
    ctx.strokeStyle = faint(colors[place] ?? plain, isPointed ? POINTED : isBeside ? DIMMED * OPACITY : OPACITY);
    ctx.beginPath();
    let isOpen = false;
    y.forEach((value, at) => {
      if (value === null) return void (isOpen = false);
      const [left, top] = [plot.valToPos(x[at] ?? 0, 'x', true), plot.valToPos(value, 'y', true)];
      if (isOpen) ctx.lineTo(left, top);
      else ctx.moveTo(left, top);
      isOpen = true;
    });
    ctx.stroke();
  }
  ctx.restore();
}
