// The title of a chart: its name, the key of its line styles with last and best values, notes, and tools.
import { useMemo } from 'preact/hooks';
import { useQuery } from '../address';
import { counted, digits, metric } from '../format';
import type { ChartProps } from './plot';
import type { Focus } from './focus';
import { areEqual, coinciding, isBanded, isBelow, isOfOne, judged, keyedGroups, lastOf, placeOfBest, styleOf, type Style } from './facts';
import { PanelTools } from './PanelTools';
import { onPhone } from '../phone';
import { onAxis, titleOf, type Panel, type Series } from './series';

// With more series the text alternative has only their number.
const NAMED_SERIES = 6;

// Text alternative of the chart for screen readers.
export function summary(panel: Panel): string {
  if (panel.series.length > NAMED_SERIES) return `Chart of ${titleOf(panel)}: ${panel.series.length} series`;
  const parts = panel.series.map(({ label, y, steps }) => {
    const last = y.length - 1;
    return `${label} ${metric(y[last] ?? 'NaN')} at batch ${steps[last]}`;
  });
  return `Chart of ${titleOf(panel)}: ${parts.join('; ')}`;
}

// A stroke in the style of a group of metrics; thinner ones would be pale.
const LEAST_WIDTH = 1.5;
const Stroke = ({ dash, opacity, width, color }: Style & { color: string | undefined }) => (
  <svg class="stroke" viewBox="0 0 18 8" aria-hidden="true" style={{ color }}>
    <line x1="0" x2="18" y1="4" y2="4" stroke-width={Math.max(LEAST_WIDTH, width)} stroke-opacity={opacity} stroke-dasharray={dash?.join(' ')} />
  </svg>
);

// How the page draws the curves, and a button that draws those of all charts otherwise. A phone has the choice in its
// menu only.
export function Drawn({ text, title, other, offer }: { text: string; title: string; other: Record<string, string>; offer: string }) {
  const { setQuery } = useQuery();
  if (onPhone()) return <span>{text}</span>;
  return (
    <button type="button" class="chip" title={`${title}. Click to ${offer}.`} aria-label={`${text}: ${offer}`} onClick={() => setQuery(other)}>
      {text} <span aria-hidden="true">×</span>
    </button>
  );
}

// The first values that are out of sight.
function Beyond({ range, beyond, hidden = [], tags }: Focus & { tags: readonly string[] }) {
  const text = metric(Number(beyond.toPrecision(3)));
  const place = beyond > range[1] ? 'above the plot, up to' : 'below the plot, down to';
  const names = hidden.map((at) => tags[at] ?? '');
  const without = names.length === 0 ? '' : `, without ${names.length === 1 ? names[0] : counted(names.length, 'group')}`;
  return <Drawn text={`cropped${without}`} title={`The first values are ${place} ${text}, so that the last ones, which differ less, fill up to a third of it${names.length > 0 ? `; out of sight: ${names.join(' · ')}` : ''}`} other={{ y: 'all' }} offer="show all values" />;
}

const Smoothed = ({ weight, isOne }: { weight: number; isOne: boolean }) => (
  <Drawn
    text="smoothed"
    title={`Smoothed by ${weight.toFixed(2)}, because ${isOne ? 'the values visibly change from point to point' : 'the curves change about as much from point to point as the runs differ'}; raw values are pale`}
    other={{ smooth: '0' }}
    offer="show raw values"
  />
);

const Logarithmic = ({ isCut }: { isCut: boolean }) => (
  <Drawn text={isCut ? 'log, cropped' : 'log'} title="The axis is logarithmic, because the learning rates are wide apart; what decays to zero leaves it below" other={{ log: '0' }} offer="show a linear axis" />
);

interface Props extends ChartProps {
  focus: Focus | undefined;
  rates: [number, number] | undefined; // the range of a logarithmic axis without a choice of the user
  steady: number; // the smoothing of curves that are noisy; 0 without
  canvas: () => HTMLCanvasElement | undefined;
}

