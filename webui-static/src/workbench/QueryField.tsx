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

export function QueryField(props: Props) {
  const { label, value, known } = props;
  const field = useRef<HTMLInputElement>(null);
  const timer = useRef<number>();
  const latest = useRef(props);
  latest.current = props;
  const typed = useSignal<string | undefined>(undefined); // a text that cannot be read
  const completion = useSignal<Completion>(NONE);
  const at = useSignal(-1);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (!field.current || document.activeElement === field.current) return;
    field.current.value = value;
    typed.value = undefined;
  }, [value]);

  const commit = (): void => {
    clearTimeout(timer.current);
    const text = field.current?.value ?? '';
    typed.value = mistakeOf(text, latest.current.known) === undefined ? undefined : text;
    if (typed.value !== undefined) return;
    const query = print(parse(text, latest.current.known));
    if (query !== latest.current.value) latest.current.say(query);
  };
  const offer = (): void => {
    const element = field.current;
    if (!element) return;
    completion.value = complete(element.value, element.selectionStart ?? element.value.length, known, props.valuesOf);
    at.value = -1;
  };
  const onInput = (): void => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(commit, REST_MS);
    offer();
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
    onInput();
  };
  const options = completion.value.options.slice(0, MAX_OPTIONS);
  const close = (): void => {
    completion.value = NONE;
    at.value = -1;
  };
  const onKey = (event: KeyboardEvent): void => {
    const chosen = options[at.value];
    if (event.key === 'Enter') {
      if (chosen) accept(chosen);
      else {
        commit();
        close();
      }
    } else if (event.key === 'Escape' && options.length > 0) close();
    else if (event.key === 'Tab' && chosen) accept(chosen);
    else if (event.key === 'ArrowDown' && options.length === 0) offer();
    else if (event.key === 'ArrowDown') at.value = Math.min(options.length - 1, at.value + 1);
    else if (event.key === 'ArrowUp' && options.length > 0) at.value = Math.max(-1, at.value - 1);
    else return;
    event.preventDefault();
  };
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
        aria-activedescendant={at.value >= 0 ? `query-option-${at.value}` : undefined}
        aria-invalid={mistake !== undefined}
        aria-describedby={mistake ? 'query-mistake' : undefined}
        placeholder="Filter: text, or lr < 1e-3 and state = completed"
        autoComplete="off"
        spellcheck={false}
        defaultValue={value}
        onInput={onInput}
        onChange={commit}
        onBlur={() => (commit(), close())}
        onKeyDown={onKey}
      />
      {open && (
        <ul id="query-options" role="listbox" aria-label="Completions">
          {options.map((option, index) => (
            <li
              key={option}
              id={`query-option-${index}`}
              role="option"
              aria-selected={index === at.value}
              onPointerDown={(event) => (event.preventDefault(), accept(option))}
            >
              {option}
            </li>
          ))}
        </ul>
      )}
      {mistake && (
        <p id="query-mistake" class="query-mistake" role="status">
          {mistake}
        </p>
      )}
    </div>
  );
}
