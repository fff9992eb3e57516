import { chunklists, fetchOk, framesOf, timescaleOf } from './llhls-recording.ts';
import { readNumbers, type PictureNumber } from '../media/numbered-files.ts';
import { until } from '../time/until.ts';

/** What came of one part of LL-HLS. */
interface Part {
  readonly bytes: Buffer;
  readonly init: string;
  /** How many discontinuities came before it. */
  readonly discontinuity: number;
  /** When it was there, in milliseconds since the epoch. */
  readonly at: number;
}

/** A picture that was shown: what it says, when it is to be shown, in seconds, and when its part was there. */
export interface ShownPicture extends PictureNumber, Pick<Part, 'discontinuity' | 'at'> {
  readonly pts: number;
}

const AGAIN_MS = 50;

/** A player of one track of a stream, by parts of LL-HLS, which keeps everything and never begins anew. */
export class PartViewer {
  /** Answers that were not what a player hopes for. */
  readonly failures: string[] = [];
  readonly #chunklist: string;
  readonly #parts = new Map<string, Part>();
  readonly #inits = new Map<string, Buffer>();
  #closed = false;

  private constructor(chunklist: string) {
    this.#chunklist = chunklist;
  }

  /**
   * @param master URL of a master playlist
   * @param track its id there: the first one of video is 0
   */
  static async start(master: string, track = 0): Promise<PartViewer> {
    const chunklist = await until('the track is listed', async () =>
      (await chunklists(master).catch(() => undefined))?.get(track),
    );
    const viewer = new PartViewer(chunklist);
    void viewer.#run();
    return viewer;
  }

  /** How many discontinuities came so far before what is shown. */
  get discontinuities(): number {
    return this.#last?.discontinuity ?? 0;
  }

  /** When the newest part was there, in milliseconds since the epoch. */
  get newestAt(): number {
    return this.#last?.at ?? 0;
  }

  get parts(): number {
    return this.#parts.size;
  }

  /** Whether a part has a text, such as that of an event. */
  has(text: string): boolean {
    return [...this.#parts.values()].some(({ bytes }) => bytes.includes('emsg') && bytes.includes(text));
  }

  close(): void {
    this.#closed = true;
  }

  /** Everything that was played, in order: an MP4 of what lies between two discontinuities. */
  files(): Buffer[] {
    return this.#runs().map((run) => this.#fileOf(run));
  }

  /** Everything that was played, decoded, in order. */
  async pictures(): Promise<ShownPicture[]> {
    const shown: ShownPicture[] = [];
    for (const run of this.#runs()) shown.push(...(await this.#decode(run)));
    return shown;
  }

  #runs(): Part[][] {
    const runs: Part[][] = [];
    for (const part of this.#parts.values()) {
      const before = runs.at(-1)?.[0];
      if (before?.init === part.init && before.discontinuity === part.discontinuity) runs.at(-1)?.push(part);
      else runs.push([part]);
    }
    return runs;
  }

  #fileOf(run: readonly Part[]): Buffer {
    const init = this.#inits.get(run[0]?.init ?? '') as Buffer;
    return Buffer.concat([init, ...run.map(({ bytes }) => bytes)]);
  }

  async #decode(run: readonly Part[]): Promise<ShownPicture[]> {
    const timescale = timescaleOf(this.#inits.get(run[0]?.init ?? '') as Buffer);
    const frames = run
      .flatMap(({ bytes, at, discontinuity }) =>
        Array.from(framesOf(bytes, timescale), ({ pts }) => ({ pts, at, discontinuity })),
      )
      .sort((one, other) => one.pts - other.pts);
    const numbers = await readNumbers(this.#fileOf(run));
    if (numbers.length !== frames.length) throw new Error(`${numbers.length} pictures of ${frames.length} frames`);
    return frames.map((frame, i) => ({ ...frame, ...(numbers[i] as PictureNumber) }));
  }

  get #last(): Part | undefined {
    return [...this.#parts.values()].at(-1);
  }

  async #run(): Promise<void> {
    let next = '';
    while (!this.#closed) {
      try {
        const text = (await fetchOk(`${this.#chunklist}${next}`)).toString();
        next = await this.#follow(text);
      } catch (error) {
        if (this.#closed) return;
        this.failures.push((error as Error).message);
        next = '';
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** Fetches the parts that are new. @returns the query for what comes next */
  async #follow(text: string): Promise<string> {
    let msn = 0;
    let part = 0;
    let discontinuity = 0;
    let init = '';
    for (const line of text.split('\n')) {
      const [, name, value = ''] = /^#([^:]+):?(.*)$/.exec(line) ?? [];
      const uri = new URL(/URI="([^"]+)"/.exec(value)?.[1] ?? '', this.#chunklist).href;
      if (name === 'EXT-X-MEDIA-SEQUENCE') msn = Number(value);
      else if (name === 'EXT-X-DISCONTINUITY-SEQUENCE') discontinuity = Number(value);
      else if (name === 'EXT-X-DISCONTINUITY') discontinuity++;
      else if (name === 'EXT-X-MAP') init = uri;
      else if (name === 'EXT-X-PART') {
        part++;
        await this.#fetch(uri, { init, discontinuity });
      } else if (name === undefined && line !== '') {
        msn++;
        part = 0;
      }
    }
    const mark = this.#chunklist.includes('?') ? '&' : '?';
    return `${mark}_HLS_msn=${msn}&_HLS_part=${part}`;
  }

  async #fetch(uri: string, about: Pick<Part, 'init' | 'discontinuity'>): Promise<void> {
    if (this.#parts.has(uri)) return;
    if (!this.#inits.has(about.init)) this.#inits.set(about.init, await fetchOk(about.init));
    const bytes = await fetchOk(uri);
    this.#parts.set(uri, { ...about, bytes, at: Date.now() });
  }
}
