import type { Packet } from '../../core/packet.ts';
import { MILLISECONDS, rescale, toSeconds } from '../../core/timebase.ts';
import type { MediaTrack } from '../../core/track.ts';
import { earliest, timeIn, type FileMuxer, type Origin, type Patch } from '../file-muxer.ts';
import { element, elementHead, filler, float, ID, size64, text, uint, uint64, UNKNOWN_SIZE, vint } from './ebml.ts';
import { trackEntry } from './tracks.ts';

const TIMESTAMP_SCALE = 1_000_000;
const CLUSTER_SECONDS = 1;
/** Longest time between the first block of a cluster and another. */
const MAX_APART_SECONDS = 10;
const CLUSTER_BYTES = 8 * 1024 * 1024;
const MAX_CUES = 1024 * 1024;
const KEY = 0x80;
const SEEK_HEAD_BYTES = element(ID.SeekHead, seek(ID.Info, 0), seek(ID.Tracks, 0), seek(ID.Cues, 0)).length;
const DURATION_BYTES = float(ID.Duration, 0).length;

interface Part {
  readonly number: number;
  readonly track: MediaTrack;
}

/**
 * WebM file (RFC 9559). It begins with a segment of unknown size and grows by whole clusters; its end adds size,
 * duration, cues, and their positions.
 */
export class WebmFile implements FileMuxer {
  readonly #parts: ReadonlyMap<number, Part>;
  readonly #leader: MediaTrack | undefined;
  readonly #head: Buffer;
  readonly #segmentAt: number;
  readonly #durationAt: number;
  /** Positions of Info and Tracks in the segment. */
  readonly #places: readonly [info: number, tracks: number];
  #origin: Origin | undefined;
  #written = 0;
  #blocks: Packet[] = [];
  #bytes = 0;
  /** Time, track and position in the segment of clusters that begin with a key frame. */
  readonly #cues: (readonly [time: number, track: number, at: number])[] = [];
  /** In milliseconds. */
  #duration = 0;

