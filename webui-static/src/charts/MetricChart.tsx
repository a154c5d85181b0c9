// Owns drawing one panel with uPlot: size, colors of the theme, live data. Must never fetch.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { metric } from '../format';
import type { Panel } from './series';

const kHeight = 240;
const kColors = ['--series-1', '--series-2', '--series-3', '--series-4'];

const themeColor = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function options(panel: Panel, width: number): uPlot.Options {
  const axis = { stroke: themeColor('--text-dim'), font: '12px system-ui, sans-serif' };
  const grid = { stroke: themeColor('--line'), width: 1 };
  return {
    width,
    height: kHeight,
    // Panels of one page show the same batch under the pointer.
    cursor: { sync: { key: 'metrics' } },
    scales: { x: { time: false } },
    axes: [
      { ...axis, grid, ticks: grid, label: 'batches', labelFont: axis.font, labelSize: 18, size: 34 },
      { ...axis, grid, ticks: grid, size: 62, values: (_, ticks) => ticks.map((v) => metric(v)) },
    ],
    series: [
      { label: 'batches' },
      ...panel.series.map((one, i) => ({
        label: one.label,
        stroke: themeColor(kColors[i % kColors.length] ?? ''),
        width: 1.5,
        value: (_: uPlot, v: number | null) => metric(v) || '–',
      })),
    ],
  };
}

// A batch where a series has no value is `undefined` (the line passes over); a value that is not finite is
// null (a gap).
const toData = (panel: Panel): uPlot.AlignedData =>
  uPlot.join(panel.series.map((one) => [one.x, one.y] as uPlot.AlignedData));

// What the chart shows, for those who cannot see it.
export function summary(panel: Panel): string {
  const parts = panel.series.map((one) => {
    const last = one.x.length - 1;
    return `${one.label} ${metric(one.y[last] ?? 'NaN')} at batch ${one.x[last]}`;
  });
  return `Chart of ${panel.name}: ${parts.join('; ')}`;
}

export function MetricChart({ panel }: { panel: Panel }) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const shape = panel.series.map((one) => one.label).join('\n');
  const latest = useRef(panel);
  latest.current = panel;

  useEffect(() => {
    const element = host.current;
    if (!element) return undefined;
    const draw = (): void => {
      plot.current?.destroy();
      const width = Math.max(200, element.clientWidth);
      plot.current = new uPlot(options(latest.current, width), toData(latest.current), element);
    };
    draw();
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    const resize = new ResizeObserver(() => {
      const width = Math.max(200, element.clientWidth);
      if (plot.current && plot.current.width !== width) plot.current.setSize({ width, height: kHeight });
    });
    resize.observe(element);
    return () => {
      dark.removeEventListener('change', draw);
      resize.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [shape]);

  useEffect(() => plot.current?.setData(toData(panel)), [panel]);

  return (
    <figure class="chart" aria-label={summary(panel)} data-panel={panel.name}>
      <figcaption>{panel.name}</figcaption>
      <div ref={host} aria-hidden="true" />
    </figure>
  );
}
