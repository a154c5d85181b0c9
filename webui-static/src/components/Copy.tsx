// Text with a button that copies it.
import type { ComponentChildren } from 'preact';
import { Icon } from './Icon';

const copy = (text: string): void => void navigator.clipboard?.writeText(text);

// A short text, such as an id, with a button beside it. `what` names the text.
export const CopyText = ({ text, what }: { text: string; what: string }) => (
  <span class="copy-text">
    <code>{text}</code>
    <button type="button" class="plain" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={() => copy(text)}>
      <Icon name="copy" />
    </button>
  </span>
);

export const Copy = ({ text, children }: { text: string; children?: ComponentChildren }) => (
  <div class="copy">
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <button type="button" onClick={() => copy(text)}>
      Copy
    </button>
    {children}
  </div>
);
