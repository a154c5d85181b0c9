// Keeps a growing log scrolled to its end until the reader scrolls up. Shared by the logs of tasks and of the master.
import type { Signal } from '@preact/signals';

// Distance from the end, in pixels, at which a reader counts as being there.
const kSlack = 8;

export function scrollToEnd(element: HTMLElement): void {
  element.scrollTop = element.scrollHeight;
}

// Follows the end of `content` inside the scrolled `element` while `follow` holds. Scrolling up clears `follow`;
// scrolling down to the end calls `atEnd`. Returns the function that stops it.
export function followEnd(
  element: HTMLElement,
  content: HTMLElement,
  follow: Signal<boolean>,
  atEnd: () => void,
): () => void {
  let before = element.scrollTop;
  // A scroll event arrives after the lines that were added since: only a move upwards is the reader's.
  const onScroll = (): void => {
    const up = element.scrollTop < before;
    before = element.scrollTop;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - kSlack) atEnd();
    else if (up) follow.value = false;
  };
  // The height also changes when the browser lays out a block for the first time, not only when lines arrive.
  const grown = new ResizeObserver(() => follow.value && scrollToEnd(element));
  grown.observe(content);
  element.addEventListener('scroll', onScroll);
  return () => {
    grown.disconnect();
    element.removeEventListener('scroll', onScroll);
  };
}
