// Text with a button that copies it.
import type { ComponentChildren } from 'preact';

export const Copy = ({ text, children }: { text: string; children?: ComponentChildren }) => (
  <div class="copy">
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <button type="button" onClick={() => void navigator.clipboard?.writeText(text)}>
      Copy
    </button>
    {children}
  </div>
);
