// The panel "Media": runs as rows and names as columns, or images of many runs as a wall, at one step for all of them.
// Contents are loaded for what is in sight, first those of the current step.
import { grouped } from '../format';
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { paths, useQuery } from '../address';
import { media, type Media } from '../calls/media';
import { idBeside } from '../charts/ends';
import type { Curve } from '../charts/Metrics';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Name } from '../components/Name';
import { Swatch } from '../components/Swatch';
import { useWidth } from '../components/width';
import { useLive } from '../live';
import { onPhone } from '../phone';
import { Contents } from './contents';
import { MediaCell, Reserved } from './MediaCell';
import { arranged, lastAtMost, type Steps } from './steps';
import { Wall } from './Wall';

const RELOAD_GAP_MS = 2000;
const WANT_GAP_MS = 60;
const MAX_NEAR = 20_000; // entries around the current step to load
const CARD_WIDTH = 240; // pixels of an image, at most
const RUN_WIDTH = 202; // pixels of the column of runs, and the least ones of another column, with their padding
const CELL_WIDTH = 186;
const MAX_TABLE = 8; // runs; images of more are shown as a wall, on a phone those of any

export interface Props {
  curves: readonly Curve[]; // of the drawn runs
}

// The trials with rows in sight.
function useSight(): [ReadonlySet<number>, (element: HTMLElement | null) => void] {
  const seen = useSignal<ReadonlySet<number>>(new Set());
  const observer = useRef<IntersectionObserver>();
  observer.current ??= new IntersectionObserver(
    (changes) => {
      const next = new Set(seen.value);
      for (const { target, isIntersecting } of changes) {
        const id = Number((target as HTMLElement).dataset.trial);
        if (isIntersecting) next.add(id);
        else next.delete(id);
      }
      seen.value = next;
    },
    { rootMargin: '200px' },
  );
  useEffect(() => () => observer.current?.disconnect(), []);
  // The same function in each drawing, so that a row is observed once.
  const observe = useRef((element: HTMLElement | null) => {
    if (element) observer.current?.observe(element);
  });
  return [seen.value, observe.current];
}

function StepSlider({ steps, at, move, keep }: { steps: readonly number[]; at: number; move: (at: number) => void; keep: () => void }) {
  if (steps.length === 1) return <span class="media-step">Step {grouped(steps[0] ?? 0)}</span>;
  return (
    <label class="media-step">
      Step
      <input
        type="range"
        aria-label="Step"
        min={0}
        max={steps.length - 1}
        value={at}
        aria-valuetext={`step ${steps[at]}`}
        onInput={(event) => move(Number(event.currentTarget.value))}
        onChange={keep}
      />
      <output>{grouped(steps[at] ?? 0)}</output>
      <span class="quiet">
        {grouped(at + 1)} of {grouped(steps.length)}
      </span>
    </label>
  );
}

interface ViewProps {
  steps: Steps;
  curves: readonly Curve[];
}

// An entry with its caption. One of an earlier step is pale and has its step.
function Entry({ one, current, contents, width }: { one: Media; current: number; contents: Contents; width: number }) {
  const isOlder = one.step !== current;
  const words = [`${isOlder ? 'from step' : 'step'} ${grouped(one.step)}`, one.caption].filter((word) => word !== '');
  return (
    <div class={isOlder ? 'media-older' : ''}>
      <MediaCell key={one.kind} one={one} contents={contents} width={width} />
      <p class="quiet">{words.join(' · ')}</p>
    </div>
  );
}

interface TableProps {
  rows: readonly Curve[];
  names: readonly string[];
  steps: Steps;
  current: number; // step
  contents: Contents;
  seen: ReadonlySet<number>;
  observe: (element: HTMLElement | null) => void;
}

// The entry of a run, or its place while the run is not in sight; undefined if it has none.
function cellOf({ steps, current, contents, seen }: TableProps, id: number, name: string, width: number): ComponentChildren {
  const one = steps.at(id, name, current);
  if (!one) return undefined;
  if (!seen.has(id)) return one.kind === 'KIND_IMAGE' ? <Reserved name={name} width={width} /> : '';
  return <Entry one={one} current={current} contents={contents} width={width} />;
}

const RunOf = ({ id, name, tag, color }: Curve) => (
  <span class="media-run">
    {color !== '' && <Swatch color={color} />}
    <a href={paths.trial(id)} title={name} aria-label={name || undefined}>
      <Name text={name || `trial ${id}`} />
    </a>
    <span class="quiet id">{idBeside(name, tag)}</span>
  </span>
);

const styleOf = ({ color }: Curve) => (color === '' ? undefined : { '--run': color });

// The media of a run below its name, where a table would be wider than the page.
const MediaCards = (props: TableProps & { width: number }) => (
  <ul class="plain-list media-cards">
    {props.rows.map((run) => (
      <li key={run.id} data-trial={run.id} ref={props.observe} style={styleOf(run)}>
        <p class="media-head">
          <RunOf {...run} />
        </p>
        {props.names.map((name) => {
          const cell = cellOf(props, run.id, name, props.width);
          return (
            cell !== undefined && (
              <section key={name} aria-label={name}>
                <p class="quiet">{name}</p>
                {cell}
              </section>
            )
          );
        })}
      </li>
    ))}
  </ul>
);

