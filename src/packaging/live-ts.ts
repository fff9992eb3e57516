import { BitstreamError } from '../codecs/bits.ts';
import { TsMuxer, type Omitted } from '../containers/mpegts/muxer.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import { LiveSound } from './sound-group.ts';

export interface LiveTsEvents {
  /** A frame of video, a few of audio or an event, as whole transport packets. */
  readonly unit: (unit: TsUnit, data: Buffer) => void;
  /** What cannot be carried is left out, for this reason. */
  readonly leftOut: (reason: string) => void;
}

/** The MPEG-TS of tracks while their packets come: several frames of audio go in one PES packet. */
export class LiveTs {
  readonly #events: LiveTsEvents;
  readonly #muxer = new TsMuxer([]);
  /** Frames of audio go in groups, by the id of their track: most of a transport packet would be filling. */
  readonly #sounds = new Map<number, LiveSound>();
  #carried: readonly Track[] = [];

  constructor(events: LiveTsEvents) {
    this.#events = events;
  }

  /** The tracks that have a place in it. */
  get carried(): readonly Track[] {
    return this.#carried;
  }

  /** Those that have none. */
  get omitted(): readonly Omitted[] {
    return this.#muxer.omitted;
  }

  /** Sets or replaces the tracks; what waits for more is put out before. */
  setTracks(tracks: readonly Track[]): void {
    this.flush();
    this.#muxer.setTracks(tracks);
    const omitted = new Set(this.#muxer.omitted.map(({ track }) => track));
    this.#carried = tracks.filter((track) => !omitted.has(track));
  }

  /** Takes a packet of a track that is carried. */
  write(packet: Packet): void {
    const { track, dts, pts, key, data } = packet;
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

  /** Puts out what waits for more. */
  flush(): void {
    for (const sound of this.#sounds.values()) for (const unit of sound.take()) this.#send(unit);
    this.#sounds.clear();
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
      if (data.length > 0) this.#events.unit(unit, data);
    } catch (error) {
      this.#leaveOut(error);
    }
  }

  #leaveOut(error: unknown): void {
    if (!(error instanceof BitstreamError)) throw error;
    this.#events.leftOut(error.message);
  }
}
