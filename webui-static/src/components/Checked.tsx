// Validates a text at the master while it is edited, and shows the result.
import { useSignal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { ApiError } from '../api';
import { counted } from '../format';
import { toError } from '../work';
import { ErrorNote } from './notes';

// Milliseconds without input before a text is validated.
const REST_MS = 250;

export interface CheckResult {
  summary: string; // summary of a valid text
  warnings: string[];
}
export interface Checked {
  text: string; // the validated text
  error?: ApiError;
  result?: CheckResult;
}

// The result of `ask` for the text, requested when typing pauses; undefined until
// the result for this text arrives.
export function useCheck(text: string, ask: (text: string) => Promise<CheckResult>): Checked | undefined {
  const checked = useSignal<Checked | undefined>(undefined);
  const newest = useRef(text);
  newest.current = text;
  useEffect(() => {
    const timer = window.setTimeout(async () => {
      const answer = await ask(text).then(
        (result): Checked => ({ text, result }),
        (cause): Checked => ({ text, error: toError(cause) }),
      );
      if (newest.current === text) checked.value = answer;
    }, REST_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return checked.value?.text === text ? checked.value : undefined;
}

export function CheckNote({ checked }: { checked: Checked | undefined }) {
  const count = checked?.error?.problems.length ?? 0;
  const said = !checked
    ? 'Checking…'
    : count > 0
      ? counted(count, 'problem')
      : checked.result
        ? `Valid: ${checked.result.summary}`
        : 'Refused';
  return (
    <>
      <p role="status" class={`check-result ${!checked ? 'state-idle' : checked.result ? 'state-good' : 'state-bad'}`}>
        {said}
      </p>
      {count === 0 && <ErrorNote error={checked?.error} />}
      {checked?.result?.warnings.map((text) => (
        <p class="note note-wait" key={text}>
          {text}
        </p>
      ))}
    </>
  );
}
