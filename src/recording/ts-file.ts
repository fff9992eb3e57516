import { BitstreamError } from '../codecs/bits.ts';
import { timeIn, type FileMuxer, type Origin } from '../containers/file-muxer.ts';
import { TsMuxer } from '../containers/mpegts/muxer.ts';
import type { Pids } from '../containers/mpegts/pids.ts';
import type { TsUnit } from '../containers/mpegts/planned-unit.ts';
import type { Packet } from '../core/packet.ts';
import { toSeconds } from '../core/timebase.ts';
import type { MediaTrack, Track } from '../core/track.ts';
import { LiveSound } from '../packaging/sound-group.ts';

export interface TsFileOptions {
  /** Of all files of a recording. */
  readonly pids?: Pids;
  /** Called for frames that cannot be carried, which are left out. */
  readonly onFault: (fault: string) => void;
  readonly origin?: Origin | undefined;
}

/** An MPEG-TS file. One PES packet carries several audio frames. */
export class TsFile implements FileMuxer {
  readonly full = false;
  readonly #muxer: TsMuxer;
  readonly #tracks: Set<number>;
  readonly #sounds = new Map<number, LiveSound>();
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
    const out = [...this.#sounds.values()].flatMap((sound) => this.#written(sound.due(now)));
    if (track.type !== 'audio') return [...out, ...this.#written([{ track, dts, pts, key, data: [data] }])];
    try {
      const { units, sound } = this.#soundOf(track);
      out.push(...this.#written([...units, ...sound.push({ ...packet, dts, pts })]));
    } catch (error) {
      this.#leaveOut(error);
    }
    return out;
  }

  end() {
    const tail = [...this.#sounds.values()].flatMap((sound) => this.#written(sound.take()));
    return { tail, patches: [] };
  }

  /** Tracks of events come to a stream with their first one. */
  #has(track: Track): boolean {
    if (track.type === 'data' && !this.#tracks.has(track.id)) {
      this.#tracks.add(track.id);
      this.#muxer.addTracks([track]);
    }
    return this.#tracks.has(track.id);
  }

  /** @returns also what waited in the one of another configuration */
  #soundOf(track: MediaTrack): { readonly sound: LiveSound; readonly units: readonly TsUnit[] } {
    const known = this.#sounds.get(track.id);
    if (known?.track === track) return { sound: known, units: [] };
    const sound = new LiveSound(track);
    this.#sounds.set(track.id, sound);
    return { sound, units: known?.take() ?? [] };
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
