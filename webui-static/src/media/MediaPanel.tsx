// The panel "Media": runs as rows, names as columns, and one step for all of them. Contents are loaded for the cells
// in sight, first those of the current step.
import { useSignal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import { useQuery } from '../address';
import { media, type Media } from '../calls/media';
import type { Curve } from '../charts/Metrics';
import { Empty } from '../components/Empty';
import { Loaded } from '../components/Loaded';
import { Swatch } from '../components/Swatch';
import { useLive } from '../live';
import { Contents } from './contents';
import { MediaCell } from './MediaCell';
import { arranged, lastAtMost, type Steps } from './steps';

const RELOAD_GAP_MS = 2000;

export interface Props {
  curves: readonly Curve[]; // of the drawn runs
}

// The trials whose rows are in sight.
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

// Entries around the current step, the nearest first.
function around(steps: Steps, trials: readonly number[], step: number): Media[] {
  const found: { one: Media; distance: number }[] = [];
  for (const trial of trials)
    for (const name of steps.names) for (const one of steps.all(trial, name)) found.push({ one, distance: Math.abs(one.step - step) });
  return found.sort((a, b) => a.distance - b.distance).map(({ one }) => one);
}

function StepSlider({ steps, at, move, keep }: { steps: readonly number[]; at: number; move: (at: number) => void; keep: () => void }) {
  return (
    <label class="media-step">
      Step
      <input
        type="range"
        min={0}
        max={steps.length - 1}
        value={at}
        aria-valuetext={`step ${steps[at]}`}
        onInput={(event) => move(Number(event.currentTarget.value))}
        onChange={keep}
      />
      <output>{steps[at]?.toLocaleString()}</output>
    </label>
  );
}

function MediaTable({ steps, curves }: { steps: Steps; curves: readonly Curve[] }) {
  const { query, setQuery } = useQuery();
  const last = steps.steps.length - 1;
  const step = (position: number): number => steps.steps[position] ?? 0;
  // Unset: the newest step, also when newer ones arrive.
  const chosen = useSignal<number | undefined>(query.step === undefined ? undefined : Number(query.step));
  const position = chosen.value === undefined ? last : Math.max(0, lastAtMost(steps.steps.length, step, chosen.value));
  const current = step(position);
  const drawn = useSignal(0);
  const contents = useMemo(() => new Contents(() => drawn.value++), []);
  useEffect(() => () => contents.close(), []);
  void drawn.value;
  const [seen, observe] = useSight();
  const rows = curves.filter(({ id }) => steps.names.some((name) => steps.all(id, name).length > 0));
  const width = rows.length > 30 ? 64 : rows.length > 8 ? 120 : 240; // many runs: more of them in sight
  const visible = rows.map(({ id }) => id).filter((id) => seen.has(id));
  const shown = visible.flatMap((id) => steps.names.flatMap((name) => steps.at(id, name, current) ?? []));
  useEffect(() => {
    // Sorting all entries for each position of the slider would cost frames.
    const timer = setTimeout(() => contents.want(shown, around(steps, visible, current)), 60);
    return () => clearTimeout(timer);
  }, [steps, current, visible.join()]);
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
      <StepSlider steps={steps.steps} at={position} move={move} keep={keep} />
      <div class="table-frame" role="region" aria-label="Media by run and name" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Run</th>
              {steps.names.map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ id, name: run, color }) => (
              <tr key={id} data-trial={id} ref={observe}>
                <th scope="row">
                  {color !== '' && <Swatch color={color} />} {run || `trial ${id}`}
                </th>
                {steps.names.map((name) => {
                  const one = seen.has(id) ? steps.at(id, name, current) : undefined;
                  return (
                    <td key={name}>
                      {one && <MediaCell key={one.kind} one={one} contents={contents} width={width} />}
                      {one?.caption && <p class="quiet">{one.caption}</p>}
                      {one && one.step !== current && <p class="quiet">step {one.step.toLocaleString()}</p>}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
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
          <Empty icon="image" title="No media">
            The drawn runs have reported no images, histograms, texts, tables or files. A trial reports them with
            context.report_image and the like.
          </Empty>
        ) : (
          <MediaTable steps={steps} curves={curves} />
        )
      }
    </Loaded>
  );
}
