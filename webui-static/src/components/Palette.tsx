// Command palette (Ctrl K): pages, experiments by name, trials by number, actions of the current page.
import { Fragment } from 'preact';
import { signal, useSignal } from '@preact/signals';
import { useLocation } from 'preact-iso';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { paths } from '../address';
import { searchExperiments } from '../api';
import { modelsNamed } from '../calls/models';
import { counted, stateName } from '../format';
import { helpOpen } from '../keys';
import { answered, distinct, found, keyOf, numbered, type Entry } from '../palette';
import { theme } from '../settings';
import { print } from '../workbench/query';

export const paletteOpen = signal(false);

// Models and experiments offered, and milliseconds without input before they are asked for.
const MAX_MODELS = 3;
const MAX_EXPERIMENTS = 8;
const REST_MS = 150;

const PAGES: Entry[] = (
  [
    ['Dashboard', paths.home],
    ['Experiments', paths.experiments],
    ['Models', paths.models],
    ['Tasks', paths.tasks],
    ['Workspaces', paths.workspaces],
    ['Cluster: agents', paths.cluster],
    ['Cluster: queue', `${paths.cluster}?tab=queue`],
    ['Cluster: usage', `${paths.cluster}?tab=usage`],
    ['Users', paths.users],
    ['Quotas', paths.quotas],
    ['Webhooks', paths.webhooks],
    ['Settings', paths.settings],
  ] as const
).map(([title, to]) => ({ kind: 'Page', title, to }));

const ACTIONS: Entry[] = [
  { kind: 'Action', title: 'Light theme', run: () => (theme.value = 'light') },
  { kind: 'Action', title: 'Dark theme', run: () => (theme.value = 'dark') },
  { kind: 'Action', title: 'Theme of the system', run: () => (theme.value = 'system') },
  { kind: 'Action', title: 'Keyboard shortcuts', run: () => (helpOpen.value = true) },
];

// Links of the experiment or trial that the page shows.
function ofPage(path: string): Entry[] {
  const [, kind, id] = /^\/det\/(experiments|trials)\/(\d+)/.exec(path) ?? [];
  if (!kind || !id) return [];
  const one = kind === 'experiments' ? `experiment ${id}` : `trial ${id}`;
  const tabs = kind === 'experiments' ? ['Log', 'Checkpoints', 'Code', 'Configuration', 'Notes'] : ['Log', 'Checkpoints', 'Attempts', 'Profiler'];
  return [
    ...(kind === 'experiments' ? [{ kind: 'Action', title: `Fork ${one}`, to: paths.fork(Number(id)) }] : []),
    ...tabs.map((tab) => ({ kind: 'Action', title: `${tab} of ${one}`, to: `/det/${kind}/${id}?tab=${tab.toLowerCase()}` })),
  ];
}

function byNumber(text: string): Entry[] {
  const { experiment, trial } = numbered(text);
  return [
    ...(experiment ? [{ kind: 'Experiment', title: `Experiment ${experiment}`, to: paths.experiment(experiment) }] : []),
    ...(trial ? [{ kind: 'Trial', title: `Trial ${trial}`, to: paths.trial(trial) }] : []),
  ];
}

const modelsWith = async (text: string, signal: AbortSignal): Promise<Entry[]> =>
  text === '' ? [] : (await modelsNamed(text, MAX_MODELS, signal)).map(({ name }) => ({ kind: 'Model', title: name, to: paths.model(name) }));

async function experimentsWith(text: string, signal: AbortSignal): Promise<Entry[]> {
  const { experiments, pagination } = await searchExperiments({ text, sort: '' }, 0, MAX_EXPERIMENTS, signal);
  const entries = experiments.map(({ experiment: one }) => ({
    kind: 'Experiment',
    title: `${one.name || 'Experiment'}`,
    note: `${one.id} · ${stateName(one.state)}`,
    to: paths.experiment(one.id),
  }));
  if (pagination.total <= MAX_EXPERIMENTS || text === '') return entries;
  return [...entries, { kind: 'Experiment', title: `All ${counted(pagination.total, 'experiment')} with “${text}”`, to: `${paths.experiments}?q=${encodeURIComponent(print({ kind: 'text', text }))}` }];
}

