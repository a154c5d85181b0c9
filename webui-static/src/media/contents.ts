// Contents of media in memory: loaded in requests of many, those in sight first; decoded images are kept, too.
import { contents, type Media } from '../calls/media';
import { subscribe } from '../events';
import { ApiError } from '../http';
import { Refresher } from '../live';

const MAX_BYTES = 256 << 20; // of contents
const MAX_PIXELS = 48 << 20; // of decoded images: 4 bytes each
const AHEAD = 0.6; // part of MAX_PIXELS that is decoded before it is shown
const MAX_TOGETHER = 200; // entries of one request
const BYTES_TOGETHER = 4 << 20;

// Values up to a total weight; the least recently used go first.
export class Recent<T> {
  private readonly values = new Map<string, { value: T; weight: number }>();
  private total = 0;
  constructor(private readonly limit: number) {}
  get(key: string): T | undefined {
    const found = this.values.get(key);
    if (!found) return undefined;
    this.values.delete(key);
    this.values.set(key, found);
    return found.value;
  }
  has(key: string): boolean {
    return this.values.has(key);
  }
  set(key: string, value: T, weight: number): void {
    this.total += weight - (this.values.get(key)?.weight ?? 0);
    this.values.delete(key);
    this.values.set(key, { value, weight });
    for (const [oldest, { weight: freed }] of this.values) {
      if (this.total <= this.limit || oldest === key) break;
      this.values.delete(oldest);
      this.total -= freed;
    }
  }
  full(): boolean {
    return this.total > this.limit * 0.9;
  }
  // Number of values of average weight within a part of the limit. Infinite without values.
  room(part: number): number {
    return this.total === 0 ? Infinity : Math.floor((part * this.limit * this.values.size) / this.total);
  }
  clear(): void {
    this.values.clear();
    this.total = 0;
  }
}

// An image with at most `side` pixels on its longer side.
async function reduced(content: Uint8Array<ArrayBuffer>, side: number): Promise<ImageBitmap> {
  const image = await createImageBitmap(new Blob([content]));
  const part = side / Math.max(image.width, image.height);
  if (part >= 1) return image;
  const size = { resizeWidth: Math.max(1, Math.round(image.width * part)), resizeHeight: Math.max(1, Math.round(image.height * part)) };
  const small = await createImageBitmap(image, { ...size, resizeQuality: 'medium' });
  image.close();
  return small;
}

export class Contents {
  private readonly bytes = new Recent<Uint8Array<ArrayBuffer>>(MAX_BYTES);
  private readonly images = new Recent<ImageBitmap>(MAX_PIXELS);
  private readonly failed = new Map<string, string>();
  private readonly decoding = new Set<string>();
  private wanted: readonly Media[] = [];
  private later: readonly Media[] = [];
  private running = false;
  private closed = false;
  // One request at a time: wishes change while the slider moves.
  private readonly loader = new Refresher(() => this.run(), 0);
  private readonly unsubscribe = subscribe((change) => change === 'everything' && this.loader.request());
  private told = false;
  private count = 0; // of arrivals
  private side = Infinity;

  // `changed` is called, at most once a frame, when contents have come or could not be loaded.
  constructor(private readonly changed: () => void) {}

  // Contents are being loaded or decoded.
  busy = (): boolean => this.running || this.decoding.size > 0;

  // Differs after contents have come.
  arrivals = (): number => this.count;

  private arrived(): void {
    if (this.told) return;
    this.told = true;
    requestAnimationFrame(() => {
      this.told = false;
      this.count++;
      if (!this.closed) this.changed();
    });
  }

  of = (digest: string): Uint8Array<ArrayBuffer> | undefined => this.bytes.get(digest);
  // Why a content or image cannot be shown.
  error = (digest: string): string | undefined => this.failed.get(digest);
  // The decoded image, or nothing before it is ready.
  image(digest: string): ImageBitmap | undefined {
    const known = this.images.get(digest);
    if (!known) this.decode(digest);
    return known;
  }

  // Decoded images have at most this many pixels on their longer side: tiles of many runs need no more.
  limitSide(side: number): void {
    if (side === this.side) return;
    this.side = side;
    this.images.clear();
  }

  // Loads `now`, then `later` as far as memory allows. Replaces earlier wishes.
  want(now: readonly Media[], later: readonly Media[]): void {
    this.wanted = now;
    this.later = later;
    this.decodeAhead();
    this.loader.request();
  }

  // Decodes the nearest images again that were dropped, as far as memory allows.
  private decodeAhead(): void {
    const all = [...this.wanted, ...this.later];
    for (const { digest, kind } of all.slice(0, this.images.room(AHEAD)))
      if (kind === 'KIND_IMAGE' && !this.images.has(digest)) this.decode(digest);
  }
  close(): void {
    this.closed = true;
    this.unsubscribe();
    this.loader.close();
  }

  private isMissing = ({ digest, kind }: Media): boolean => kind !== 'KIND_FILE' && !this.bytes.has(digest) && !this.failed.has(digest);

  private next(): Media[] {
    const take = (from: readonly Media[]): Media[] => {
      const [batch, known] = [[] as Media[], new Set<string>()];
      let size = 0;
      for (const one of from) {
        if (!this.isMissing(one) || known.has(one.digest)) continue;
        size += one.size;
        if (batch.length > 0 && (size > BYTES_TOGETHER || batch.length >= MAX_TOGETHER)) break;
        known.add(one.digest);
        batch.push(one);
      }
      return batch;
    };
    const first = take(this.wanted);
    return first.length > 0 || this.bytes.full() ? first : take(this.later);
  }

  private async run(): Promise<void> {
    this.running = true;
    let answers = true;
    for (let batch = this.next(); batch.length > 0 && answers && !this.closed; batch = this.next()) {
      answers = await this.load(batch);
      this.arrived();
    }
    this.running = false;
    this.arrived();
  }

  // Loads the contents of entries. Those of a request that fails are requested one by one. Returns false if the master
  // does not answer.
  private async load(batch: readonly Media[]): Promise<boolean> {
    try {
      const found = await contents(batch);
      found.forEach((content, at) => {
        const digest = batch[at]?.digest;
        if (digest === undefined) return;
        this.bytes.set(digest, content, content.length);
        if (batch[at]?.kind === 'KIND_IMAGE') this.decode(digest);
      });
    } catch (cause) {
      if (cause instanceof ApiError && (cause.status === 0 || cause.status > 500)) return false;
      if (batch.length > 1) {
        for (const one of batch) if (this.closed || !(await this.load([one]))) return false;
      } else if (batch[0]) this.failed.set(batch[0].digest, cause instanceof Error ? cause.message : String(cause));
    }
    return true;
  }

  private decode(digest: string): void {
    const content = this.bytes.get(digest);
    if (!content || this.decoding.has(digest) || this.failed.has(digest)) return;
    this.decoding.add(digest);
    const { side } = this;
    reduced(content, side).then(
      (image) => {
        this.decoding.delete(digest);
        if (side !== this.side) return this.arrived(); // of another size: it is decoded again when it is shown
        this.images.set(digest, image, image.width * image.height);
        this.arrived();
      },
      () => {
        this.failed.set(digest, 'The image cannot be decoded.');
        this.decoding.delete(digest);
        this.arrived();
      },
    );
  }
}