  /**
   * @param tracks of codecs that `isWebm` knows
   * @param origin of an earlier file that this one continues; else the first packets are at 0
   * @throws BitstreamError for a malformed configuration
   */
  constructor(tracks: readonly MediaTrack[], origin?: Origin) {
    this.#origin = origin;
    this.#parts = new Map(tracks.map((track, index) => [track.id, { number: index + 1, track }]));
    this.#leader = tracks.find(({ type }) => type === 'video') ?? tracks[0];
    const type = element(
      ID.EBML,
      uint(ID.EBMLVersion, 1),
      uint(ID.EBMLReadVersion, 1),
      uint(ID.EBMLMaxIDLength, 4),
      uint(ID.EBMLMaxSizeLength, 8),
      text(ID.DocType, 'webm'),
      uint(ID.DocTypeVersion, 4),
      uint(ID.DocTypeReadVersion, 2),
    );
    const segment = Buffer.concat([Buffer.from('18538067', 'hex'), UNKNOWN_SIZE]);
    const info = element(
      ID.Info,
      uint(ID.TimestampScale, TIMESTAMP_SCALE),
      text(ID.MuxingApp, 'Kiln'),
      text(ID.WritingApp, 'Kiln'),
      filler(DURATION_BYTES),
    );
    const entries = element(
      ID.Tracks,
      ...Array.from(this.#parts.values(), ({ track, number }) => trackEntry(track, number)),
    );
    this.#segmentAt = type.length + segment.length;
    this.#places = [SEEK_HEAD_BYTES, SEEK_HEAD_BYTES + info.length];
    this.#durationAt = this.#segmentAt + SEEK_HEAD_BYTES + info.length - DURATION_BYTES;
    this.#head = Buffer.concat([type, segment, filler(SEEK_HEAD_BYTES), info, entries]);
  }

  get origin(): Origin | undefined {
    return this.#origin ?? this.#beginning();
  }

  get full(): boolean {
    return this.#cues.length >= MAX_CUES;
  }

  write(packet: Packet): readonly Buffer[] {
    if (!this.#parts.has(packet.track.id)) return [];
    const first = this.#blocks.find(({ track }) => track.id === packet.track.id);
    const isDue =
      (first !== undefined && toSeconds(packet.dts - first.dts, packet.track.timebase) >= CLUSTER_SECONDS) ||
      this.#isFarOff(packet);
    const isKey = packet.key && packet.track.type === 'video' && packet.track.id === this.#leader?.id;
    const out = isDue || isKey || this.#bytes > CLUSTER_BYTES ? this.#cut() : [];
    this.#blocks.push(packet);
    this.#bytes += packet.data.length;
    return out;
  }

  end(): { readonly tail: readonly Buffer[]; readonly patches: readonly Patch[] } {
    const last = this.#cut();
    if (this.#written === 0) return { tail: [], patches: [] };
    const cuesAt = this.#written - this.#segmentAt;
    const cues = element(
      ID.Cues,
      ...this.#cues.map(([time, track, at]) =>
        element(
          ID.CuePoint,
          uint(ID.CueTime, time),
          element(ID.CueTrackPositions, uint(ID.CueTrack, track), uint(ID.CueClusterPosition, at)),
        ),
      ),
    );
    const [info, tracks] = this.#places;
    const hasCues = this.#cues.length > 0;
    const seekHead = element(ID.SeekHead, seek(ID.Info, info), seek(ID.Tracks, tracks), seek(ID.Cues, cuesAt));
    const patches = [
      { at: this.#segmentAt - UNKNOWN_SIZE.length, data: size64(cuesAt + (hasCues ? cues.length : 0)) },
      { at: this.#durationAt, data: float(ID.Duration, this.#duration) },
    ];
    if (!hasCues) return { tail: last, patches };
    return { tail: [...last, cues], patches: [...patches, { at: this.#segmentAt, data: seekHead }] };
  }

  /** Time of the first waiting packet. */
  #beginning(): Origin | undefined {
    return earliest(this.#blocks.map(({ pts, track: { timebase } }) => ({ time: pts, timebase })));
  }

  /** Writes all waiting packets as a cluster. */
  #cut(): Buffer[] {
    const blocks = this.#blocks;
    if (blocks.length === 0) return [];
    this.#origin ??= this.#beginning();
    const times = blocks.map((packet) => this.#timeOf(packet));
    const start = Math.min(...times);
    const pieces = blocks.flatMap(({ track, key, data }, index) => {
      const { number } = this.#parts.get(track.id) as Part;
      const place = vint(number);
      const head = Buffer.alloc(place.length + 3);
      place.copy(head);
      head.writeInt16BE((times[index] as number) - start, place.length);
      head[place.length + 2] = key ? KEY : 0;
      return [Buffer.concat([elementHead(ID.SimpleBlock, head.length + data.length), head]), data];
    });
    const timestamp = uint(ID.Timestamp, start);
    const size = pieces.reduce((bytes, { length }) => bytes + length, timestamp.length);
    const begin = this.#written === 0 ? [this.#head] : [];
    const at = (this.#written || this.#head.length) - this.#segmentAt;
    const out = [...begin, elementHead(ID.Cluster, size), timestamp, ...pieces];
    const [first] = blocks;
    if (first?.key && first.track.id === this.#leader?.id) {
      this.#cues.push([times[0] as number, (this.#parts.get(first.track.id) as Part).number, at]);
    }
    this.#written += out.reduce((bytes, { length }) => bytes + length, 0);
    this.#noteDuration(blocks, times);
    this.#blocks = [];
    this.#bytes = 0;
    return out;
  }

  /** Whether a packet is too far from the cluster's time for the 16 bits of a block's time. */
  #isFarOff({ pts, track }: Packet): boolean {
    const [first] = this.#blocks;
    if (first === undefined) return false;
    const apart = toSeconds(pts, track.timebase) - toSeconds(first.pts, first.track.timebase);
    return Math.abs(apart) > MAX_APART_SECONDS;
  }

  /** In milliseconds of the file. */
  #timeOf({ pts, track: { timebase } }: Packet): number {
    return Math.max(0, rescale(timeIn(this.#origin as Origin, pts, timebase), timebase, MILLISECONDS));
  }

  /** Extends the duration to the end of the last frame, if known. */
  #noteDuration(blocks: readonly Packet[], times: readonly number[]): void {
    for (const [index, { duration, track }] of blocks.entries()) {
      const end = (times[index] as number) + rescale(duration, track.timebase, MILLISECONDS);
      if (end > this.#duration) this.#duration = end;
    }
  }
}

/** Position of an element of the first level in the segment. */
function seek(id: number, at: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(id);
  return element(ID.Seek, element(ID.SeekID, bytes), uint64(ID.SeekPosition, at));
}
