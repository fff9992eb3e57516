import { BitstreamError } from '../../codecs/bits.ts';
import { NutError } from '../../containers/nut/error.ts';
import { NutReader } from '../../containers/nut/reader.ts';
import { VIDEO_TIMEBASE } from '../../core/timebase.ts';
import { Timeline } from '../../core/timeline.ts';
import type { MediaTrack } from '../../core/track.ts';
import { FileLane } from '../scheduled/file-lane.ts';
import { unitLength, type ItemUnit } from '../scheduled/item-source.ts';
import { MediaError } from '../scheduled/media-error.ts';
import { UnitQueue } from '../scheduled/unit-queue.ts';

const AHEAD_MS = 1000;
const CHUNK_BYTES = 64 * 1024;
const WISHES = { video: true, audio: [] };

/** Part of `FileHandle`. */
export interface SlateFile {
  read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ readonly bytesRead: number; readonly buffer: Buffer }>;
}

/** One time through an encoded slate: its units from time 0 on, as those of the publisher's tracks, read a little ahead. */
export class SlatePass {
  readonly queue = new UnitQueue();
  readonly #file: SlateFile;
  readonly #reader: NutReader;
  readonly #frame: number;
  /** By id. */
  readonly #tracks = new Map<number, MediaTrack>();
  #lanes: readonly FileLane[] = [];
  #at = 0;
  /** Milliseconds up to which video is shown, and audio heard. */
  #videoEnd = 0;
  #audioEnd = 0;
  #isRead = false;
  #filling: Promise<void> | undefined;

  /**
   * @param tracks of the publisher, in the order of the slate's streams
   * @param frameMs duration of a video frame
   */
  constructor(file: SlateFile, tracks: readonly MediaTrack[], frameMs: number) {
    this.#file = file;
    this.#frame = frameMs;
    const timeline = new Timeline({ timebase: VIDEO_TIMEBASE, bits: 62 }, false, null);
    this.#reader = new NutReader({
      streams: (streams) => {
        this.#lanes = tracks.map((track, index) => {
          const { type, codec } = track;
          const stream = streams[index];
          if (stream === undefined) throw new NutError('a stream is missing');
          const taken = { type, codec, stream: { index, codec } };
          const onUnit = (unit: ItemUnit): void => this.#push(unit, track);
          return new FileLane({ taken, place: 0, wishes: WISHES, stream, timeline, onUnit });
        });
      },
      frame: (frame) => {
        const fault = this.#lanes[frame.stream]?.push(frame);
        if (fault !== undefined) throw new NutError(fault);
      },
    });
  }

  /** Tracks of the slate, with the identity of the publisher's; complete after `fill`. */
  get tracks(): readonly MediaTrack[] {
    return [...this.#tracks.values()];
  }

  /** Milliseconds of the whole slate, by its video if it has any; undefined until it was read to its end. */
  get length(): number | undefined {
    return this.#isRead ? this.#videoEnd || this.#audioEnd : undefined;
  }

  /** Reads until enough is queued, or to the end. @throws MediaError */
  fill(): Promise<void> {
    this.#filling ??= this.#fill().finally(() => (this.#filling = undefined));
    return this.#filling;
  }

  async #fill(): Promise<void> {
    try {
      while (!this.#isRead && (this.queue.span < AHEAD_MS || this.queue.filled < this.#lanes.length)) {
        const { bytesRead, buffer } = await this.#file.read(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES, this.#at);
        this.#at += bytesRead;
        if (bytesRead > 0) this.#reader.push(buffer.subarray(0, bytesRead));
        else this.#finish();
      }
    } catch (error) {
      throw new MediaError(`the slate cannot be read: ${(error as Error).message}`);
    }
  }

  #finish(): void {
    this.#isRead = true;
    for (const lane of this.#lanes) lane.end();
    if (this.#videoEnd + this.#audioEnd === 0) throw new BitstreamError('it is empty');
  }

  #push(unit: ItemUnit, publisher: MediaTrack): void {
    const known = this.#tracks.get(publisher.id);
    const track = known ?? likePublisher(unit.track as MediaTrack, publisher);
    if (known === undefined) this.#tracks.set(track.id, track);
    if (track.type === 'video') this.#videoEnd = Math.max(this.#videoEnd, unit.shownAt + this.#frame);
    else this.#audioEnd = Math.max(this.#audioEnd, unit.shownAt + unitLength(unit));
    this.queue.push({ ...unit, track });
  }
}

/** Format of a slate's track, with all else of the publisher's. */
function likePublisher(slate: MediaTrack, publisher: MediaTrack): MediaTrack {
  const { id, name, bitrate, language, characteristics, publicName } = publisher;
  const named = {
    ...(language !== undefined && { language }),
    ...(characteristics !== undefined && { characteristics }),
    ...(publicName !== undefined && { publicName }),
  };
  if (slate.type === 'audio' || publisher.type === 'audio')
    return Object.freeze({ ...slate, id, name, bitrate, ...named });
  const { framerate, keyFrameInterval } = publisher;
  return Object.freeze({ ...slate, id, name, bitrate, framerate, keyFrameInterval, ...named });
}