// The entries that the master finds with a text.
function useFound(text: string): { entries: Entry[]; isPending: boolean } {
  const state = useSignal<{ text: string; entries: Entry[] } | undefined>(undefined);
  useEffect(() => {
    const abort = new AbortController();
    const timer = setTimeout(() => {
      // The palette works without these entries; the page shows a lost connection.
      const asked = [modelsWith, experimentsWith].map((ask) => ask(text.trim(), abort.signal).catch(() => []));
      void Promise.all(asked).then((all) => abort.signal.aborted || (state.value = { text, entries: all.flat() }));
    }, text === '' ? 0 : REST_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [text]);
  return { entries: state.value ? answered(text, state.value) : [], isPending: state.value?.text !== text };
}

// The place of the marked entry, the first one until another is marked, and the function that marks one. An answer may come
// just before Enter: an entry that is marked for a text stays marked.
function useMarked(text: string, all: readonly Entry[]): [number, (entry: Entry | undefined) => void] {
  const marked = useSignal('');
  const keyIn = (entry: Entry): string => `${text}\n${keyOf(entry)}`;
  const current = Math.max(0, all.findIndex((entry) => keyIn(entry) === marked.value));
  const mark = (entry: Entry | undefined): void => void (entry && (marked.value = keyIn(entry)));
  useEffect(() => {
    if (text !== '') mark(all[current]);
  });
  return [current, mark];
}

function Finder({ close, leave }: { close: () => void; leave: () => void }) {
  const { path, route } = useLocation();
  const text = useSignal('');
  const { entries: ofMaster, isPending } = useFound(text.value);
  const opensFirst = useRef(false); // once the answer arrives
  const list = useRef<HTMLUListElement>(null);
  const pages = found(text.value, PAGES);
  const actions: Entry[] = [...ACTIONS, { kind: 'Action', title: 'Sign out', run: leave }];
  const all = distinct([...byNumber(text.value), ...found(text.value, ofPage(path)), ...(text.value === '' ? [...ofMaster, ...pages] : [...pages, ...ofMaster]), ...found(text.value, actions)]);
  const [current, mark] = useMarked(text.value, all);
  const open = (entry: Entry | undefined): void => {
    if (!entry) return;
    close();
    if (entry.to) route(entry.to);
    entry.run?.();
  };
  useEffect(() => {
    if (!isPending && opensFirst.current) open(all[0]);
    if (!isPending) opensFirst.current = false;
  }, [isPending]);
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') mark(all[current + 1]);
    else if (event.key === 'ArrowUp') mark(all[current - 1]);
    else if (event.key === 'Enter') all.length > 0 ? open(all[current]) : (opensFirst.current = isPending);
    else return;
    event.preventDefault();
  };
  useEffect(() => list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }), [current]);
  return (
    <>
      <input
        type="text"
        role="combobox"
        aria-label="Search or jump to"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={all.length > 0 ? `palette-${current}` : undefined}
        placeholder="Name, number, page or action"
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => ((text.value = event.currentTarget.value), (opensFirst.current = false))}
        onKeyDown={onKey}
      />
      {all.length === 0 && <p class="quiet">{isPending ? 'Searching…' : `Nothing matches “${text.value}”.`}</p>}
      <ul id="palette-list" role="listbox" aria-label="Results" ref={list} hidden={all.length === 0}>
        {all.map((entry, index) => (
          <Fragment key={keyOf(entry)}>
            {entry.kind !== all[index - 1]?.kind && (
              <li role="presentation" class="head">
                {entry.kind}s
              </li>
            )}
            <li
              id={`palette-${index}`}
              role="option"
              aria-selected={index === current}
              onPointerMove={() => mark(entry)}
              onClick={() => open(entry)}
            >
              <span>{entry.title}</span>
              {entry.note && <span class="quiet">{entry.note}</span>}
            </li>
          </Fragment>
        ))}
      </ul>
      <p class="quiet by-mouse">
        <kbd>↑</kbd> <kbd>↓</kbd> to move, <kbd>Enter</kbd> to open, <kbd>Esc</kbd> to close
      </p>
    </>
  );
}

// Whether the dialog of the present use has been shown.
const shown = { current: false };

// For the life of the document: a page that replaces another one has its effects later, and a key must not be lost.
document.addEventListener('keydown', (event: KeyboardEvent): void => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== 'k') return;
  const dialog = document.querySelector<HTMLDialogElement>('dialog.palette');
  if (!dialog) return;
  event.preventDefault();
  // Closed by Escape, and its event `close` has not arrived.
  if (paletteOpen.value && shown.current && !dialog.open) dialog.showModal();
  else paletteOpen.value = !paletteOpen.value;
});

export function Palette({ leave }: { leave: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const open = paletteOpen.value;
  useLayoutEffect(() => {
    if (open && !dialog.current?.open) dialog.current?.showModal();
    if (!open) dialog.current?.close();
    shown.current = open;
  }, [open]);
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Command palette"
      // The event of a former use arrives late: it counts only while the palette is shown.
      onClose={() => shown.current && !dialog.current?.open && (paletteOpen.value = false)}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      {open && <Finder close={() => (paletteOpen.value = false)} leave={leave} />}
    </dialog>
  );
}
