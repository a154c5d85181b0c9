// The key of the drawn trials, or of their groups: two lines, which a button extends.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import { hovered } from '../workbench/selection';
import { counted, metric, digits, sharedStart } from '../format';
import { deviationText, placesOf, type Spread } from '../workbench/groups';
import { idBeside } from './ends';
import type { Curve } from './Metrics';
import type { Panel } from './series';

const bottom = (element: Element | null): number => (element instanceof HTMLElement ? element.offsetTop + element.offsetHeight : 0);

// More entries do not fit into the two lines of a wide window.
const MOST_CLOSED = 60;

// Entries that do not fit are hidden until a button shows them.
function Lines({ label, entries, note, isShort = false }: { label: string; entries: readonly ComponentChildren[]; note?: string; isShort?: boolean }) {
  const all = useSignal(false);
  const hides = useSignal(false);
  const host = useRef<HTMLUListElement>(null);
  useLayoutEffect(() => {
    const list = host.current;
    if (!list) return undefined;
    const measure = (): void => void (hides.value = all.value || entries.length > MOST_CLOSED || bottom(list.lastElementChild) > bottom(list) + 2);
    const observer = new ResizeObserver(measure);
    observer.observe(list);
    measure();
    return () => observer.disconnect();
  }, [entries.length, all.value]);
  return (
    <div class={`curve-key ${all.value ? 'all' : ''} ${isShort ? 'short' : ''}`}>
      <ul class="plain-list legend" aria-label={label} ref={host}>
        {all.value ? entries : entries.slice(0, MOST_CLOSED)}
      </ul>
      {note && <span class="quiet key-note">{note}</span>}
      {hides.value && (
        <button type="button" class="plain" aria-expanded={all.value} onClick={() => (all.value = !all.value)}>
          {all.value ? 'Fewer' : `All ${entries.length}`}
        </button>
      )}
    </div>
  );
}

// A mean with the decimal places of its deviation.
function spreadText({ mean, deviation }: Spread): string {
  if (deviation === 0) return digits(mean);
  const places = placesOf(deviation);
  return `${places === undefined ? metric(mean) : mean.toFixed(places)} ± ${deviationText(deviation)}`;
}

// Characters of a key that fits into the two lines beside a table, and those that an entry takes besides its text.
const KEY_CHARACTERS = 185;
const ENTRY_CHARACTERS = 5;

// The first word of a name.
const familyOf = (name: string): string => /^\S*/.exec(name)?.[0] ?? '';

// The texts of a key beside a table: the ids, as in the charts, with what the names differ in if that fits into two lines.
// Names with the same first word differ in what follows what these have in common.
export function shortNames(curves: readonly Pick<Curve, 'name' | 'tag'>[]): string[] {
  const all = curves.map(({ name }) => name);
  const start = sharedStart(all);
  const families = new Map<string, string[]>();
  for (const name of all) families.set(familyOf(name), [...(families.get(familyOf(name)) ?? []), name]);
  const starts = new Map([...families].map(([family, names]) => [family, sharedStart(names) || start]));
  const texts = curves.map(({ name, tag = '' }) => (idBeside(name, tag) === '' ? tag : `${tag} ${name.slice((starts.get(familyOf(name)) ?? '').length)}`));
  const fits = texts.reduce((sum, { length }) => sum + length + ENTRY_CHARACTERS, 0) <= KEY_CHARACTERS;
  return fits ? texts : curves.map(({ name, tag }) => tag ?? name);
}

interface TrialKeyProps {
  curves: readonly Curve[];
  panels: readonly Panel[];
  beside?: boolean; // a table has the names
  narrow: boolean; // names of trials that say no more than their ids are left out
  notes?: string;
}

// Trials without a curve have no entry.
export function TrialKey({ curves, panels, beside = false, narrow, notes = '' }: TrialKeyProps) {
  const having = new Set(panels.flatMap(({ series }) => series.map(({ trial }) => trial)));
  const known = having.size > 0 ? curves.filter(({ id }) => having.has(id)) : curves;
  const isShort = beside || (narrow && known.every(({ name, tag }) => tag !== undefined && idBeside(name, tag) === ''));
  const short = isShort ? shortNames(known) : [];
  return (
    <Lines
      label="Trials shown"
      note={notes}
      isShort={narrow && isShort}
      entries={known.map(({ id, name, tag, color }, at) => (
        <li key={id} onPointerEnter={() => (hovered.value = id)} onPointerLeave={() => (hovered.value = undefined)}>
          <Swatch color={color} />{' '}
          <a href={paths.trial(id)} title={name}>
            {short[at] ?? <Name text={name} />}
          </a>
          {!isShort && <span class="quiet"> {idBeside(name, tag)}</span>}
        </li>
      ))}
    />
  );
}

export interface GroupKeyProps {
  names: readonly string[];
  colors: readonly string[]; // by place, like the others
  best: readonly (Spread | undefined)[]; // values of the searcher metric
  metricName: string;
  few: boolean; // their runs are drawn instead of bands
}

// Whether the band around a mean ends at the least or largest value of the runs somewhere.
const isAsymmetric = ({ y, low = [], high = [] }: Panel['series'][number]): boolean =>
  y.some((mean, at) => {
    const [below, above] = [(mean ?? 0) - (low[at] ?? NaN), (high[at] ?? NaN) - (mean ?? 0)];
    return Math.abs(above - below) > 0.01 * Math.max(above, below);
  });

// The styles of the lines of groups: "thick: mean · thin: single runs · dashed: not of all runs".
export function groupNote(panels: readonly Panel[], few: boolean): string {
  const isDashed = panels.some(({ series }) => series.some(({ isPartial }) => isPartial));
  const isCut = panels.some(({ series }) => series.some(isAsymmetric));
  const band = `mean ± standard deviation${isCut ? ', within the range of the runs' : ''}`;
  return [few ? 'thick: mean · thin: single runs' : band, isDashed ? 'dashed: not of all runs' : ''].filter(Boolean).join(' · ');
}

// Groups; with their numbers of runs and the means of their best values unless the table is `beside`.
export function GroupKey({ names, colors, best, metricName, few, beside, panels }: GroupKeyProps & { beside: boolean; panels: readonly Panel[] }) {
  const note = groupNote(panels, few);
  return (
    <Lines
      label="Groups shown"
      note={few && !beside ? `${note} · ±: standard deviation` : note}
      entries={names.map((name, at) => {
        const own = best[at];
        return (
          <li key={name}>
            <Swatch color={colors[at] ?? ''} /> {name}
            {own && !beside && (
              <span class="quiet" title={`Mean and standard deviation of the best ${metricName} of each run`}>
                {' '}
                {counted(own.count, 'run')} · mean best {metricName} {spreadText(own)}
              </span>
            )}
          </li>
        );
      })}
    />
  );
}
