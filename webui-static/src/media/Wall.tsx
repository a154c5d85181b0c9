// The images of one name of many runs at one step, on one canvas: a step is drawn without a change of the page's
// elements. The names of the runs stand below their images.
import { grouped } from '../format';
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import { paths } from '../address';
import type { Curve } from '../charts/Metrics';
import { themeColor, useColors } from '../colors';
import { Swatch } from '../components/Swatch';
import { useWidth } from '../components/width';
import { hovered } from '../workbench/selection';
import type { Contents } from './contents';
import type { Steps } from './steps';
import { cornerOf, distinct, LABEL, tiled, within, type Tiling } from './tiles';

const OLDER = 0.45; // opacity of an image of an earlier step
const CHROME = 336; // pixels of a window outside of the wall

interface Props {
  name: string;
  rows: readonly Curve[];
  steps: Steps;
  current: number; // step
  contents: Contents;
  arrivals: number; // of contents: the wall is drawn again when some have come
  walls: number; // that share the height of the window
}

interface Drawn {
  tiling: Tiling;
  images: (string | undefined)[]; // digest and age of each tile
}

// Draws the tiles that differ from those on the canvas. A tile without a decoded image keeps its former one.
function draw(canvas: HTMLCanvasElement, tiling: Tiling, { name, rows, steps, current, contents }: Props, before: Drawn | undefined): Drawn {
  const ink = canvas.getContext('2d');
  const kept = before?.tiling === tiling ? before.images : [];
  if (!ink) return { tiling, images: [] };
  ink.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  ink.font = "11px 'Geist Variable', system-ui, sans-serif";
  ink.textBaseline = 'bottom';
  const images = rows.map(({ id }, at) => {
    const one = steps.at(id, name, current);
    const image = one && contents.image(one.digest);
    const { x, y } = cornerOf(tiling, at);
    if (one && !image) return kept[at];
    const key = one && (one.step === current ? one.digest : `${one.digest} ${current}`);
    if (key === kept[at]) return key;
    ink.clearRect(x, y, tiling.side, tiling.side);
    if (!one || !image) return undefined;
    const place = within(tiling, at, image.width, image.height);
    ink.imageSmoothingEnabled = place.width < image.width;
    const isOlder = one.step !== current;
    ink.globalAlpha = isOlder ? OLDER : 1;
    ink.drawImage(image, place.x, place.y, place.width, place.height);
    ink.globalAlpha = 1;
    if (isOlder) label(ink, `from step ${grouped(one.step)}`, x, y + tiling.side);
    return key;
  });
  return { tiling, images };
}

// The step of an older image, in the lower left corner of its tile.
function label(ink: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  ink.fillStyle = themeColor('--card');
  ink.fillRect(x, y - 14, ink.measureText(text).width + 6, 14);
  ink.fillStyle = themeColor('--text');
  ink.fillText(text, x + 3, y - 1);
}

export function Wall(props: Props) {
  const { name, rows, steps, current, walls } = props;
  const [host, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Drawn>();
  const theme = useColors();
  const room = Math.max(240, (innerHeight - CHROME) / walls);
  const tiling = useMemo(() => tiled(rows.length, width, room), [rows, width, room, theme, devicePixelRatio]);
  props.contents.limitSide(2 ** Math.ceil(Math.log2(tiling.side * devicePixelRatio)));
  useLayoutEffect(() => {
    const target = canvas.current;
    if (!target) return;
    if (drawn.current?.tiling !== tiling) {
      // Setting the size clears the canvas.
      target.width = width * devicePixelRatio;
      target.height = tiling.height * devicePixelRatio;
    }
    drawn.current = draw(target, tiling, props, drawn.current);
  });
  const latest = useRef(props);
  latest.current = props;
  const point = (event: PointerEvent, id: number): void => {
    hovered.value = id;
    const { steps: all, current: now } = latest.current;
    const one = all.at(id, name, now);
    const run = rows.find((row) => row.id === id)?.name;
    const words = [run || `trial ${id}`, one && `step ${grouped(one.step)}`, one?.caption];
    (event.currentTarget as HTMLElement).title = words.filter((word) => word).join(' · ');
  };
  const short = distinct(rows.map(({ id, name: run }) => run || `trial ${id}`));
  // The same elements for each step, so that a step does not compare them.
  const names = useMemo(
    () => (
      <ul
        class="wall-names"
        style={{ gridTemplateColumns: `repeat(${tiling.columns}, ${tiling.side}px)`, gridAutoRows: `${tiling.side + LABEL}px` }}
      >
        {rows.map(({ id, color }, at) => (
          <li key={id} data-trial={id} onPointerEnter={(event) => point(event, id)} onPointerLeave={() => (hovered.value = undefined)}>
            <a href={paths.trial(id)} style={{ paddingTop: `${tiling.side}px` }}>
              {color !== '' && <Swatch color={color} />} {short[at]}
            </a>
          </li>
        ))}
      </ul>
    ),
    [rows, tiling],
  );
  const count = rows.filter(({ id }) => steps.at(id, name, current) !== undefined).length;
  return (
    <figure class="wall" data-name={name}>
      <figcaption>{name}</figcaption>
      <div class="wall-tiles" ref={host}>
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${name} of ${count} runs at step ${current}`}
          style={{ width: `${width}px`, height: `${tiling.height}px` }}
        />
        {names}
      </div>
    </figure>
  );
}
