// Menus: `details` elements of the class "tool" that close by themselves.
import { useEffect } from 'preact/hooks';

// Closes the open menu on Escape, on a click elsewhere; one menu is open at a time.
export function useClosing(host: { current: HTMLElement | null }): void {
  useEffect(() => {
    const close = (event: Event): void => {
      if (event instanceof KeyboardEvent && (event.key !== 'Escape' || document.querySelector('dialog[open]'))) return;
      const inside = event.type === 'click' ? (event.target as HTMLElement).closest?.('details.tool') : null;
      for (const tool of host.current?.querySelectorAll<HTMLDetailsElement>('details.tool[open]') ?? []) {
        if (tool === inside) continue;
        const held = tool.contains(document.activeElement);
        tool.open = false;
        if (held && event instanceof KeyboardEvent) tool.querySelector('summary')?.focus();
      }
    };
    document.addEventListener('click', close);
    document.addEventListener('keydown', close);
    return () => {
      document.removeEventListener('click', close);
      document.removeEventListener('keydown', close);
    };
  }, []);
}

