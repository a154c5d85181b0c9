// Buttons of a chart: full screen, image, values.
import type { RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import { themeColor } from '../colors';
import { Icon, type IconName } from '../components/Icon';
import { csv, save } from '../csv';
import { titleOf, type Panel } from './series';

interface Props {
  panel: Panel;
  axis: string;
  canvas: () => HTMLCanvasElement | undefined;
}

const csvOf = ({ series }: Panel, axis: string): string =>
  csv([
    ['series', 'batches', ...(axis === 'batches' ? [] : [axis]), 'value'],
    ...series.flatMap(({ label, x, y, steps }) =>
      steps.map((step, at) => [label, step, ...(axis === 'batches' ? [] : [x[at] ?? '']), y[at] ?? '']),
    ),
  ]);

// The chart as an image on the color of its card.
function image(canvas: HTMLCanvasElement): Promise<Blob | null> {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const ink = copy.getContext('2d');
  if (!ink) return Promise.resolve(null);
  ink.fillStyle = themeColor('--card');
  ink.fillRect(0, 0, copy.width, copy.height);
  ink.drawImage(canvas, 0, 0);
  return new Promise((resolve) => copy.toBlob(resolve, 'image/png'));
}

export function PanelTools({ panel, axis, canvas }: Props) {
  const host: RefObject<HTMLSpanElement> = useRef(null);
  const figure = (): HTMLElement | null | undefined => host.current?.closest('figure');
  const tool = (icon: IconName, label: string, work: () => void) => (
    <button type="button" class="plain" aria-label={`${label} of ${titleOf(panel)}`} title={label} onClick={work}>
      <Icon name={icon} />
    </button>
  );
  const full = (): void => void (document.fullscreenElement ? document.exitFullscreen() : figure()?.requestFullscreen());
  const saveImage = async (): Promise<void> => {
    const own = canvas();
    const blob = own && (await image(own));
    if (blob) save(`${panel.name}.png`, blob);
  };
  return (
    <span class="panel-tools" ref={host}>
      {tool('full', 'Full screen', full)}
      {tool('image', 'Image', () => void saveImage())}
      {tool('download', 'Values', () => save(`${panel.name}.csv`, csvOf(panel, axis)))}
    </span>
  );
}
