import { BitstreamError } from '../codecs/bits.ts';
import { TsMuxer, type Omitted } from '../containers/mpegts/muxer.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import { AudioPesGroup } from './audio-pes-group.ts';

export interface LiveTsEvents {
  /** A frame of video, a few of audio or an event, as whole transport packets. */
  readonly unit: (unit: TsUnit, data: Buffer) => void;
  /** A frame was left out because MPEG-TS cannot carry it. */
  readonly leftOut: (reason: string) => void;
}

/** Writes live packets as MPEG-TS, with several audio frames in one PES packet. */
export class LiveTs {
  readonly #events: LiveTsEvents;
  readonly #muxer = new TsMuxer([]);
  /** By track id. Grouped, because a transport packet for one audio frame would be mostly stuffing. */
  readonly #groups = new Map<number, AudioPesGroup>();
  #carried: readonly Track[] = [];

  constructor(events: LiveTsEvents) {
    this.#events = events;
  }

  /** Tracks that MPEG-TS can carry. */
  get carried(): readonly Track[] {
    return this.#carried;
  }

  /** Tracks that MPEG-TS cannot carry. */
  get omitted(): readonly Omitted[] {
    return this.#muxer.omitted;
  }

  /** Sets or replaces the tracks, after writing incomplete groups. */
  setTracks(tracks: readonly Track[]): void {
    this.flush();
    this.#muxer.setTracks(tracks);
    const omitted = new Set(this.#muxer.omitted.map(({ track }) => track));
    this.#carried = tracks.filter((track) => !omitted.has(track));
  }

  write(packet: Packet): void {
    const { track, dts, pts, key, data } = packet;
    const now = toSeconds(dts, track.timebase);
    for (const group of this.#groups.values()) for (const unit of group.due(now)) this.#send(unit);
    if (track.type !== 'audio') {
      this.#send({ track, dts, pts, key, data: [data] });
      return;
    }
    try {
      for (const unit of this.#groupOf(track).push(packet)) this.#send(unit);
    } catch (error) {
      this.#leaveOut(error);
    }
  }

  flush(): void {
    for (const group of this.#groups.values()) for (const unit of group.take()) this.#send(unit);
    this.#groups.clear();
  }

  #groupOf(track: MediaTrack): AudioPesGroup {
    const known = this.#groups.get(track.id);
    if (known?.track === track) return known;
    for (const unit of known?.take() ?? []) this.#send(unit);
    const group = new AudioPesGroup(track);
    this.#groups.set(track.id, group);
    return group;
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
