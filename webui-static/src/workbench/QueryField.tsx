// The query of a run table: a text field with completion. A text takes effect when typing pauses and it can be read.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { REST_MS } from '../components/SearchField';
import { complete, parse, print, QueryError, type Completion, type Known } from './query';

const MAX_OPTIONS = 8;
const NONE: Completion = { from: 0, to: 0, options: [] };

interface Props {
  label: string;
  value: string; // the query of the address
  known: readonly Known[];
  valuesOf: (column: string) => string[];
  say: (query: string) => void; // called with full names of columns
}

// The mistake of a text; undefined if it can be read.
function mistakeOf(text: string, known: readonly Known[]): string | undefined {
  try {
    parse(text, known);
    return undefined;
  } catch (cause) {
    return cause instanceof QueryError ? cause.message : String(cause);
  }
}

// The completions of the text at the cursor, and the one that keys have reached.
function useCompletion(field: { current: HTMLInputElement | null }, { known, valuesOf }: Props, changed: () => void) {
  const completion = useSignal<Completion>(NONE);
  const at = useSignal(-1);
  const options = completion.value.options.slice(0, MAX_OPTIONS);
  const offer = (): void => {
    const element = field.current;
    if (!element) return;
    completion.value = complete(element.value, element.selectionStart ?? element.value.length, known, valuesOf);
    at.value = -1;
  };
  const close = (): void => {
    completion.value = NONE;
    at.value = -1;
  };
  const accept = (option: string): void => {
    const element = field.current;
    if (!element) return;
    const { from, to } = completion.value;
    const rest = element.value.slice(to);
    element.value = `${element.value.slice(0, from)}${option}${option.endsWith('(') ? '' : ' '}${rest.trimStart()}`;
    const cursor = element.value.length - rest.trimStart().length;
    element.setSelectionRange(cursor, cursor);
    element.focus();
    changed();
    offer();
  };
  const move = (by: 1 | -1): void => void (at.value = Math.max(-1, Math.min(options.length - 1, at.value + by)));
  return { options, at: at.value, offer, close, accept, move };
}

type Completions = ReturnType<typeof useCompletion>;

// Handles a key; false if it is not one of the field's.
function press(key: string, { options, at, offer, close, accept, move }: Completions, commit: () => void): boolean {
  const chosen = options[at];
  if ((key === 'Enter' || key === 'Tab') && chosen) accept(chosen);
  else if (key === 'Enter') {
    commit();
    close();
  } else if (key === 'Escape' && options.length > 0) close();
  else if (key === 'ArrowDown' && options.length === 0) offer();
  else if (key === 'ArrowDown') move(1);
  else if (key === 'ArrowUp' && options.length > 0) move(-1);
  else return false;
  return true;
}

const OptionList = ({ options, at, accept }: Completions) => (
  <ul id="query-options" role="listbox" aria-label="Completions">
    {options.map((option, index) => (
      <li
        key={option}
        id={`query-option-${index}`}
        role="option"
        aria-selected={index === at}
        onPointerDown={(event) => (event.preventDefault(), accept(option))}
      >
        {option}
      </li>
    ))}
  </ul>
);

export function QueryField(props: Props) {
  const { label, value, known } = props;
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<number>();
  const latest = useRef(props);
  latest.current = props;
  const typed = useSignal<string | undefined>(undefined); // a text that cannot be read
  const isTyped = useRef(false); // the text has not taken effect
  const said = useRef<string>();
  useEffect(() => () => clearTimeout(timer.current), []);
  // A value from outside is shown also in a field with the focus: the palette, for example, gives the focus back.
  useEffect(() => {
    const isOwn = value === said.current;
    said.current = undefined;
    if (!field.current || isTyped.current || (isOwn && document.activeElement === field.current)) return;
    field.current.value = value;
    typed.value = undefined;
  }, [value]);
  const commit = (): void => {
    clearTimeout(timer.current);
    if (!isTyped.current) return;
    const text = field.current?.value ?? '';
    typed.value = mistakeOf(text, latest.current.known) === undefined ? undefined : text;
    if (typed.value !== undefined) return;
    isTyped.current = false;
    const query = print(parse(text, latest.current.known));
    if (query !== latest.current.value) latest.current.say((said.current = query));
  };
  const commitLater = (): void => {
    isTyped.current = true;
    clearTimeout(timer.current);
    timer.current = window.setTimeout(commit, REST_MS);
  };
  const completions = useCompletion(field, props, commitLater);
  const { options, at, offer, close } = completions;
  const open = options.length > 0;
  // A mistake is shown when typing has paused and nothing completes the text.
  const mistake = open ? undefined : mistakeOf(typed.value ?? value, known);
  return (
    <div class="query">
      <input
        ref={field}
        type="search"
        class={`search ${mistake ? 'query-bad' : ''}`}
        role="combobox"
        aria-label={label}
        aria-expanded={open}
        aria-controls="query-options"
        aria-autocomplete="list"
        aria-activedescendant={at >= 0 ? `query-option-${at}` : undefined}
        aria-invalid={mistake !== undefined}
        aria-describedby={mistake ? 'query-mistake' : undefined}
        placeholder="Filter: text, or state = running"
        autoComplete="off"
        spellcheck={false}
        defaultValue={value}
        onInput={() => (commitLater(), offer())}
        onChange={commit}
        onBlur={() => (commit(), (isTyped.current = false), close())}
        onKeyDown={(event) => press(event.key, completions, commit) && event.preventDefault()}
      />
      {open && <OptionList {...completions} />}
      {mistake && (
        <p id="query-mistake" class="query-mistake" role="status">
          {mistake}
        </p>
      )}
    </div>
  );
}
