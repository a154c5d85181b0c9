// The menu "More actions" in the head of a page. It is hidden while one of its dialogs is open, and closes with it.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useClosing } from '../closing';
import { Icon } from './Icon';

export function ActionMenu({ children }: { children: ComponentChildren }) {
  const host = useRef<HTMLDivElement>(null);
  useClosing(host);
  useEffect(() => {
    const close = (): void => {
      const menu = host.current?.querySelector('details');
      if (!menu) return;
      menu.open = false;
      menu.querySelector('summary')?.focus();
    };
    // The event of a dialog does not bubble.
    host.current?.addEventListener('close', close, true);
  }, []);
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