function MediaTable(props: TableProps) {
  const { rows, names, observe } = props;
  const width = rows.length > 30 ? 64 : rows.length > MAX_TABLE ? 120 : CARD_WIDTH; // many runs: more of them in sight
  const [host, room] = useWidth<HTMLDivElement>();
  if (room < RUN_WIDTH + names.length * CELL_WIDTH)
    return (
      <div ref={host}>
        <MediaCards {...props} width={onPhone() ? CARD_WIDTH : CELL_WIDTH - 26} />
      </div>
    );
  return (
    <div ref={host}>
      <div class="table-frame" role="region" aria-label="Media by run and name" tabIndex={0}>
        <table class="media-table">
          <thead>
            <tr>
              <th scope="col">Run</th>
              {names.map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((run) => (
              <tr key={run.id} data-trial={run.id} ref={observe} style={styleOf(run)}>
                <th scope="row">
                  <RunOf {...run} />
                </th>
                {names.map((name) => (
                  <td key={name}>{cellOf(props, run.id, name, width) ?? <span class="quiet">–</span>}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

// The contents that a view has in memory. Drawn again when some have come.
function useContents(): Contents {
  const arrivals = useSignal(0);
  const contents = useMemo(() => new Contents(() => arrivals.value++), []);
  useEffect(() => () => contents.close(), []);
  void arrivals.value;
  return contents;
}

// Loads what is in sight and then what is near, at most every WANT_GAP_MS while the step moves.
function useWanted(contents: Contents, steps: Steps, current: number, visible: readonly number[], names: readonly string[]): void {
  const latest = useRef({ steps, current, visible, names });
  latest.current = { steps, current, visible, names };
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const want = (): void => {
    timer.current = undefined;
    const own = latest.current;
    const shown = own.visible.flatMap((id) => own.names.flatMap((name) => own.steps.at(id, name, own.current) ?? []));
    contents.want(shown, own.steps.around(new Set(own.visible), own.current, MAX_NEAR));
  };
  useEffect(() => {
    timer.current ??= setTimeout(want, WANT_GAP_MS);
  }, [steps, current, visible.join()]);
  useEffect(() => () => clearTimeout(timer.current), []);
}

function FormChoice({ isWall }: { isWall: boolean }) {
  const { setQuery } = useQuery();
  return (
    <div class="segments" role="group" aria-label="Form of media">
      <button type="button" aria-pressed={isWall} onClick={() => setQuery({ media: 'wall' })}>
        Wall
      </button>
      <button type="button" aria-pressed={!isWall} onClick={() => setQuery({ media: 'table' })}>
        Runs
      </button>
    </div>
  );
}

function MediaView({ steps, curves }: ViewProps) {
  const { query, setQuery } = useQuery();
  const last = steps.steps.length - 1;
  const step = (position: number): number => steps.steps[position] ?? 0;
  // Unset: the newest step, also when newer ones arrive.
  const chosen = useSignal<number | undefined>(query.step === undefined ? undefined : Number(query.step));
  const position = chosen.value === undefined ? last : Math.max(0, lastAtMost(steps.steps.length, step, chosen.value));
  const current = step(position);
  const contents = useContents();
  const [seen, observe] = useSight();
  const key = curves.map(({ id, name, color }) => `${id} ${color} ${name}`).join();
  const rows = useMemo(() => curves.filter(({ id }) => steps.names.some((name) => steps.all(id, name).length > 0)), [key, steps]);
  const isWall = steps.images.size > 0 && (query.media === 'wall' || (query.media !== 'table' && (rows.length > MAX_TABLE || onPhone())));
  const walls = isWall ? [...steps.images] : [];
  const names = steps.names.filter((name) => !walls.includes(name));
  const all = rows.map(({ id }) => id);
  useWanted(contents, steps, current, isWall ? all : all.filter((id) => seen.has(id)), steps.names);
  if (!isWall) contents.limitSide(Infinity);
  const move = (to: number): void => {
    const next = Math.max(0, Math.min(last, to));
    chosen.value = next === last ? undefined : step(next);
  };
  const keep = (): void => setQuery({ step: chosen.value === undefined ? '' : String(chosen.value) });
  const onKey = (event: KeyboardEvent): void => {
    const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (way === undefined || event.target instanceof HTMLInputElement) return;
    event.preventDefault();
    move(position + way);
    keep();
  };
  return (
    <section class="media" aria-label="Media" aria-busy={contents.busy()} onKeyDown={onKey}>
      <div class="media-bar">
        <StepSlider steps={steps.steps} at={position} move={move} keep={keep} />
        {steps.images.size > 0 && rows.length > 1 && <FormChoice isWall={isWall} />}
      </div>
      {walls.map((name) => (
        <Wall key={name} name={name} rows={rows} steps={steps} current={current} contents={contents} arrivals={contents.arrivals()} walls={walls.length} />
      ))}
      {names.length > 0 && <MediaTable {...{ names, steps, current, contents, seen, observe }} rows={rows.filter(({ id }) => names.some((name) => steps.all(id, name).length > 0))} />}
    </section>
  );
}

export function MediaPanel({ curves }: Props) {
  const trials = curves.map(({ id }) => id);
  const own = new Set(trials);
  const live = useLive(
    `media ${trials.join()}`,
    async (signal) => arranged(trials.length > 0 ? await media(trials, signal) : []),
    (change) => change === 'everything' || (change.kind === 'metrics' && own.has(change.trialId ?? 0)),
    RELOAD_GAP_MS,
  );
  return (
    <Loaded live={live}>
      {(steps) =>
        steps.names.length === 0 ? (
          <Empty icon="image" title="No media" command={'context.report_image("inputs", images);'}>
            The drawn runs have reported no images, histograms, texts, tables or files. A trial reports an image with:
          </Empty>
        ) : (
          <MediaView steps={steps} curves={curves} />
        )
      }
    </Loaded>
  );
}
