import { BitstreamError } from '../../codecs/bits.ts';
import { NutError } from '../../containers/nut/error.ts';
import type { NutStream } from '../../containers/nut/format.ts';
import { NutReader, type NutFrame } from '../../containers/nut/reader.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import { Timeline } from '../../core/timeline.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import type { FaultLog } from '../../log/log.ts';
import { FfmpegChild } from '../../media-child/child.ts';
import { FileEvents } from './file-events.ts';
import { FileLane } from './file-lane.ts';
import type { ItemSource, ItemUnit, TrackWishes } from './item-source.ts';
import { KeySearch } from './key-search.ts';
import { playArguments, takenStreams, type TakenStream } from './media-command.ts';
import { MediaError } from './media-error.ts';
import type { MediaFiles } from './media-files.ts';
import { UnitQueue } from './unit-queue.ts';

/** Read-ahead of all tracks, and a limit for when one of them has nothing yet. */
const AHEAD_MS = 2000;
const AHEAD_AT_MOST_MS = 10_000;
const AHEAD_BYTES = 32 * 1024 * 1024;
/** A track with nothing within this much of the others comes later. */
const TRACKS_WITHIN_MS = 1000;
/** More consecutive unusable frames of a track are not a single damage. */
const MAX_UNUSABLE = 50;
/** ffmpeg counts as stuck when it puts out nothing for this long although it is read. */
const SILENCE_MS = 10_000;

export interface FileSourceOptions {
  readonly files: MediaFiles;
  readonly ffmpeg: string;
  readonly url: string;
  /** Milliseconds; reading begins with the last key frame before it. */
  readonly position: number;
  readonly wishes: TrackWishes;
  readonly forwardData: boolean;
  readonly faults: FaultLog;
  /** Called when the state has changed, or units arrived where there were none. */
  readonly onChange: () => void;
}

