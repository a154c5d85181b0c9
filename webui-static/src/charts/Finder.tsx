// The field that finds metrics. While it has the focus, the metrics are listed below it by prefix, to be chosen.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { Icon } from '../components/Icon';
import { SearchField } from '../components/SearchField';
import { counted } from '../format';
import { sectionsOf, type Section } from './facts';
import { matching, titleOf, type Panel } from './series';

interface Props {
  panels: readonly Panel[];
  shown: readonly Panel[];
}

// Shows the list while the focus is within the element. Escape and a click elsewhere hide it.
function useOpen() {
  const host = useRef<HTMLDivElement>(null);
  const open = useSignal(false);
  useEffect(() => {
    const close = (event: Event): void => {
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : !host.current?.contains(event.target as Node)) open.value = false;
    };
    document.addEventListener('pointerdown', close);
    document.addEventListener('focusin', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('pointerdown', close);
      document.removeEventListener('focusin', close);
      document.removeEventListener('keydown', close);
    };
  }, []);
  return { host, open };
}

function Choice({ section, shown, open, toggle }: { section: Section; shown: readonly Panel[]; open: boolean; toggle: (names: readonly string[], on: boolean) => void }) {
  const own = section.panels.map((panel) => (
    <label class="check" key={panel.name} title={titleOf(panel)}>
      <input type="checkbox" checked={shown.includes(panel)} onChange={(event) => toggle([panel.name], event.currentTarget.checked)} />
      <span class="finder-name">{titleOf(panel)}</span>
    </label>
  ));
  if (section.key === '') return <>{own}</>;
  const count = section.panels.filter((panel) => shown.includes(panel)).length;
  return (
    <details class="finder-section" open={open}>
      <summary>
        {section.title} <span class="quiet">{count > 0 ? `${count} of ${section.panels.length}` : section.panels.length}</span>
      </summary>
      <button type="button" class="plain" onClick={() => toggle(section.panels.map(({ name }) => name), count < section.panels.length)}>
        {count < section.panels.length ? 'Show all' : 'Hide all'}
      </button>
      {own}
    </details>
  );
}

export function Finder({ panels, shown }: Props) {
  const { query, setQuery } = useQuery();
  const { host, open } = useOpen();
  const toggle = (names: readonly string[], on: boolean): void => {
    const kept = shown.map(({ name }) => name).filter((name) => !names.includes(name));
    const next = on ? [...kept, ...names] : kept;
    setQuery({ charts: next.length === 0 ? ',' : next.join(','), find: '' });
  };
  const listed = query.find ? matching(panels, query.find) : panels;
  return (
    <div class="finder" ref={host} onFocusIn={() => (open.value = true)}>
      <SearchField label="Find metrics" placeholder={`${shown.length}/${counted(panels.length, 'metric')}`} value={query.find ?? ''} say={(find) => setQuery({ find })} />
      <Icon name="down" />
      {open.value && (
        <div class="tool-body finder-list" role="group" aria-label="Metrics shown">
          {sectionsOf(listed).map((section) => (
            <Choice key={section.key} section={section} shown={shown} open={query.find !== undefined && query.find !== ''} toggle={toggle} />
          ))}
          {listed.length === 0 && <span class="quiet">No metric is called {query.find}.</span>}
          {query.charts && (
            <button type="button" class="plain" onClick={() => setQuery({ charts: '', find: '' })}>
              Default metrics
            </button>
          )}
        </div>
      )}
    </div>
  );
}
