import { BitstreamError } from '../codecs/bits.ts';
import { timeIn, type FileMuxer, type Origin } from '../containers/file-muxer.ts';
import { TsMuxer } from '../containers/mpegts/muxer.ts';
import type { Pids } from '../containers/mpegts/pids.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import { AudioPesGroup } from '../packaging/audio-pes-group.ts';

export interface TsFileOptions {
  /** Shared by all files of a recording. */
  readonly pids?: Pids;
  /** Called for frames that cannot be carried, which are dropped. */
  readonly onFault: (fault: string) => void;
  readonly origin?: Origin | undefined;
}

/** MPEG-TS file. One PES packet carries several audio frames. */
export class TsFile implements FileMuxer {
  readonly full = false;
  readonly #muxer: TsMuxer;
  readonly #tracks: Set<number>;
  readonly #groups = new Map<number, AudioPesGroup>();
  readonly #onFault: (fault: string) => void;
  #origin: Origin | undefined;

  constructor(tracks: readonly Track[], { pids, onFault, origin }: TsFileOptions) {
    this.#muxer = new TsMuxer(tracks, pids);
    this.#tracks = new Set(tracks.map(({ id }) => id));
    this.#onFault = onFault;
    this.#origin = origin;
  }

  get origin(): Origin | undefined {
    return this.#origin;
  }

  write(packet: Packet): readonly Buffer[] {
    const { track, key, data } = packet;
    if (!this.#has(track)) return [];
    this.#origin ??= { time: packet.dts, timebase: track.timebase };
    const dts = timeIn(this.#origin, packet.dts, track.timebase);
    const pts = timeIn(this.#origin, packet.pts, track.timebase);
    const now = toSeconds(dts, track.timebase);
    const out = [...this.#groups.values()].flatMap((group) => this.#written(group.due(now)));
    if (track.type !== 'audio') return [...out, ...this.#written([{ track, dts, pts, key, data: [data] }])];
    try {
      const { units, group } = this.#groupOf(track);
      out.push(...this.#written([...units, ...group.push({ ...packet, dts, pts })]));
    } catch (error) {
      this.#leaveOut(error);
    }
    return out;
  }

  end() {
    const tail = [...this.#groups.values()].flatMap((group) => this.#written(group.take()));
    return { tail, patches: [] };
  }

  /** Data tracks join a stream with their first event. */
  #has(track: Track): boolean {
    if (track.type === 'data' && !this.#tracks.has(track.id)) {
      this.#tracks.add(track.id);
      this.#muxer.addTracks([track]);
    }
    return this.#tracks.has(track.id);
  }

  /** @returns also the units left from an earlier configuration of the track */
  #groupOf(track: MediaTrack): { readonly group: AudioPesGroup; readonly units: readonly TsUnit[] } {
    const known = this.#groups.get(track.id);
    if (known?.track === track) return { group: known, units: [] };
    const group = new AudioPesGroup(track);
    this.#groups.set(track.id, group);
    return { group, units: known?.take() ?? [] };
  }

  #written(units: readonly TsUnit[]): Buffer[] {
    return units.flatMap((unit) => {
      try {
        return [this.#muxer.writeUnit(unit)];
      } catch (error) {
        this.#leaveOut(error);
        return [];
      }
    });
  }

  #leaveOut(error: unknown): void {
    if (!(error instanceof BitstreamError)) throw error;
    this.#onFault(error.message);
  }
}
