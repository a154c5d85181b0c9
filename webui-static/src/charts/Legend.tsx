// The key of the drawn trials, or of their groups: two lines, which a button extends.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import { hovered } from '../workbench/selection';
import { counted, metric, digits } from '../format';
import { deviationText, placesOf, type Spread } from '../workbench/groups';
import { idBeside } from './ends';
import type { Curve } from './Metrics';
import type { Panel } from './series';

const bottom = (element: Element | null): number => (element instanceof HTMLElement ? element.offsetTop + element.offsetHeight : 0);

// More entries do not fit into the two lines of a wide window.
const MOST_CLOSED = 60;

// Entries that do not fit are hidden until a button shows them.
function Lines({ label, entries, note }: { label: string; entries: readonly ComponentChildren[]; note?: string }) {
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
    <div class={`curve-key ${all.value ? 'all' : ''}`}>
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

// Trials without a curve have no entry. `beside`: the table has their names, so that the ids are enough, as in the charts.
export function TrialKey({ curves, panels, beside = false }: { curves: readonly Curve[]; panels: readonly Panel[]; beside?: boolean }) {
  const having = new Set(panels.flatMap(({ series }) => series.map(({ trial }) => trial)));
  const known = having.size > 0 ? curves.filter(({ id }) => having.has(id)) : curves;
  return (
    <Lines
      label="Trials shown"
      entries={known.map(({ id, name, tag, color }) => (
        <li key={id} onPointerEnter={() => (hovered.value = id)} onPointerLeave={() => (hovered.value = undefined)}>
          <Swatch color={color} />{' '}
          <a href={paths.trial(id)} title={name}>
            {beside && tag ? tag : <Name text={name} />}
          </a>
          {!beside && <span class="quiet"> {idBeside(name, tag)}</span>}
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

// Groups; with their numbers of runs and the means of their best values unless the table is `beside`.
export function GroupKey({ names, colors, best, metricName, few, beside }: GroupKeyProps & { beside: boolean }) {
  const note = few ? 'thick: mean · thin: runs' : 'mean ± standard deviation · dashed: not of all runs';
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
