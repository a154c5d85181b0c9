// Configuration editor: a text field with line numbers above a layer with colors; mistakes are marked at their lines and listed below.
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { onPhone } from '../phone';
import { lineOf } from '../yaml';
import { YamlText } from './Yaml';
import type { Problem } from '../wire';

interface Props {
  label: string;
  text: string;
  start?: number; // the place that has the focus first; undefined: the editor does not take the focus
  problems: readonly Problem[];
  change: (text: string) => void;
  submit: () => void; // Ctrl+Enter
}

// Longer texts have no colors: every part is an element of the page.
const MAX_COLORED = 30_000;

// Touch screens would cover the page with their keyboard.
const KEYBOARD = '(hover: hover)';

// The mistakes; a click on the line of one goes there.
const Problems = ({ placed, go }: { placed: readonly Problem[]; go: (line: number) => void }) => (
  <ul class="plain-list problems" id="problems" aria-label="Problems">
    {placed.map((one, at) => (
      <li key={at}>
        {one.line > 0 && (
          <button type="button" class="link" onClick={() => go(one.line)}>
            line {one.line}
          </button>
        )}{' '}
        {one.path !== '' && <code>{one.path}</code>} {one.message}
      </li>
    ))}
  </ul>
);

interface LinesProps {
  host: RefObject<HTMLPreElement>;
  of: 'numbers' | 'marks';
  count: number;
  bad: ReadonlySet<number>;
}

// A layer with an element for each line: its number, or the mark of a mistake.
const Lines = ({ host, of, count, bad }: LinesProps) => (
  <pre ref={host} class={`editor-${of}`} aria-hidden="true">
    {Array.from({ length: count }, (_, at) => (
      <span key={at} class={!bad.has(at + 1) ? '' : of === 'numbers' ? 'editor-bad' : 'editor-mark'}>{of === 'numbers' ? `${at + 1}\n` : '\n'}</span>
    ))}
  </pre>
);

export function ConfigEditor({ label, text, start, problems, change, submit }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const marks = useRef<HTMLPreElement>(null);
  const colors = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (start === undefined || !matchMedia(KEYBOARD).matches) return;
    field.current?.focus({ preventScroll: true });
    field.current?.setSelectionRange(start, start);
  }, []);
  // A phone has no room for long lines: they wrap, without numbers, and the editor is as high as its text.
  const wraps = onPhone();
  useLayoutEffect(() => {
    if (!wraps || !field.current) return;
    field.current.style.height = 'auto';
    field.current.style.height = `${field.current.scrollHeight}px`;
  }, [text, wraps]);
  // A mistake without a line is in a merged configuration or a missing field.
  const placed = problems
    .map((one) => ({ ...one, line: one.line > 0 ? one.line : lineOf(text, one.path) }))
    .sort((a, b) => a.line - b.line);
  const bad = new Set(placed.map((one) => one.line));
  const lines = text.split('\n').length;
  const isColored = text.length <= MAX_COLORED;
  const go = (line: number): void => {
    const element = field.current;
    if (!element || line < 1) return;
    const all = text.split('\n');
    const start = all.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    element.focus();
    element.setSelectionRange(start, start + (all[line - 1]?.length ?? 0));
    element.scrollLeft = 0;
    element.scrollTop = (line - 4) * (element.scrollHeight / lines);
  };
  const follow = ({ scrollTop, scrollLeft }: Element): void => {
    for (const beside of [numbers.current, marks.current, colors.current]) if (beside) beside.scrollTop = scrollTop;
    if (colors.current) colors.current.scrollLeft = scrollLeft;
  };
  return (
    <>
      <div class={wraps ? 'editor wraps' : 'editor'}>
        {!wraps && <Lines host={numbers} of="numbers" count={lines} bad={bad} />}
        <div class="editor-text">
          {!wraps && <Lines host={marks} of="marks" count={lines} bad={bad} />}
          {isColored && (
            <pre ref={colors} class="editor-colors" aria-hidden="true">
              <YamlText text={text} />
            </pre>
          )}
          <textarea
            class={isColored ? 'colored' : ''}
            ref={field}
            aria-label={label}
            aria-invalid={problems.length > 0}
            aria-describedby={problems.length > 0 ? 'problems' : undefined}
            spellcheck={false}
            wrap={wraps ? 'soft' : 'off'}
            rows={Math.min(32, Math.max(8, lines + 1))}
            value={text}
            onInput={(e) => change(e.currentTarget.value)}
            onScroll={(e) => follow(e.currentTarget)}
            onKeyDown={(e) => e.key === 'Enter' && (e.ctrlKey || e.metaKey) && submit()}
          />
        </div>
      </div>
      {problems.length > 0 && <Problems placed={placed} go={go} />}
    </>
  );
}
