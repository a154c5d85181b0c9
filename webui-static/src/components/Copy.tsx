// Text with a button that copies it.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Icon } from './Icon';

const SAID_MS = 2000;

// Copies a text, and returns whether it could. Browsers have a clipboard on encrypted pages and on pages of the same
// machine only; on other pages the text is selected in a field and copied from there. A field outside an open dialog
// cannot be selected.
async function copied(text: string): Promise<boolean> {
  const written = await navigator.clipboard?.writeText(text).then(
    () => true,
    () => false,
  );
  if (written) return true;
  const before = document.activeElement as HTMLElement | null;
  const field = document.createElement('textarea');
  field.className = 'hidden';
  field.value = text;
  (before?.closest('dialog') ?? document.body).append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  before?.focus();
  return done;
}

// `what` names the text for screen readers. The button says whether the text was copied.
export function CopyButton({ text, what, icon = false, plain = false }: { text: string; what: string; icon?: boolean; plain?: boolean }) {
  const said = useSignal<string>('');
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (): Promise<void> => {
    said.value = (await copied(text)) ? 'Copied' : 'Select the text to copy it';
    clearTimeout(timer.current);
    timer.current = setTimeout(() => (said.value = ''), SAID_MS);
  };
  return (
    <button type="button" class={icon || plain ? 'plain' : ''} aria-label={said.value || `Copy ${what}`} title={`Copy ${what}`} onClick={() => void copy()}>
      {icon && said.value === '' ? <Icon name="copy" /> : <span aria-live="polite">{said.value || 'Copy'}</span>}
    </button>
  );
}

// A short text, such as an id, with a button beside it. `what` names the text.
export const CopyText = ({ text, what }: { text: string; what: string }) => (
  <span class="copy-text">
    <code>{text}</code>
    <CopyButton text={text} what={what} icon />
  </span>
);

export const Copy = ({ text, children }: { text: string; children?: ComponentChildren }) => (
  <div class="copy">
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <CopyButton text={text} what="this text" />
    {children}
  </div>
);
