import { BitstreamError } from '../../codecs/bits.ts';
import { TsMuxer } from '../../containers/mpegts/muxer.ts';
import { delayed } from '../../core/delayed-stream.ts';
import type { Packet } from '../../core/packet.ts';
import type { Consumer, Reader, ReaderLimits } from '../../core/reader.ts';
import { Stream, type OutputStream } from '../../core/stream.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { MediaTrack, Track } from '../../core/track.ts';
import type { TsUnit } from '../../containers/mpegts/planned-unit.ts';
import type { FaultLog } from '../../log.ts';
import { LiveSound } from '../../packaging/sound-group.ts';
import { tracksOf } from './selection.ts';

/** What a viewer who is slow may be behind; then it goes on at the next key frame. */
const LIMITS: ReaderLimits = { bytes: 8 * 1024 * 1024, seconds: 3 };

export interface TsFeedOptions {
  /** Of the playlist. */
  readonly fileName: string;
  /** By which it comes later than the output, in milliseconds. */
  readonly delayMs: number;
  readonly faults: FaultLog;
  readonly onEnd: () => void;
}

/**
 * The MPEG-TS of one playlist of an output stream, made once for all its viewers: a stream whose packets are those of the
 * output, several frames of a sound in one, with whole transport packets as their data. It ends with its last viewer.
 */
export class TsFeed implements Consumer {
  readonly #output: OutputStream;
  readonly #options: TsFeedOptions;
  /** The output, or what it was a while ago. */
  readonly #source: Stream;
  readonly #muxer = new TsMuxer([]);
  readonly #stream: Stream;
  readonly #reader: Reader;
  #selected = new Set<number>();
  /** Frames of sound go in groups, by the id of their track: most of a transport packet would be filling. */
  readonly #sounds = new Map<number, LiveSound>();
  #viewers = 0;

  constructor(output: OutputStream, options: TsFeedOptions) {
    this.#output = output;
    this.#options = options;
    this.#source = delayed(output, options.delayMs);
    this.#stream = new Stream(output.name, output.counters);
    this.#select();
    this.#source.on('tracks', this.#select);
    this.#reader = this.#source.read(this);
  }

  /** What is sent, now. */
  get tracks(): readonly Track[] {
    return this.#stream.tracks;
  }

  /** A viewer comes; call the answer, once, when it has gone. */
  attach(viewer: Consumer): { reader: Reader; detach: () => void } {
    this.#viewers++;
    const reader = this.#stream.read(viewer, LIMITS);
    this.#output.wantKey();
    const detach = (): void => {
      reader.close();
      if (--this.#viewers === 0) this.close('no viewers are left');
    };
    return { reader, detach };
  }

  packet(packet: Packet): void {
    const { track, dts, pts, key, data } = packet;
    if (!this.#selected.has(track.id)) return;
    const now = toSeconds(dts, track.timebase);
    for (const sound of this.#sounds.values()) for (const unit of sound.due(now)) this.#send(unit);
    if (track.type !== 'audio') {
      this.#send({ track, dts, pts, key, data: [data] });
      return;
    }
    try {
      for (const unit of this.#soundOf(track).push(packet)) this.#send(unit);
    } catch (error) {
      this.#leaveOut(error);
    }
  }

  /** Ends every viewer. Idempotent. */
  close(reason: string): void {
    if (this.#stream.closed) return;
    this.#flush();
    this.#reader.close();
    this.#source.off('tracks', this.#select);
    this.#options.onEnd();
    this.#stream.close(reason);
  }

  #soundOf(track: MediaTrack): LiveSound {
    const known = this.#sounds.get(track.id);
    if (known?.track === track) return known;
    for (const unit of known?.take() ?? []) this.#send(unit);
    const sound = new LiveSound(track);
    this.#sounds.set(track.id, sound);
    return sound;
  }

  #send(unit: TsUnit): void {
    try {
      const data = this.#muxer.writeUnit(unit);
      if (data.length > 0) this.#stream.write({ ...unit, duration: 0, data });
    } catch (error) {
      this.#leaveOut(error);
    }
  }

  #leaveOut(error: unknown): void {
    if (!(error instanceof BitstreamError)) throw error;
    this.#options.faults.count(`not sent over SRT: ${error.message}`);
  }

  /** Sends what waits for more. */
  #flush(): void {
    for (const sound of this.#sounds.values()) for (const unit of sound.take()) this.#send(unit);
    this.#sounds.clear();
  }

  readonly #select = (): void => {
    this.#flush();
    const playlist = this.#output.playlist(this.#options.fileName);
    const tracks = playlist === undefined ? [] : tracksOf(this.#source.tracks, playlist);
    this.#muxer.setTracks(tracks);
    const omitted = new Set(this.#muxer.omitted.map(({ track }) => track));
    const carried = tracks.filter((track) => !omitted.has(track));
    this.#selected = new Set(carried.map(({ id }) => id));
    this.#stream.setTracks(carried);
  };
}