// The ids of few curves, "14, 15, 16", or else their number.
const MAX_NAMED = 3;
function coincidingText(same: readonly Series[], having: number, noun: string, tags: readonly string[]): string {
  const named = same.map(({ place }) => tags[place] ?? '');
  if (same.length > MAX_NAMED || named.includes('')) return `${same.length === having ? 'all' : same.length} ${noun}`;
  return named.sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).join(named.some((name) => name.includes(',')) ? ' · ' : ', ');
}

// "best 0.83867 at 5,600"; "the best" for the last value.
function bestText(panel: Panel, { axis }: ChartProps['look'], smallerIsBetter: boolean, shown: (value: number) => string): string | undefined {
  const own = judged(panel);
  const at = own && placeOfBest(own, smallerIsBetter);
  if (!own || at === undefined) return undefined;
  return at === own.y.length - 1 ? 'the best' : `best ${shown(own.y[at] ?? NaN)} at ${onAxis(axis, own.x[at] ?? 0)}`;
}

export function ChartTitle({ panel, look, trials, text, smallerIsBetter, focus, rates, steady, canvas, colors = [], tags = [] }: Props) {
  const { series } = panel;
  const groups = keyedGroups(panel);
  // The values of one trial are in the title, those of several at the pointer.
  const isOne = isOfOne(panel);
  const shown = (value: number): string => (text ? text(panel.name, value) : digits(value));
  const best = isOne && smallerIsBetter !== undefined ? bestText(panel, look, smallerIsBetter, shown) : undefined;
  // The last value is measured, the end of a smoothed curve is not.
  const raw = steady > 0 || (look.smoothing ?? 0) > 0 ? ' unsmoothed' : '';
  // "last" precedes the values of all groups.
  const isFirst = (group: string | undefined): boolean => group === undefined || groups.length === 1;
  const valuesOf = (group: string | undefined): string => {
    const own = isOne ? series.find((one) => group === undefined || one.group === group) : undefined;
    const last = own && lastOf(own);
    return [last === undefined ? '' : isFirst(group) ? `last${raw} ${shown(last)}` : shown(last), own === judged(panel) ? best : undefined].filter(Boolean).join(' · ');
  };
  const having = new Set(series.map(({ trial }) => trial)).size;
  const logFrom = rates?.[0] ?? (look.log ? Number.MIN_VALUE : undefined);
  const same = useMemo(() => (isOne ? [] : coinciding(panel, logFrom)), [panel, logFrom]);
  const missing = trials === undefined ? 0 : trials - having;
  return (
    <figcaption>
      <span class="panel-name" title={panel.name}>
        {titleOf(panel)}
      </span>
      <span class="panel-facts">
        {/* First, so that the tools of the chart never cover them. */}
        {focus && <Beyond {...focus} tags={tags} />}
        {rates && <Logarithmic isCut={isBelow(panel, rates)} />}
        {steady > 0 && <Smoothed weight={steady} isOne={isOne} />}
        {groups.length === 0 && isOne && <span>{valuesOf(undefined)}</span>}
        {isOne && groups.length > 1 && <span>last{raw}:</span>}
        {groups
          .map((group) => (
            <span key={group}>
              {groups.length > 1 && <Stroke {...styleOf(panel, group)} color={isOne ? colors[series[0]?.place ?? 0] : undefined} />} {group} {valuesOf(group)}
            </span>
          ))}
        {missing > 0 && (
          <span title={`${missing === 1 ? 'One shown run has' : `${missing} shown runs have`} no curve here`}>
            {having} of {counted(trials ?? 0, 'run')}
          </span>
        )}
        {same.length > 0 && (
          <span title={`Drawn over each other, as far as they reach:\n${same.map((set) => set.map(({ label }) => label).join('\n')).join('\n\n')}`}>
            {same.map((set) => coincidingText(set, having, isBanded(panel) ? 'means' : 'curves', tags)).join(' and ')} {same.every(areEqual) ? 'coincide' : 'nearly coincide'}
          </span>
        )}
      </span>
      <PanelTools panel={panel} axis={look.axis} canvas={canvas} />
    </figcaption>
  );
}
