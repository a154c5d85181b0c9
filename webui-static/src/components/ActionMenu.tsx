// The menu "More actions" in the head of a page.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useClosing } from '../closing';
import { Icon } from './Icon';

export function ActionMenu({ children }: { children: ComponentChildren }) {
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  return (
    <div ref={host}>
      <details class="tool menu">
        <summary aria-label="More actions">
          <Icon name="more" />
        </summary>
        <div class="tool-body">{children}</div>
      </details>
    </div>
  );
}