/** A media file that plays: its own ffmpeg reads it a little ahead. */
export class FileSource implements ItemSource {
  readonly queue = new UnitQueue();
  readonly isLive = false;
  readonly #options: FileSourceOptions;
  readonly #timeline = new Timeline({ timebase: VIDEO_TIMEBASE, bits: 62 }, false, null);
  readonly #reader = new NutReader({
    streams: (streams) => this.#open(streams),
    frame: (frame) => this.#frame(frame),
  });
  #taken: readonly TakenStream[] = [];
  #lanes: readonly (FileLane | FileEvents | undefined)[] = [];
  /** Consecutive unusable frames, by stream. */
  readonly #unusable = new Map<number, number>();
  #search: KeySearch | undefined;
  #child: FfmpegChild | undefined;
  #silence: Watchdog | undefined;
  #isRead = true;
  #state: ItemSource['state'] = 'opening';
  #failure: string | undefined;
  #closed = false;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    void this.#start();
  }

  get state(): ItemSource['state'] {
    return this.#state;
  }

  get failure(): string | undefined {
    return this.#failure;
  }

  /** Process id of its ffmpeg; undefined before it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  taken(): void {
    this.#balance();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#silence?.close();
    this.#child?.kill();
    this.queue.clear();
  }

  async #start(): Promise<void> {
    try {
      await this.#spawn();
    } catch (error) {
      this.#end(error instanceof MediaError ? error.message : `the file cannot be opened: ${(error as Error).message}`);
    }
  }

  /** @throws MediaError */
  async #spawn(): Promise<void> {
    const { files, ffmpeg, url, position, wishes, forwardData, faults } = this.#options;
    const { handle, info } = await files.open(url);
    try {
      if (this.#closed) return;
      const media = takenStreams(info, wishes.video, wishes.audio.length);
      if (media.length === 0) throw new MediaError('the file has no track that the channel plays');
      const data = forwardData ? info.data.map((stream) => ({ type: 'data' as const, stream })) : [];
      this.#taken = [...media, ...data];
      const hasVideo = media.some(({ type }) => type === 'video');
      this.#search = new KeySearch(this.queue, position, hasVideo);
      this.#silence = this.#watch();
      this.#child = new FfmpegChild({
        path: ffmpeg,
        args: playArguments(info.format, this.#taken, position),
        outputs: 1,
        input: handle.fd,
        faults,
        handler: {
          output: (_index, chunk) => this.#push(chunk),
          outputEnd: () => {},
          drain: () => {},
          gone: (reason, _killed, done) => this.#gone(done ? undefined : reason),
        },
      });
    } finally {
      // the child has its own descriptor
      await handle.close();
    }
  }

  #watch(): Watchdog {
    return new Watchdog(SILENCE_MS, () => this.#fail(`ffmpeg has put out nothing for ${SILENCE_MS} ms`));
  }

  #push(chunk: Buffer): void {
    if (this.#closed || this.#state === 'ended') return;
    this.#silence?.heard();
    const wasEmpty = this.queue.next === undefined;
    const before = this.#state;
    try {
      this.#reader.push(chunk);
    } catch (error) {
      if (!(error instanceof NutError)) throw error;
      return this.#fail(`what ffmpeg puts out is malformed: ${error.message}`);
    }
    this.#balance();
    if (this.#state === 'opening' && this.#isPlayable) this.#state = 'playing';
    if (wasEmpty || this.#state !== before) this.#options.onChange();
  }

  #open(streams: readonly NutStream[]): void {
    const { wishes, faults } = this.#options;
    const counts = { video: 0, audio: 0, data: 0 };
    this.#lanes = this.#taken.map((taken, index) => {
      const stream = streams[index];
      const place = counts[taken.type]++;
      if (stream === undefined) return undefined;
      try {
        const onUnit = (unit: ItemUnit): void => this.#search?.push(unit);
        if (taken.type === 'data') return new FileEvents({ place, stream, timeline: this.#timeline, onUnit });
        return new FileLane({ taken, place, wishes, stream, timeline: this.#timeline, onUnit });
      } catch (error) {
        if (!(error instanceof BitstreamError)) throw error;
        faults.count(`a ${taken.type} stream of the media file is left out: ${error.message}`);
        return undefined;
      }
    });
  }

  #frame(frame: NutFrame): void {
    const { stream } = frame;
    const fault = this.#lanes[stream]?.push(frame);
    if (fault === undefined) return void this.#unusable.set(stream, 0);
    this.#options.faults.count(`a frame of the media file is left out: ${fault}`);
    // a track that was never usable is dropped, and the others play
    const unusable = this.#unusable.get(stream);
    if (unusable === undefined) return;
    this.#unusable.set(stream, unusable + 1);
    if (unusable + 1 >= MAX_UNUSABLE) this.#fail(`the file is damaged: ${fault}`);
  }

  get #isPlayable(): boolean {
    const { queue } = this;
    if (this.#search?.found !== true || queue.next === undefined) return false;
    return queue.filled >= this.#mediaLanes || queue.span >= TRACKS_WITHIN_MS;
  }

  get #mediaLanes(): number {
    return this.#lanes.filter((lane) => lane instanceof FileLane).length;
  }

  #balance(): void {
    if (this.#state === 'ended' || this.#closed) return;
    const { queue } = this;
    const isAhead = queue.span >= AHEAD_MS && queue.filled >= this.#mediaLanes;
    const isFull = isAhead || queue.span >= AHEAD_AT_MOST_MS || queue.bytes >= AHEAD_BYTES;
    const isRead = !isFull || this.#search?.found !== true;
    if (isRead === this.#isRead) return;
    this.#isRead = isRead;
    this.#silence?.close();
    if (isRead) this.#silence = this.#watch();
    this.#child?.read(isRead);
  }

  #fail(reason: string): void {
    this.#end(reason);
    this.#child?.kill();
  }

  #gone(failure: string | undefined): void {
    for (const lane of this.#lanes) lane?.end();
    this.#search?.end();
    this.#end(failure);
  }

  #end(failure: string | undefined): void {
    if (this.#closed || this.#state === 'ended') return;
    this.#state = 'ended';
    this.#failure = failure;
    this.#silence?.close();
    this.#options.onChange();
  }
}
